/* SPDX-License-Identifier: Apache-2.0 */
/* The load generator against a socket that takes and gives little at a time: requests arrive whole, answers are counted
 * once however they are cut, and requests that wait for a connection are sent in the order in which they were due. */
#include "oom.h"
#include "load_socket.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "serve/load/history.h"

enum { BODIES = 2, BODY_BYTES = 3 << 20 };

/* What comes back, with pauses where a `|` stands. */
static const char *const replies[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
    "HT|TP/1.1 2|00 OK\r|\nContent-L|ength: 1|0\r\n\r|\n0123|456789",
    "HTTP/1.1 200 OK\r\nX: y\r\ncontent-length:10\r\n\r\n|0123456|789",
    "HTTP/1.1 5|03 No\r\nContent-Length: 3\r\n\r\nno|w",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r|\n",
};
enum { REPLIES = sizeof replies / sizeof *replies };

struct server {
    int socket;
    uint16_t port;
    const char *const *replies; /* in turn */
    int reply_count;
    bool dawdles; /* reads nothing for a moment, so that the socket of the client is full */
    bool closes;  /* the connection with each answer */
    int served, wrong;
    _Atomic bool ends;
    const struct sl_buf *texts;
};

/* False: the client has closed the connection, or has sent something else. */
static bool read_request(struct server *s, int connection)
{
    static char got[BODY_BYTES + 100];
    const struct sl_buf *text = &s->texts[s->served % BODIES];
    size_t count = 0;
    if (s->dawdles)
        usleep(20000);
    while (count < text->length_bytes) {
        const ssize_t bytes = recv(connection, got + count, text->length_bytes - count, 0);
        if (bytes <= 0) {
            s->wrong += count > 0;
            return false;
        }
        count += (size_t)bytes;
    }
    s->wrong += memcmp(got, text->data, count) != 0;
    return true;
}

/* `closes`: what is sent waits for the end of the connection. */
static bool send_reply(int connection, const char *reply, bool closes)
{
    while (*reply) {
        const size_t bytes = strcspn(reply, "|");
        if (send(connection, reply, bytes, MSG_NOSIGNAL | (closes ? MSG_MORE : 0)) != (ssize_t)bytes)
            return false;
        reply += bytes;
        if (*reply) {
            usleep(1000);
            reply++;
        }
    }
    return true;
}

static void *serve(void *context)
{
    struct server *s = context;
    const int one = 1;
    while (!s->ends) {
        const int connection = accept(s->socket, NULL, NULL);
        if (connection >= 0)
            setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        while (connection >= 0 && read_request(s, connection))
            if (!send_reply(connection, s->replies[s->served++ % s->reply_count], s->closes) || s->closes)
                break;
        if (connection >= 0)
            close(connection);
    }
    return NULL;
}

/* Requests with so many bytes behind their heads, none like the other. */
static struct sl_load_result load(struct server *s, size_t body_bytes, double rate, double seconds,
                                  struct sl_history *history)
{
    struct sl_buf texts[BODIES] = {{0}};
    s->socket = load_listen(4096, &s->port);
    s->texts = texts;
    for (int k = 0; k < BODIES; k++) {
        sl_buf_printf(&texts[k], "POST /%d HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", k, body_bytes);
        for (size_t at = 0; at < body_bytes; at++)
            sl_buf_append_char(&texts[k], (char)('!' + (at * 7 + at / 93 + (size_t)k) % 90));
        assert_false(texts[k].failed);
    }
    const struct sl_load_bodies bodies = {.requests = texts, .count = BODIES};
    const struct sl_load_request request = {.address = "127.0.0.1",
                                            .port = s->port,
                                            .bodies = &bodies,
                                            .rate = rate,
                                            .connections = 1,
                                            .seconds = seconds,
                                            .history = history};
    const struct sl_load_result result = load_run(&request, s->socket, serve, s, &s->ends);
    for (int k = 0; k < BODIES; k++)
        sl_buf_deinit(&texts[k]);
    return result;
}

static void answers_are_counted_however_they_are_cut(void **state)
{
    (void)state;
    struct server s = {.replies = replies, .reply_count = REPLIES};
    const struct sl_load_result result = load(&s, 0, 200, 0.2, NULL);
    int refused = 0;
    for (int k = 0; k < s.served; k++)
        refused += k % REPLIES == 3;
    assert_true(s.served >= REPLIES);
    assert_int_equal(s.wrong, 0);
    assert_int_equal(result.failed, refused);
    assert_int_equal(result.answered, s.served - refused);
    assert_int_equal(result.lost, 0);
}

/* Bytes behind an answer that are not of it: it is no answer, whether they come with its head or later. */
static void surplus_bytes_are_no_answer(void **state)
{
    (void)state;
    static const char *const surplus[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody?", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n|body?",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nContent-Length: 26\r\n\r\nbody"};
    for (int k = 0; k < 4; k++) {
        struct server s = {.replies = &surplus[k], .reply_count = 1};
        const struct sl_load_result result = load(&s, 0, 100, 0.05, NULL);
        assert_int_equal(result.answered + result.failed, 0);
        assert_int_equal(result.lost, s.served);
    }
}

/* A server that keeps no connection: the next request goes out on another. One that was due at once may be lost. */
static void connections_that_end_are_made_again(void **state)
{
    (void)state;
    struct server s = {.replies = replies, .reply_count = 1, .closes = true};
    const struct sl_load_result result = load(&s, 0, 100, 0.3, NULL);
    assert_int_equal(result.answered, s.served);
    assert_true(result.answered > result.lost + 2); /* not every second one is lost */
    assert_int_equal(result.failed, 0);
}

/* Requests of more bytes than sockets hold, which are read only after a while. */
static void large_requests_are_sent_whole(void **state)
{
    (void)state;
    struct server s = {.replies = replies, .reply_count = 1, .dawdles = true};
    const struct sl_load_result result = load(&s, BODY_BYTES, 40, 0.3, NULL);
    assert_true(result.answered >= 1);
    assert_int_equal(s.wrong, 0);
    assert_int_equal(result.answered, s.served);
    assert_int_equal(result.lost + result.failed, 0);
}

/* More wait than there is room for at first, while others are sent. */
static void requests_are_sent_in_the_order_in_which_they_were_due(void **state)
{
    (void)state;
    struct server s = {.replies = replies, .reply_count = 1};
    struct sl_history history;
    sl_history_init(&history);
    const struct sl_load_result result = load(&s, 0, 2e5, 0.03, &history);
    assert_true(result.answered > 3000);
    assert_int_equal(result.answered, s.served);
    assert_int_equal(history.count, result.answered);
    assert_int_equal(s.wrong, 0);
    for (int64_t k = 1; k < history.count; k++)
        assert_true(history.events[k - 1].begin_ns <= history.events[k].begin_ns);
    sl_history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_counted_however_they_are_cut),
        cmocka_unit_test(surplus_bytes_are_no_answer),
        cmocka_unit_test(connections_that_end_are_made_again),
        cmocka_unit_test(large_requests_are_sent_whole),
        cmocka_unit_test(requests_are_sent_in_the_order_in_which_they_were_due),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

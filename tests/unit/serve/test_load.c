/* SPDX-License-Identifier: Apache-2.0 */
/* The load generator counts as the server does that it asks: what was answered, what was refused, and what was lost. */
#include "oom.h"
#include "load_socket.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/interrupt.h"
#include "serve/load/history.h"

/* What a server does with a request. */
enum deed { ANSWER, REFUSE, ACCEPT, CLOSE, CUT_HEAD, CUT_BODY, NO_LENGTH, OTHER_PROTOCOL, OLD_PROTOCOL, DEEDS };

static const char *const replies[DEEDS] = {
    [ANSWER] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    [REFUSE] = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nfull",
    [ACCEPT] = "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}",
    [CLOSE] = "",
    [CUT_HEAD] = "HTTP/1.1 200 OK\r\nContent-",
    [CUT_BODY] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
    [NO_LENGTH] = "HTTP/1.1 200 OK\r\n\r\n{}",
    [OLD_PROTOCOL] = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    [OTHER_PROTOCOL] = "SSH-2.0-server\r\nContent-Length: 2\r\n\r\n{}",
};

struct server {
    int socket;
    uint16_t port;
    const enum deed *deeds; /* of the requests in turn, again and again */
    int deed_count;
    int done[DEEDS];
    char asked[4096]; /* the letter of each request */
    int asked_count;
    int pause_us; /* before each reply, */
    int quick;    /* but the first ones */
    _Atomic bool ends;
};

static const char request_text[] = "POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n"; /* or b, or c */
enum { LETTER = 6, BODIES = 3 };
static int64_t lengths[BODIES] = {11, 5, 8}; /* steps of their sequences */

/* False: the client has closed the connection. */
static bool read_request(struct server *s, int connection)
{
    char got[sizeof request_text];
    size_t count = 0;
    while (count < strlen(request_text)) {
        const ssize_t bytes = recv(connection, got + count, strlen(request_text) - count, 0);
        if (bytes <= 0)
            return false;
        count += (size_t)bytes;
    }
    s->asked[s->asked_count++ % (int)sizeof s->asked] = got[LETTER];
    got[LETTER] = request_text[LETTER];
    return memcmp(got, request_text, count) == 0;
}

/* One connection after the other. All but answers and refusals end it. */
static void *serve(void *context)
{
    struct server *s = context;
    for (int turn = 0; !s->ends;) {
        const int connection = accept(s->socket, NULL, NULL);
        bool goes_on = connection >= 0;
        while (goes_on && read_request(s, connection)) {
            const enum deed deed = s->deeds[turn++ % s->deed_count];
            s->done[deed]++;
            usleep(s->asked_count > s->quick ? (useconds_t)s->pause_us : 0);
            goes_on = send(connection, replies[deed], strlen(replies[deed]), MSG_NOSIGNAL) >= 0 && deed < CLOSE;
        }
        if (connection >= 0)
            close(connection);
    }
    return NULL;
}

/* Asks with one connection, `rate` times in a second (0: the closed loop), until all that has come has its answer. */
static struct sl_load_result load_at(struct server *s, double rate, double seconds, struct sl_history *history)
{
    struct sl_buf texts[BODIES] = {{0}};
    s->socket = load_listen(0, &s->port);
    for (int k = 0; k < BODIES; k++) {
        sl_buf_append_text(&texts[k], request_text);
        texts[k].data[LETTER] = (char)('a' + k);
    }
    const struct sl_load_bodies bodies = {.requests = texts, .lengths = lengths, .count = BODIES};
    const struct sl_load_request request = {.address = "127.0.0.1",
                                            .port = s->port,
                                            .bodies = &bodies,
                                            .rate = rate,
                                            .connections = 1,
                                            .seconds = seconds,
                                            .history = history,
                                            .number = 5};
    const struct sl_load_result result = load_run(&request, s->socket, serve, s, &s->ends);
    for (int k = 0; k < BODIES; k++)
        sl_buf_deinit(&texts[k]);
    return result;
}

static struct sl_load_result load(struct server *s, struct sl_history *history)
{
    return load_at(s, 500, 0.1, history);
}

/* The requests come in turn, and what is noted of an answer is of its own request. */
static void several_requests_are_sent_in_turn(void **state)
{
    (void)state;
    static const enum deed deeds[] = {ANSWER, REFUSE, ANSWER, ANSWER};
    struct server s = {.deeds = deeds, .deed_count = 4};
    struct sl_history history;
    sl_history_init(&history);
    const struct sl_load_result result = load(&s, &history);
    assert_true(result.answered + result.failed == s.asked_count && s.asked_count < (int)sizeof s.asked);
    assert_int_equal(history.count, result.answered);
    for (int k = 0, answer = 0; k < s.asked_count; k++) {
        assert_int_equal(s.asked[k], 'a' + k % BODIES);
        if (deeds[k % 4] != ANSWER)
            continue;
        const struct sl_history_event *event = &history.events[answer++];
        assert_int_equal(event->number, 5);
        assert_int_equal(event->steps, lengths[k % BODIES]);
        assert_int_equal(event->rows, lengths[k % BODIES]);
        assert_int_equal(event->sequences, 1);
        assert_true(event->begin_ns < event->end_ns);
    }
    sl_history_deinit(&history);
}

static void each_request_is_counted_as_what_became_of_it(void **state)
{
    (void)state;
    static const enum deed deeds[][5] = {
        {ANSWER, ANSWER, ANSWER, ANSWER, ANSWER},     {REFUSE, ANSWER, REFUSE, ANSWER, ANSWER},
        {ANSWER, CLOSE, ANSWER, CLOSE, REFUSE},       {CUT_HEAD, ANSWER, CUT_HEAD, REFUSE, ANSWER},
        {CUT_BODY, ANSWER, REFUSE, ANSWER, CUT_BODY}, {NO_LENGTH, ANSWER, OTHER_PROTOCOL, REFUSE, ANSWER},
        {CLOSE, CLOSE, CLOSE, CLOSE, CLOSE},          {ACCEPT, OLD_PROTOCOL, ANSWER, ACCEPT, REFUSE},
    };
    for (size_t k = 0; k < sizeof deeds / sizeof *deeds; k++) {
        struct server s = {.deeds = deeds[k], .deed_count = 5};
        const struct sl_load_result result = load(&s, NULL);
        int lost = 0;
        for (int deed = CLOSE; deed < DEEDS; deed++)
            lost += s.done[deed];
        assert_true(s.done[ANSWER] + s.done[REFUSE] + s.done[ACCEPT] + lost > 5);
        assert_int_equal(result.answered, s.done[ANSWER]);
        assert_int_equal(result.failed, s.done[REFUSE] + s.done[ACCEPT]); /* all but 200 */
        assert_int_equal(result.lost, lost);
    }
}

/* The throughput of a closed loop and its latencies are those of the time after its start, if anything is answered
 * there. */
static void the_start_of_a_closed_loop_does_not_count(void **state)
{
    (void)state;
    static const enum deed deed = ANSWER;
    enum { QUICK = 50 };
    struct server s = {.deeds = &deed, .deed_count = 1, .quick = QUICK, .pause_us = 40000};
    const struct sl_load_result later = load_at(&s, 0, 0.4, NULL);
    assert_true(later.answered > QUICK && later.answered <= QUICK + 10);
    assert_true(later.reached > 0 &&
                later.reached <= 1e6 / 40000 * 1.34); /* one answer more than the pauses of 0.3 s */
    assert_true(later.mean >= 0.04);
    struct server stops = {.deeds = &deed, .deed_count = 1, .quick = QUICK, .pause_us = 300000};
    const struct sl_load_result early = load_at(&stops, 0, 0.2, NULL);
    assert_int_equal(early.answered, QUICK);
    assert_true(early.reached <= QUICK / 0.2 && early.reached > QUICK / 2.0);
    assert_true(early.mean > 0 && early.mean < 0.04);
}

/* The address is told as it stands in a browser. */
static void a_server_that_is_not_there_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *address, *message;
    } cases[] = {{"127.0.0.1", "cannot reach http://127.0.0.1:1/: "},
                 {"::1", "cannot reach http://[::1]:1/: "},
                 {"localhost", "`localhost` is no address such as 127.0.0.1"}};
    struct sl_buf text = {0};
    sl_buf_append_text(&text, request_text);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct sl_load_bodies bodies = {.requests = &text, .count = 1};
        const struct sl_load_request request = {
            .address = cases[k].address, .port = 1, .bodies = &bodies, .connections = 1, .seconds = 1};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_load_result result;
        assert_int_equal(sl_load_run(&request, &result, &err), k < 2 ? SEQLSTM_IO : SEQLSTM_INVALID_ARGUMENT);
        if (strncmp(err.message, cases[k].message, strlen(cases[k].message)) != 0)
            fail_msg("%s", err.message);
    }
    sl_buf_deinit(&text);
}

/* The server answers one after the other, so that the last answer comes after all pauses, and all requests were due in
 * the first 0.1 s: the time in which a request waits for a connection is part of its latency. */
static void requests_that_wait_are_late(void **state)
{
    (void)state;
    static const enum deed deed = ANSWER;
    struct server s = {.deeds = &deed, .deed_count = 1, .pause_us = 10000};
    const struct sl_load_result result = load(&s, NULL);
    const double pauses = 1e-6 * s.pause_us * (double)result.answered;
    assert_true(result.answered == s.done[ANSWER] && result.answered > 20);
    assert_true(result.most >= pauses - 0.1);
    assert_true(result.mean >= pauses / 2 - 0.1);
    assert_true(result.reached <= 1e6 / s.pause_us); /* of the time until the last answer */
}

/* ---- a load that is stopped ---- */

struct mute_server {
    int socket;
    struct sl_interrupt interrupt;
};

/* Answers nothing, and stops the load a while after the first request has come. */
static void *stop_later(void *context)
{
    struct mute_server *s = context;
    char got[100];
    const int connection = accept(s->socket, NULL, NULL);
    while (connection >= 0 && recv(connection, got, sizeof got, 0) <= 0) {
    }
    usleep(10000);
    s->interrupt.stop = 1;
    while (connection >= 0 && recv(connection, got, sizeof got, 0) > 0) {
    }
    close(connection);
    return NULL;
}

/* What has no answer is lost, and so is what waits for a connection. */
static void requests_that_were_not_sent_are_lost(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_load_result result;
    struct sl_buf text = {0};
    pthread_t thread;
    uint16_t port;
    struct mute_server s = {.socket = load_listen(0, &port)};
    sl_buf_append_text(&text, request_text);
    const struct sl_load_bodies bodies = {.requests = &text, .count = 1};
    const struct sl_load_request request = {.address = "127.0.0.1",
                                            .port = port,
                                            .bodies = &bodies,
                                            .rate = 1e5,
                                            .connections = 1,
                                            .seconds = 60,
                                            .interrupt = &s.interrupt};
    assert_int_equal(pthread_create(&thread, NULL, stop_later, &s), 0);
    assert_int_equal(sl_load_run(&request, &result, &err), SEQLSTM_CANCELLED);
    pthread_join(thread, NULL);
    close(s.socket);
    assert_int_equal(result.answered + result.failed, 0);
    assert_true(result.lost > 100); /* about a thousand come in 0.01 s */
    sl_buf_deinit(&text);
}

/* ---- requests that a socket takes in many parts ---- */

enum { LARGE_BYTES = 8 << 20 };

struct slow_server {
    int socket;
    const struct sl_buf *expected; /* [BODIES] */
    int whole, other;
};

/* Begins to read late, so that the client has to wait several times. */
static void *read_slowly(void *context)
{
    struct slow_server *s = context;
    char *got = malloc(LARGE_BYTES + BODIES);
    for (int connection; (connection = accept(s->socket, NULL, NULL)) >= 0; close(connection))
        for (bool goes_on = true; goes_on;) {
            const size_t wanted = s->expected[s->whole % BODIES].length_bytes;
            size_t count = 0;
            while (count < wanted && goes_on) {
                usleep(count < LARGE_BYTES / 2 ? 1000 : 0);
                const ssize_t bytes = recv(connection, got + count, wanted - count, 0);
                goes_on = bytes > 0;
                count += bytes > 0 ? (size_t)bytes : 0;
            }
            if (!goes_on)
                break;
            goes_on = memcmp(got, s->expected[s->whole % BODIES].data, wanted) == 0;
            s->whole += goes_on;
            s->other += !goes_on;
            goes_on = goes_on && send(connection, replies[ANSWER], strlen(replies[ANSWER]), MSG_NOSIGNAL) >= 0;
        }
    free(got);
    return NULL;
}

static void large_requests_arrive_whole(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct server address = {.socket = -1};
    struct sl_load_result result;
    struct sl_buf texts[BODIES] = {{0}};
    pthread_t thread;
    (void)state;
    address.socket = load_listen(0, &address.port);
    const int room = 64 << 10;
    assert_int_equal(setsockopt(address.socket, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    for (int k = 0; k < BODIES; k++)
        for (size_t i = 0; i < (size_t)(LARGE_BYTES + k) / sizeof i; i++) {
            const size_t word = i * 0x9E3779B97F4A7C15u + (size_t)k;
            sl_buf_append(&texts[k], (const char *)&word, sizeof word);
        }
    struct slow_server s = {.socket = address.socket, .expected = texts};
    const struct sl_load_bodies bodies = {.requests = texts, .lengths = lengths, .count = BODIES};
    const struct sl_load_request request = {
        .address = "127.0.0.1", .port = address.port, .bodies = &bodies, .rate = 40, .connections = 1, .seconds = 0.1};
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &s), 0);
    ok(sl_load_run(&request, &result, &err), &err);
    shutdown(s.socket, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(s.socket);
    assert_int_equal(s.other, 0);
    assert_int_equal(result.answered, s.whole);
    assert_int_equal(result.failed + result.lost, 0);
    for (int k = 0; k < BODIES; k++)
        sl_buf_deinit(&texts[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_that_wait_are_late),
        cmocka_unit_test(several_requests_are_sent_in_turn),
        cmocka_unit_test(each_request_is_counted_as_what_became_of_it),
        cmocka_unit_test(the_start_of_a_closed_loop_does_not_count),
        cmocka_unit_test(a_server_that_is_not_there_is_named),
        cmocka_unit_test(requests_that_were_not_sent_are_lost),
        cmocka_unit_test(large_requests_arrive_whole),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* modules/http: what a server is told of a request, and how its answers reach clients: large ones, slow readers,
 * clients that leave, and the end of a server. Usage: test_http_answers MODULE */
#include <errno.h>
#include <sched.h>
#include <signal.h>

#include "descriptors.h"
#include "http_fixture.h"

enum { LARGE = 6 << 20 };

static void send_text(int client, const char *text)
{
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static int say(const struct server *server, const char *text)
{
    const int client = connect_to(server);
    send_text(client, text);
    return client;
}

static void answer(struct seqlstm_http_request *request, int32_t status, const void *body, size_t bytes)
{
    static const struct seqlstm_http_header headers[] = {
        {"Content-Type", "text/plain"}, {"X-Second", "two"}, {"X-Third", "three"}, {NULL, NULL}};
    assert_int_equal(http->reply(request, status, headers, body, bytes, NULL), SEQLSTM_OK);
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

/* Paths are decoded, where a plus stays what it is, and queries left out. */
static void a_request_is_told_as_it_was_sent(void **state)
{
    static const struct {
        const char *text, *method, *path, *body;
    } cases[] = {{"GET /a/b HTTP/1.0\r\nX-One: first\r\n\r\n", "GET", "/a/b", ""},
                 {"HEAD /a%20b+c%2Fd?e=f%20g HTTP/1.0\r\nx-one: first\r\n\r\n", "HEAD", "/a b+c/d", ""},
                 {"POST /?x HTTP/1.0\r\nX-ONE: first\r\nContent-Length: 5\r\n\r\nb=1+2", "POST", "/", "b=1+2"}};
    struct server server;
    char text[1000];
    (void)state;
    start(&server);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int client = say(&server, cases[k].text);
        struct seqlstm_http_request *request = take_request(&server);
        uint64_t bytes = 99;
        const void *body = http->get_body(request, &bytes);
        assert_string_equal(http->get_method(request), cases[k].method);
        assert_string_equal(http->get_path(request), cases[k].path);
        assert_string_equal(http->find_header(request, "X-One"), "first");
        assert_null(http->find_header(request, "X-Two"));
        assert_int_equal(bytes, strlen(cases[k].body));
        assert_true(bytes == 0 || memcmp(body, cases[k].body, bytes) == 0);
        answer(request, 200, "fine", 4);
        read_up_to(client, NULL, text, sizeof text);
        close(client);
    }
    stop(&server);
}

/* Bodies may be as large as the limit; a larger one never reaches the program. */
static void bodies_have_a_limit(void **state)
{
    struct server server;
    char text[2000];
    (void)state;
    start(&server);
    for (int bytes = 999; bytes <= 1001; bytes++) {
        snprintf(text, sizeof text, "POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n%0*d", bytes, bytes, 0);
        const int client = say(&server, text);
        if (bytes <= 1000)
            answer(take_request(&server), 200, "fits", 4);
        read_up_to(client, NULL, text, sizeof text);
        assert_int_equal(atoi(text + strlen("HTTP/1.x ")), bytes <= 1000 ? 200 : 413);
        close(client);
    }
    assert_null(server.request);
    stop(&server);
}

/* The status and all headers, of a whole answer and of one in parts. */
static void an_answer_has_its_status_and_all_headers(void **state)
{
    static const struct seqlstm_http_header headers[] = {
        {"Content-Type", "text/plain"}, {"X-Second", "two"}, {"X-Third", "three"}, {NULL, NULL}};
    static const int32_t statuses[] = {200, 400, 404, 429, 503};
    struct server server;
    char text[1000];
    (void)state;
    start(&server);
    for (int k = 0; k < 10; k++) {
        const int client = say(&server, "GET / HTTP/1.0\r\n\r\n");
        struct seqlstm_http_request *request = take_request(&server);
        if (k < 5)
            answer(request, statuses[k], "body", 4);
        else {
            assert_int_equal(http->begin(request, statuses[k - 5], headers, NULL), SEQLSTM_OK);
            assert_int_equal(http->add(request, "", 0, NULL), SEQLSTM_OK);
            assert_int_equal(http->add(request, "body", 4, NULL), SEQLSTM_OK);
            http->end(request);
        }
        read_up_to(client, NULL, text, sizeof text);
        assert_int_equal(atoi(text + strlen("HTTP/1.x ")), statuses[k % 5]);
        assert_non_null(strstr(text, "\r\nContent-Type: text/plain\r\n"));
        assert_non_null(strstr(text, "\r\nX-Second: two\r\n"));
        assert_non_null(strstr(text, "\r\nX-Third: three\r\n"));
        assert_null(strstr(text, "text/html"));
        assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\nbody");
        close(client);
    }
    stop(&server);
}

/* ---- sizes and times ----------------------------------------------------------------------------------------- */

static char *make_large(void)
{
    char *bytes = malloc(LARGE);
    assert_non_null(bytes);
    for (uint32_t k = 0; k < LARGE; k++)
        bytes[k] = (char)(k * 2654435761u >> 24);
    return bytes;
}

/* Reads the head, and then `bytes` that must be those. */
static void expect_body(int client, const char *expected, size_t bytes)
{
    char head[1000], *got = malloc(bytes);
    size_t at = 0;
    assert_non_null(got);
    for (size_t n = 0; n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0; n++)
        assert_true(n < sizeof head && recv(client, head + n, 1, 0) == 1);
    while (at < bytes) {
        const ssize_t more = recv(client, got + at, bytes - at, 0);
        assert_true(more > 0);
        at += (size_t)more;
    }
    assert_memory_equal(got, expected, bytes);
    free(got);
}

/* More than a socket takes at once, to a client that reads late; the connection stays for the next one. */
static void large_answers_reach_slow_clients(void **state)
{
    struct server server;
    char *large = make_large(), byte;
    (void)state;
    start(&server);
    const int client = connect_to(&server);
    for (int k = 0; k < 2; k++) {
        send_text(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        answer(take_request(&server), 200, large, LARGE);
        assert_int_equal(recv(client, &byte, 1, MSG_PEEK), 1);
        expect_body(client, large, LARGE);
    }
    close(client);
    const int old = say(&server, "GET / HTTP/1.0\r\n\r\n");
    struct seqlstm_http_request *request = take_request(&server);
    assert_int_equal(http->begin(request, 200, NULL, NULL), SEQLSTM_OK);
    for (int k = 0; k < 3; k++)
        assert_int_equal(http->add(request, large + (size_t)k * (LARGE / 3), LARGE / 3, NULL), SEQLSTM_OK);
    while (http->count_unread(request) < LARGE / 8) /* a socket takes less than the rest */
        sched_yield();
    assert_true(http->count_unread(request) <= LARGE + 1000);
    http->end(request);
    expect_body(old, large, LARGE);
    assert_int_equal(recv(old, &byte, 1, 0), 0);
    close(old);
    stop(&server);
    free(large);
}

/* Each part is written as soon as the client asks for it, though the loop waits for nothing else. */
static void parts_are_written_while_the_loop_waits(void **state)
{
    struct server server;
    char text[1000];
    (void)state;
    start(&server);
    const int client = say(&server, "GET / HTTP/1.0\r\n\r\n");
    struct seqlstm_http_request *request = take_request(&server);
    assert_int_equal(http->begin(request, 200, NULL, NULL), SEQLSTM_OK);
    read_up_to(client, "\r\n\r\n", text, sizeof text);
    for (int k = 0; k < 5; k++) {
        snprintf(text, sizeof text, "part %d", k);
        assert_int_equal(http->add(request, text, strlen(text), NULL), SEQLSTM_OK);
        read_up_to(client, text, text + 100, sizeof text - 100);
        assert_string_equal(text + 100, text);
    }
    http->end(request);
    read_up_to(client, NULL, text, sizeof text);
    assert_string_equal(text, "");
    close(client);
    stop(&server);
}

/* The program is told of the end of each pass, also of one without an answer. */
static void passes_are_told(void **state)
{
    struct server server;
    char text[1000];
    (void)state;
    start(&server);
    for (int k = 0; k < 3; k++) {
        pthread_mutex_lock(&server.lock);
        server.passes = 0;
        pthread_mutex_unlock(&server.lock);
        const int client = say(&server, "GET / HTTP/1.0\r\n\r\n");
        struct seqlstm_http_request *request = take_request(&server);
        pthread_mutex_lock(&server.lock);
        while (server.passes == 0)
            pthread_cond_wait(&server.came, &server.lock);
        pthread_mutex_unlock(&server.lock);
        answer(request, 200, "body", 4);
        read_up_to(client, NULL, text, sizeof text);
        close(client);
    }
    stop(&server);
}

/* A connection on which nothing happens is closed after the time that was asked for: before a request, within its head
 * or its body, after its answer, and while that is not read. */
static void idle_connections_are_closed(void **state)
{
    static const char *const said[] = {"", "GET / HTTP/1.1\r\nHo", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n1234",
                                       "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                       "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"};
    enum { CLIENTS = sizeof said / sizeof *said, ANSWERED = CLIENTS - 2, SLOW = CLIENTS - 1 };
    struct server server;
    int clients[CLIENTS];
    char text[1000], *large = make_large();
    size_t bytes = 0;
    (void)state;
    const int before = descriptors_count();
    struct seqlstm_http_options options = make_options(&server);
    options.idle_seconds = 1;
    start_with(&server, &options);
    const int open = descriptors_count();
    for (int k = 0; k < CLIENTS; k++) {
        clients[k] = say(&server, said[k]);
        if (k == ANSWERED)
            answer(take_request(&server), 200, "fine", 4);
        if (k == SLOW)
            answer(take_request(&server), 200, large, LARGE);
    }
    read_up_to(clients[ANSWERED], "fine", text, sizeof text);
    for (int k = 0; k < SLOW; k++)
        assert_int_equal(recv(clients[k], text, 1, 0), 0);
    while (descriptors_count() > open + CLIENTS) /* the server has closed its ends */
        sched_yield();
    for (ssize_t got = 1; got > 0; bytes += got > 0 ? (size_t)got : 0)
        got = recv(clients[SLOW], text, sizeof text, 0);
    assert_true(bytes > 0 && bytes < LARGE);
    for (int k = 0; k < CLIENTS; k++)
        close(clients[k]);
    stop(&server);
    assert_int_equal(descriptors_count(), before);
    free(large);
}

/* ---- the ends ------------------------------------------------------------------------------------------------ */

/* A client that has left is known to have, and its answer is dropped, whole or in parts; the next one gets its own
 * answer and nothing of the other. */
static void clients_that_leave(void **state)
{
    struct server server;
    char *large = make_large(), text[1000];
    (void)state;
    start(&server);
    for (int k = 0; k < 4; k++) {
        const int client = say(&server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        struct seqlstm_http_request *request = take_request(&server);
        assert_int_equal(http->is_gone(request), 0);
        if (k == 1) {
            assert_int_equal(http->begin(request, 200, NULL, NULL), SEQLSTM_OK);
            read_up_to(client, "\r\n\r\n", text, sizeof text);
        }
        if (k == 3) { /* it leaves in the middle of its answer */
            answer(request, 200, large, LARGE);
            assert_int_equal(recv(client, text, 1, 0), 1);
        }
        close(client);
        while (k != 3 && !http->is_gone(request))
            sched_yield();
        if (k == 1) {
            assert_int_equal(http->add(request, large, LARGE, NULL), SEQLSTM_OK);
            http->end(request);
        } else if (k != 3)
            answer(request, 200, large, k == 0 ? 4 : LARGE);
        const int next = say(&server, "GET / HTTP/1.0\r\n\r\n");
        answer(take_request(&server), 200, "here", 4);
        read_up_to(next, NULL, text, sizeof text);
        assert_non_null(strstr(text, "\r\n\r\nhere"));
        close(next);
    }
    stop(&server); /* it waits for none of them */
    free(large);
}

/* One that is known to have left stays so, also where another connection has the number of its socket. */
static void a_client_that_has_left_stays_so(void **state)
{
    struct server server;
    char *large = make_large(), text[1000];
    int others[4];
    (void)state;
    start(&server);
    const int client = say(&server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    struct seqlstm_http_request *request = take_request(&server);
    assert_int_equal(http->begin(request, 200, NULL, NULL), SEQLSTM_OK);
    read_up_to(client, "\r\n\r\n", text, sizeof text);
    const int open = descriptors_count();
    close(client);
    assert_int_equal(http->add(request, large, LARGE, NULL), SEQLSTM_OK);
    while (descriptors_count() > open - 2) /* both ends are closed */
        sched_yield();
    assert_int_equal(http->is_gone(request), 1);
    for (int k = 0; k < 4; k++)
        others[k] = connect_to(&server);
    assert_int_equal(http->is_gone(request), 1);
    http->end(request);
    for (int k = 0; k < 4; k++)
        close(others[k]);
    stop(&server);
    free(large);
}

/* A server that is to end answers what it has, says that connections close, and accepts no others. */
static void a_server_that_ends_answers_first(void **state)
{
    struct server server;
    char text[1000];
    (void)state;
    for (int parts = 0; parts < 2; parts++) {
        start(&server);
        const uint16_t port = http->get_port(server.http);
        const int clients[2] = {say(&server, "GET /0 HTTP/1.1\r\nHost: localhost\r\n\r\n"), connect_to(&server)};
        struct seqlstm_http_request *requests[2] = {take_request(&server), NULL};
        send_text(clients[1], "GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        requests[1] = take_request(&server);
        http->stop(server.http);
        const struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        for (bool refused = false; !refused;) { /* as soon as the loop has seen it */
            const int late = socket(AF_INET, SOCK_STREAM, 0);
            refused = connect(late, (const struct sockaddr *)&address, sizeof address) != 0;
            close(late);
        }
        usleep(120000); /* longer than a server waits for requests that are on their way */
        for (int k = 0; k < 2; k++) {
            if (parts) {
                assert_int_equal(http->begin(requests[k], 200, NULL, NULL), SEQLSTM_OK);
                assert_int_equal(http->add(requests[k], "last", 4, NULL), SEQLSTM_OK);
                http->end(requests[k]);
            } else
                answer(requests[k], 200, "last", 4);
            read_up_to(clients[k], NULL, text, sizeof text);
            assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
            assert_non_null(strstr(text, "last"));
            close(clients[k]);
        }
        pthread_join(server.loop, NULL);
        assert_int_equal(server.status, SEQLSTM_OK);
        http->close(server.http);
        pthread_cond_destroy(&server.goes_on);
        pthread_cond_destroy(&server.came);
        pthread_mutex_destroy(&server.lock);
    }
}

/* The address, the port and the reason are named. */
static void a_port_that_is_taken(void **state)
{
    struct server server;
    (void)state;
    start(&server);
    struct seqlstm_http_options options = make_options(&server);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_http *second = NULL;
    char expected[100];
    options.port = http->get_port(server.http);
    assert_true(options.port > 0);
    const int open = descriptors_count();
    assert_int_equal(http->open(&options, &second, &err), SEQLSTM_IO);
    snprintf(expected, sizeof expected, "cannot listen on 127.0.0.1, port %d: %s", options.port, strerror(EADDRINUSE));
    assert_string_equal(err.message, expected);
    assert_int_equal(err.native_code, EADDRINUSE);
    assert_null(second);
    options.port = 0;
    options.address = "192.0.2.1"; /* of no machine */
    assert_int_equal(http->open(&options, &second, &err), SEQLSTM_IO);
    snprintf(expected, sizeof expected, "cannot listen on 192.0.2.1, port 0: %s", strerror(EADDRNOTAVAIL));
    assert_string_equal(err.message, expected);
    assert_int_equal(err.native_code, EADDRNOTAVAIL);
    assert_int_equal(descriptors_count(), open);
    stop(&server);
}

/* The port is that of the address, of which family it is. */
static void a_free_port_of_each_family(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", "::1"};
    struct server server = {.request = NULL};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct seqlstm_http_options options = make_options(&server);
        struct seqlstm_http *opened = NULL;
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        options.address = addresses[k];
        if (http->open(&options, &opened, NULL) != SEQLSTM_OK) {
            print_message("this machine has no %s\n", addresses[k]);
            continue;
        }
        const uint16_t port = http->get_port(opened);
        four.sin_port = six.sin6_port = htons(port);
        const int client = socket(k ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(client, k ? (const struct sockaddr *)&six : (const struct sockaddr *)&four,
                                 k ? sizeof six : sizeof four),
                         0);
        close(client);
        http->close(opened);
    }
}

int main(int argc, char **argv)
{
    if (!open_http(argc, argv))
        return 2;
    signal(SIGPIPE, SIG_IGN); /* as the program has it */
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_request_is_told_as_it_was_sent),
                                       cmocka_unit_test(bodies_have_a_limit),
                                       cmocka_unit_test(an_answer_has_its_status_and_all_headers),
                                       cmocka_unit_test(large_answers_reach_slow_clients),
                                       cmocka_unit_test(parts_are_written_while_the_loop_waits),
                                       cmocka_unit_test(passes_are_told),
                                       cmocka_unit_test(idle_connections_are_closed),
                                       cmocka_unit_test(clients_that_leave),
                                       cmocka_unit_test(a_client_that_has_left_stays_so),
                                       cmocka_unit_test(a_server_that_ends_answers_first),
                                       cmocka_unit_test(a_port_that_is_taken),
                                       cmocka_unit_test(a_free_port_of_each_family)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* modules/http: answers in parts, to clients that have read all parts before the end is told; answers that come in one
 * pass of the loop, and to HEAD. Usage: test_http_parts MODULE */
#include "http_fixture.h"

static void begin(struct seqlstm_http_request *request)
{
    static const struct seqlstm_http_header headers[] = {{"Content-Type", "text/plain"}, {NULL, NULL}};
    assert_int_equal(http->begin(request, 200, headers, NULL), SEQLSTM_OK);
}

static void add(struct seqlstm_http_request *request, const char *part)
{
    assert_int_equal(http->add(request, part, strlen(part), NULL), SEQLSTM_OK);
}

/* The end of the connection is that of the answer. */
static void an_answer_ends_after_its_parts_were_read(void **state)
{
    struct server server;
    char text[1000];
    (void)state;
    start(&server);
    for (int k = 0; k < 20; k++) {
        const int client = ask(&server, "1.0");
        struct seqlstm_http_request *request = take_request(&server);
        begin(request);
        add(request, "one,");
        read_up_to(client, "\r\n\r\none,", text, sizeof text);
        add(request, "two.");
        read_up_to(client, "two.", text, sizeof text);
        http->end(request);
        read_up_to(client, NULL, text, sizeof text);
        assert_string_equal(text, "");
        close(client);
    }
    stop(&server);
}

/* The connection stays, for further requests. */
static void a_chunked_answer_ends_after_its_parts_were_read(void **state)
{
    struct server server;
    char text[1000];
    (void)state;
    start(&server);
    for (int k = 0; k < 20; k++) {
        const int client = ask(&server, "1.1");
        struct seqlstm_http_request *request = take_request(&server);
        begin(request);
        add(request, "one,");
        read_up_to(client, "\r\n\r\n4\r\none,\r\n", text, sizeof text);
        http->end(request);
        read_up_to(client, "0\r\n\r\n", text, sizeof text);
        assert_string_equal(text, "0\r\n\r\n");
        close(client);
    }
    stop(&server);
}

static void answer(struct seqlstm_http_request *request, const char *body)
{
    static const struct seqlstm_http_header headers[] = {{"Content-Type", "text/plain"}, {NULL, NULL}};
    assert_int_equal(http->reply(request, 200, headers, body, strlen(body), NULL), SEQLSTM_OK);
}

/* While the loop does something else, several requests are answered, in another order, some in parts. */
static void answers_of_one_pass_reach_all(void **state)
{
    enum { CLIENTS = 5 };
    static const int order[CLIENTS - 1] = {2, 0, 3, 1};
    static const char *const bodies[CLIENTS] = {"zero.", "one.", "two.", "three.", "four."};
    struct seqlstm_http_request *requests[CLIENTS];
    struct server server;
    int clients[CLIENTS];
    char text[1000];
    (void)state;
    start(&server);
    for (int round = 0; round < 10; round++) {
        for (int k = 0; k < CLIENTS; k++) {
            hold(&server, k == CLIENTS - 1);
            clients[k] = ask(&server, "1.0");
            requests[k] = take_request(&server);
        }
        for (int n = 0; n < CLIENTS - 1; n++) {
            const int k = order[n];
            if (k % 2) {
                begin(requests[k]);
                add(requests[k], bodies[k]);
                http->end(requests[k]);
            } else
                answer(requests[k], bodies[k]);
        }
        hold(&server, false);
        for (int k = 0; k < CLIENTS; k++) {
            if (k == CLIENTS - 1)
                answer(requests[k], bodies[k]);
            read_up_to(clients[k], NULL, text, sizeof text);
            const size_t bytes = strlen(text), own = strlen(bodies[k]);
            assert_true(bytes > own && strcmp(text + bytes - own, bodies[k]) == 0);
            close(clients[k]);
        }
    }
    stop(&server);
}

/* The limit of bodies is not that of heads. A head that is too large never reaches the program. */
static void heads_have_a_limit_of_their_own(void **state)
{
    struct server server;
    char text[4000], padding[3500];
    (void)state;
    start(&server);
    memset(padding, 'p', sizeof padding);
    for (int bytes = 500; bytes <= 3500; bytes += 1000) {
        const int client = connect_to(&server);
        const bool fits = bytes <= 2500;
        snprintf(text, sizeof text, "GET /parts HTTP/1.0\r\nX-Padding: %.*s\r\n\r\n", bytes, padding);
        assert_int_equal(send(client, text, strlen(text), 0), strlen(text));
        if (fits)
            answer(take_request(&server), "fits");
        read_up_to(client, NULL, text, sizeof text);
        const int status = atoi(text + strlen("HTTP/1.x "));
        if (fits ? status != 200 : status != 400 && status != 413)
            fail_msg("%d bytes: %d", bytes, status);
        close(client);
    }
    assert_null(server.request);
    stop(&server);
}

/* As many bytes as the answer to GET has are named, and none comes: the next answer follows. */
static void head_has_the_length_and_no_body(void **state)
{
    struct server server;
    char text[1000];
    (void)state;
    start(&server);
    const int client = connect_to(&server);
    for (int k = 0; k < 4; k++) {
        const bool head = k % 2 == 0;
        send_request(client, head ? "HEAD" : "GET", "1.1");
        struct seqlstm_http_request *request = take_request(&server);
        assert_string_equal(http->get_method(request), head ? "HEAD" : "GET");
        answer(request, "seven b");
        read_up_to(client, head ? "\r\n\r\n" : "seven b", text, sizeof text);
        assert_int_equal(strncmp(text, "HTTP/1.1 200 ", 13), 0);
        assert_non_null(strstr(text, "\r\nContent-Length: 7\r\n"));
    }
    close(client);
    stop(&server);
}

/* A request is answered as a whole or in parts, or its client leaves before; and a server cannot begin. */
static void ask_once(struct server *server, int way)
{
    const bool in_parts = way % 2, leaves = way / 2 % 2;
    char text[1000];
    struct seqlstm_http *second = NULL;
    struct seqlstm_http_options options = make_options(server);
    const int client = ask(server, "1.0");
    struct seqlstm_http_request *request = take_request(server);
    if (leaves)
        close(client);
    while (leaves && !http->is_gone(request))
        usleep(100);
    if (in_parts) {
        begin(request);
        add(request, "parts");
        http->end(request);
    } else
        answer(request, "whole");
    if (!leaves) {
        read_up_to(client, NULL, text, sizeof text);
        close(client);
    }
    options.port = http->get_port(server->http);
    assert_int_equal(http->open(&options, &second, NULL), SEQLSTM_IO);
}

/* Requests that are over take no memory, nor do servers that could not begin. */
static void nothing_is_kept(void **state)
{
    enum { REQUESTS = 400, KEPT_BYTES = 8 * REQUESTS };
    struct server server;
    size_t kept[2];
    (void)state;
    for (int round = 0; round < 2; round++) { /* the first one fills what the library keeps for later */
        start(&server);
        for (int k = 0; k < (round ? REQUESTS : 40); k++)
            ask_once(&server, k);
        stop(&server);
        kept[round] = mallinfo2().uordblks;
    }
    if (kept[1] > kept[0] + KEPT_BYTES)
        fail_msg("%zu bytes are left", kept[1] - kept[0]);
}

int main(int argc, char **argv)
{
    if (!open_http(argc, argv))
        return 2;
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_answer_ends_after_its_parts_were_read),
                                       cmocka_unit_test(a_chunked_answer_ends_after_its_parts_were_read),
                                       cmocka_unit_test(answers_of_one_pass_reach_all),
                                       cmocka_unit_test(heads_have_a_limit_of_their_own),
                                       cmocka_unit_test(head_has_the_length_and_no_body),
                                       cmocka_unit_test(nothing_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* modules/http: answers in parts, to clients that have read all parts before the end is told; answers that come in one
 * pass of the loop, and to HEAD. Usage: test_http_parts MODULE */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/http.h>

static const struct seqlstm_http_module *http;

/* A server whose requests the test answers. */
struct server {
    struct seqlstm_http *http;
    pthread_t loop;
    int32_t status; /* of the loop */
    pthread_mutex_t lock;
    pthread_cond_t came, goes_on;
    struct seqlstm_http_request *request; /* that came last; NULL: it was taken */
    bool holds;                           /* the loop stays where the next request has come */
};

static void keep_request(void *context, struct seqlstm_http_request *request)
{
    struct server *server = context;
    pthread_mutex_lock(&server->lock);
    server->request = request;
    pthread_cond_signal(&server->came);
    while (server->holds)
        pthread_cond_wait(&server->goes_on, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

static void hold(struct server *server, bool holds)
{
    pthread_mutex_lock(&server->lock);
    server->holds = holds;
    pthread_cond_signal(&server->goes_on);
    pthread_mutex_unlock(&server->lock);
}

static struct seqlstm_http_request *take_request(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    while (server->request == NULL)
        pthread_cond_wait(&server->came, &server->lock);
    struct seqlstm_http_request *request = server->request;
    server->request = NULL;
    pthread_mutex_unlock(&server->lock);
    return request;
}

static void *run(void *context)
{
    struct server *server = context;
    server->status = http->run(server->http, NULL);
    return NULL;
}

static void start(struct server *server)
{
    const struct seqlstm_http_options options = {.struct_size = sizeof options,
                                                 .idle_seconds = 30,
                                                 .address = "127.0.0.1",
                                                 .body_bytes = 1000,
                                                 .header_bytes = 3000,
                                                 .on_request = keep_request,
                                                 .context = server};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *server = (struct server){.request = NULL};
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->came, NULL);
    pthread_cond_init(&server->goes_on, NULL);
    if (http->open(&options, &server->http, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(pthread_create(&server->loop, NULL, run, server), 0);
}

static void stop(struct server *server)
{
    http->stop(server->http);
    pthread_join(server->loop, NULL);
    assert_int_equal(server->status, SEQLSTM_OK);
    http->close(server->http);
    pthread_cond_destroy(&server->goes_on);
    pthread_cond_destroy(&server->came);
    pthread_mutex_destroy(&server->lock);
}

static int connect_to(const struct server *server)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(http->get_port(server->http)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 30};
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(client >= 0);
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(client, (const struct sockaddr *)&address, sizeof address), 0);
    return client;
}

static void send_request(int client, const char *method, const char *version)
{
    char text[100];
    snprintf(text, sizeof text, "%s /parts HTTP/%s\r\nHost: localhost\r\n\r\n", method, version);
    assert_int_equal(send(client, text, strlen(text), 0), strlen(text));
}

static int ask(const struct server *server, const char *version)
{
    const int client = connect_to(server);
    send_request(client, "GET", version);
    return client;
}

/* Reads up to what ends with `end`; NULL: up to the end of the connection. */
static void read_up_to(int client, const char *end, char *out, size_t room)
{
    size_t bytes = 0;
    for (ssize_t more = 1; more > 0;) {
        assert_true(bytes < room - 1);
        more = recv(client, out + bytes, room - 1 - bytes, 0);
        assert_true(more >= 0);
        bytes += (size_t)more;
        out[bytes] = '\0';
        if (end && bytes >= strlen(end) && strcmp(out + bytes - strlen(end), end) == 0)
            return;
    }
    assert_null(end);
}

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

/* The limit of bodies is not that of heads. */
static void heads_have_a_limit_of_their_own(void **state)
{
    struct server server;
    char text[4000], padding[3000];
    (void)state;
    start(&server);
    memset(padding, 'p', sizeof padding);
    for (int bytes = 500; bytes <= 2500; bytes += 2000) {
        const int client = connect_to(&server);
        snprintf(text, sizeof text, "GET /parts HTTP/1.0\r\nX-Padding: %.*s\r\n\r\n", bytes, padding);
        assert_int_equal(send(client, text, strlen(text), 0), strlen(text));
        answer(take_request(&server), "fits");
        read_up_to(client, NULL, text, sizeof text);
        assert_int_equal(atoi(text + strlen("HTTP/1.x ")), 200);
        close(client);
    }
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

int main(int argc, char **argv)
{
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    http = module ? dlsym(module, SEQLSTM_HTTP_SYMBOL) : NULL;
    if (http == NULL || http->struct_size != sizeof *http) {
        fprintf(stderr, "usage: test_http_parts MODULE, expected libseqlstm_http.so of this build\n");
        return 2;
    }
    mallopt(M_PERTURB, 145); /* what is used after it was freed crashes */
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_answer_ends_after_its_parts_were_read),
                                       cmocka_unit_test(a_chunked_answer_ends_after_its_parts_were_read),
                                       cmocka_unit_test(answers_of_one_pass_reach_all),
                                       cmocka_unit_test(heads_have_a_limit_of_their_own),
                                       cmocka_unit_test(head_has_the_length_and_no_body)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

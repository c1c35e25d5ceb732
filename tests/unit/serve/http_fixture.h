/* SPDX-License-Identifier: Apache-2.0 */
/* A server of modules/http whose requests the test answers, and clients of it on the loopback. */
#ifndef SL_TESTS_UNIT_SERVE_HTTP_FIXTURE_H
#define SL_TESTS_UNIT_SERVE_HTTP_FIXTURE_H

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
    int passes;                           /* ends of passes of the loop since then */
};

static inline void keep_request(void *context, struct seqlstm_http_request *request)
{
    struct server *server = context;
    pthread_mutex_lock(&server->lock);
    server->request = request;
    pthread_cond_signal(&server->came);
    while (server->holds)
        pthread_cond_wait(&server->goes_on, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

static inline void count_pass(void *context)
{
    struct server *server = context;
    pthread_mutex_lock(&server->lock);
    server->passes++;
    pthread_cond_signal(&server->came);
    pthread_mutex_unlock(&server->lock);
}

static inline void hold(struct server *server, bool holds)
{
    pthread_mutex_lock(&server->lock);
    server->holds = holds;
    pthread_cond_signal(&server->goes_on);
    pthread_mutex_unlock(&server->lock);
}

static inline struct seqlstm_http_request *take_request(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    while (server->request == NULL)
        pthread_cond_wait(&server->came, &server->lock);
    struct seqlstm_http_request *request = server->request;
    server->request = NULL;
    pthread_mutex_unlock(&server->lock);
    return request;
}

static inline void *run(void *context)
{
    struct server *server = context;
    server->status = http->run(server->http, NULL);
    return NULL;
}

static inline struct seqlstm_http_options make_options(struct server *server)
{
    return (struct seqlstm_http_options){.struct_size = sizeof(struct seqlstm_http_options),
                                         .idle_seconds = 30,
                                         .address = "127.0.0.1",
                                         .body_bytes = 1000,
                                         .header_bytes = 3000,
                                         .on_request = keep_request,
                                         .on_pass = count_pass,
                                         .context = server};
}

static inline void start_with(struct server *server, const struct seqlstm_http_options *options)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *server = (struct server){.request = NULL};
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->came, NULL);
    pthread_cond_init(&server->goes_on, NULL);
    if (http->open(options, &server->http, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(pthread_create(&server->loop, NULL, run, server), 0);
}

static inline void start(struct server *server)
{
    const struct seqlstm_http_options options = make_options(server);
    start_with(server, &options);
}

static inline void stop(struct server *server)
{
    http->stop(server->http);
    pthread_join(server->loop, NULL);
    assert_int_equal(server->status, SEQLSTM_OK);
    http->close(server->http);
    pthread_cond_destroy(&server->goes_on);
    pthread_cond_destroy(&server->came);
    pthread_mutex_destroy(&server->lock);
}

static inline int connect_to(const struct server *server)
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

static inline void send_request(int client, const char *method, const char *version)
{
    char text[100];
    snprintf(text, sizeof text, "%s /parts HTTP/%s\r\nHost: localhost\r\n\r\n", method, version);
    assert_int_equal(send(client, text, strlen(text), 0), strlen(text));
}

static inline int ask(const struct server *server, const char *version)
{
    const int client = connect_to(server);
    send_request(client, "GET", version);
    return client;
}

/* Reads up to what ends with `end`; NULL: up to the end of the connection. */
static inline void read_up_to(int client, const char *end, char *out, size_t room)
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

/* Takes the module that is named on the command line. */
static inline bool open_http(int argc, char **argv)
{
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    http = module ? dlsym(module, SEQLSTM_HTTP_SYMBOL) : NULL;
    mallopt(M_PERTURB, 145); /* what is used after it was freed crashes */
    if (http && http->struct_size == sizeof *http)
        return true;
    fprintf(stderr, "usage: %s MODULE, expected libseqlstm_http.so of this build\n", argv[0]);
    return false;
}

#endif

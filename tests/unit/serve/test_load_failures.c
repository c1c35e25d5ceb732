/* SPDX-License-Identifier: Apache-2.0 */
/* A load that cannot begin, or not go on: what is told, and that no descriptor is left open, closed for others, or
 * inherited by programs that are started meanwhile. */
#include "load_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "oom.h"

enum call { NONE, EPOLL, TIMER, WATCH_TIMER, SOCKET, WATCH, SEND, CALLS };

static enum call failing;
static int watched; /* descriptors that were to be watched */

static bool fails(enum call call)
{
    errno = EMFILE;
    return failing == call;
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_epoll_ctl(int epoll, int what, int file, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int what, int file, struct epoll_event *event);
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
ssize_t __real_send(int socket, const void *bytes, size_t count, int flags);
ssize_t __wrap_send(int socket, const void *bytes, size_t count, int flags);

int __wrap_epoll_create1(int flags)
{
    return fails(EPOLL) ? -1 : __real_epoll_create1(flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return fails(TIMER) ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_epoll_ctl(int epoll, int what, int file, struct epoll_event *event)
{
    assert_true(fcntl(epoll, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(file, F_GETFD) & FD_CLOEXEC);
    if (what == EPOLL_CTL_ADD && fails(watched++ == 0 ? WATCH_TIMER : WATCH))
        return -1;
    return __real_epoll_ctl(epoll, what, file, event);
}

int __wrap_socket(int domain, int type, int protocol)
{
    return fails(SOCKET) ? -1 : __real_socket(domain, type, protocol);
}

/* As that of the system where the other side has closed the connection. */
ssize_t __wrap_send(int socket, const void *bytes, size_t count, int flags)
{
    if (failing != SEND)
        return __real_send(socket, bytes, count, flags);
    if (!(flags & MSG_NOSIGNAL))
        raise(SIGPIPE);
    errno = EPIPE;
    return -1;
}

/* ---- a server -------------------------------------------------------------------------------------------------- */

struct server {
    int socket;
    uint16_t port;
    _Atomic bool ends;
};

/* Answers whatever arrives, on any connection, until it is closed. */
static void *serve(void *context)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    struct server *s = context;
    char got[256];
    while (!s->ends) {
        const int connection = accept(s->socket, NULL, NULL);
        while (connection >= 0 && recv(connection, got, sizeof got, 0) > 0 &&
               write(connection, answer, sizeof answer - 1) > 0)
            ;
        if (connection >= 0)
            close(connection);
    }
    return NULL;
}

/* Which of the first descriptors are open. */
static uint64_t list_open(void)
{
    uint64_t open = 0;
    for (int k = 0; k < 64; k++)
        open |= (uint64_t)(fcntl(k, F_GETFD) >= 0) << k;
    return open;
}

struct world {
    struct server server;
    pthread_t thread;
    struct sl_buf text;
    struct sl_load_bodies bodies;
    struct sl_load_request request;
    char place[64];
    uint64_t open; /* before any connection: the server may take one long after the client has closed it */
};

static int open_world(void **state)
{
    static struct world w;
    w = (struct world){.server.ends = false};
    w.server.socket = load_listen(0, &w.server.port);
    sl_buf_append_text(&w.text, "POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    w.bodies = (struct sl_load_bodies){.requests = &w.text, .count = 1};
    w.request = (struct sl_load_request){.address = "127.0.0.1",
                                         .port = w.server.port,
                                         .bodies = &w.bodies,
                                         .rate = 1000,
                                         .connections = 1,
                                         .seconds = 0.02};
    snprintf(w.place, sizeof w.place, "http://127.0.0.1:%d/: ", w.server.port);
    w.open = list_open();
    assert_int_equal(pthread_create(&w.thread, NULL, serve, &w.server), 0);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    w->server.ends = true;
    shutdown(w->server.socket, SHUT_RDWR);
    pthread_join(w->thread, NULL);
    close(w->server.socket);
    sl_buf_deinit(&w->text);
    return 0;
}

/* Nothing is left open, as soon as the server's thread has seen the end of the last connection. */
static void expect_closed(const struct world *w)
{
    bool closed = list_open() == w->open;
    for (int k = 0; k < 500 && !closed; k++) {
        usleep(2000);
        closed = list_open() == w->open;
    }
    assert_true(closed); /* not looked at again: the thread may take the next one meanwhile */
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static void calls_that_fail_are_told(void **state)
{
    static const char *const what[CALLS] = {[EPOLL] = "cannot wait for",
                                            [TIMER] = "cannot wait for",
                                            [WATCH_TIMER] = "cannot wait for",
                                            [WATCH] = "cannot wait for",
                                            [SOCKET] = "cannot reach"};
    struct world *w = *state;
    for (enum call call = EPOLL; call < SEND; call++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_load_result result;
        char expected[160];
        snprintf(expected, sizeof expected, "%s %s%s", what[call], w->place, "Too many open files");
        watched = 0;
        failing = call;
        assert_int_equal(sl_load_run(&w->request, &result, &err), SEQLSTM_IO);
        failing = NONE;
        assert_string_equal(err.message, expected);
        expect_closed(w);
    }
}

/* What the other side no longer reads is lost; the program goes on. */
static void connections_that_have_ended_end_nothing_else(void **state)
{
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_load_result result;
    watched = 0;
    failing = SEND;
    ok(sl_load_run(&w->request, &result, &err), &err);
    failing = NONE;
    assert_true(result.lost > 0 && result.answered == 0 && result.failed == 0);
    expect_closed(w);
}

static void without_memory_nothing_is_left(void **state)
{
    struct world *w = *state;
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_load_result result;
        watched = 0;
        oom_fail_at(n);
        const seqlstm_status status = sl_load_run(&w->request, &result, &err);
        const bool failed = oom_disarm();
        expect_closed(w);
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        if (!failed)
            return;
        assert_string_equal(err.message, "no memory for the load");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_fail_are_told),
        cmocka_unit_test(connections_that_have_ended_end_nothing_else),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}

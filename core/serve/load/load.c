/* SPDX-License-Identifier: Apache-2.0 */
/* See load.h. One thread and one epoll. */
#include "serve/load/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <seqlstm/philox.h>

#include "base/system/clock.h"
#include "base/system/interrupt.h"
#include "base/value/median.h"
#include "serve/load/history.h"

enum { HEAD_BYTES = 4096, EVENTS = 128, DRAIN_S = 30, PAUSE_MS = 20 };
static const double START_PART = 0.25; /* of the time of a closed loop */

struct connection {
    int socket; /* -1: closed */
    bool busy;
    const struct sl_buf *sent; /* the request, */
    int64_t steps;             /* of its sequence, */
    size_t sent_bytes;         /* and what of it is sent */
    int64_t due_ns;            /* when it was to be sent */
    char head[HEAD_BYTES];     /* of the answer, as far as it has come */
    size_t head_bytes;
    int64_t left; /* bytes of the body that are still to come; -1: the head is not complete */
    int status;
};

struct load {
    const struct sl_load_request *request;
    struct sl_load_result *result;
    struct connection *connections;
    int32_t *idle, idle_count, opened;
    int64_t *backlog, backlog_first, backlog_count, backlog_room; /* times of arrival that wait for a connection */
    double *latencies;
    int64_t count, room;
    int64_t next; /* body */
    int64_t in_flight;
    int epoll, timer;
    int64_t timer_ns; /* when the timer rings; 0: it has rung */
};

static seqlstm_status fail_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the load");
}

static seqlstm_status fail_io(const struct load *load, const char *what, struct seqlstm_error *err)
{
    const bool six = strchr(load->request->address, ':') != NULL;
    SEQLSTM_FAIL(err, SEQLSTM_IO, "%s http://%s%s%s:%d/: %s", what, six ? "[" : "", load->request->address,
                 six ? "]" : "", load->request->port, strerror(errno));
}

/* ---- connections ------------------------------------------------------------------------------------------- */

static seqlstm_status open_connection(struct load *load, struct connection *connection, struct seqlstm_error *err)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(load->request->port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(load->request->port)};
    const bool is_four = inet_pton(AF_INET, load->request->address, &four.sin_addr) == 1;
    const int one = 1;
    if (!is_four && inet_pton(AF_INET6, load->request->address, &six.sin6_addr) != 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`%s` is no address such as 127.0.0.1", load->request->address);
    connection->socket = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *address = is_four ? (const struct sockaddr *)&four : (const struct sockaddr *)&six;
    if (connection->socket < 0 || connect(connection->socket, address, is_four ? sizeof four : sizeof six) != 0)
        return fail_io(load, "cannot reach", err);
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->socket, &event) != 0)
        return fail_io(load, "cannot wait for", err);
    return SEQLSTM_OK;
}

static void close_connection(struct load *load, struct connection *connection)
{
    if (connection->busy) {
        load->result->lost++;
        load->in_flight--;
    }
    close(connection->socket);
    connection->socket = -1;
    connection->busy = false;
    load->idle[load->idle_count++] = (int32_t)(connection - load->connections);
}

static bool watch_output(const struct load *load, struct connection *connection, bool output)
{
    struct epoll_event event = {.events = EPOLLIN | (output ? EPOLLOUT : 0), .data.ptr = connection};
    return epoll_ctl(load->epoll, EPOLL_CTL_MOD, connection->socket, &event) == 0;
}

/* Sends what the socket takes. */
static void send_more(struct load *load, struct connection *connection)
{
    const struct sl_buf *sent = connection->sent;
    const bool waited = connection->sent_bytes > 0;
    const ssize_t bytes = send(connection->socket, sent->data + connection->sent_bytes,
                               sent->length_bytes - connection->sent_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes < 0 && errno != EAGAIN && errno != EINTR) {
        close_connection(load, connection);
        return;
    }
    connection->sent_bytes += bytes > 0 ? (size_t)bytes : 0;
    const bool full = connection->sent_bytes < sent->length_bytes;
    if (full || waited)
        watch_output(load, connection, full);
}

/* Sends the next request on a connection that is idle. */
static seqlstm_status ask(struct load *load, int64_t due_ns, struct seqlstm_error *err)
{
    struct connection *connection = &load->connections[load->idle[--load->idle_count]];
    const struct sl_load_bodies *bodies = load->request->bodies;
    if (connection->socket < 0)
        SEQLSTM_TRY(open_connection(load, connection, err));
    connection->busy = true;
    connection->sent = &bodies->requests[load->next % bodies->count];
    connection->steps = bodies->lengths ? bodies->lengths[load->next % bodies->count] : 0;
    load->next++;
    connection->sent_bytes = connection->head_bytes = 0;
    connection->left = -1;
    connection->due_ns = due_ns;
    load->in_flight++;
    send_more(load, connection);
    return SEQLSTM_OK;
}

/* ---- answers ----------------------------------------------------------------------------------------------- */

static seqlstm_status note_answer(struct load *load, struct connection *connection, struct seqlstm_error *err)
{
    struct sl_load_result *result = load->result;
    connection->busy = false;
    load->in_flight--;
    load->idle[load->idle_count++] = (int32_t)(connection - load->connections);
    if (connection->status != 200) {
        result->failed++;
        return SEQLSTM_OK;
    }
    result->answered++;
    if (load->count == load->room) {
        const int64_t room = load->room ? 2 * load->room : 1 << 16;
        double *grown = realloc(load->latencies, (size_t)room * sizeof *grown);
        if (grown == NULL)
            return fail_memory(err);
        load->latencies = grown;
        load->room = room;
    }
    const struct sl_history_event event = {.number = load->request->number,
                                           .begin_ns = connection->due_ns,
                                           .end_ns = sl_clock_ns(),
                                           .steps = connection->steps,
                                           .sequences = 1,
                                           .rows = connection->steps};
    load->latencies[load->count++] = (double)(event.end_ns - event.begin_ns) * 1e-9;
    sl_history_note(load->request->history, &event);
    return SEQLSTM_OK;
}

/* Reads status and length when the head is complete. False: it is no answer of a server that keeps connections. */
static bool read_head(struct connection *connection)
{
    static const char length[] = "\r\ncontent-length:";
    connection->head[connection->head_bytes] = '\0';
    const char *end = strstr(connection->head, "\r\n\r\n"), *at = strcasestr(connection->head, length);
    if (end == NULL)
        return connection->head_bytes < HEAD_BYTES - 1;
    if (strncmp(connection->head, "HTTP/1.1 ", 9) != 0 || at == NULL || at > end)
        return false;
    connection->status = atoi(connection->head + 9);
    connection->left = atoll(at + sizeof length - 1) - (connection->head + connection->head_bytes - (end + 4));
    return connection->left >= 0;
}

static seqlstm_status receive(struct load *load, struct connection *connection, struct seqlstm_error *err)
{
    char body[65536];
    while (connection->busy) {
        const bool in_head = connection->left < 0;
        char *to = in_head ? connection->head + connection->head_bytes : body;
        const size_t room = in_head ? HEAD_BYTES - 1 - connection->head_bytes : sizeof body;
        const ssize_t bytes = recv(connection->socket, to, room, MSG_DONTWAIT);
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
            return SEQLSTM_OK;
        if (in_head && bytes > 0)
            connection->head_bytes += (size_t)bytes;
        else
            connection->left -= bytes;
        if (bytes <= 0 || (in_head && !read_head(connection)) || (!in_head && connection->left < 0)) {
            close_connection(load, connection);
            return SEQLSTM_OK;
        }
        if (connection->left == 0)
            return note_answer(load, connection, err);
    }
    char byte;
    if (recv(connection->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0) { /* the server has closed it */
        epoll_ctl(load->epoll, EPOLL_CTL_DEL, connection->socket, NULL);
        close(connection->socket);
        connection->socket = -1;
    }
    return SEQLSTM_OK;
}

/* ---- arrivals ---------------------------------------------------------------------------------------------- */

static seqlstm_status put_back(struct load *load, int64_t due_ns, struct seqlstm_error *err)
{
    if (load->backlog_count == load->backlog_room) {
        const int64_t room = load->backlog_room ? 2 * load->backlog_room : 1024;
        int64_t *grown = malloc((size_t)room * sizeof *grown);
        if (grown == NULL)
            return fail_memory(err);
        for (int64_t k = 0; k < load->backlog_count; k++)
            grown[k] = load->backlog[(load->backlog_first + k) % load->backlog_room];
        free(load->backlog);
        load->backlog = grown;
        load->backlog_first = 0;
        load->backlog_room = room;
    }
    load->backlog[(load->backlog_first + load->backlog_count++) % load->backlog_room] = due_ns;
    return SEQLSTM_OK;
}

/* Sends what waits, as far as there are connections. */
static seqlstm_status send_backlog(struct load *load, struct seqlstm_error *err)
{
    while (load->backlog_count > 0 && load->idle_count > 0) {
        const int64_t due_ns = load->backlog[load->backlog_first];
        load->backlog_first = (load->backlog_first + 1) % load->backlog_room;
        load->backlog_count--;
        SEQLSTM_TRY(ask(load, due_ns, err));
    }
    return SEQLSTM_OK;
}

static int64_t draw_gap(const struct load *load, int64_t arrival)
{
    const double u = (double)(seqlstm_mix64(load->request->seed, (uint64_t)arrival, 1) >> 11) * 0x1p-53;
    return (int64_t)(-log1p(-u) / load->request->rate * 1e9);
}

static void set_timer(struct load *load, int64_t due_ns)
{
    if (load->timer_ns == due_ns)
        return;
    load->timer_ns = due_ns;
    const int64_t wait = due_ns - sl_clock_ns(), least = wait > 1 ? wait : 1;
    const struct itimerspec spec = {.it_value = {.tv_sec = least / 1000000000, .tv_nsec = least % 1000000000}};
    timerfd_settime(load->timer, 0, &spec, NULL);
}

/* Handles what has happened, or waits for it. */
static seqlstm_status poll_events(struct load *load, struct seqlstm_error *err)
{
    struct epoll_event events[EVENTS];
    uint64_t count;
    const int ready = epoll_wait(load->epoll, events, EVENTS, PAUSE_MS);
    for (int e = 0; e < ready; e++) {
        struct connection *connection = events[e].data.ptr;
        if (connection == NULL) {
            (void)!read(load->timer, &count, sizeof count);
            load->timer_ns = 0;
            continue;
        }
        if (connection->socket >= 0 && (events[e].events & EPOLLOUT))
            send_more(load, connection);
        if (connection->socket >= 0 && (events[e].events & ~(uint32_t)EPOLLOUT))
            SEQLSTM_TRY(receive(load, connection, err));
    }
    if (sl_interrupt_get_stop(load->request->interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "stopped");
    return SEQLSTM_OK;
}

static seqlstm_status run_open(struct load *load, int64_t end_ns, struct seqlstm_error *err)
{
    int64_t arrival = 0, due_ns = sl_clock_ns() + draw_gap(load, 0);
    while (due_ns < end_ns) {
        for (const int64_t now = sl_clock_ns(); due_ns <= now && due_ns < end_ns; due_ns += draw_gap(load, ++arrival))
            SEQLSTM_TRY(put_back(load, due_ns, err));
        SEQLSTM_TRY(send_backlog(load, err));
        set_timer(load, due_ns);
        SEQLSTM_TRY(poll_events(load, err));
    }
    for (const int64_t last = end_ns + (int64_t)DRAIN_S * 1000000000;
         (load->in_flight > 0 || load->backlog_count > 0) && sl_clock_ns() < last;) {
        SEQLSTM_TRY(send_backlog(load, err));
        SEQLSTM_TRY(poll_events(load, err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_closed(struct load *load, int64_t end_ns, struct seqlstm_error *err)
{
    while (sl_clock_ns() < end_ns) {
        while (load->idle_count > 0)
            SEQLSTM_TRY(ask(load, sl_clock_ns(), err));
        SEQLSTM_TRY(poll_events(load, err));
    }
    return SEQLSTM_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------- */

void sl_load_summarize(double *latencies, int64_t count, double seconds, struct sl_load_result *out)
{
    double sum = 0;
    out->reached = (double)count / seconds;
    if (count == 0)
        return;
    qsort(latencies, (size_t)count, sizeof *latencies, sl_float64_compare);
    for (int64_t k = 0; k < count; k++)
        sum += latencies[k];
    const double last = (double)(count - 1);
    out->mean = sum / (double)count;
    out->p50 = latencies[(int64_t)(0.5 * last)];
    out->p90 = latencies[(int64_t)(0.9 * last)];
    out->p99 = latencies[(int64_t)(0.99 * last)];
    out->p999 = latencies[(int64_t)(0.999 * last)];
    out->most = latencies[count - 1];
}

static seqlstm_status open_load(struct load *load, struct seqlstm_error *err)
{
    const int32_t most = load->request->connections;
    struct epoll_event event = {.events = EPOLLIN};
    load->connections = calloc((size_t)most, sizeof *load->connections);
    load->idle = calloc((size_t)most, sizeof *load->idle);
    for (int32_t k = 0; load->connections && k < most; k++)
        load->connections[k].socket = -1;
    if (load->connections == NULL || load->idle == NULL)
        return fail_memory(err);
    while (load->idle_count < most) {
        load->idle[load->idle_count] = most - 1 - load->idle_count;
        load->idle_count++;
    }
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (load->epoll < 0 || load->timer < 0 || epoll_ctl(load->epoll, EPOLL_CTL_ADD, load->timer, &event) != 0)
        return fail_io(load, "cannot wait for", err);
    return SEQLSTM_OK;
}

static void close_load(struct load *load)
{
    for (int32_t k = 0; load->connections && k < load->request->connections; k++)
        if (load->connections[k].socket >= 0)
            close(load->connections[k].socket);
    if (load->epoll >= 0)
        close(load->epoll);
    if (load->timer >= 0)
        close(load->timer);
    free(load->connections);
    free(load->idle);
    free(load->backlog);
    free(load->latencies);
}

/* Where what counts begins or ends. */
struct mark {
    int64_t ns, count;   /* the time, and the answers before it */
    double own_s, all_s; /* processor time of the generator's thread, and of the process */
};

static struct mark set_mark(const struct load *load)
{
    return (struct mark){.ns = sl_clock_ns(),
                         .count = load->count,
                         .own_s = (double)sl_clock_thread_cpu_ns() * 1e-9,
                         .all_s = (double)sl_clock_process_cpu_ns() * 1e-9};
}

/* `from`: set where the first batches, which are smaller than those that follow, no longer count. */
static seqlstm_status run_loop(struct load *load, struct mark *from, struct seqlstm_error *err)
{
    const struct mark begin = *from;
    const double ns = load->request->seconds * 1e9;
    SEQLSTM_TRY(run_closed(load, begin.ns + (int64_t)(START_PART * ns), err));
    *from = set_mark(load);
    SEQLSTM_TRY(run_closed(load, begin.ns + (int64_t)ns, err));
    if (load->count == from->count)
        *from = begin;
    return SEQLSTM_OK;
}

static void summarize(struct load *load, const struct mark *from)
{
    const struct sl_load_request *request = load->request;
    struct sl_load_result *result = load->result;
    const struct mark end = set_mark(load);
    const int64_t count = end.count - from->count;
    const double took = (double)(end.ns - from->ns) * 1e-9, answers = (double)(count > 0 ? count : 1);
    result->own_cpu = (end.own_s - from->own_s) / answers;
    result->other_cpu = (end.all_s - from->all_s) / answers - result->own_cpu;
    sl_load_summarize(count > 0 ? load->latencies + from->count : NULL, count,
                      request->rate > 0 && took < request->seconds ? request->seconds : took, result);
}

seqlstm_status sl_load_run(const struct sl_load_request *request, struct sl_load_result *out, struct seqlstm_error *err)
{
    struct load load = {.request = request, .result = out, .epoll = -1, .timer = -1};
    *out = (struct sl_load_result){.wanted = request->rate};
    seqlstm_status status = open_load(&load, err);
    struct mark from = set_mark(&load);
    if (status == SEQLSTM_OK)
        status = request->rate > 0 ? run_open(&load, from.ns + (int64_t)(request->seconds * 1e9), err)
                                   : run_loop(&load, &from, err);
    if (request->rate > 0)
        out->lost += load.in_flight + load.backlog_count;
    if (status == SEQLSTM_OK)
        summarize(&load, &from);
    close_load(&load);
    return status;
}

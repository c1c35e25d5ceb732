/* SPDX-License-Identifier: Apache-2.0 */
/* The module libseqlstm_http.so: an HTTP server on libevent (seqlstm/ext/draft/http.h). One loop reads and writes.
 *
 * In each pass it handles what has happened on its sockets, then writes the answers that other threads have listed
 * meanwhile. Before it waits on_pass has been called after the last of them. Only while it waits for events is it
 * woken, through an eventfd: a system call for each answer would take longer than the answer. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include <seqlstm/export.h>
#include <seqlstm/ext/draft/http.h>

enum { GRACE_US = 50000, BACKLOG = 4096 };

struct seqlstm_http_request {
    struct seqlstm_http *http;
    struct evhttp_request *event;
    char *path;
    char *body;
    uint64_t body_bytes;
    evutil_socket_t socket;
    bool gone; /* under the lock: the connection is closed, and its socket may be that of another one */
    /* the answer */
    struct seqlstm_http_request *next; /* in http->answered */
    struct evbuffer *answer;           /* what the loop has not taken yet; of parts under the lock */
    int status;
    bool in_parts, listed, ended; /* under the lock */
    bool begun, sent;             /* of the loop: its headers are written; all of it is given to evhttp */
    atomic_uint_least64_t unread; /* bytes in the buffer of the connection when the loop last looked */
};

struct seqlstm_http {
    struct seqlstm_http_options options;
    struct event_base *base;
    struct evhttp *server;
    struct evhttp_bound_socket *bound;
    struct event *wake, *grace;
    int eventfd;
    atomic_bool stopping; /* set by any thread, or by a signal handler */
    bool closed;          /* the listener */
    uint64_t open;        /* requests without an answer that was written */
    pthread_mutex_t lock;
    bool waits;                            /* under the lock: the loop is to be woken for an answer */
    struct seqlstm_http_request *answered; /* under the lock, newest first */
    struct evbuffer *part;                 /* of the loop: what is written now */
};

/* ---- requests ---------------------------------------------------------------------------------------------- */

static const char *get_method(const struct seqlstm_http_request *request)
{
    switch (evhttp_request_get_command(request->event)) {
    case EVHTTP_REQ_GET:
        return "GET";
    case EVHTTP_REQ_HEAD:
        return "HEAD";
    default:
        return "POST";
    }
}

static const char *get_path(const struct seqlstm_http_request *request)
{
    return request->path;
}

static const char *find_header(const struct seqlstm_http_request *request, const char *name)
{
    return evhttp_find_header(evhttp_request_get_input_headers(request->event), name);
}

static const void *get_body(const struct seqlstm_http_request *request, uint64_t *out_bytes)
{
    *out_bytes = request->body_bytes;
    return request->body;
}

/* evhttp reads nothing while a request waits for its answer, so the end of the connection is still in the socket. */
static int32_t is_gone(const struct seqlstm_http_request *request)
{
    char byte;
    pthread_mutex_lock(&request->http->lock);
    bool gone = request->gone;
    if (!gone) {
        const ssize_t got = recv(request->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    }
    pthread_mutex_unlock(&request->http->lock);
    return gone;
}

static void destroy(struct seqlstm_http_request *request)
{
    if (request->answer)
        evbuffer_free(request->answer);
    free(request->path);
    free(request);
}

static struct seqlstm_http_request *create(struct seqlstm_http *http, struct evhttp_request *event)
{
    struct seqlstm_http_request *request = calloc(1, sizeof *request);
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(event);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    struct evbuffer *body = evhttp_request_get_input_buffer(event);
    struct evhttp_connection *connection = evhttp_request_get_connection(event);
    if (request == NULL)
        return NULL;
    request->http = http;
    request->event = event;
    request->path = evhttp_uridecode(path ? path : "/", 0, NULL);
    request->answer = evbuffer_new();
    request->body_bytes = evbuffer_get_length(body);
    request->body = (char *)evbuffer_pullup(body, -1);
    request->socket = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
    if (request->path && request->answer && (request->body || request->body_bytes == 0))
        return request;
    destroy(request);
    return NULL;
}

static void end_if_done(struct seqlstm_http *http)
{
    const struct timeval grace = {.tv_usec = GRACE_US}; /* for requests that have been sent and not been read */
    if (http->closed && http->open == 0)
        event_add(http->grace, &grace);
}

/* The answer is written, or never will be. */
static void finish(struct seqlstm_http_request *request)
{
    struct seqlstm_http *http = request->http;
    http->open--;
    destroy(request);
    end_if_done(http);
}

static void on_written(struct evhttp_request *event, void *context)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(event);
    if (connection)
        evhttp_connection_set_closecb(connection, NULL, NULL);
    finish(context);
}

/* The client has left, or has been too slow. evhttp keeps a request that has no full answer yet until it has one. */
static void on_closed(struct evhttp_connection *connection, void *context)
{
    struct seqlstm_http_request *request = context;
    (void)connection;
    pthread_mutex_lock(&request->http->lock);
    request->gone = true;
    pthread_mutex_unlock(&request->http->lock);
    if (request->sent)
        finish(request);
}

static void on_event(struct evhttp_request *event, void *context)
{
    struct seqlstm_http *http = context;
    struct seqlstm_http_request *request = create(http, event);
    if (request == NULL) {
        evhttp_send_error(event, HTTP_SERVUNAVAIL, NULL);
        return;
    }
    http->open++;
    evhttp_request_set_on_complete_cb(event, on_written, request);
    evhttp_connection_set_closecb(evhttp_request_get_connection(event), on_closed, request);
    http->options.on_request(http->options.context, request);
}

/* ---- answers ----------------------------------------------------------------------------------------------- */

static void wake(struct seqlstm_http *http)
{
    const uint64_t one = 1;
    (void)!write(http->eventfd, &one, sizeof one);
}

/* Gives the request to the loop, which looks at all that are listed. Under the lock; returns whether to wake it. */
static bool list(struct seqlstm_http_request *request)
{
    struct seqlstm_http *http = request->http;
    const bool waits = http->waits;
    http->waits = false;
    if (request->listed)
        return waits;
    request->listed = true;
    request->next = http->answered;
    http->answered = request;
    return waits;
}

static int32_t fail_memory(uint64_t bytes, struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an answer of %llu bytes", (unsigned long long)bytes);
}

static bool add_headers(struct seqlstm_http_request *request, const struct seqlstm_http_header *headers)
{
    struct evkeyvalq *out = evhttp_request_get_output_headers(request->event);
    bool fine = true;
    for (const struct seqlstm_http_header *h = headers; h && h->name; h++)
        fine = fine && evhttp_add_header(out, h->name, h->value) == 0;
    return fine;
}

/* Adds to the answer and changes its flags, and wakes the loop if it waits. */
static int32_t publish(struct seqlstm_http_request *request, const void *body, uint64_t bytes, bool ends,
                       struct seqlstm_error *err)
{
    struct seqlstm_http *http = request->http;
    pthread_mutex_lock(&http->lock);
    const bool fine = bytes == 0 || evbuffer_add(request->answer, body, bytes) == 0;
    request->ended = ends;
    const bool waits = list(request);
    pthread_mutex_unlock(&http->lock); /* the request may be freed from now on, if it has ended */
    if (waits)
        wake(http);
    return fine ? SEQLSTM_OK : fail_memory(bytes, err);
}

static int32_t reply(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err)
{
    const bool fine = add_headers(request, headers) && (bytes == 0 || evbuffer_add(request->answer, body, bytes) == 0);
    request->status = fine ? status : HTTP_SERVUNAVAIL;
    publish(request, NULL, 0, true, NULL);
    return fine ? SEQLSTM_OK : fail_memory(bytes, err);
}

static int32_t begin(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     struct seqlstm_error *err)
{
    const bool fine = add_headers(request, headers);
    request->status = status;
    request->in_parts = true;
    const int32_t published = publish(request, NULL, 0, false, err);
    return fine ? published : fail_memory(0, err);
}

static int32_t add(struct seqlstm_http_request *request, const void *part, uint64_t bytes, struct seqlstm_error *err)
{
    return publish(request, part, bytes, false, err);
}

static void end(struct seqlstm_http_request *request)
{
    publish(request, NULL, 0, true, NULL);
}

static uint64_t count_unread(const struct seqlstm_http_request *request)
{
    return atomic_load(&request->unread);
}

/* The answer to HEAD has the headers of that to GET, and no body; evhttp would write one. */
static void leave_out_body(struct seqlstm_http_request *request, struct evbuffer *body)
{
    char bytes[24];
    if (evhttp_request_get_command(request->event) != EVHTTP_REQ_HEAD)
        return;
    snprintf(bytes, sizeof bytes, "%zu", evbuffer_get_length(body));
    evhttp_add_header(evhttp_request_get_output_headers(request->event), "Content-Length", bytes);
    evbuffer_drain(body, evbuffer_get_length(body));
}

/* evhttp would write only after its next wait for events. What the socket does not take is left to it, and errors are.
 * The connection may be freed. */
static void write_now(struct evhttp_connection *connection)
{
    struct bufferevent *buffered = evhttp_connection_get_bufferevent(connection);
    struct evbuffer *out = bufferevent_get_output(buffered);
    evbuffer_unfreeze(out, 1);
    evbuffer_write(out, bufferevent_getfd(buffered));
    evbuffer_freeze(out, 1);
    if (evbuffer_get_length(out) > 0)
        return;
    bufferevent_disable(buffered, EV_WRITE); /* as evhttp has it: it may close the connection now */
    bufferevent_trigger(buffered, EV_WRITE, 0);
}

/* Writes what there is of an answer. */
static void send_answer(struct seqlstm_http_request *request, struct evbuffer *part, bool ended)
{
    struct evhttp_request *event = request->event;
    struct evhttp_connection *connection = evhttp_request_get_connection(event);
    const bool gone = connection == NULL, in_parts = request->in_parts;
    if (request->http->closed && !request->begun)
        evhttp_add_header(evhttp_request_get_output_headers(event), "Connection", "close");
    request->sent = ended && !gone;
    if (request->in_parts && !request->begun)
        evhttp_send_reply_start(event, request->status, NULL);
    request->begun = true;
    if (request->in_parts && evbuffer_get_length(part) > 0)
        evhttp_send_reply_chunk(event, part);
    if (!gone && !ended) {
        struct evbuffer *out = bufferevent_get_output(evhttp_connection_get_bufferevent(connection));
        atomic_store(&request->unread, evbuffer_get_length(out));
    }
    if (!ended)
        return;
    if (request->in_parts)
        evhttp_send_reply_end(event);
    else {
        leave_out_body(request, part);
        evhttp_send_reply(event, request->status, NULL, part);
    }
    if (gone)
        finish(request);
    else if (!in_parts) /* the end of parts may have freed the connection */
        write_now(connection);
}

static struct seqlstm_http_request *take_answered(struct seqlstm_http *http)
{
    pthread_mutex_lock(&http->lock);
    struct seqlstm_http_request *request = http->answered, *oldest = NULL;
    http->answered = NULL;
    http->waits = false;
    pthread_mutex_unlock(&http->lock);
    while (request) { /* the list is newest first */
        struct seqlstm_http_request *next = request->next;
        request->next = oldest;
        oldest = request;
        request = next;
    }
    return oldest;
}

static void send_answers(struct seqlstm_http *http, struct seqlstm_http_request *request)
{
    while (request) {
        pthread_mutex_lock(&http->lock);
        struct seqlstm_http_request *next = request->next; /* read before the request is listed again */
        evbuffer_add_buffer(http->part, request->answer);
        const bool ended = request->ended;
        request->listed = false;
        pthread_mutex_unlock(&http->lock);
        send_answer(request, http->part, ended);
        evbuffer_drain(http->part, evbuffer_get_length(http->part));
        request = next;
    }
}

static void on_wake(evutil_socket_t descriptor, short what, void *context)
{
    struct seqlstm_http *http = context;
    uint64_t count;
    (void)what;
    (void)!read(descriptor, &count, sizeof count);
    if (atomic_load(&http->stopping) && !http->closed) {
        evhttp_del_accept_socket(http->server, http->bound);
        http->closed = true;
        end_if_done(http);
    }
}

static void on_grace(evutil_socket_t descriptor, short what, void *context)
{
    struct seqlstm_http *http = context;
    (void)descriptor, (void)what;
    if (http->open == 0)
        event_base_loopbreak(http->base);
}

/* ---- the server -------------------------------------------------------------------------------------------- */

static void http_close(struct seqlstm_http *http)
{
    if (http == NULL)
        return;
    if (http->wake)
        event_free(http->wake);
    if (http->grace)
        event_free(http->grace);
    if (http->server)
        evhttp_free(http->server);
    if (http->part)
        evbuffer_free(http->part);
    if (http->base)
        event_base_free(http->base);
    if (http->eventfd >= 0)
        close(http->eventfd);
    pthread_mutex_destroy(&http->lock);
    free(http);
}

/* With a list of changes, a wish to write that write_now has fulfilled costs no system call. */
static struct event_base *make_base(void)
{
    struct event_config *config = event_config_new();
    if (config == NULL)
        return NULL;
    event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static int32_t listen_on(struct seqlstm_http *http, struct seqlstm_error *err)
{
    const struct seqlstm_http_options *o = &http->options;
    http->base = make_base();
    http->server = http->base ? evhttp_new(http->base) : NULL;
    http->part = evbuffer_new();
    if (http->eventfd < 0 || http->server == NULL || http->part == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a server");
    evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
    evhttp_set_max_body_size(http->server, (ev_ssize_t)o->body_bytes);
    evhttp_set_max_headers_size(http->server, (ev_ssize_t)o->header_bytes);
    evhttp_set_timeout(http->server, o->idle_seconds);
    evhttp_set_default_content_type(http->server, NULL);
    evhttp_set_gencb(http->server, on_event, http);
    errno = 0;
    http->bound = evhttp_bind_socket_with_handle(http->server, o->address, o->port);
    if (http->bound == NULL) {
        const int reason = errno;
        seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "cannot listen on %s, port %d: %s", o->address, o->port,
                          strerror(reason));
        if (err)
            err->native_code = reason;
        return SEQLSTM_IO;
    }
    /* The 128 of evhttp overflow when many clients connect at once: each then waits for a second or more. */
    listen(evhttp_bound_socket_get_fd(http->bound), BACKLOG);
    http->wake = event_new(http->base, http->eventfd, EV_READ | EV_PERSIST, on_wake, http);
    http->grace = event_new(http->base, -1, 0, on_grace, http);
    if (http->wake == NULL || http->grace == NULL || event_add(http->wake, NULL) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a server");
    return SEQLSTM_OK;
}

static int32_t http_open(const struct seqlstm_http_options *options, struct seqlstm_http **out,
                         struct seqlstm_error *err)
{
    struct seqlstm_http *http = calloc(1, sizeof *http);
    if (http == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a server");
    http->options = *options;
    http->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&http->lock, NULL);
    const int32_t status = listen_on(http, err);
    if (status != SEQLSTM_OK)
        http_close(http);
    else
        *out = http;
    return status;
}

static uint16_t get_port(const struct seqlstm_http *http)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    if (getsockname(evhttp_bound_socket_get_fd(http->bound), (struct sockaddr *)&address, &bytes) != 0)
        return 0;
    const bool six = address.ss_family == AF_INET6;
    return ntohs(six ? ((struct sockaddr_in6 *)&address)->sin6_port : ((struct sockaddr_in *)&address)->sin_port);
}

/* Handles events; `may_wait`: waits for them, unless there are answers already. */
static int handle_events(struct seqlstm_http *http, bool may_wait)
{
    pthread_mutex_lock(&http->lock);
    const bool waits = may_wait && http->answered == NULL;
    http->waits = waits;
    pthread_mutex_unlock(&http->lock);
    return event_base_loop(http->base, EVLOOP_NO_EXIT_ON_EMPTY | (waits ? EVLOOP_ONCE : EVLOOP_NONBLOCK));
}

static int32_t http_run(struct seqlstm_http *http, struct seqlstm_error *err)
{
    for (struct seqlstm_http_request *answered = NULL; !event_base_got_break(http->base);) {
        if (handle_events(http, answered == NULL) < 0)
            SEQLSTM_FAIL(err, SEQLSTM_IO, "the loop of the server failed");
        answered = take_answered(http);
        if (http->options.on_pass)
            http->options.on_pass(http->options.context);
        send_answers(http, answered);
    }
    return SEQLSTM_OK;
}

static void http_stop(struct seqlstm_http *http)
{
    atomic_store(&http->stopping, true);
    wake(http);
}

SEQLSTM_API extern const struct seqlstm_http_module seqlstm_http_v0;
const struct seqlstm_http_module seqlstm_http_v0 = {
    .struct_size = sizeof seqlstm_http_v0,
    .open = http_open,
    .get_port = get_port,
    .run = http_run,
    .stop = http_stop,
    .close = http_close,
    .get_method = get_method,
    .get_path = get_path,
    .find_header = find_header,
    .get_body = get_body,
    .is_gone = is_gone,
    .reply = reply,
    .begin = begin,
    .add = add,
    .end = end,
    .count_unread = count_unread,
};

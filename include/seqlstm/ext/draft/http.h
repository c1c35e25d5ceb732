/* SPDX-License-Identifier: Apache-2.0 */
/* Draft: the interface of a module that serves HTTP, such as libseqlstm_http.so.
 *
 * The module is a shared object that exports the table seqlstm_http_v0, which is valid as long as the module is mapped.
 * It prints nothing and starts no threads: `run` is the loop of the thread that calls it, and `on_request` and
 * `on_pass` are called in it. Everything said of a request is owned by the module and valid until the request is
 * answered; every request must be answered once, from any thread: with `reply`, or in parts. A function that can fail
 * returns a status of status.h and fills the error. */
#ifndef SEQLSTM_EXT_DRAFT_HTTP_H
#define SEQLSTM_EXT_DRAFT_HTTP_H

#include <stdint.h>

#include <seqlstm/status.h>

#define SEQLSTM_HTTP_SYMBOL "seqlstm_http_v0"

struct seqlstm_http;         /* a server */
struct seqlstm_http_request; /* a request that is not answered yet */

struct seqlstm_http_options {
    uint32_t struct_size;
    uint16_t port;         /* 0: a free one */
    uint16_t idle_seconds; /* after which a connection without a request is closed; also for slow readers */
    const char *address;   /* "127.0.0.1", "::1", "0.0.0.0" */
    uint64_t body_bytes;   /* a larger body is answered with 413 */
    uint64_t header_bytes; /* larger headers are answered with 400 or 413 */
    void (*on_request)(void *context, struct seqlstm_http_request *request);
    void (*on_pass)(void *context); /* after requests that came together, and after answers; NULL: is not called */
    void *context;
};

/* A header of a reply; the last one of an array has the name NULL. */
struct seqlstm_http_header {
    const char *name, *value;
};

struct seqlstm_http_module {
    uint32_t struct_size;
    uint32_t reserved;
    /* Binds and listens. IO: the address is in use or not one of this machine (native_code: errno); NO_MEMORY. */
    int32_t (*open)(const struct seqlstm_http_options *options, struct seqlstm_http **out, struct seqlstm_error *err);
    uint16_t (*get_port)(const struct seqlstm_http *http);
    /* Serves until it is stopped and every request is answered and written. IO. */
    int32_t (*run)(struct seqlstm_http *http, struct seqlstm_error *err);
    /* Accepts no further connections and ends `run` when nothing is left to write. Safe in signal handlers. [any] */
    void (*stop)(struct seqlstm_http *http);
    /* After `run` has returned, or instead of it. */
    void (*close)(struct seqlstm_http *http);

    const char *(*get_method)(const struct seqlstm_http_request *request); /* "GET", "POST", "HEAD" */
    const char *(*get_path)(const struct seqlstm_http_request *request);   /* decoded, without the query */
    const char *(*find_header)(const struct seqlstm_http_request *request, const char *name); /* NULL: not there */
    const void *(*get_body)(const struct seqlstm_http_request *request, uint64_t *out_bytes);
    /* Has the client closed the connection? Asks the system. [any] */
    int32_t (*is_gone)(const struct seqlstm_http_request *request);
    /* Answers; copies headers and body. NO_MEMORY: the connection is closed instead. [any] */
    int32_t (*reply)(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err);

    /* An answer in parts, as each is known: begin, then any number of parts, then end, which frees the request. Copies
     * headers and parts. Where the client has left, parts are dropped. NO_MEMORY: the answer lacks this part; it must
     * still be ended. [any] */
    int32_t (*begin)(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     struct seqlstm_error *err);
    int32_t (*add)(struct seqlstm_http_request *request, const void *part, uint64_t bytes, struct seqlstm_error *err);
    void (*end)(struct seqlstm_http_request *request);
    /* Bytes of parts that the client has not read yet. [any] */
    uint64_t (*count_unread)(const struct seqlstm_http_request *request);
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A server of predictions: what its paths do, who may ask, and its life. */
#ifndef SL_SERVE_SERVER_H
#define SL_SERVE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "serve/compute/replies.h"

struct sl_interrupt;
struct sl_server;
struct sl_session;

/* What is served, and how. Everything is borrowed until the server is closed. */
struct sl_server_request {
    struct sl_session *const *sessions; /* trained runs, each with a name of its own */
    const char *const *names;
    int count;
    const char *address;
    uint16_t port;             /* 0: a free one */
    const char *const *tokens; /* that may ask; NULL: no token is needed. Ends with NULL */
    int workers;               /* threads that take batches, 1 to 256 */
    int32_t threads;           /* that compute one batch */
    bool roams;                /* workers keep no processors, also where they would: see pinning.h */
    int64_t queue;             /* requests that may wait */
    int64_t body_bytes;        /* of a request, at most */
    int64_t steps;             /* of a sequence, at most; 0: as in the training data */
    int64_t sequences;         /* of a batch, at most; 0: the default of predictors */
    int64_t streams;           /* that may be open */
    int64_t stream_idle_ns;    /* after which a stream that is not used ends */
    int64_t target_ns;         /* of the 99th percentile of latency; 0: none */
    enum sl_serve_batching batching;
    struct sl_history *history;     /* of the batches; NULL: none */
    bool reproducible;              /* answers have the same bits whatever else is computed */
    struct sl_interrupt *interrupt; /* ends the server when it asks to stop */

    /* Opens the run of a session again, to take over its newer weights; NULL: they are not. `close` closes what was
     * opened so. `tell` says what became of it. They are called by one thread of the server at a time. */
    seqlstm_status (*reopen)(void *context, const struct sl_session *session, struct sl_session **out_session,
                             struct seqlstm_error *err);
    void (*close)(void *context, struct sl_session *session);
    void (*tell)(void *context, const char *text);
    void *follow_context;
};

enum { SL_SERVER_WORKERS_MOST = 256 };

/* Prepares the models, binds the address and starts the workers, so that the first request finds everything ready.
 * Errors: UNAVAILABLE (the module is not there), IO (the address), those of predictors. Where workers keep processors,
 * the calling thread, and threads that it starts, have what is left of them until the server is closed. */
seqlstm_status sl_server_open(const struct sl_server_request *request, struct sl_server **out_server,
                              struct seqlstm_error *err);
uint16_t sl_server_get_port(const struct sl_server *server);

/* Serves until the interrupt asks to stop; every request that was accepted is answered first. */
seqlstm_status sl_server_run(struct sl_server *server, struct seqlstm_error *err);
void sl_server_close(struct sl_server *server); /* NULL is fine */

#endif

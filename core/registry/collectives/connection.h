/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: this rank in its job, through a plugin for collectives.
 *
 * Such plugins are found, checked and loaded as backends are (registry.h): files libseqlstm_collectives_ID.so in the
 * folders of the backend path, or built in. Their functions are called only from here, watched (watch.h).
 *
 * Invariants: after a failed exchange every later one fails, too. The other ranks then notice that this one has failed
 * when it closes the connection. One thread at a time, except sl_connection_abort.
 */
#ifndef SL_REGISTRY_COLLECTIVES_CONNECTION_H
#define SL_REGISTRY_COLLECTIVES_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/collectives.h>

#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "registry/record.h"

/* A plugin that is linked into the program; used before a file of its id. */
struct sl_collectives_builtin {
    const char *id;
    seqlstm_collectives_query_fn query;
};

struct sl_connection_request {
    const char *name; /* id ("comm-shm"), or a file: then it contains '/' */
    const struct sl_collectives_builtin *builtins;
    uint32_t builtin_count;
    const char *const *folders; /* of --backend-path, searched first */
    uint32_t folder_count;
    bool trust;
    const struct seqlstm_setting *settings;
    uint32_t setting_count;
    int32_t rank, ranks;
    int32_t local_ranks; /* on this host; 0: unknown */
    int32_t device;      /* struct seqlstm_rendezvous */
    const char *job;     /* struct seqlstm_rendezvous */
    const char *folder;  /* may be NULL */
    int64_t timeout_ns;  /* for meeting; and for each exchange unless it is given one */
    const struct sl_log *log;
    const struct sl_interrupt *interrupt; /* may be NULL; a request to stop ends a running exchange */
};

struct sl_connection;

/* Finds, loads and opens the plugin, and meets the other ranks; makes the group of all ranks, number 0. Errors:
 * NOT_FOUND, UNAVAILABLE (not on this machine, or refused: the message has the reason), DEVICE (a rank did not come),
 * INVALID_ARGUMENT, NO_MEMORY. */
seqlstm_status sl_connection_open(const struct sl_connection_request *request, struct sl_connection **out_connection,
                                  struct seqlstm_error *err);
/* Destroys its groups. NULL is fine. */
void sl_connection_close(struct sl_connection *connection);

int32_t sl_connection_get_rank(const struct sl_connection *connection);
int32_t sl_connection_get_ranks(const struct sl_connection *connection);
const struct seqlstm_transport *sl_connection_get_transport(const struct sl_connection *connection);

/* A further group; `ranks` ascending, this one among them. It is destroyed with the connection. */
seqlstm_status sl_connection_add_group(struct sl_connection *connection, uint32_t number, const int32_t *ranks,
                                       int32_t count, struct seqlstm_error *err);

/* Makes one exchange in a group; struct_size and, if it is 0, timeout_ns are filled in. Errors: those of
 * <seqlstm/collectives.h>; err->native_code is 1 + the rank that is to blame, or 0. */
seqlstm_status sl_connection_run(struct sl_connection *connection, uint32_t group, struct seqlstm_exchange exchange,
                                 struct seqlstm_error *err);
/* The same, with buffers on the device of `queue`, if they may lie there: it is queued. It has failed if
 * sl_connection_poll says so when the queue has done its work. */
seqlstm_status sl_connection_run_on(struct sl_connection *connection, uint32_t group, struct seqlstm_queue *queue,
                                    struct seqlstm_exchange exchange, struct seqlstm_error *err);
/* Memory for `bytes` bytes in which exchanges are fastest; it lives until the connection is closed. NULL: the plugin
 * has none, and any memory is as good. All ranks call it, with the same bytes in the same order. Errors: NO_MEMORY, and
 * those of exchanges. */
seqlstm_status sl_connection_allocate(struct sl_connection *connection, int64_t bytes, void **out_memory,
                                      struct seqlstm_error *err);
seqlstm_status sl_connection_poll(struct sl_connection *connection, struct seqlstm_error *err);
/* Ends the exchanges of all ranks. [any thread] */
void sl_connection_abort(struct sl_connection *connection);

/* Loads a plugin without joining a job, for the conformance kit and `backends`: fills `record`, whose texts live in
 * `arena`, and *out_table where its status is OK. Errors: NO_MEMORY, INVALID_ARGUMENT (a relative folder). */
seqlstm_status sl_collectives_load(struct sl_arena *arena, const struct sl_connection_request *request,
                                   struct sl_backend_record *record, struct seqlstm_collectives *out_table,
                                   struct seqlstm_error *err);

#endif

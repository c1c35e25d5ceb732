/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI of collectives: plugins through which the ranks of one training exchange data.
 *
 * A rank is one process with one device. A plugin of this kind is a shared object that exports exactly one function,
 * `seqlstm_collectives_query_v0`, which returns a constant table. The rules of backend.h hold here too: version, sizes
 * of structs, thread classes, memory, and what a plugin must not do to the process. Major 0 is a draft:
 * SEQLSTM_COLLECTIVES_MINOR of host and plugin must be equal.
 *
 * Life: open (all ranks of the job meet), group_create, run …, group_destroy, close.
 *
 * Order. All members of a group call `run` with the same kinds, dtypes, reductions and sizes in the same order. Sends
 * and receives concern two members only, and are matched in order for each pair and direction.
 *
 * Failure. If `run` fails, the connection cannot be used any more: all further calls fail too. The status is CANCELLED
 * if the job is over: a rank has aborted, died or left while this one waited for it, or the host's `cancelled` says so.
 * It is DEVICE if the transport failed or a rank did not come in time. err->native_code is 1 + the number of the rank
 * that is to blame, or 0 if none is known.
 */
#ifndef SEQLSTM_COLLECTIVES_H
#define SEQLSTM_COLLECTIVES_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEQLSTM_COLLECTIVES_MAJOR        0u
#define SEQLSTM_COLLECTIVES_MINOR        2u
#define SEQLSTM_COLLECTIVES_QUERY_SYMBOL "seqlstm_collectives_query_v0"

enum {
    SEQLSTM_COLLECTIVE_ALL_REDUCE = 0,     /* to[i] = reduction of from[i] over the members; the same bits for all */
    SEQLSTM_COLLECTIVE_REDUCE_SCATTER = 1, /* from [members * elems]; to [elems]: the part of this member, reduced */
    SEQLSTM_COLLECTIVE_ALL_GATHER = 2,     /* from [elems]; to [members * elems]: those of all, by place in the group */
    SEQLSTM_COLLECTIVE_BROADCAST = 3,      /* to [elems] becomes that of `peer` */
    SEQLSTM_COLLECTIVE_SEND = 4,           /* from [elems] to `peer`; may return before it is received */
    SEQLSTM_COLLECTIVE_RECEIVE = 5,        /* to [elems] from `peer` */
    SEQLSTM_COLLECTIVE_BARRIER = 6,        /* returns when all have called it */
    SEQLSTM_COLLECTIVE_COUNT = 7
};

enum { SEQLSTM_REDUCE_SUM = 0, SEQLSTM_REDUCE_MAX = 1, SEQLSTM_REDUCE_MIN = 2, SEQLSTM_REDUCE_COUNT = 3 };

enum { SEQLSTM_MAX_JOB_BYTES = 128 }; /* with the final NUL */

/* How the ranks of a job find each other. */
struct seqlstm_rendezvous {
    uint32_t struct_size;
    int32_t rank;        /* 0 .. ranks - 1 */
    int32_t ranks;       /* >= 1 */
    int32_t local_ranks; /* those on this host; 0: unknown */
    int32_t device;      /* on which this rank computes, by the count of the backends; -1: on the processor */
    uint32_t reserved0;
    const char *job;    /* the same text for all ranks of the job, and for no other job: [A-Za-z0-9.:_-]+ */
    const char *folder; /* that all ranks can write to; NULL: there is none */
    int64_t timeout_ns; /* in which all ranks must have come; > 0 */
};

/* Filled by `describe`. Zeroed by the host, struct_size set. */
struct seqlstm_transport {
    uint32_t struct_size;
    uint32_t collectives; /* bit 1 << SEQLSTM_COLLECTIVE_… */
    uint32_t dtypes;      /* bit 1 << SEQLSTM_DTYPE_…; of reductions. Other kinds move bytes and take every dtype */
    uint32_t reductions;  /* bit 1 << SEQLSTM_REDUCE_… */
    uint32_t groups;      /* most groups at the same time; >= 1 */
    int32_t ranks_most;   /* 0: no limit */
    uint32_t one_host;    /* 1: all ranks must be on one host */
    uint32_t reserved0;
    char name[64];   /* "shared memory" */
    char domain[64]; /* where buffers may lie, too, besides the host: the beginning of names such as "cuda:"; or "host"
                      */
};

struct seqlstm_connection; /* defined by the plugin: this rank in its job */
struct seqlstm_group;      /* defined by the plugin: some ranks of the job */

/* One exchange. `to` and `from` may be the same buffer for ALL_REDUCE, and for ALL_GATHER `from` may be the part of
 * `to` that belongs to this member; otherwise they do not overlap. */
struct seqlstm_exchange {
    uint32_t struct_size;
    uint32_t kind;      /* SEQLSTM_COLLECTIVE_… */
    uint32_t dtype;     /* SEQLSTM_DTYPE_… */
    uint32_t reduction; /* SEQLSTM_REDUCE_…; ALL_REDUCE and REDUCE_SCATTER */
    int32_t peer;       /* place in the group; BROADCAST, SEND, RECEIVE */
    uint32_t reserved0;
    int64_t elems; /* >= 0; as the kinds above say */
    const void *from;
    void *to;
    int64_t timeout_ns; /* for the whole exchange; > 0 */
};

/* The table of a plugin, constant. Its first members, up to `sanitizers`, are those of struct seqlstm_backend. The
 * functions up to `abort` are required. */
struct seqlstm_collectives {
    uint32_t struct_size;
    uint32_t magic;            /* SEQLSTM_MAGIC */
    uint32_t abi_major;        /* SEQLSTM_COLLECTIVES_MAJOR */
    uint32_t abi_minor_needed; /* lowest SEQLSTM_COLLECTIVES_MINOR of a host that suffices */
    const char *id;            /* "comm-shm"; as that of a backend */
    const char *version;
    const char *vendor;
    const char *license;
    const char *build;
    uint32_t sanitizers;
    uint32_t option_count;
    const struct seqlstm_option *options;

    /* Answers what it can do, with or without a job: rules only, no connection. [any] */
    seqlstm_status (*describe)(struct seqlstm_transport *transport, struct seqlstm_error *err);
    /* Joins the job: returns when all its ranks have come. `host` is valid until `close`. UNAVAILABLE: it cannot work
     * on this machine; DEVICE: a rank did not come in time. [control] */
    seqlstm_status (*open)(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                           uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                           struct seqlstm_connection **out_connection, struct seqlstm_error *err);
    /* Leaves the job. After a failure it waits for no other rank; otherwise it may wait until they have left, too, as
     * MPI must, but not for a rank that fails. NULL is allowed. [control] */
    void (*close)(struct seqlstm_connection *connection);
    /* Makes a group of `ranks` [count], ascending, of which this rank is one. All members call it; `number` (less than
     * `groups` of the transport) is the same for all members, and that of no other group of any of them. [control] */
    seqlstm_status (*group_create)(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                   int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err);
    void (*group_destroy)(struct seqlstm_group *group); /* NULL is allowed. [control] */
    /* Makes one exchange. Buffers on the host: it has finished when the call returns. Buffers on a device: it is queued
     * on the stream of `queue` (NULL: the host). [queue: one call at a time per connection] */
    seqlstm_status (*run)(struct seqlstm_group *group, struct seqlstm_queue *queue,
                          const struct seqlstm_exchange *exchange, struct seqlstm_error *err);
    /* Reports what has failed since, as `run` does: a queued exchange, the death of a rank, an abort. Waits for
     * nothing. [any] */
    seqlstm_status (*poll)(struct seqlstm_connection *connection, struct seqlstm_error *err);
    /* Ends every running and later exchange of all ranks with CANCELLED, as far as they can be reached. [any] */
    void (*abort)(struct seqlstm_connection *connection);
    /* (optional; without it: the host's memory is as good) Memory of `bytes` bytes in which exchanges are fastest, as
     * comm-shm's, which all ranks see. It is zero at first, aligned to SEQLSTM_ALIGNMENT, and lives until `close`. All
     * ranks of the job call it with the same `bytes` in the same order. If a member makes an ALL_REDUCE in place in
     * such memory, all members do, at the same distance from its beginning. Errors: NO_MEMORY, and those of `run`.
     * [control] */
    seqlstm_status (*allocate)(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns,
                               void **out_memory, struct seqlstm_error *err);
};

/* The one exported function, under the rules of seqlstm_backend_query_fn. [any] */
typedef const struct seqlstm_collectives *(*seqlstm_collectives_query_fn)(uint32_t host_minor);

#ifdef __cplusplus
}
#endif

#endif

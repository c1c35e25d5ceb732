/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a training do together. The trainer of each rank runs the same loop on the same batches, and
 * computes its own shards of them. After each update all ranks agree: sums of the loss, requests to stop or to save,
 * and the time are the same for all, so that all make the same decisions at the same update. */
#ifndef SL_PARALLEL_RANKS_H
#define SL_PARALLEL_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/interrupt.h"
#include "model/parallel_config.h"
#include "parallel/rank_group.h"

struct sl_ranks {
    struct sl_connection *connection; /* NULL: one rank, which computes all shards */
    int32_t rank, ranks;
    int32_t stages, stage;                 /* of the pipeline, and this rank's: rank r has stage r % stages */
    struct sl_rank_group replicas;         /* the ranks with this one's stage: they share the batches */
    struct sl_rank_group pipeline;         /* the ranks with this one's share of the batches: they share the layers */
    int32_t shards;                        /* of each batch; at least one for each rank */
    bool ordered;                          /* gradients are added in the order of the tree (parallel/shards.h) */
    const struct sl_reduce_config *reduce; /* otherwise */
    bool overlaps;                         /* gradients are exchanged during the backward pass: a core is free for it,
                                            * or other hosts take part */
    bool spares_core;                      /* one is free for it */
    int64_t compress_rank;                 /* of the factors of matrices; 0: they are not compressed */
    struct sl_interrupt *own;              /* of this process; may be NULL */
    struct sl_interrupt agreed;            /* what the trainer follows; the second signal of a process is its own */
    int64_t now_ns;                        /* of rank 0 at the last agreement */
};

/* `connection` NULL: alone. Makes the groups. Errors: of the connection. */
seqlstm_status sl_ranks_init(struct sl_ranks *ranks, struct sl_connection *connection,
                             const struct sl_parallel_config *config, struct sl_interrupt *own,
                             struct seqlstm_error *err);

/* Called by all ranks at the same place: `agreed` and `now_ns` become the same everywhere. Errors: of exchanges. */
seqlstm_status sl_ranks_agree(struct sl_ranks *ranks, struct seqlstm_error *err);

/* For sl_trainer_request.clock_ns, with the ranks as its context. */
int64_t sl_ranks_read_clock(void *ranks);

/* All ranks get the bytes of rank `from`. Does nothing alone. */
seqlstm_status sl_ranks_broadcast(const struct sl_ranks *ranks, int32_t from, void *bytes, int64_t count,
                                  struct seqlstm_error *err);

/* All ranks get the bytes of all: [ranks * count]. */
seqlstm_status sl_ranks_gather(const struct sl_ranks *ranks, const void *bytes, int64_t count, void *out_all,
                               struct seqlstm_error *err);

/* sl_exec_exchange_fn, with the ranks as its context: between neighbouring stages. */
seqlstm_status sl_ranks_exchange(void *ranks, bool after, bool sends, float *values, int64_t elems,
                                 struct seqlstm_error *err);

/* Adds the gradients of all replicas: as `reduce` says, in place. With `reduce: central` only rank 0 has the sum.
 * `scratch` has room for `elems` floats. */
seqlstm_status sl_ranks_add(const struct sl_ranks *ranks, float *grads, int64_t elems, float *scratch,
                            struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How the gradients of a training are exchanged: where they lie, and which are not exchanged as they are. */
#ifndef SL_TRAIN_EXCHANGED_H
#define SL_TRAIN_EXCHANGED_H

#include "exec/exec.h"
#include "parallel/reducer.h"

struct sl_exchanged_request {
    int64_t compress_rank; /* of the factors; 0: nothing is compressed */
    int64_t lookups;       /* rows of embeddings that an update uses, on all ranks, at most */
};

/* Of an update of so many such batches. */
int64_t sl_exchanged_count_lookups(const struct sl_envelope *batch, int32_t batches);

/* Is parameter p of the graph exchanged as factors? Not an embedding of which an update uses few rows. */
bool sl_exchanged_is_compressed(const struct sl_graph *graph, int32_t p, const struct sl_exchanged_request *request);

/* Matrices of which less is exchanged: those that are compressed, and embeddings, of which an update uses few rows; not
 * one that an output layer shares. `out` has room for all parameters. Returns their number. */
int32_t sl_exchanged_find_matrices(const struct sl_graph *graph, const struct sl_params *params,
                                   const struct sl_exchanged_request *request, struct sl_bundle_matrix *out);

/* Gradients of the processor are added fastest in memory of the collectives: if these have any, gradients lie there
 * from now on, all zero, until sl_params_lend_grads takes them away, before the connection is closed. Errors:
 * NO_MEMORY. */
seqlstm_status sl_exchanged_place_grads(struct sl_params *params, struct sl_connection *connection, bool *out_lends,
                                        struct seqlstm_error *err);

/* Do all gradients lie on one device, whose memory the collectives reach, and are they added as they are? */
bool sl_exchanged_stays_on_device(const struct sl_params *params, const struct sl_ranks *ranks);

/* Then they are added there, in the order of the device's work; it has ended when this returns. */
seqlstm_status sl_exchanged_add_on_device(struct sl_params *params, const struct sl_rank_group *group,
                                          struct seqlstm_error *err);

/* Otherwise gradients that a device has made are brought to the host, and the newest are the sums there. */
seqlstm_status sl_exchanged_finish(struct sl_params *params, struct sl_reducer *reducer, struct seqlstm_error *err);

#endif

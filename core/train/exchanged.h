/* SPDX-License-Identifier: Apache-2.0 */
/* How the gradients of a training are exchanged: where they lie, and which are not exchanged as they are. */
#ifndef SL_TRAIN_EXCHANGED_H
#define SL_TRAIN_EXCHANGED_H

#include "exec/exec.h"
#include "parallel/reducer.h"

/* Matrices of which less is exchanged: with `compress_rank` > 0 those that factors of this rank make smaller, and
 * embeddings, whose gradients have few rows that are not zero. `out` has room for all parameters. Returns their number.
 */
int32_t sl_exchanged_find_matrices(const struct sl_graph *graph, const struct sl_params *params, int64_t compress_rank,
                                   struct sl_reducer_matrix *out);

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

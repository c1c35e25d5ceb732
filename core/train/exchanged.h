/* SPDX-License-Identifier: Apache-2.0 */
/* Which gradients ranks do not exchange as they are. */
#ifndef SL_TRAIN_EXCHANGED_H
#define SL_TRAIN_EXCHANGED_H

#include "exec/exec.h"
#include "parallel/reducer.h"

/* Matrices of which less is exchanged: with `compress_rank` > 0 those that factors of this rank make smaller, and
 * embeddings, whose gradients have few rows that are not zero. `out` has room for all parameters. Returns their number.
 */
int32_t sl_exchanged_find_matrices(const struct sl_graph *graph, const struct sl_params *params, int64_t compress_rank,
                                   struct sl_reducer_matrix *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a folded projection (../fold.h) needs besides products, for all rows at once. `layer`: with the projection, in
 * device memory. Each function returns the code of its launch. */
#ifndef CG_FOLD_ROWS_H
#define CG_FOLD_ROWS_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The record z += `product` [sequences, G H], in the row of each sequence's first step. */
int cg_fold_add_first(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t gh);
/* dh_new = the gradients of h which come from outside of the layer: dy, and dhn in the row of the last step. */
int cg_fold_collect(void *stream, const struct cg_layer *layer, int64_t rows, int64_t out);
/* h_rows holds dz W_h of each row: the gradient of h of the step before, to which it is added, or dh0. */
int cg_fold_carry_back(void *stream, const struct cg_layer *layer, int64_t rows, int64_t out);

#ifdef __cplusplus
}
#endif

#endif

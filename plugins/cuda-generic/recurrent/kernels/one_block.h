/* SPDX-License-Identifier: Apache-2.0 */
/* The variant one_block: all steps of a layer in one launch, a block a sequence and direction, W_h in
 * registers.
 *
 *   forward    thread j keeps row j of W_h: its product with h, which lies in shared memory; then thread k is the cell
 *              of unit k. Two barriers a step.
 *   backward   thread (slice, k) keeps column k of a slice of rows; the slices' sums are added in order.
 *
 *
 * With LAYER_NORM (one_block_norm.cu) cells have a warp of their own, which sums over the layer.
 *
 * For up to CG_ONE_BLOCK_MOST hidden units, without projection and late GRU. Sequences never wait for each other, and
 * each block runs the steps of its own sequence alone.
 */
#ifndef CG_ONE_BLOCK_H
#define CG_ONE_BLOCK_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CG_ONE_BLOCK_MOST = 64 };

/* Return the code of the launch. `layer`: those of the directions, one after the other. */
int cg_one_block_forward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences, int64_t gh);
int cg_one_block_backward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences);
int cg_one_block_norm_forward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences);
int cg_one_block_norm_backward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The variant one_block: all steps of a layer in one launch, one block per sequence and direction, with W_h in
 * registers.
 *
 *   forward    thread j keeps row j of W_h and multiplies it with h, which is in shared memory; then thread k computes
 *              the cell of unit k. Two barriers per step
 *   backward   thread (slice, k) keeps column k of a slice of rows; the sums of the slices are added in order
 *
 * With LAYER_NORM (one_block_norm.cu) a separate warp computes the cells, with sums over the layer.
 *
 * For up to CG_ONE_BLOCK_MOST hidden units, without projection and without late GRU. Sequences never wait for each
 * other: each block runs only the steps of its own sequence. */
#ifndef CG_ONE_BLOCK_H
#define CG_ONE_BLOCK_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CG_ONE_BLOCK_MOST = 64 };

/* Return the code of the launch. `layer`: the layers of the directions, one after another. */
int cg_one_block_forward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences, int64_t gh);
int cg_one_block_backward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences);
int cg_one_block_norm_forward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences);
int cg_one_block_norm_backward(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences);

#ifdef __cplusplus
}
#endif

#endif

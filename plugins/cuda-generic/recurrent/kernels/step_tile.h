/* SPDX-License-Identifier: Apache-2.0 */
/* A step as one kernel: the product with W_h in tiles, the cells in its epilogue. step_graph takes it for many
 * sequences, and back for any; for cells whose units meet through W_h alone: no LAYER_NORM, projection, late GRU.
 *
 *   forward     a block has M sequences and some hidden units with all their gates: masked h [B, H] of the step before
 *               times the rows of W_h of these gates, starting from u, then the cells
 *   backward    a block has M sequences and N hidden units: the gradients of the gates of the step after [B, G H] times
 *               the columns of W_h of these units, then the cells, whose gradients the next kernel multiplies
 *
 * What is multiplied lies in memory in the number type of the products, padded to whole slices: W_h is packed once a
 * call, the cells publish for the next step. So asynchronous copies bring it into shared memory, some slices ahead.
 *
 *   tile_weights    [columns][words]: forward [places][h], backward [units][places]; tile_map.h
 *   tile_exchange   2 x [B][words]: read from one half, published into the other
 */
#ifndef CG_STEP_TILE_H
#define CG_STEP_TILE_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Words of either, for all number types, forward and backward. */
int64_t cg_tile_weights_most(int64_t hidden, int64_t gates);
int64_t cg_tile_exchange_most(int64_t hidden, int64_t gates, int64_t sequences);

/* Return the code of the launch. `compute` as in struct cg_gemm. */

/* Before the first step: packs W_h, and publishes what the first step reads. */
int cg_tile_begin(void *stream, const struct cg_layer *layer, uint32_t compute, int64_t sequences, int64_t hidden,
                  int64_t gates);
/* The `turn`-th step, from 0, of all directions, whose layers follow each other; most: sequences of the direction that
 * has more. */
int cg_tile_forward(void *stream, const struct cg_layer *layer, int64_t directions, uint32_t compute, int64_t turn,
                    int64_t most, int64_t hidden, int64_t gates);

/* After cg_step_begin_back. */
int cg_tile_begin_back(void *stream, const struct cg_layer *layer, uint32_t compute, int64_t sequences, int64_t hidden,
                       int64_t gates);
/* The product of the turn before, then the cells of this; most: sequences of either turn, of the direction that has
 * more. Behind the last step there are no cells: then `back` stands. */
int cg_tile_backward(void *stream, const struct cg_layer *layer, int64_t directions, uint32_t compute, int64_t turn,
                     int64_t most, int64_t hidden);

#ifdef __cplusplus
}
#endif

#endif

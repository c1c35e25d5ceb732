/* SPDX-License-Identifier: Apache-2.0 */
/* A step as one kernel: the product with W_h in tiles, followed by the cells in the same kernel. step_graph uses it for
 * many sequences, and in backward for any number. For cells whose units depend on each other only through W_h: no
 * LAYER_NORM, no projection, no late GRU.
 *
 *   forward     a block has M sequences and some hidden units with all their gates: it starts from u, adds the masked h
 *               [B, H] of the step before times the rows of W_h of these gates, then computes the cells
 *   backward    a block has M sequences and N hidden units: it multiplies the gradients of the gates of the later step
 *               [B, G H] by the columns of W_h of these units, then computes the cells; the next kernel multiplies
 *               their gradients
 *
 * The operands are in memory in the number type of the products, padded to whole slices. W_h is packed once per call;
 * the cells write the other operand for the next step. So asynchronous copies can bring both into shared memory some
 * slices ahead.
 *
 *   tile_weights    [columns][words]: forward [places][h], backward [units][places]; tile_map.h
 *   tile_exchange   2 x [B][words]: a step reads one half and writes the other */
#ifndef CG_STEP_TILE_H
#define CG_STEP_TILE_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Words of tile_weights and tile_exchange: the most for any number type, forward and backward. */
int64_t cg_tile_weights_most(int64_t hidden, int64_t gates);
int64_t cg_tile_exchange_most(int64_t hidden, int64_t gates, int64_t sequences);

/* Return the code of the launch. `compute` as in struct cg_gemm. */

/* Before the first step: packs W_h, and publishes what the first step reads. */
int cg_tile_begin(void *stream, const struct cg_layer *layer, uint32_t compute, int64_t sequences, int64_t hidden,
                  int64_t gates);
/* Step number `turn`, from 0, of all directions, whose layers follow each other in memory. most: sequences of the
 * direction that has more. */
int cg_tile_forward(void *stream, const struct cg_layer *layer, int64_t directions, uint32_t compute, int64_t turn,
                    int64_t most, int64_t hidden, int64_t gates);

/* Call cg_step_begin_back before. */
int cg_tile_begin_back(void *stream, const struct cg_layer *layer, uint32_t compute, int64_t sequences, int64_t hidden,
                       int64_t gates);
/* The product of the turn before, then the cells of this turn. most: sequences of either turn, of the direction that
 * has more. After the last step there are no cells, and `back` is complete. */
int cg_tile_backward(void *stream, const struct cg_layer *layer, int64_t directions, uint32_t compute, int64_t turn,
                     int64_t most, int64_t hidden);

#ifdef __cplusplus
}
#endif

#endif

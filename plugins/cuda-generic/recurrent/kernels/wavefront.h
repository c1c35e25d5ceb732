/* SPDX-License-Identifier: Apache-2.0 */
/* The variant wavefront: all steps of all layers of a stack in one launch, one block per sequence and layer. While a
 * layer works on a step, the layer below (backward: above) is some steps ahead.
 *
 * Half of a block's threads compute the layer as one_block does. The other half prepares the next step: it multiplies
 * the output of the neighbouring layer with W_x, whose rows (backward: columns) also lie in registers. A layer's output
 * lies in the records: h in forward, the gradients of u in backward. A flag per sequence and layer counts the steps
 * that are complete there; it is updated every CG_WAVE_STRIDE steps.
 *
 *   exchange   [sequences][layers] flags | 1 ticket; zero before each launch
 *
 * Blocks take tickets. A block waits only for blocks with earlier tickets, which are running or have finished. So the
 * order in which the device starts blocks does not matter, nor how few run at once.
 *
 * For stacks of two or more layers of one direction, with the options of one_block. The products with W_h, and with W_x
 * except the first layer's, are computed in float32 whatever the precision. */
#ifndef CG_WAVEFRONT_H
#define CG_WAVEFRONT_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CG_WAVE_MOST = 64, CG_WAVE_STRIDE = 4 };

static inline int64_t cg_wave_exchange_words(int64_t sequences, int64_t layers)
{
    return sequences * layers + 1;
}

/* Return the code of the launch. `layers`: `count` of them, lowest first. backward: call cg_step_begin_back before. */
int cg_wave_forward(void *stream, const struct cg_layer *layers, int64_t count, int64_t sequences, uint32_t *exchange);
int cg_wave_backward(void *stream, const struct cg_layer *layers, int64_t count, int64_t sequences, uint32_t *exchange);

#ifdef __cplusplus
}
#endif

#endif

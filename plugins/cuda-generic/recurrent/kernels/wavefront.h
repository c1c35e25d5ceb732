/* SPDX-License-Identifier: Apache-2.0 */
/* The variant wavefront: all steps of all layers of a stack in one launch, a block a sequence and layer. While a layer
 * works on a step, the layer below (backward: above) is some steps ahead.
 *
 * Half of a block's threads are the layer as one_block runs it; the other half feeds them: it multiplies what the
 * neighbour's layer has left for the step to come with W_x, whose rows (backward: columns) lie in registers, too.
 * What a layer leaves lies in the records, h forward and the gradients of u backward. A flag for each sequence and
 * layer counts the steps that stand there, renewed every CG_WAVE_STRIDE steps.
 *
 *   exchange   [sequences][layers] flags | 1 ticket; zero before each launch
 *
 * Blocks take tickets: a block waits only for blocks with earlier tickets, which are running or done, whatever the
 * order in which the device starts blocks, and however few it holds at once.
 *
 * For stacks of two layers or more of one direction, with the options of one_block. Products of W_h, and of W_x but
 * the first layer's, are made in float32 whatever the precision.
 */
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

/* Return the code of the launch. `layers`: `count` of them, the lowest first. backward: after cg_step_begin_back. */
int cg_wave_forward(void *stream, const struct cg_layer *layers, int64_t count, int64_t sequences, uint32_t *exchange);
int cg_wave_backward(void *stream, const struct cg_layer *layers, int64_t count, int64_t sequences, uint32_t *exchange);

#ifdef __cplusplus
}
#endif

#endif

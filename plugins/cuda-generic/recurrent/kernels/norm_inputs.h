/* SPDX-License-Identifier: Apache-2.0 */
/* LAYER_NORM of the inputs of all rows at once, for variants that run all steps in one launch. Before the steps of
 * forward the record z receives the normalised inputs, which the steps replace by pre-activations. After those of
 * backward du and gain_u are computed from pre_u. Both return the code of the launch. `layer`: the layers of the
 * directions, one after another. */
#ifndef CG_NORM_INPUTS_H
#define CG_NORM_INPUTS_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

int cg_norm_inputs(void *stream, const struct cg_layer *layer, int64_t directions, int64_t rows);
int cg_norm_inputs_back(void *stream, const struct cg_layer *layer, int64_t directions, int64_t rows);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the struct of a layer to device memory. */
#include "cuda-generic/recurrent/kernels/layer.h"
#include "cuda-generic/device/device.h"

/* The struct is an argument of the launch, so a capture contains it and writes it at each launch. */
static __global__ void store_layer(struct cg_layer layer, struct cg_live live, struct cg_layer *to)
{
    *to = layer;
    to->zoneout_cell_key = cg_live_key(&live, layer.zoneout_cell_key);
    to->zoneout_hidden_key = cg_live_key(&live, layer.zoneout_hidden_key);
    to->input_key = cg_live_key(&live, layer.input_key);
}

extern "C" int cg_layer_store(void *stream, const struct cg_layer *layer, const struct cg_live *live,
                              struct cg_layer *to)
{
    const struct cg_layer y = *layer;
    const struct cg_live l = *live;
    return GPU_LAUNCH(stream, 1, 1, 0, store_layer, y, l, to);
}

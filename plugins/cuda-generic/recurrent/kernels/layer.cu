/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a layer on its way to device memory. */
#include "cuda-generic/recurrent/kernels/layer.h"
#include "cuda-generic/device/device.h"

/* As an argument it is part of the launch, so that a graph brings its own whenever it is launched. */
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

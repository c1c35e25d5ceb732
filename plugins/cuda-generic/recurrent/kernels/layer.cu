/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the structs of layers to device memory. See layer.h and prepare.h. */
#include "cuda-generic/recurrent/kernels/layer.h"
#include "cuda-generic/device/device.h"
#include "cuda-generic/recurrent/kernels/prepare.h"
#include "cuda-generic/rows/drop.h"

/* As many as the arguments of a launch have room for. They are arguments, so a capture contains them and writes them at
 * each launch. */
struct stored {
    struct cg_layer of[4];
};
static_assert(sizeof(struct stored) + sizeof(struct cg_live) + sizeof(struct cg_drop) <= 4000, "arguments of a launch");

typedef uint32_t __attribute__((may_alias)) word;

static __device__ void store(const struct stored &list, const struct cg_live &live, int count, struct cg_layer *to)
{
    const word *from = reinterpret_cast<const word *>(&list);
    for (int w = (int)threadIdx.x; w < count * (int)(sizeof(struct cg_layer) / sizeof(word)); w += (int)blockDim.x)
        reinterpret_cast<word *>(to)[w] = from[w];
    __syncthreads();
    if ((int)threadIdx.x >= count)
        return;
    const struct cg_layer &layer = list.of[threadIdx.x];
    to[threadIdx.x].zoneout_cell_key = cg_live_key(&live, layer.zoneout_cell_key);
    to[threadIdx.x].zoneout_hidden_key = cg_live_key(&live, layer.zoneout_hidden_key);
}

static __global__ void store_layers(const __grid_constant__ struct stored list,
                                    const __grid_constant__ struct cg_live live, int count, struct cg_layer *to)
{
    store(list, live, count, to);
}

/* The first block stores; all of them mask. */
static __global__ void prepare(const __grid_constant__ struct stored list, const __grid_constant__ struct cg_live live,
                               const __grid_constant__ struct cg_drop drop, int count, struct cg_layer *to)
{
    if (blockIdx.x == 0)
        store(list, live, count, to);
    cg_drop(drop, list.of[0].axis);
}

extern "C" int cg_layer_store(void *stream, const struct cg_layer *layers, int64_t count, const struct cg_live *live,
                              struct cg_layer *to)
{
    return cg_layer_prepare(stream, layers, count, live, nullptr, to);
}

extern "C" int cg_layer_prepare(void *stream, const struct cg_layer *layers, int64_t count, const struct cg_live *live,
                                const struct cg_drop *drop, struct cg_layer *to)
{
    const struct cg_live l = *live;
    const int64_t most = sizeof(struct stored) / sizeof(struct cg_layer);
    for (int64_t first = 0; first < count; first += most) {
        const int now = (int)(count - first < most ? count - first : most);
        struct stored list = {};
        for (int k = 0; k < now; k++)
            list.of[k] = layers[first + k];
        const struct cg_drop d = first == 0 && drop ? *drop : (struct cg_drop){};
        const int code = d.y ? GPU_LAUNCH(stream, cg_blocks(d.rows * d.n), CG_THREADS, 0, prepare, list, l, d, now, to)
                             : GPU_LAUNCH(stream, 1, CG_THREADS, 0, store_layers, list, l, now, to + first);
        if (code != 0)
            return code;
    }
    return 0;
}

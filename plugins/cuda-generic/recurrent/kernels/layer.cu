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
static_assert(sizeof(struct stored) + sizeof(struct cg_live) + sizeof(struct cg_prepared) <= 4000,
              "arguments of a launch");

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

static __device__ void draw(const struct cg_mask_tables &tables, const struct cg_live &live, const struct cg_axis &axis)
{
    const int64_t each = axis.sequences * tables.width;
    CG_FOR_EACH(e, tables.count * each)
    {
        const int64_t table = e / each, at = e % each, layer = table / tables.directions;
        const int64_t stream = SEQLSTM_STREAMS_PER_LAYER * layer + 16 * (table % tables.directions);
        tables.to[table * tables.stride + at] = cg_draw_once(cg_live_key(&live, tables.stream + (uint64_t)stream), axis,
                                                             at / tables.width, at % tables.width, tables.rate);
    }
}

/* The first block stores; all of them mask. */
static __global__ void prepare(const __grid_constant__ struct stored list, const __grid_constant__ struct cg_live live,
                               const __grid_constant__ struct cg_prepared prepared, int count, struct cg_layer *to)
{
    if (blockIdx.x == 0)
        store(list, live, count, to);
    for (const struct cg_mask_tables &tables : prepared.tables)
        draw(tables, live, list.of[0].axis);
    for (const struct cg_drop &drop : prepared.drops)
        cg_drop(drop, list.of[0].axis);
}

/* The elements that all blocks mask. */
static int64_t count_masked(const struct cg_prepared &p, int64_t sequences)
{
    int64_t most = p.drops[0].rows * p.drops[0].n; /* the second has as many, or none */
    for (const struct cg_mask_tables &tables : p.tables)
        if (tables.count * sequences * tables.width > most)
            most = tables.count * sequences * tables.width;
    return most;
}

extern "C" int cg_layer_store(void *stream, const struct cg_layer *layers, int64_t count, const struct cg_live *live,
                              struct cg_layer *to)
{
    return cg_layer_prepare(stream, layers, count, live, nullptr, to);
}

extern "C" int cg_layer_prepare(void *stream, const struct cg_layer *layers, int64_t count, const struct cg_live *live,
                                const struct cg_prepared *prepared, struct cg_layer *to)
{
    const struct cg_live l = *live;
    const int64_t most = sizeof(struct stored) / sizeof(struct cg_layer);
    for (int64_t first = 0; first < count; first += most) {
        const int now = (int)(count - first < most ? count - first : most);
        struct stored list = {};
        for (int k = 0; k < now; k++)
            list.of[k] = layers[first + k];
        const struct cg_prepared p = first == 0 && prepared ? *prepared : (struct cg_prepared){};
        const int64_t masked = count_masked(p, layers->axis.sequences);
        const int code = masked > 0 ? GPU_LAUNCH(stream, cg_blocks(masked), CG_THREADS, 0, prepare, list, l, p, now, to)
                                    : GPU_LAUNCH(stream, 1, CG_THREADS, 0, store_layers, list, l, now, to + first);
        if (code != 0)
            return code;
    }
    return 0;
}

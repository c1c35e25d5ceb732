/* SPDX-License-Identifier: Apache-2.0 */
/* What both kernels of forward of the variant resident have in common: the cells of a block, what they read and what
 * they publish. See resident.h. */
#ifndef CG_RESIDENT_FORWARD_H
#define CG_RESIDENT_FORWARD_H

#include "cuda-generic/recurrent/cluster/cluster.h"
#include "cuda-generic/recurrent/resident/resident_launch.h"
#include "cuda-generic/recurrent/resident/resident_product.h"

/* The cell of a thread: a unit of a column. b: its sequence, -1 if there is none. */
struct cg_resident_cell {
    int column, own, unit, b;
};

static __device__ __forceinline__ struct cg_resident_cell cg_resident_get_cell(const struct cg_resident_place &p,
                                                                               const struct cg_resident_call &call,
                                                                               int from, int count, int e)
{
    struct cg_resident_cell c;
    c.column = from + e / call.r.units;
    c.own = e % call.r.units;
    c.unit = p.unit0 + c.own;
    c.b = c.column < from + count && c.unit < (int)p.y->hidden ? c.column * call.groups + p.group : -1;
    return c;
}

/* What a cell reads, loaded in advance. */
struct cg_resident_input {
    float u[4], c, h, mask;
};

/* `before`: of the step that the sequence took before. */
static __device__ __forceinline__ void cg_resident_load_input(const struct cg_layer &y,
                                                              const struct cg_resident_cell &cell,
                                                              const struct cg_resident_step &now,
                                                              const struct cg_resident_step &before,
                                                              struct cg_resident_input *x)
{
    const bool runs = cell.b >= 0, first = cell.b >= before.most;
    const bool lstm = y.cell == SEQLSTM_CELL_LSTM, keeps_h = y.cell == SEQLSTM_CELL_GRU || y.zoneout_hidden > 0;
    const int64_t n = y.hidden, row = first ? cell.b : before.row + cell.b, at = row * n + cell.unit;
    const float *c = first ? y.c0 : y.c, *h = first ? y.h0 : y.h;
    cg_cluster_load_input(y, runs, now.row + cell.b, cell.unit, x->u);
    x->c = gpu_load_if(runs && lstm && c != nullptr, c + at);
    x->h = gpu_load_if(runs && keeps_h && h != nullptr, h + at);
    x->mask = y.mask_h ? gpu_load_if(runs, y.mask_h + (int64_t)cell.b * n + cell.unit) : 1.0f;
}

/* Publishes the masked h of a cell, scaled by the largest of its sequence in the block if it is to be. */
template <int PARTS>
static __device__ __forceinline__ void cg_resident_publish_h(const struct cg_resident_place &p,
                                                             const struct cg_resident_call &call, uint32_t *half,
                                                             const struct cg_resident_cell &cell, bool scaled,
                                                             uint32_t most, float h)
{
    const float scale = scaled ? cg_split_scale(gpu_bits_float(most)) : 1.0f;
    cg_resident_put<PARTS>(call, half, cell.column, p.block * call.r.segment + cell.own, h * scale);
    if (scaled && cell.own == 0)
        cg_resident_put_scale(p, call, half, cell.column, cg_split_inverse(gpu_bits_float(most)));
}

/* The same; all lanes of the warp call, for which `scaled` is the same. */
template <int PARTS>
static __device__ __forceinline__ void cg_resident_publish(const struct cg_resident_place &p,
                                                           const struct cg_resident_call &call, uint32_t *half,
                                                           const struct cg_resident_cell &cell, bool there, bool scaled,
                                                           float h)
{
    const uint32_t most = scaled ? cg_resident_max_units(cg_cluster_magnitude(h), call.r.units) : 0;
    if (there)
        cg_resident_publish_h<PARTS>(p, call, half, cell, scaled, most, h);
}

/* Publishes the h before the first step in both halves, since sequences may begin later, and finds out whether any is
 * so large that all values need scales. */
template <int PARTS>
static __device__ void cg_resident_publish_initial(struct cg_resident_place &p, const struct cg_resident_call &call)
{
    const struct cg_layer &y = *p.y;
    const int all = cg_resident_active(call, p.group, (int)y.axis.sequences), cells = all * call.r.units;
    for (int e = p.thread; e - p.lane < cells; e += CG_RESIDENT_THREADS) {
        const struct cg_resident_cell cell = cg_resident_get_cell(p, call, 0, all, e);
        const int64_t at = (int64_t)cell.b * y.hidden + cell.unit;
        const float h = cell.b >= 0 ? cg_or_zero(y.h0, at) * cg_or_one(y.mask_h, at) : 0.0f;
        const uint32_t most = cg_resident_max_units(cg_cluster_magnitude(h), call.r.units);
        const bool scaled = call.r.wild || gpu_bits_float(most) >= CG_CLUSTER_TAME; /* not alike in a warp */
        if (scaled)
            p.counter[1] = 1;
        for (unsigned half = 0; e < cells && half < 2; half++) {
            uint32_t *to = cg_resident_half(p, half);
            cg_resident_publish_h<PARTS>(p, call, to, cell, scaled, most, h);
            if (cell.own == 0 && !scaled)
                cg_resident_put_scale(p, call, to, cell.column, 1.0f);
        }
    }
    cg_resident_arrive(p);
    cg_resident_wait(p, call.r);
    p.scaled = gpu_load_acquire(p.counter + 1) != 0;
}

#endif

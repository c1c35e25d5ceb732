/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the variant resident, of cells whose units need nothing of each other within a step. See resident.h. */
#include "cuda-generic/recurrent/resident/resident_forward.h"

/* A computed cell whose records are not stored yet. */
struct cg_resident_held {
    struct cg_cluster_record record;
    struct cg_cluster_state state;
    int row, unit; /* row -1: none */
};

static __device__ __forceinline__ void store_held(const struct cg_layer &y, struct cg_resident_held *held)
{
    if (held->row >= 0)
        cg_cluster_store(y, held->row, held->unit, held->record, held->state);
    held->row = -1;
}

/* The cell of a lane, from its sums. Returns the masked h. */
template <class PRODUCT>
static __device__ __forceinline__ float compute(const PRODUCT &product, const struct cg_resident_cell &cell,
                                                const struct cg_resident_input &x, int t, bool usual,
                                                struct cg_resident_held *held)
{
    const struct cg_resident_place &p = product.p;
    const struct cg_layer &y = *p.y;
    const int units = product.r.units;
    const float *constants = p.constants + cell.own, *peepholes = y.peephole ? constants + 4 * units : nullptr;
    float u[4], v[4];
    CG_UNROLL
    for (int j = 0; j < 4; j++) {
        u[j] = x.u[j] + constants[j * units];
        v[j] = j < (int)y.gates ? product.get(j * units + cell.own, cell.column - product.column0) : 0.0f;
    }
    const float stay_c = cg_cluster_stay(y, y.zoneout_cell_key, y.zoneout_cell, t, cell.b, cell.unit);
    const float stay_h = cg_cluster_stay(y, y.zoneout_hidden_key, y.zoneout_hidden, t, cell.b, cell.unit);
    held->state = {x.c, x.h, stay_c, stay_h};
    held->record = usual ? cg_cluster_cell<true>(y, v, u, peepholes, units, constants[3 * units], &held->state)
                         : cg_cluster_cell<false>(y, v, u, peepholes, units, constants[3 * units], &held->state);
    return held->state.h * x.mask;
}

template <int PARTS, int TILES>
static __global__ void __launch_bounds__(CG_RESIDENT_THREADS, 1)
    resident_forward(const struct cg_layer *layers, const __grid_constant__ struct cg_resident_call call)
{
    GPU_SHARED(unsigned char, shared);
    struct cg_resident_place p = cg_resident_begin(layers, call, shared);
    const struct cg_layer &y = *p.y;
    const int steps = (int)y.axis.steps, units = call.r.units;
    const bool usual = cg_cluster_is_usual(y);
    cg_resident_load_rows<PARTS>(p, call.r);
    __threadfence(); /* weights in the exchange are read through L2 */
    cg_resident_publish_initial<PARTS>(p, call);
    struct cg_resident_step before = {0, 0, 0}, now = cg_resident_get_step(y, 0, false);
    struct cg_resident_held held = {};
    struct cg_resident_input next;
    held.row = -1;
    for (int turn = 0; turn < steps; turn++) {
        const struct cg_resident_step after = cg_resident_get_step(y, turn + 1, false);
        const int active = cg_resident_active(call, p.group, now.most);
        for (int from = 0; from < active; from += call.r.columns) {
            const int count = active - from < call.r.columns ? active - from : call.r.columns, cells = count * units;
            store_held(y, &held);
            cg_resident_load_input(y, cg_resident_get_cell(p, call, from, count, p.thread), now, before, &next);
            if (from == 0)
                cg_resident_wait(p, call.r);
            cg_resident_product<PARTS, TILES, PARTS == 2 ? 4 : 8, false> product(p, call,
                                                                                 cg_resident_half(p, p.published));
            product.run(from, count);
            for (int e = p.thread; e - p.lane < cells; e += CG_RESIDENT_THREADS) {
                const struct cg_resident_cell cell = cg_resident_get_cell(p, call, from, count, e);
                const struct cg_resident_input x = next;
                store_held(y, &held);
                cg_resident_load_input(y, cg_resident_get_cell(p, call, from, count, e + CG_RESIDENT_THREADS), now,
                                       before, &next);
                float h = 0.0f;
                if (cell.b >= 0) {
                    h = compute(product, cell, x, now.t, usual, &held);
                    held.row = now.row + cell.b;
                    held.unit = cell.unit;
                }
                if (turn + 1 < steps)
                    cg_resident_publish<PARTS>(p, call, cg_resident_half(p, p.published + 1), cell, e < cells, p.scaled,
                                               h);
            }
            __syncthreads(); /* now all threads have read the sums */
        }
        if (active > 0 && turn + 1 < steps)
            cg_resident_arrive(p);
        before = now;
        now = after;
    }
    store_held(y, &held);
}

struct cg_resident_forward_kernels {
    template <int PARTS, int TILES> static int run(const struct cg_resident_request &request)
    {
        return cg_resident_start(request, resident_forward<PARTS, TILES>);
    }
};

static int start(const struct cg_resident_request &request)
{
    return request.resident->linked ? cg_resident_forward_linked(&request)
                                    : cg_resident_choose<cg_resident_forward_kernels, 2>(request);
}

extern "C" int cg_resident_forward(void *stream, const struct cg_layer *layer, const struct cg_resident *resident,
                                   uint32_t *exchange, int64_t sequences)
{
    const struct cg_resident_request request = {stream, layer, resident, exchange, sequences, nullptr, 0};
    return start(request);
}

extern "C" int cg_resident_count_forward(const struct cg_resident *resident, int32_t multiprocessors, int *out_blocks)
{
    const struct cg_resident_request request = {nullptr, nullptr, resident, nullptr, 0, out_blocks, multiprocessors};
    return start(request);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the variant resident. See resident.h. */
#include "cuda-generic/recurrent/cluster/cluster.h"
#include "cuda-generic/recurrent/resident/resident_launch.h"
#include "cuda-generic/recurrent/resident/resident_product.h"

/* The cell of a thread: a unit of a column. b: its sequence, -1 if there is none. */
struct cg_resident_cell {
    int column, own, unit, b;
};

static __device__ __forceinline__ struct cg_resident_cell get_cell(const struct cg_resident_place &p,
                                                                   const struct cg_resident_call &call, int from,
                                                                   int count, int e)
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
static __device__ __forceinline__ void load_input(const struct cg_layer &y, const struct cg_resident_cell &cell,
                                                  const struct cg_resident_step &now,
                                                  const struct cg_resident_step &before, struct cg_resident_input *x)
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

/* Publishes the masked h of a cell. All lanes of the warp call. */
template <int PARTS>
static __device__ __forceinline__ void publish(const struct cg_resident_place &p, const struct cg_resident_call &call,
                                               uint32_t *half, const struct cg_resident_cell &cell, bool there,
                                               bool scaled, float h)
{
    float scale = 1.0f, inverse = 1.0f;
    if (scaled) {
        const uint32_t most = cg_resident_max_units(cg_cluster_magnitude(h), call.r.units);
        scale = cg_split_scale(gpu_bits_float(most));
        inverse = cg_split_inverse(gpu_bits_float(most));
    }
    if (!there)
        return;
    cg_resident_put<PARTS>(call, half, cell.column, p.block * call.r.segment + cell.own, h * scale);
    if (scaled && cell.own == 0)
        cg_resident_put_scale(p, call, half, cell.column, inverse);
}

/* Publishes the h before the first step in both halves, since sequences may begin later, and finds out whether any is
 * so large that all values need scales. */
template <int PARTS>
static __device__ void publish_initial(struct cg_resident_place &p, const struct cg_resident_call &call)
{
    const struct cg_layer &y = *p.y;
    const int all = cg_resident_active(call, p.group, (int)y.axis.sequences), cells = all * call.r.units;
    for (int e = p.thread; e - p.lane < cells; e += CG_RESIDENT_THREADS) {
        const struct cg_resident_cell cell = get_cell(p, call, 0, all, e);
        const int64_t at = (int64_t)cell.b * y.hidden + cell.unit;
        const float h = cell.b >= 0 ? cg_or_zero(y.h0, at) * cg_or_one(y.mask_h, at) : 0.0f;
        const uint32_t most = cg_resident_max_units(cg_cluster_magnitude(h), call.r.units);
        const bool large = gpu_bits_float(most) >= CG_CLUSTER_TAME;
        if (large || call.r.wild)
            p.counter[1] = 1;
        for (unsigned half = 0; half < 2; half++) {
            uint32_t *to = cg_resident_half(p, half);
            publish<PARTS>(p, call, to, cell, e < cells, call.r.wild || large, h);
            if (e < cells && cell.own == 0 && !(call.r.wild || large))
                cg_resident_put_scale(p, call, to, cell.column, 1.0f);
        }
    }
    cg_resident_arrive(p);
    cg_resident_wait(p, call.r);
    p.scaled = gpu_load_acquire(p.counter + 1) != 0;
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
    publish_initial<PARTS>(p, call);
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
            load_input(y, get_cell(p, call, from, count, p.thread), now, before, &next);
            if (from == 0)
                cg_resident_wait(p, call.r);
            cg_resident_product<PARTS, TILES> product(p, call, cg_resident_half(p, p.epoch));
            product.run(from, count);
            for (int e = p.thread; e - p.lane < cells; e += CG_RESIDENT_THREADS) {
                const struct cg_resident_cell cell = get_cell(p, call, from, count, e);
                const struct cg_resident_input x = next;
                store_held(y, &held);
                load_input(y, get_cell(p, call, from, count, e + CG_RESIDENT_THREADS), now, before, &next);
                float h = 0.0f;
                if (cell.b >= 0) {
                    h = compute(product, cell, x, now.t, usual, &held);
                    held.row = now.row + cell.b;
                    held.unit = cell.unit;
                }
                if (turn + 1 < steps)
                    publish<PARTS>(p, call, cg_resident_half(p, p.epoch + 1), cell, e < cells, p.scaled, h);
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

extern "C" int cg_resident_forward(void *stream, const struct cg_layer *layer, const struct cg_resident *resident,
                                   uint32_t *exchange, int64_t sequences)
{
    const struct cg_resident_request request = {stream, layer, resident, exchange, sequences, nullptr, 0};
    return cg_resident_choose<cg_resident_forward_kernels>(request);
}

extern "C" int cg_resident_count_forward(const struct cg_resident *resident, int32_t multiprocessors, int *out_blocks)
{
    const struct cg_resident_request request = {nullptr, nullptr, resident, nullptr, 0, out_blocks, multiprocessors};
    return cg_resident_choose<cg_resident_forward_kernels>(request);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant resident. See resident.h. */
#include "cuda-generic/recurrent/resident/resident_launch.h"
#include "cuda-generic/recurrent/resident/resident_product.h"

/* The cell of a thread: a unit of a column, of sequence b. */
struct cg_resident_cell {
    int column, own, unit, b;
    bool there, runs, returns; /* returns: the sequence took part in the turn before */
};

/* The turns that a group takes, and how many of its columns take part in each. */
struct cg_resident_turns {
    struct cg_resident_step now, next;
    int active, before; /* columns of this turn, and of the one before */
};

static __device__ __forceinline__ struct cg_resident_cell get_cell(const struct cg_resident_place &p,
                                                                   const struct cg_resident_call &call,
                                                                   const struct cg_resident_turns &turns, int from,
                                                                   int count, int e)
{
    struct cg_resident_cell c;
    c.column = from + e / call.r.units;
    c.own = e % call.r.units;
    c.unit = p.unit0 + c.own;
    c.b = c.column * call.groups + p.group;
    c.there = c.column < from + count && c.unit < (int)p.y->hidden;
    c.runs = c.there && c.column < turns.active;
    c.returns = c.there && c.column < turns.before;
    return c;
}

/* What a cell reads, loaded in advance. */
struct cg_resident_past {
    struct cg_cluster_past x;
    float direct, dc, mask;
};

static __device__ __forceinline__ void load_past(const struct cg_layer &y, const struct cg_resident_cell &cell,
                                                 const struct cg_resident_turns &turns, struct cg_resident_past *past)
{
    const int64_t at = (int64_t)cell.b * y.hidden + cell.unit;
    const bool first = cell.b >= turns.next.most; /* of the sequence, in the order of forward */
    cg_cluster_load_past(y, cell.runs, first, turns.now.row + cell.b, turns.next.row + cell.b, cell.b, cell.unit,
                         &past->x);
    past->direct = gpu_load_if(cell.runs, y.direct + at);
    past->dc = gpu_load_if(cell.runs && y.cell == SEQLSTM_CELL_LSTM, y.dc + at);
    past->mask = y.mask_h ? gpu_load_if(cell.runs, y.mask_h + at) : 1.0f;
}

/* A computed cell that is not stored yet. */
struct cg_resident_held {
    float dz[4], reset, direct, dc;
    struct cg_cluster_past x;
    int row, unit, b; /* row -1: none */
};

static __device__ __forceinline__ void store_held(const struct cg_layer &y, struct cg_resident_held *held)
{
    const int64_t at = (int64_t)held->b * y.hidden + held->unit;
    if (held->row >= 0) {
        cg_cluster_store_gradients(y, held->row, held->unit, held->dz, held->reset, held->x);
        y.direct[at] = held->direct;
        if (y.cell == SEQLSTM_CELL_LSTM)
            y.dc[at] = held->dc;
    }
    held->row = -1;
}

/* The gradients of the gates of a cell whose h has the gradient `back` from the turn before. */
static __device__ __forceinline__ void compute(const struct cg_resident_place &p, int units,
                                               const struct cg_resident_cell &cell, const struct cg_resident_past &past,
                                               int t, float back, bool usual, struct cg_resident_held *held)
{
    const struct cg_layer &y = *p.y;
    const float *constants = p.constants + cell.own, *peepholes = y.peephole ? constants + 4 * units : nullptr;
    const float stay_c = cg_cluster_stay(y, y.zoneout_cell_key, y.zoneout_cell, t, cell.b, cell.unit);
    const float stay_h = cg_cluster_stay(y, y.zoneout_hidden_key, y.zoneout_hidden, t, cell.b, cell.unit);
    const struct cg_cluster_slopes s =
        usual ? cg_cluster_slope<true>(y, past.x, peepholes, units, stay_c, stay_h, past.dc)
              : cg_cluster_slope<false>(y, past.x, peepholes, units, stay_c, stay_h, past.dc);
    const float dh = past.direct + past.x.dy * y.dy_scale * (y.other_h ? past.x.other : 1.0f) + past.mask * back;
    const float fresh = s.stay_h > 0 ? 0.0f : dh, d = fresh * s.to_c + s.from_c;
    CG_UNROLL
    for (int j = 0; j < 4; j++) /* 0 times an infinity would not be 0 */
        held->dz[j] = j < (int)y.gates && !(j == 1 && cg_is_coupled(&y)) ? (j < 3 ? d : fresh) * s.gate[j] : 0.0f;
    held->reset = s.reset;
    held->dc = s.from_kept + d * s.f;
    held->direct = (s.stay_h > 0 ? dh : 0.0f) + (y.cell == SEQLSTM_CELL_GRU ? fresh * s.pass : 0.0f);
    held->x = past.x;
}

/* Publishes the gradients of the gates' sums over h. All lanes of the warp call. */
template <int PARTS>
static __device__ __forceinline__ void publish(const struct cg_resident_place &p, const struct cg_resident_call &call,
                                               uint32_t *half, const struct cg_resident_cell &cell, bool there,
                                               const float (&v)[4])
{
    const int units = call.r.units;
    const float most = gpu_bits_float(cg_resident_max_units(cg_cluster_most(v), units));
    if (!there)
        return;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        if (j * units < call.r.segment) /* beyond the last gate, zeros */
            cg_resident_put<PARTS>(call, half, cell.column, p.block * call.r.segment + j * units + cell.own,
                                   v[j] * cg_split_scale(most));
    if (cell.own == 0)
        cg_resident_put_scale(p, call, half, cell.column, cg_split_inverse(most));
}

/* All cells of columns [from, from + count), after their product. `next`: what the thread's first one reads. */
template <class PRODUCT, int PARTS>
static __device__ __forceinline__ void run_cells(const PRODUCT &product, const struct cg_resident_call &call,
                                                 const struct cg_resident_turns &turns, int from, int count, bool usual,
                                                 struct cg_resident_past next, struct cg_resident_held *held)
{
    const struct cg_resident_place &p = product.p;
    const struct cg_layer &y = *p.y;
    const int units = call.r.units, cells = count * units;
    for (int e = p.thread; e - p.lane < cells; e += CG_RESIDENT_THREADS) {
        const struct cg_resident_cell cell = get_cell(p, call, turns, from, count, e);
        const struct cg_resident_past past = next;
        float v[4] = {0, 0, 0, 0};
        store_held(y, held);
        load_past(y, get_cell(p, call, turns, from, count, e + CG_RESIDENT_THREADS), turns, &next);
        const float back = cell.returns ? product.get(cell.own, cell.column - from) : 0.0f;
        if (cell.returns && !cell.runs) /* the sequence has no earlier step */
            y.back[(int64_t)cell.b * y.hidden + cell.unit] = back;
        if (cell.runs) {
            compute(p, units, cell, past, turns.now.t, back, usual, held);
            held->row = turns.now.row + cell.b;
            held->unit = cell.unit;
            held->b = cell.b;
            CG_UNROLL
            for (int j = 0; j < 4; j++)
                v[j] = j == 2 ? held->dz[j] * held->reset : held->dz[j];
        }
        publish<PARTS>(p, call, cg_resident_half(p, p.epoch + 1), cell, e < cells && cell.column < turns.active, v);
    }
}

template <int PARTS, int TILES>
static __global__ void __launch_bounds__(CG_RESIDENT_THREADS, 1)
    resident_backward(const struct cg_layer *layers, const __grid_constant__ struct cg_resident_call call)
{
    GPU_SHARED(unsigned char, shared);
    struct cg_resident_place p = cg_resident_begin(layers, call, shared);
    const struct cg_layer &y = *p.y;
    const int steps = (int)y.axis.steps;
    const bool usual = cg_cluster_is_usual(y);
    cg_resident_load_columns<PARTS>(p, call.r);
    __syncthreads();
    struct cg_resident_turns turns = {cg_resident_get_step(y, 0, true), cg_resident_get_step(y, 1, true), 0, 0};
    struct cg_resident_held held = {};
    held.row = -1;
    for (int turn = 0; turn <= steps; turn++) { /* the last one only multiplies */
        turns.active = cg_resident_active(call, p.group, turns.now.most);
        const int all = turns.active > turns.before ? turns.active : turns.before;
        for (int from = 0; from < all; from += call.r.columns) {
            const int count = all - from < call.r.columns ? all - from : call.r.columns;
            struct cg_resident_past next;
            store_held(y, &held);
            load_past(y, get_cell(p, call, turns, from, count, p.thread), turns, &next);
            if (from == 0 && turns.before > 0)
                cg_resident_wait(p, call.r);
            cg_resident_product<PARTS, TILES> product(p, call, cg_resident_half(p, p.epoch));
            const int multiplied = turns.before - from < count ? turns.before - from : count;
            if (multiplied > 0)
                product.run(from, multiplied);
            run_cells<cg_resident_product<PARTS, TILES>, PARTS>(product, call, turns, from, count, usual, next, &held);
            __syncthreads(); /* now all threads have read the sums */
        }
        if (turns.active > 0)
            cg_resident_arrive(p);
        turns.before = turns.active;
        turns.now = turns.next;
        turns.next = cg_resident_get_step(y, turn + 2, true);
    }
    store_held(y, &held);
}

struct cg_resident_backward_kernels {
    template <int PARTS, int TILES> static int run(const struct cg_resident_request &request)
    {
        return cg_resident_start(request, resident_backward<PARTS, TILES>);
    }
};

extern "C" int cg_resident_backward(void *stream, const struct cg_layer *layer, const struct cg_resident *resident,
                                    uint32_t *exchange, int64_t sequences)
{
    const struct cg_resident_request request = {stream, layer, resident, exchange, sequences, nullptr, 0};
    return cg_resident_choose<cg_resident_backward_kernels>(request);
}

extern "C" int cg_resident_count_backward(const struct cg_resident *resident, int32_t multiprocessors, int *out_blocks)
{
    const struct cg_resident_request request = {nullptr, nullptr, resident, nullptr, 0, out_blocks, multiprocessors};
    return cg_resident_choose<cg_resident_backward_kernels>(request);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of backward, for both ways in which blocks exchange gradients. See resident.h. */
#ifndef CG_RESIDENT_GRADIENT_H
#define CG_RESIDENT_GRADIENT_H

#include "cuda-generic/recurrent/resident/resident_block.h"

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

static __device__ __forceinline__ struct cg_resident_cell cg_resident_get_cell(const struct cg_resident_place &p,
                                                                               const struct cg_resident_call &call,
                                                                               const struct cg_resident_turns &turns,
                                                                               int from, int count, int e)
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

static __device__ __forceinline__ void cg_resident_load_past(const struct cg_layer &y,
                                                             const struct cg_resident_cell &cell,
                                                             const struct cg_resident_turns &turns,
                                                             struct cg_resident_past *past)
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

static __device__ __forceinline__ void cg_resident_store_held(const struct cg_layer &y, struct cg_resident_held *held)
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
static __device__ __forceinline__ void cg_resident_compute(const struct cg_resident_place &p, int units,
                                                           const struct cg_resident_cell &cell,
                                                           const struct cg_resident_past &past, int t, float back,
                                                           bool usual, struct cg_resident_held *held)
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

/* The same for any cell, with the gradients of the sums over h in `v`. What a sequence that has no earlier step gets is
 * kept. */
static __device__ __forceinline__ void cg_resident_run_cell(const struct cg_resident_place &p, int units,
                                                            const struct cg_resident_cell &cell,
                                                            const struct cg_resident_past &past,
                                                            const struct cg_resident_step &now, float back, bool usual,
                                                            struct cg_resident_held *held, float (&v)[4])
{
    if (cell.returns && !cell.runs)
        p.y->back[(int64_t)cell.b * p.y->hidden + cell.unit] = back;
    if (!cell.runs)
        return;
    cg_resident_compute(p, units, cell, past, now.t, cell.returns ? back : 0.0f, usual, held);
    held->row = now.row + cell.b;
    held->unit = cell.unit;
    held->b = cell.b;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        v[j] = j == 2 ? held->dz[j] * held->reset : held->dz[j];
}

/* What two ways of exchanging gradients (resident_gates.h, resident_parts.h) have in common: an object is made for each
 * exchange, and
 *   begin(from, count)       begins columns [from, from + count), of which so many have received something
 *   receive(cell, …)         what has come for the h of a cell
 *   put(cell, …, v)          takes the gradients of the sums over h of a cell
 *   finish(from, count)      publishes them
 * All threads call begin, receive and finish, whole warps put. */

/* Runs CELLS::run for columns [from, from + count), of which `received` have received something and `sent` send
 * something. */
template <class PASS, class CELLS>
static __device__ __forceinline__ void cg_resident_run_columns(PASS &pass, CELLS &cells,
                                                               const struct cg_resident_place &p,
                                                               const struct cg_resident_call &call,
                                                               const struct cg_resident_turns &turns, int from,
                                                               int count, int received, int sent)
{
    const int all = count * call.r.units;
    received = received - from < count ? received - from : count;
    sent = sent - from < count ? sent - from : count;
    pass.begin(from, received);
    for (int e0 = 0; e0 < all; e0 += CG_RESIDENT_THREADS) {
        const int e = e0 + p.thread;
        const struct cg_resident_cell cell = cg_resident_get_cell(p, call, turns, from, count, e);
        float v[4] = {0, 0, 0, 0};
        cells.load(cell, cg_resident_get_cell(p, call, turns, from, count, e + CG_RESIDENT_THREADS));
        const float back = pass.receive(cell, from, received, e0, all);
        if (e - p.lane >= all)
            continue; /* so do whole warps */
        cells.run(cell, e < all, back, v);
        if (CELLS::SENDS)
            pass.put(cell, from, e < all && cell.column < from + sent, v);
    }
    if (CELLS::SENDS)
        pass.finish(from, sent);
    __syncthreads(); /* now all threads have read what is shared */
}

/* Cells whose units need nothing of each other within a step. */
struct cg_resident_cells {
    static constexpr bool SENDS = true;

    const struct cg_resident_place &p;
    const struct cg_resident_call &call;
    const struct cg_resident_turns &turns;
    bool usual;
    struct cg_resident_held held;
    struct cg_resident_past past, next;

    __device__ __forceinline__ void prepare(const struct cg_resident_cell &cell)
    {
        cg_resident_store_held(*p.y, &held);
        cg_resident_load_past(*p.y, cell, turns, &next);
    }
    __device__ __forceinline__ void load(const struct cg_resident_cell &, const struct cg_resident_cell &following)
    {
        past = next;
        prepare(following);
    }
    __device__ __forceinline__ void run(const struct cg_resident_cell &cell, bool, float back, float (&v)[4])
    {
        cg_resident_run_cell(p, call.r.units, cell, past, turns.now, back, usual, &held, v);
    }
};

/* All turns. */
template <class PASS>
static __device__ __forceinline__ void cg_resident_run_turns(struct cg_resident_place &p,
                                                             const struct cg_resident_call &call)
{
    const struct cg_layer &y = *p.y;
    const int steps = (int)y.axis.steps;
    struct cg_resident_turns turns = {cg_resident_get_step(y, 0, true), cg_resident_get_step(y, 1, true), 0, 0};
    struct cg_resident_cells cells = {p, call, turns, cg_cluster_is_usual(y), {}, {}, {}};
    cells.held.row = -1;
    for (int turn = 0; turn <= steps; turn++) { /* the last one only receives */
        turns.active = cg_resident_active(call, p.group, turns.now.most);
        const int all = turns.active > turns.before ? turns.active : turns.before;
        for (int from = 0; from < all; from += call.r.columns) {
            const int count = all - from < call.r.columns ? all - from : call.r.columns;
            cells.prepare(cg_resident_get_cell(p, call, turns, from, count, p.thread));
            if (from == 0 && turns.before > 0)
                cg_resident_wait(p, call.r);
            PASS pass(p, call);
            cg_resident_run_columns(pass, cells, p, call, turns, from, count, turns.before, turns.active);
        }
        if (turns.active > 0)
            cg_resident_arrive(p);
        turns.before = turns.active;
        turns.now = turns.next;
        turns.next = cg_resident_get_step(y, turn + 2, true);
    }
    cg_resident_store_held(y, &cells.held);
}

#endif

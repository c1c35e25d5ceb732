/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant resident, of cells whose units need something of each other within a step, for both ways in
 * which blocks exchange gradients. See resident_link.h.
 *
 * Phases of a step, where what a phase has found, the next one reads from the records of the layer:
 *
 *   LAYER_NORM   the sums of c, for an LSTM | the gates and the sums of W_h h | what W_h h gets, which is sent
 *   late GRU     the gradient of the candidate is sent | that of r h has come; the rest is sent */
#ifndef CG_RESIDENT_LINKED_GRADIENT_H
#define CG_RESIDENT_LINKED_GRADIENT_H

#include "cuda-generic/recurrent/resident/resident_gradient.h"
#include "cuda-generic/recurrent/resident/resident_link.h"

enum cg_resident_phase {
    CG_RESIDENT_CELL_SUMS,
    CG_RESIDENT_GATE_SUMS,
    CG_RESIDENT_NORMAL_GATES,
    CG_RESIDENT_CANDIDATE,
    CG_RESIDENT_RESET
};

/* What a cell reads. back: what has come for its h, if an earlier phase has stored it; sent: the gradients of the
 * normalised sums. */
struct cg_resident_linked_past {
    struct cg_resident_past past;
    struct cg_cluster_norm_past of_norm;
    float back, sent[4];
};

/* What follows of the gradient of h. */
struct cg_resident_linked_slopes {
    struct cg_cluster_slopes s;
    float normal_c, dh, fresh, d, dq;
};

/* FIRST: the first phase of a step, which receives what was sent in the turn before. */
template <int PHASE, bool FIRST> struct cg_resident_linked_cells {
    static constexpr bool SENDS = PHASE >= CG_RESIDENT_NORMAL_GATES;
    static constexpr bool RECEIVES = FIRST || PHASE == CG_RESIDENT_RESET;

    const struct cg_resident_place &p;
    const struct cg_resident_call &call;
    const struct cg_resident_turns &turns;
    bool usual;
    int gates; /* a bit for each gate that is normalised */
    struct cg_resident_linked_past x, next;

    __device__ __forceinline__ cg_resident_linked_cells(const struct cg_resident_place &place,
                                                        const struct cg_resident_call &of,
                                                        const struct cg_resident_turns &all)
        : p(place), call(of), turns(all), usual(cg_cluster_is_usual(*place.y)), gates(cg_cluster_gates(*place.y)), x(),
          next()
    {
    }
    __device__ __forceinline__ const float *constants(const struct cg_resident_cell &cell) const
    {
        return p.constants + cell.own;
    }
    __device__ __forceinline__ int row(const struct cg_resident_cell &cell) const
    {
        return turns.now.row + cell.b;
    }

    /* ---- rows of memory ---- */

    __device__ __forceinline__ void prepare(const struct cg_resident_cell &cell)
    {
        const struct cg_layer &y = *p.y;
        const int64_t at = (int64_t)row(cell) * y.gh + cell.unit;
        if (PHASE != CG_RESIDENT_NORMAL_GATES)
            cg_resident_load_past(y, cell, turns, &next.past);
        if (PHASE <= CG_RESIDENT_NORMAL_GATES)
            next.of_norm = cg_cluster_load_norm(y, cell.runs, row(cell), cell.unit);
        if (!FIRST && PHASE != CG_RESIDENT_NORMAL_GATES)
            next.back = gpu_load_if(cell.runs, y.back + (int64_t)cell.b * y.hidden + cell.unit);
        CG_UNROLL
        for (int j = 0; j < 4; j++)
            if (PHASE == CG_RESIDENT_NORMAL_GATES)
                next.sent[j] = gpu_load_if(cell.runs && (gates >> j & 1), y.pre_v + at + j * y.hidden);
    }
    __device__ __forceinline__ void load(const struct cg_resident_cell &, const struct cg_resident_cell &following)
    {
        x = next;
        prepare(following);
    }
    /* In the first phase: for the next one, or for the state before the first step. */
    __device__ __forceinline__ void store_back(const struct cg_resident_cell &cell, float back) const
    {
        if (cell.returns || cell.runs)
            p.y->back[(int64_t)cell.b * p.y->hidden + cell.unit] = back;
    }
    /* The gradients of the gates, and of the states before. */
    __device__ __forceinline__ void store(const struct cg_resident_cell &cell,
                                          const struct cg_resident_linked_slopes &g, const float (&dz)[4],
                                          float of_reset) const
    {
        const struct cg_layer &y = *p.y;
        const int64_t at = (int64_t)cell.b * y.hidden + cell.unit;
        cg_cluster_store_gradients(y, row(cell), cell.unit, dz, g.s.reset, x.past.x);
        y.direct[at] =
            (g.s.stay_h > 0 ? g.dh : 0.0f) + (y.cell == SEQLSTM_CELL_GRU ? g.fresh * g.s.pass : 0.0f) + of_reset;
        if (y.cell == SEQLSTM_CELL_LSTM)
            y.dc[at] = g.s.from_kept + g.d * g.s.f;
    }

    /* ---- what the phases have in common ---- */

    /* back: what has come for h. */
    __device__ __forceinline__ struct cg_resident_linked_slopes derive(const struct cg_resident_cell &cell,
                                                                       float back) const
    {
        const struct cg_layer &y = *p.y;
        const int units = call.r.units;
        const float *of = constants(cell), *peepholes = y.peephole ? of + 4 * units : nullptr;
        const struct cg_resident_past &past = x.past;
        struct cg_resident_linked_slopes g = {};
        float stay_c = 0, stay_h = 0, q = cg_clip(past.x.inner, y.cell_clip);
        if (cell.runs) {
            stay_c = cg_cluster_stay(y, y.zoneout_cell_key, y.zoneout_cell, turns.now.t, cell.b, cell.unit);
            stay_h = cg_cluster_stay(y, y.zoneout_hidden_key, y.zoneout_hidden, turns.now.t, cell.b, cell.unit);
        }
        if (y.normed && y.cell == SEQLSTM_CELL_LSTM) {
            g.normal_c = (q - x.of_norm.moments[2]) * x.of_norm.moments[3];
            q = g.normal_c * of[11 * units] + of[12 * units];
        }
        g.s = usual ? cg_cluster_slope<true, true>(y, past.x, q, peepholes, units, stay_c, stay_h, past.dc)
                    : cg_cluster_slope<false, true>(y, past.x, q, peepholes, units, stay_c, stay_h, past.dc);
        g.dh = past.direct + past.x.dy * y.dy_scale * (y.other_h ? past.x.other : 1.0f) + past.mask * back;
        g.fresh = g.s.stay_h > 0 ? 0.0f : g.dh;
        g.d = g.fresh * g.s.to_c + g.s.from_c;
        g.dq = cell.runs ? g.fresh * g.s.to_q : 0.0f;
        return g;
    }
    __device__ __forceinline__ void find_gates(const struct cg_resident_cell &cell,
                                               const struct cg_resident_linked_slopes &g, float (&dz)[4]) const
    {
        CG_UNROLL
        for (int j = 0; j < 4; j++) /* 0 times an infinity would not be 0 */
            dz[j] = cell.runs && (gates >> j & 1) ? (j < 3 ? g.d : g.fresh) * g.s.gate[j] : 0.0f;
    }
    __device__ __forceinline__ float normal(int gate) const
    {
        return (x.of_norm.v[gate] - x.of_norm.moments[0]) * x.of_norm.moments[1];
    }

    /* ---- phases ---- */

    __device__ __forceinline__ void find_cell_sums(const struct cg_resident_cell &cell, bool there, float back) const
    {
        const struct cg_resident_linked_slopes g = derive(cell, back);
        const float d = cell.runs ? g.dq * constants(cell)[11 * call.r.units] : 0.0f;
        store_back(cell, back);
        cg_resident_put_sums(p, call, 0, cell.column, cell.own, there, d, cell.runs ? d * g.normal_c : 0.0f);
    }

    __device__ __forceinline__ void find_gate_sums(const struct cg_resident_cell &cell, bool there, float back) const
    {
        const struct cg_layer &y = *p.y;
        const int units = call.r.units;
        const float *of = constants(cell);
        struct cg_resident_linked_slopes g = derive(cell, back);
        float dz[4], sum = 0, product = 0;
        if (y.cell == SEQLSTM_CELL_LSTM) {
            cg_resident_find_sums(p, call, 0, cell.column, cell.own, there, &sum, &product);
            g.d += g.s.clip * x.of_norm.moments[3] *
                   (g.dq * of[11 * units] - (sum + g.normal_c * product) / (float)y.hidden);
        } else {
            store_back(cell, back);
        }
        find_gates(cell, g, dz);
        sum = product = 0;
        CG_UNROLL
        for (int j = 0; j < 4; j++) {
            const bool used = cell.runs && (gates >> j & 1);
            const float d = used ? (j != 2 ? dz[j] : dz[j] * g.s.reset) * of[(7 + j) * units] : 0.0f;
            sum += d;
            product += used ? d * normal(j) : 0.0f;
        }
        cg_resident_put_sums(p, call, 1, cell.column, cell.own, there, sum, product);
        if (!cell.runs)
            return;
        store(cell, g, dz, 0.0f);
        if (y.cell == SEQLSTM_CELL_LSTM) {
            y.gain_c[(int64_t)row(cell) * y.hidden + cell.unit] = g.dq * g.normal_c;
            y.bias_c[(int64_t)row(cell) * y.hidden + cell.unit] = g.dq;
        }
    }

    __device__ __forceinline__ void find_normal_gates(const struct cg_resident_cell &cell, bool there,
                                                      float (&v)[4]) const
    {
        const struct cg_layer &y = *p.y;
        const float *of = constants(cell);
        const int64_t at = (int64_t)row(cell) * y.gh + cell.unit;
        float sum, product;
        cg_resident_find_sums(p, call, 1, cell.column, cell.own, there, &sum, &product);
        CG_UNROLL
        for (int j = 0; j < 4; j++) {
            const bool used = cell.runs && (gates >> j & 1);
            const float d = x.sent[j] * of[(7 + j) * call.r.units], normalised = used ? normal(j) : 0.0f;
            v[j] = used ? x.of_norm.moments[1] * (d - (sum + normalised * product) / cg_count_used(&y)) : 0.0f;
            if (cell.runs && j < (int)y.gates) {
                y.dv[at + j * y.hidden] = v[j];
                y.gain_v[at + j * y.hidden] = x.sent[j] * normalised;
            }
        }
    }

    __device__ __forceinline__ void find_candidate(const struct cg_resident_cell &cell, float back, float (&v)[4]) const
    {
        float dz[4];
        find_gates(cell, derive(cell, back), dz);
        store_back(cell, back);
        v[2] = dz[2];
    }

    /* of_reset: the gradient of r h. */
    __device__ __forceinline__ void find_reset(const struct cg_resident_cell &cell, float of_reset, float (&v)[4]) const
    {
        const struct cg_resident_linked_slopes g = derive(cell, x.back);
        const float mask = x.past.mask, before = x.past.x.before;
        float dz[4];
        find_gates(cell, g, dz);
        dz[0] = cell.runs ? of_reset * mask * before * g.s.gate[0] : 0.0f;
        v[0] = dz[0];
        v[1] = dz[1];
        if (!cell.runs)
            return;
        store(cell, g, dz, mask * of_reset * g.s.reset);
        p.y->reset_rows[(int64_t)row(cell) * p.y->hidden + cell.unit] = g.s.reset * mask * before;
    }

    /* received: what has come for the cell in this phase. */
    __device__ __forceinline__ void run(const struct cg_resident_cell &cell, bool there, float received, float (&v)[4])
    {
        const float back = FIRST ? (cell.returns ? received : 0.0f) : x.back;
        const bool counts = there && cell.column < turns.active;
        if (PHASE == CG_RESIDENT_CELL_SUMS)
            find_cell_sums(cell, counts, back);
        if (PHASE == CG_RESIDENT_GATE_SUMS)
            find_gate_sums(cell, counts, back);
        if (PHASE == CG_RESIDENT_NORMAL_GATES)
            find_normal_gates(cell, counts, v);
        if (PHASE == CG_RESIDENT_CANDIDATE)
            find_candidate(cell, back, v);
        if (PHASE == CG_RESIDENT_RESET)
            find_reset(cell, received, v);
    }
};

/* A phase of a turn. `waits`: some block has written something that it reads. */
template <class PASS, int PHASE, bool FIRST>
static __device__ __forceinline__ void cg_resident_run_phase(const struct cg_resident_place &p,
                                                             const struct cg_resident_call &call,
                                                             const struct cg_resident_turns &turns, bool waits)
{
    typedef cg_resident_linked_cells<PHASE, FIRST> cells_type;
    const int received = FIRST ? turns.before : turns.active;
    const int all = received > turns.active ? received : turns.active;
    cells_type cells(p, call, turns);
    for (int from = 0; from < all; from += call.r.columns) {
        const int count = all - from < call.r.columns ? all - from : call.r.columns;
        cells.prepare(cg_resident_get_cell(p, call, turns, from, count, p.thread));
        if (from == 0 && waits)
            cg_resident_wait(p, call.r);
        PASS pass(p, call);
        cg_resident_run_columns(pass, cells, p, call, turns, from, count, cells_type::RECEIVES ? received : 0,
                                turns.active);
    }
}

template <class PASS>
static __device__ __forceinline__ void cg_resident_run_linked_turn(struct cg_resident_place &p,
                                                                   const struct cg_resident_call &call,
                                                                   const struct cg_resident_turns &turns)
{
    const struct cg_layer &y = *p.y;
    const bool waits = turns.before > 0, runs = turns.active > 0, lstm = y.cell == SEQLSTM_CELL_LSTM;
    if (y.late) {
        cg_resident_run_phase<PASS, CG_RESIDENT_CANDIDATE, true>(p, call, turns, waits);
        if (runs) {
            cg_resident_arrive(p);
            cg_resident_run_phase<PASS, CG_RESIDENT_RESET, false>(p, call, turns, true);
        }
        return;
    }
    if (lstm)
        cg_resident_run_phase<PASS, CG_RESIDENT_CELL_SUMS, true>(p, call, turns, waits);
    else
        cg_resident_run_phase<PASS, CG_RESIDENT_GATE_SUMS, true>(p, call, turns, waits);
    if (!runs)
        return;
    cg_resident_come(p);
    if (lstm) {
        cg_resident_run_phase<PASS, CG_RESIDENT_GATE_SUMS, false>(p, call, turns, true);
        cg_resident_come(p);
    }
    cg_resident_run_phase<PASS, CG_RESIDENT_NORMAL_GATES, false>(p, call, turns, true);
}

/* All turns. */
template <class PASS>
static __device__ __forceinline__ void cg_resident_run_linked_turns(struct cg_resident_place &p,
                                                                    const struct cg_resident_call &call)
{
    const struct cg_layer &y = *p.y;
    const int steps = (int)y.axis.steps;
    struct cg_resident_turns turns = {cg_resident_get_step(y, 0, true), cg_resident_get_step(y, 1, true), 0, 0};
    for (int turn = 0; turn <= steps; turn++) { /* the last one only receives */
        turns.active = cg_resident_active(call, p.group, turns.now.most);
        cg_resident_run_linked_turn<PASS>(p, call, turns);
        if (turns.active > 0)
            cg_resident_arrive(p);
        turns.before = turns.active;
        turns.now = turns.next;
        turns.next = cg_resident_get_step(y, turn + 2, true);
    }
}

#endif

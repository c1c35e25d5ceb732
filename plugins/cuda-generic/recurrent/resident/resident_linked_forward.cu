/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the variant resident, of cells whose units need something of each other within a step. See resident_link.h
 * for the phases of a step. */
#include "cuda-generic/recurrent/resident/resident_forward.h"
#include "cuda-generic/recurrent/resident/resident_link.h"

enum cg_resident_phase { SUMS, CELLS, OUTPUTS, RESETS, CANDIDATES };

/* What a cell reads in a phase: the input, and what an earlier phase has stored. */
struct cg_resident_linked_input {
    struct cg_resident_input x;
    float v[4], inner;
};

/* The sum of the candidate over r h. */
struct cg_resident_late_sum {
    static constexpr bool ANY = true;
    float sum;
    __device__ __forceinline__ float find_q(float c)
    {
        return c;
    }
    __device__ __forceinline__ float find_late(float)
    {
        return sum;
    }
};

template <int PARTS, int TILES> struct cg_resident_linked_forward {
    typedef cg_resident_product<PARTS, TILES, PARTS == 2 || TILES == 2 ? 4 : 8, false> product_type;

    struct cg_resident_place &p;
    const struct cg_resident_call &call;
    const struct cg_layer &y;
    struct cg_resident_step before, now;
    int active;      /* columns of the step */
    int gates, used; /* a bit for each gate that is normalised, and how many they are */
    bool usual, last;
    struct cg_resident_linked_input next; /* of the cell that comes next */

    __device__ __forceinline__ cg_resident_linked_forward(struct cg_resident_place &place,
                                                          const struct cg_resident_call &of)
        : p(place), call(of), y(*place.y), before(), now(), active(0), gates(cg_cluster_gates(*place.y)), used(0),
          usual(cg_cluster_is_usual(*place.y)), last(false), next()
    {
        for (int j = 0; j < 4; j++)
            used += gates >> j & 1;
    }
    __device__ __forceinline__ const float *constants(const struct cg_resident_cell &cell) const
    {
        return p.constants + cell.own;
    }

    /* ---- rows of memory ---- */

    template <int PHASE> __device__ __forceinline__ void load(const struct cg_resident_cell &cell)
    {
        const bool runs = cell.b >= 0;
        const int64_t row = now.row + cell.b, at = row * y.hidden + cell.unit;
        if (PHASE != SUMS)
            cg_resident_load_input(y, cell, now, before, &next.x);
        CG_UNROLL
        for (int j = 0; j < 4; j++)
            if (PHASE == CELLS)
                next.v[j] = gpu_load_if(runs && (gates >> j & 1), y.v + row * y.gh + j * y.hidden + cell.unit);
        if (PHASE == OUTPUTS)
            next.inner = gpu_load_if(runs, y.c_raw + at);
    }
    __device__ __forceinline__ void store_gates(const struct cg_resident_cell &cell, float *to, int which,
                                                const float (&x)[4]) const
    {
        float *at = to + (int64_t)(now.row + cell.b) * y.gh + cell.unit;
        CG_UNROLL
        for (int j = 0; j < 4; j++)
            if (which >> j & 1)
                at[j * y.hidden] = x[j];
    }
    __device__ __forceinline__ void store_moments(const struct cg_resident_cell &cell, int at,
                                                  const float (&m)[2]) const
    {
        float *to = y.moments + (int64_t)(now.row + cell.b) * 4 + at;
        if (cell.unit == 0) {
            to[0] = m[0];
            to[1] = m[1];
        }
    }
    __device__ __forceinline__ struct cg_cluster_state begin_state(const struct cg_resident_cell &cell) const
    {
        struct cg_cluster_state s = {next.x.c, next.x.h, 0.0f, 0.0f};
        if (cell.b >= 0) {
            s.stay_c = cg_cluster_stay(y, y.zoneout_cell_key, y.zoneout_cell, now.t, cell.b, cell.unit);
            s.stay_h = cg_cluster_stay(y, y.zoneout_hidden_key, y.zoneout_hidden, now.t, cell.b, cell.unit);
        }
        return s;
    }
    __device__ __forceinline__ void publish(const struct cg_resident_cell &cell, bool there, float h) const
    {
        cg_resident_publish<PARTS>(p, call, cg_resident_half(p, p.published + 1), cell, there, p.scaled,
                                   cell.b >= 0 ? h * next.x.mask : 0.0f);
    }
    template <class LINKS>
    __device__ __forceinline__ struct cg_cluster_record compute(const struct cg_resident_cell &cell,
                                                                const float (&v)[4], const float (&u)[4], LINKS links,
                                                                struct cg_cluster_state *state) const
    {
        const int units = call.r.units;
        const float *of = constants(cell), *peepholes = y.peephole ? of + 4 * units : nullptr;
        return usual ? cg_cluster_cell<true>(y, v, u, peepholes, units, of[3 * units], links, state)
                     : cg_cluster_cell<false>(y, v, u, peepholes, units, of[3 * units], links, state);
    }

    /* ---- phases ---- */

    /* LAYER_NORM: the sums over h. */
    __device__ __forceinline__ void find_sums(const product_type &product, const struct cg_resident_cell &cell,
                                              bool there)
    {
        float v[4];
        CG_UNROLL
        for (int j = 0; j < 4; j++)
            v[j] = cell.b >= 0 && (gates >> j & 1)
                       ? product.get(j * call.r.units + cell.own, cell.column - product.column0)
                       : 0.0f;
        cg_resident_put_moments(p, call, 0, cell.column, cell.own, there, v, cell.b >= 0 ? gates : 0, used);
        if (cell.b >= 0)
            store_gates(cell, y.v, gates, v);
    }

    /* LAYER_NORM: the cell with the normalised sums, without the h of an LSTM. */
    __device__ __forceinline__ void find_cell(const struct cg_resident_cell &cell, bool there)
    {
        const int units = call.r.units;
        const float *of = constants(cell);
        const bool lstm = y.cell == SEQLSTM_CELL_LSTM;
        float moments[2], v[4], u[4];
        cg_resident_find_moments(p, call, 0, cell.column, cell.own, there, used, moments);
        CG_UNROLL
        for (int j = 0; j < 4; j++) {
            v[j] = gates >> j & 1 ? (next.v[j] - moments[0]) * moments[1] * of[(7 + j) * units] : 0.0f;
            u[j] = next.x.u[j] + of[j * units];
        }
        struct cg_cluster_state state = begin_state(cell);
        const struct cg_cluster_record record = compute(cell, v, u, cg_cluster_no_links(), &state);
        const float c[4] = {cg_clip(record.inner, y.cell_clip), 0.0f, 0.0f, 0.0f};
        if (lstm)
            cg_resident_put_moments(p, call, 1, cell.column, cell.own, there, c, cell.b >= 0, 1);
        else if (!last)
            publish(cell, there, state.h);
        if (cell.b < 0)
            return;
        cg_cluster_store(y, now.row + cell.b, cell.unit, record, state);
        store_moments(cell, 0, moments);
    }

    /* LAYER_NORM: the h of an LSTM. */
    __device__ __forceinline__ void find_output(const struct cg_resident_cell &cell, bool there)
    {
        const float *of = constants(cell), c = cg_clip(next.inner, y.cell_clip), z = next.x.u[3];
        float moments[2];
        cg_resident_find_moments(p, call, 1, cell.column, cell.own, there, 1, moments);
        const float q = (c - moments[0]) * moments[1] * of[11 * call.r.units] + of[12 * call.r.units];
        const struct cg_cluster_state state = begin_state(cell);
        const float fresh = usual ? cg_cluster_gate<true>(y, z) * cg_cluster_output<true>(y, q)
                                  : cg_cluster_gate<false>(y, z) * cg_cluster_output<false>(y, q);
        const float h = cg_cluster_carry(state.stay_h, state.h, fresh);
        if (!last)
            publish(cell, there, h);
        if (cell.b < 0)
            return;
        y.h[(int64_t)(now.row + cell.b) * y.hidden + cell.unit] = h;
        store_moments(cell, 2, moments);
    }

    /* Late GRU: the gates, and r h for all. */
    __device__ __forceinline__ void find_reset(const product_type &product, const struct cg_resident_cell &cell,
                                               bool there)
    {
        const int units = call.r.units;
        const float *of = constants(cell);
        float z[4] = {0, 0, 0, 0};
        CG_UNROLL
        for (int j = 0; j < 2; j++)
            if (cell.b >= 0)
                z[j] = next.x.u[j] + of[j * units] + product.get(j * units + cell.own, cell.column - product.column0);
        const float reset = usual ? cg_cluster_gate<true>(y, z[0]) : cg_cluster_gate<false>(y, z[0]);
        publish(cell, there, reset * next.x.h);
        if (cell.b >= 0)
            store_gates(cell, y.z, 3, z);
    }

    /* Late GRU: the rest. The record z has the gates. */
    __device__ __forceinline__ void find_candidate(const product_type &product, const struct cg_resident_cell &cell,
                                                   bool there)
    {
        const int units = call.r.units;
        const float u[4] = {next.x.u[0], next.x.u[1], next.x.u[2] + constants(cell)[2 * units], 0.0f};
        const float none[4] = {0, 0, 0, 0};
        const struct cg_resident_late_sum sum = {
            cell.b >= 0 ? product.get(2 * units + cell.own, cell.column - product.column0) : 0.0f};
        struct cg_cluster_state state = begin_state(cell);
        const struct cg_cluster_record record = compute(cell, none, u, sum, &state);
        if (!last)
            publish(cell, there, state.h);
        if (cell.b >= 0)
            cg_cluster_store(y, now.row + cell.b, cell.unit, record, state);
    }

    /* ---- a step ---- */

    /* All cells of columns [from, from + count). product: of a phase that has one. */
    template <int PHASE> __device__ __forceinline__ void run_cells(const product_type &product, int from, int count)
    {
        const int cells = count * call.r.units;
        for (int e = p.thread; e - p.lane < cells; e += CG_RESIDENT_THREADS) {
            const struct cg_resident_cell cell = cg_resident_get_cell(p, call, from, count, e);
            const bool there = e < cells;
            if (from > 0 || e != p.thread)
                load<PHASE>(cell);
            if (PHASE == SUMS)
                find_sums(product, cell, there);
            if (PHASE == CELLS)
                find_cell(cell, there);
            if (PHASE == OUTPUTS)
                find_output(cell, there);
            if (PHASE == RESETS)
                find_reset(product, cell, there);
            if (PHASE == CANDIDATES)
                find_candidate(product, cell, there);
        }
    }

    /* Waits for what all blocks have written, and runs a phase; one that multiplies takes as many columns at a time as
     * a product has. */
    template <int PHASE> __device__ __forceinline__ void run()
    {
        const bool multiplies = PHASE == SUMS || PHASE == RESETS || PHASE == CANDIDATES;
        const int most = multiplies ? call.r.columns : active;
        load<PHASE>(cg_resident_get_cell(p, call, 0, active < most ? active : most, p.thread));
        cg_resident_wait(p, call.r);
        product_type product(p, call, cg_resident_half(p, p.published));
        for (int from = 0; from < active; from += most) {
            const int count = active - from < most ? active - from : most;
            if (multiplies)
                product.run(from, count);
            run_cells<PHASE>(product, from, count);
            if (multiplies)
                __syncthreads(); /* now all threads have read the sums */
        }
    }

    __device__ __forceinline__ void run_step()
    {
        if (y.late) {
            run<RESETS>();
            cg_resident_arrive(p);
            run<CANDIDATES>();
            return;
        }
        run<SUMS>();
        cg_resident_come(p);
        run<CELLS>();
        if (y.cell != SEQLSTM_CELL_LSTM)
            return;
        cg_resident_come(p);
        run<OUTPUTS>();
    }
};

template <int PARTS, int TILES>
static __global__ void __launch_bounds__(CG_RESIDENT_THREADS, 1)
    resident_linked_forward(const struct cg_layer *layers, const __grid_constant__ struct cg_resident_call call)
{
    GPU_SHARED(unsigned char, shared);
    struct cg_resident_place p = cg_resident_begin(layers, call, shared);
    const int steps = (int)p.y->axis.steps;
    cg_resident_load_rows<PARTS>(p, call.r);
    __threadfence(); /* weights in the exchange are read through L2 */
    cg_resident_publish_initial<PARTS>(p, call);
    cg_resident_linked_forward<PARTS, TILES> a(p, call);
    a.now = cg_resident_get_step(*p.y, 0, false);
    for (int turn = 0; turn < steps; turn++) {
        const struct cg_resident_step after = cg_resident_get_step(*p.y, turn + 1, false);
        a.active = cg_resident_active(call, p.group, a.now.most);
        a.last = turn + 1 == steps;
        if (a.active > 0) {
            a.run_step();
            if (!a.last)
                cg_resident_arrive(p);
        }
        a.before = a.now;
        a.now = after;
    }
}

struct cg_resident_linked_forward_kernels {
    template <int PARTS, int TILES> static int run(const struct cg_resident_request &request)
    {
        return cg_resident_start(request, resident_linked_forward<PARTS, TILES>);
    }
};

extern "C" int cg_resident_forward_linked(const struct cg_resident_request *request)
{
    return cg_resident_choose<cg_resident_linked_forward_kernels, 2>(*request);
}

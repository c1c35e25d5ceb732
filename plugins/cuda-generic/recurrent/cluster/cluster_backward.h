/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of a layer on clusters. See cluster.h.
 *
 * A step of the depth is four units with four gates each: lane % 4 has the unit, value j is gate j. A tile of 16 rows
 * of the product holds 16 units whose h gets the gradient; their sums go to the block that owns them, as a record of
 * 128 numbers: number q * 32 + g * 4 + e belongs to unit g + 8 (e / 2) and sequence 2 q + e % 2. The lane of a cell
 * adds the numbers of the records of all blocks in order. */
#ifndef CG_CLUSTER_BACKWARD_H
#define CG_CLUSTER_BACKWARD_H

#include "cuda-generic/recurrent/cluster/cluster_block.h"

template <int PARTS, int HIDDEN, int BLOCKS>
struct cg_cluster_backward_shape : cg_cluster_block<PARTS, HIDDEN, BLOCKS> {
    typedef cg_cluster_block<PARTS, HIDDEN, BLOCKS> BLOCK;
    static constexpr int ALL_TILES = HIDDEN / 16, TILES = ALL_TILES / BLOCK::WARPS; /* of a warp */
    static constexpr int STEPS = BLOCK::UNITS / 4, HALF_STEPS = 4, TOGETHER = PARTS == 1 || TILES < 2 ? TILES : 2;
    static constexpr struct cg_cluster_sizes SIZES = cg_cluster_size(HIDDEN, BLOCKS, PARTS, 1);
    static constexpr int RECEIVED = SIZES.received, HEAD = SIZES.head, GROUP = SIZES.group;
    static constexpr int GRADIENTS_AT = CG_CLUSTER_FIXED_BYTES, GRADIENTS = 128 * STEPS * BLOCK::WORDS;
    static constexpr int LOWER_AT = GRADIENTS_AT + 2 * GRADIENTS, STATES_AT = 2 * RECEIVED;
    static_assert(STATES_AT + 4 * CG_CLUSTER_STATES * BLOCK::THREADS == GROUP, "cg_cluster_size");
    static_assert(LOWER_AT + SIZES.lower_bytes == HEAD, "cg_cluster_size");
    static_assert(RECEIVED == BLOCKS * BLOCK::HALVES * 512, "every block sends the parts of all units");
};

template <class S> struct cg_cluster_columns {
    uint32_t upper[S::TILES][S::STEPS][4], lower[S::ALL_KEPT ? S::TILES : 1][S::ALL_KEPT ? S::STEPS : 1][4];
    float unscale;
    gpu_peer owners[S::TILES];
};

/* ---- before the steps ------------------------------------------------------------------------------------------ */

/* Blocks begin with different tiles, so that they do not all send to the same one. */
template <class S> static __device__ __forceinline__ int cg_cluster_tile(const struct cg_cluster_place &p, int i)
{
    return (p.warp + S::WARPS * i + p.rank * S::HALVES) % S::ALL_TILES;
}

template <class S>
static __device__ __forceinline__ unsigned char *cg_cluster_lower(const struct cg_cluster_place &p, int i, int step)
{
    return p.shared + S::LOWER_AT + ((p.warp * S::TILES + i) * S::STEPS + step) * 512 + p.lane * 16;
}

/* Both rows of a lane's fragments: four gates of a unit of the block, for columns g and g + 8 of the tile. */
template <class S>
static __device__ __forceinline__ void cg_cluster_get_columns(const struct cg_cluster_place &p, int i, int step,
                                                              float (&x)[4], float (&below)[4])
{
    const struct cg_layer &y = *p.y;
    const int n = (int)y.hidden, unit = p.rank * S::UNITS + 4 * step + p.lane % 4;
    const int column = cg_cluster_tile<S>(p, i) * 16 + p.lane / 4;
    CG_UNROLL
    for (int j = 0; j < 4; j++) {
        const int row = j * n + unit;
        const bool there = j < (int)y.gates && unit < n && !cg_is_unused(&y, row);
        x[j] = there && column < n ? y.w_h[(int64_t)row * n + column] : 0.0f;
        below[j] = there && column + 8 < n ? y.w_h[(int64_t)row * n + column + 8] : 0.0f;
    }
}

template <class S>
static __device__ __forceinline__ void cg_cluster_load_columns(const struct cg_cluster_place &p,
                                                               cg_cluster_columns<S> &columns)
{
    float x[4], below[4];
    uint32_t most = 0;
    for (int e = 0; e < S::TILES * S::STEPS; e++) {
        cg_cluster_get_columns<S>(p, e / S::STEPS, e % S::STEPS, x, below);
        most = cg_cluster_greater(most, cg_cluster_greater(cg_cluster_most(x), cg_cluster_most(below)));
    }
    most = gpu_warp_max(most);
    columns.unscale = cg_cluster_unscale(most);
    CG_UNROLL
    for (int i = 0; i < S::TILES; i++)
        CG_UNROLL
    for (int k = 0; k < S::STEPS; k++) {
        uint32_t lower[4];
        cg_cluster_get_columns<S>(p, i, k, x, below);
        cg_cluster_fragments<S::PARTS>(x, below, cg_cluster_scale(most), columns.upper[i][k], lower);
        if (!S::ALL_KEPT)
            cg_cluster_write(cg_cluster_lower<S>(p, i, k), lower);
        CG_UNROLL
        for (int j = 0; j < 4; j++)
            if (S::ALL_KEPT)
                columns.lower[S::ALL_KEPT ? i : 0][S::ALL_KEPT ? k : 0][j] = lower[j];
    }
    CG_UNROLL
    for (int i = 0; i < S::TILES; i++)
        columns.owners[i] = gpu_find_peer(p.shared, cg_cluster_tile<S>(p, i) / S::HALVES);
}

/* ---- the states of a cell, between its steps ------------------------------------------------------------------- */

enum { CG_CLUSTER_DC, CG_CLUSTER_DIRECT, CG_CLUSTER_BACK, CG_CLUSTER_BACK_LENGTH };

template <class S>
static __device__ __forceinline__ float *cg_cluster_states(const struct cg_cluster_place &p, int group)
{
    return reinterpret_cast<float *>(p.shared + S::HEAD + group * S::GROUP + S::STATES_AT) + p.thread;
}

template <class S> static __device__ __forceinline__ int cg_cluster_length(const float *states)
{
    return (int)gpu_float_bits(states[CG_CLUSTER_BACK_LENGTH * S::THREADS]);
}

template <class S> static __device__ __forceinline__ void cg_cluster_begin_states(const struct cg_cluster_place &p)
{
    for (int group = 0; group < p.groups; group++) {
        float *states = cg_cluster_states<S>(p, group);
        const int b = cg_cluster_sequence(p, group);
        const int64_t at = (int64_t)b * p.y->hidden + p.unit;
        states[CG_CLUSTER_DC * S::THREADS] = b < 0 ? 0.0f : cg_or_zero(p.y->dcn, at);
        states[CG_CLUSTER_DIRECT * S::THREADS] = b < 0 ? 0.0f : cg_or_zero(p.y->dhn, at);
        states[CG_CLUSTER_BACK * S::THREADS] = 0.0f;
        states[CG_CLUSTER_BACK_LENGTH * S::THREADS] = gpu_bits_float(b < 0 ? 0u : (uint32_t)p.y->axis.lengths[b]);
    }
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

template <class S> struct cg_cluster_backward_pass {
    struct cg_cluster_place p;
    cg_cluster_columns<S> columns;
    struct cg_cluster_past past; /* of the step and group that come next */
    int bytes;                   /* of a phase */
    int item;                    /* steps of groups so far */
    int gates;                   /* a bit for each gate that the layer has */
    bool usual;
};

/* Adds what all blocks have sent for the lane's cell. */
template <class S>
static __device__ __forceinline__ float cg_cluster_receive(const struct cg_cluster_place &p, int turn, int group,
                                                           int bytes)
{
    const unsigned char *room = p.shared + S::HEAD + group * S::GROUP + (turn & 1) * S::RECEIVED;
    const float *from = reinterpret_cast<const float *>(room) + p.warp * 32 + p.lane;
    float sums[4] = {0, 0, 0, 0};
    cg_cluster_wait(p, group, turn, bytes);
    CG_UNROLL
    for (int i = 0; i < S::BLOCKS; i++)
        sums[i % 4] += from[i * S::HALVES * 128];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Scales the gradients of the gates, for each of the two sequences of the warp, and puts them where all warps of the
 * block find them. */
template <class S>
static __device__ __forceinline__ void cg_cluster_put_gradients(const struct cg_cluster_place &p, int ring,
                                                                const float (&dz)[4])
{
    const bool second = p.column & 1;
    const uint32_t most = cg_cluster_most(dz), even = gpu_warp_max(second ? 0 : most),
                   odd = gpu_warp_max(second ? most : 0), own = second ? odd : even;
    uint32_t words[S::WORDS];
    cg_cluster_chunk<S::PARTS>(dz, cg_cluster_scale(own), words);
    float *unscales = reinterpret_cast<float *>(p.shared + CG_CLUSTER_NOTES_AT) + ring * 16 + p.warp / 4 * 8;
    if (p.lane < 2)
        unscales[p.column] = cg_cluster_unscale(own);
    unsigned char *to = p.shared + S::GRADIENTS_AT + ring * S::GRADIENTS;
    cg_cluster_write(to + (p.own / 4 * 32 + p.column * 4 + p.own % 4) * 4 * S::WORDS, words);
}

/* The sums of TOGETHER tiles from tile i0 on, over the units of the block. */
template <class S>
static __device__ __forceinline__ void cg_cluster_multiply_columns(const struct cg_cluster_place &p,
                                                                   const cg_cluster_columns<S> &columns, int i0,
                                                                   const uint32_t (&gradients)[S::STEPS][S::WORDS],
                                                                   const float (&unscales)[S::HALVES][2],
                                                                   float (&sums)[S::TOGETHER][4])
{
    CG_UNROLL
    for (int half = 0; half < S::HALVES; half++) {
        float chains[S::TOGETHER][S::CHAINS][4] = {};
        CG_UNROLL
        for (int k = half * S::HALF_STEPS; k < (half + 1) * S::HALF_STEPS; k++)
            CG_UNROLL
        for (int i = 0; i < S::TOGETHER; i++) {
            if (S::ALL_KEPT) {
                cg_cluster_number<S::PARTS>::multiply(chains[i], columns.upper[i0 + i][k],
                                                      columns.lower[S::ALL_KEPT ? i0 + i : 0][S::ALL_KEPT ? k : 0],
                                                      gradients[k]);
                continue;
            }
            uint32_t lower[4];
            cg_cluster_read(cg_cluster_lower<S>(p, i0 + i, k), lower);
            cg_cluster_number<S::PARTS>::multiply(chains[i], columns.upper[i0 + i][k], lower, gradients[k]);
        }
        CG_UNROLL
        for (int i = 0; i < S::TOGETHER; i++)
            CG_UNROLL
        for (int e = 0; e < 4; e++) {
            const float x = cg_cluster_number<S::PARTS>::fold(chains[i], e) * columns.unscale * unscales[half][e % 2];
            sums[i][e] = half == 0 ? x : sums[i][e] + x;
        }
    }
}

/* Multiplies the gradients with all tiles of the warp, and sends the sums to the owners of the units. */
template <class S>
static __device__ __forceinline__ void cg_cluster_spread(const struct cg_cluster_place &p,
                                                         const cg_cluster_columns<S> &columns, int ring, int group,
                                                         int half)
{
    const unsigned char *from = p.shared + S::GRADIENTS_AT + ring * S::GRADIENTS + p.lane * 4 * S::WORDS;
    const float *notes = reinterpret_cast<const float *>(p.shared + CG_CLUSTER_NOTES_AT) + ring * 16 + p.lane % 4 * 2;
    uint32_t gradients[S::STEPS][S::WORDS];
    float unscales[S::HALVES][2];
    CG_UNROLL
    for (int k = 0; k < S::STEPS; k++)
        cg_cluster_read(from + k * 128 * S::WORDS, gradients[k]);
    CG_UNROLL
    for (int k = 0; k < 2 * S::HALVES; k++)
        unscales[k / 2][k % 2] = notes[k / 2 * 8 + k % 2];
    const uint32_t to =
        (uint32_t)(S::HEAD + group * S::GROUP + half * S::RECEIVED) + (uint32_t)(p.lane % 4 * 8 + p.lane / 4) * 16;
    CG_UNROLL
    for (int i0 = 0; i0 < S::TILES; i0 += S::TOGETHER) {
        float sums[S::TOGETHER][4];
        cg_cluster_multiply_columns<S>(p, columns, i0, gradients, unscales, sums);
        CG_UNROLL
        for (int i = 0; i < S::TOGETHER; i++) {
            const uint32_t words[4] = {gpu_float_bits(sums[i][0]), gpu_float_bits(sums[i][1]),
                                       gpu_float_bits(sums[i][2]), gpu_float_bits(sums[i][3])};
            const int record = p.rank * S::HALVES + cg_cluster_tile<S>(p, i0 + i) % S::HALVES;
            if (2 * (p.lane % 4) < p.slots)
                gpu_send(columns.owners[i0 + i], to + (uint32_t)record * 512, words,
                         cg_cluster_barrier_at(group, half));
        }
    }
}

/* The gradient of the carried h of a sequence that stands at turn `turn`: what has come from the turn before counts
 * only if the sequence took part in it. */
template <class S>
static __device__ __forceinline__ float cg_cluster_come_back(const struct cg_cluster_place &p, int turn, int group,
                                                             int bytes, float *states)
{
    const float kept = states[CG_CLUSTER_BACK * S::THREADS];
    const bool ran = turn > 0 && cg_cluster_step(p, turn - 1, true) < cg_cluster_length<S>(states);
    const float now = turn > 0 ? cg_cluster_receive<S>(p, turn - 1, group, bytes) : 0.0f;
    return ran ? now : kept;
}

/* Loads the past of a cell for turn `turn` in advance. `row`: of its step, `before`: of the step in the turn after. */
template <class S>
static __device__ __forceinline__ void cg_cluster_prepare(cg_cluster_backward_pass<S> &a, int turn, int group, int row,
                                                          int before)
{
    const struct cg_cluster_place &p = a.p;
    const int b = cg_cluster_sequence(p, group), t = cg_cluster_step(p, turn, true);
    const int length = cg_cluster_length<S>(cg_cluster_states<S>(p, group));
    const bool first = p.y->reverse ? t + 1 == length : t == 0;
    cg_cluster_load_past(*p.y, turn < p.steps && t < length, first, row + b, before + b, b, p.unit, &a.past);
}

template <class S>
static __device__ __forceinline__ void cg_cluster_backward_step(cg_cluster_backward_pass<S> &a, int turn, int group,
                                                                int row, int next_row, int next_before)
{
    const struct cg_cluster_place &p = a.p;
    const struct cg_layer &y = *p.y;
    const int b = cg_cluster_sequence(p, group), t = cg_cluster_step(p, turn, true), ring = a.item++ & 1;
    float *states = cg_cluster_states<S>(p, group);
    const float *constants = cg_cluster_constants<S>(p), dc = states[CG_CLUSTER_DC * S::THREADS];
    const bool runs = t < cg_cluster_length<S>(states), last = group + 1 == p.groups;
    const float *peepholes = y.peephole ? constants + 4 * S::UNITS : nullptr;
    const struct cg_cluster_past x = a.past;
    cg_cluster_prepare<S>(a, last ? turn + 1 : turn, last ? 0 : group + 1, next_row, next_before);
    float stay_c = 0, stay_h = 0, mask = 0, direct = states[CG_CLUSTER_DIRECT * S::THREADS];
    if (runs) {
        stay_c = cg_cluster_stay(y, y.zoneout_cell_key, y.zoneout_cell, t, b, p.unit);
        stay_h = cg_cluster_stay(y, y.zoneout_hidden_key, y.zoneout_hidden, t, b, p.unit);
        mask = cg_or_one(y.mask_h, (int64_t)b * y.hidden + p.unit);
        direct += x.dy * y.dy_scale * (y.other_h ? x.other : 1.0f);
    }
    const struct cg_cluster_slopes s = a.usual ? cg_cluster_slope<true>(y, x, peepholes, S::UNITS, stay_c, stay_h, dc)
                                               : cg_cluster_slope<false>(y, x, peepholes, S::UNITS, stay_c, stay_h, dc);
    __syncwarp();
    const float back = cg_cluster_come_back<S>(p, turn, group, a.bytes, states);
    const float dh = direct + mask * back, fresh = s.stay_h > 0 ? 0.0f : dh, d = fresh * s.to_c + s.from_c;
    float dz[4];
    CG_UNROLL
    for (int j = 0; j < 4; j++) /* 0 times an infinity would not be 0 */
        dz[j] = runs && (a.gates >> j & 1) ? (j < 3 ? d : fresh) * s.gate[j] : 0.0f;
    const float sent[4] = {dz[0], dz[1], dz[2] * s.reset, dz[3]};
    cg_cluster_put_gradients<S>(p, ring, sent);
    __syncthreads();
    cg_cluster_spread<S>(p, a.columns, ring, group, turn & 1);
    if (runs) {
        states[CG_CLUSTER_DC * S::THREADS] = s.from_kept + d * s.f;
        states[CG_CLUSTER_DIRECT * S::THREADS] =
            (s.stay_h > 0 ? dh : 0.0f) + (y.cell == SEQLSTM_CELL_GRU ? fresh * s.pass : 0.0f);
        cg_cluster_store_gradients(y, row + b, p.unit, dz, s.reset, x);
    } else {
        states[CG_CLUSTER_BACK * S::THREADS] = back;
    }
}

/* ---- all steps ------------------------------------------------------------------------------------------------- */

template <class S>
static __device__ __forceinline__ void cg_cluster_backward_begin(cg_cluster_backward_pass<S> &a,
                                                                 const struct cg_layer *layer,
                                                                 const struct cg_cluster_call &call,
                                                                 unsigned char *shared)
{
    a.p = cg_cluster_begin<S>(layer, call.share, shared);
    a.p.own = a.p.warp / 4 * 16 + a.p.lane / 4 + 8 * (a.p.lane % 4 / 2);
    a.p.unit = a.p.rank * S::UNITS + a.p.own;
    a.p.column = 2 * (a.p.warp % 4) + a.p.lane % 2;
    a.bytes = S::BLOCKS * S::HALVES * 128 * ((a.p.slots + 1) / 2);
    a.item = 0;
    a.gates = ((1 << a.p.y->gates) - 1) & ~(cg_is_coupled(a.p.y) ? 2 : 0);
    a.usual = cg_cluster_is_usual(*a.p.y);
    cg_cluster_load_columns<S>(a.p, a.columns);
    cg_cluster_begin_states<S>(a.p);
    cg_cluster_start(a.p, a.bytes);
}

/* The gradients of the initial states. */
template <class S> static __device__ __forceinline__ void cg_cluster_finish(cg_cluster_backward_pass<S> &a)
{
    const struct cg_cluster_place &p = a.p;
    for (int group = 0; group < p.groups; group++) {
        float *states = cg_cluster_states<S>(p, group);
        const float back = cg_cluster_come_back<S>(p, p.steps, group, a.bytes, states);
        const int b = cg_cluster_sequence(p, group);
        const int64_t at = (int64_t)b * p.y->hidden + p.unit;
        if (b < 0)
            continue;
        if (p.y->dh0)
            p.y->dh0[at] = states[CG_CLUSTER_DIRECT * S::THREADS] + cg_or_one(p.y->mask_h, at) * back;
        if (p.y->dc0)
            p.y->dc0[at] = states[CG_CLUSTER_DC * S::THREADS];
    }
}

template <class S>
static __device__ __forceinline__ void cg_cluster_backward_steps(const struct cg_layer *layer,
                                                                 const struct cg_cluster_call &call,
                                                                 unsigned char *shared)
{
    cg_cluster_backward_pass<S> a;
    cg_cluster_backward_begin<S>(a, layer, call, shared);
    const struct cg_cluster_place &p = a.p;
    int row = cg_cluster_row(p, cg_cluster_step(p, 0, true)), next = cg_cluster_row(p, cg_cluster_step(p, 1, true));
    cg_cluster_prepare<S>(a, 0, 0, row, next);
    for (int turn = 0; turn < p.steps; turn++) {
        const int after = cg_cluster_row(p, cg_cluster_step(p, turn + 2, true));
        for (int group = 0; group < p.groups; group++) {
            const bool last = group + 1 == p.groups;
            cg_cluster_backward_step<S>(a, turn, group, row, last ? next : row, last ? after : next);
        }
        row = next;
        next = after;
    }
    cg_cluster_finish<S>(a);
    __syncwarp();
    gpu_barrier_cluster();
}

#endif

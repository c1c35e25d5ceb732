/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of a layer on clusters. See cluster.h.
 *
 * A tile of 16 rows of a product holds four units: row g has unit g % 4 and gate g / 4, row g + 8 gate 2 + g / 4. A
 * warp has the tile of its four units; with 32 units per block, two warps share two tiles and the depth, and swap sums.
 * Lanes below 16 then hold gates 0 and 2 of sequences 2 q and 2 q + 1, the others gates 1 and 3; after an exchange each
 * lane has the cell of one unit and sequence. */
#ifndef CG_CLUSTER_FORWARD_H
#define CG_CLUSTER_FORWARD_H

#include "cuda-generic/recurrent/cluster/cluster_link.h"

template <int PARTS, int HIDDEN, int BLOCKS, bool LINKED>
struct cg_cluster_forward_shape : cg_cluster_block<PARTS, HIDDEN, BLOCKS, LINKED> {
    typedef cg_cluster_block<PARTS, HIDDEN, BLOCKS, LINKED> BLOCK;
    static constexpr bool BACK = false;
    static constexpr int TILES = BLOCK::HALVES, ALL_STEPS = HIDDEN / 16, STEPS = ALL_STEPS / TILES; /* of a warp */
    static constexpr struct cg_cluster_sizes SIZES = cg_cluster_size(HIDDEN, BLOCKS, PARTS, LINKED, 0);
    static constexpr int RECEIVED = SIZES.received, HEAD = SIZES.head, GROUP = SIZES.group;
    static constexpr int LOWER_AT = CG_CLUSTER_FIXED_BYTES, WARP_SUMS_AT = LOWER_AT + SIZES.lower_bytes;
    /* In a group: */
    static constexpr int SWAP_AT = 2 * RECEIVED, STATES_AT = SWAP_AT + (TILES == 2 ? 16 * BLOCK::THREADS : 0);
    static constexpr int SCALES_AT = STATES_AT + 4 * SIZES.states * BLOCK::THREADS, LINKS_AT = SCALES_AT + 32;
    static constexpr int RECORDS = BLOCKS; /* of sums that are exchanged */
    static_assert(LINKS_AT + (LINKED ? RECEIVED : 0) == GROUP, "cg_cluster_size");
    static_assert(WARP_SUMS_AT + SIZES.warp_sums == HEAD, "cg_cluster_size");
    /* Sums over parts of the depth, so that products need not wait for each other. */
    static constexpr int LANES = PARTS == 1 ? 4 / TILES : TILES == 1 ? 2 : 1;
};

template <class S> struct cg_cluster_rows {
    uint32_t upper[S::TILES][S::STEPS][4], lower[S::ALL_KEPT ? S::TILES : 1][S::ALL_KEPT ? S::STEPS : 1][4];
    float unscale;
};

/* ---- before the steps ------------------------------------------------------------------------------------------ */

template <class S>
static __device__ __forceinline__ unsigned char *cg_cluster_lower(const struct cg_cluster_place &p, int tile, int step)
{
    return p.shared + S::LOWER_AT + ((p.warp * S::TILES + tile) * S::STEPS + step) * 512 + p.lane * 16;
}

/* Both rows of a lane's fragments at step `step` of its part of the depth. */
template <class S>
static __device__ __forceinline__ void cg_cluster_get_rows(const struct cg_cluster_place &p, int tile, int step,
                                                           float (&x)[4], float (&below)[4])
{
    const int first = S::TILES == 2 ? p.warp & ~1 : p.warp, part = S::TILES == 2 ? p.warp & 1 : 0, g = p.lane / 4;
    const int unit = p.rank * S::UNITS + 4 * (first + tile) + g % 4;
    const int at = (part * S::STEPS + step) * 16 + p.lane % 4 * 4;
    cg_cluster_weights(*p.y, g / 4, unit, at, x);
    cg_cluster_weights(*p.y, 2 + g / 4, unit, at, below);
}

template <class S>
static __device__ __forceinline__ void cg_cluster_load_rows(const struct cg_cluster_place &p, cg_cluster_rows<S> &rows)
{
    float x[4], below[4];
    uint32_t most = 0;
    for (int e = 0; e < S::TILES * S::STEPS; e++) {
        cg_cluster_get_rows<S>(p, e / S::STEPS, e % S::STEPS, x, below);
        most = cg_cluster_greater(most, cg_cluster_greater(cg_cluster_most(x), cg_cluster_most(below)));
    }
    most = gpu_warp_max(most);
    rows.unscale = cg_cluster_unscale(most);
    CG_UNROLL
    for (int i = 0; i < S::TILES; i++)
        CG_UNROLL
    for (int k = 0; k < S::STEPS; k++) {
        uint32_t lower[4];
        cg_cluster_get_rows<S>(p, i, k, x, below);
        cg_cluster_fragments<S::PARTS>(x, below, cg_cluster_scale(most), rows.upper[i][k], lower);
        if (!S::ALL_KEPT)
            cg_cluster_write(cg_cluster_lower<S>(p, i, k), lower);
        CG_UNROLL
        for (int j = 0; j < 4; j++)
            if (S::ALL_KEPT)
                rows.lower[S::ALL_KEPT ? i : 0][S::ALL_KEPT ? k : 0][j] = lower[j];
    }
}

/* The masked h of before the first step, of the four units of chunk e of all groups: [group][step][lane]. */
template <class S>
static __device__ __forceinline__ void cg_cluster_get_h0(const struct cg_cluster_place &p, int e, float (&x)[4])
{
    const int column = e % 32 / 4, unit = e / 32 % S::ALL_STEPS * 16 + e % 4 * 4, n = (int)p.y->hidden;
    const int b = p.b0 + e / (32 * S::ALL_STEPS) * p.slots + column;
    const bool there = p.y->h0 && column < p.slots && b < (int)p.y->axis.sequences;
    for (int j = 0; j < 4; j++) {
        const int64_t at = (int64_t)b * n + unit + j;
        x[j] = there && unit + j < n ? p.y->h0[at] * cg_or_one(p.y->mask_h, at) : 0.0f;
    }
}

/* Is an h of before the first step too large to be sent without a scale? All blocks of the cluster find the same. */
template <class S> static __device__ __forceinline__ bool cg_cluster_finds_large(const struct cg_cluster_place &p)
{
    volatile int *note = reinterpret_cast<int *>(p.shared + CG_CLUSTER_NOTES_AT);
    if (p.thread == 0)
        *note = 0;
    __syncthreads();
    for (int e = p.thread; p.y->h0 && e < p.groups * S::ALL_STEPS * 32; e += S::THREADS) {
        float x[4];
        cg_cluster_get_h0<S>(p, e, x);
        for (int j = 0; j < 4; j++)
            if (!(fabsf(x[j]) < 1024.0f))
                *note = 1;
    }
    __syncthreads();
    return *note != 0;
}

/* The words of a chunk as it is sent. */
template <class S>
static __device__ __forceinline__ void cg_cluster_pack(bool wild, const uint32_t (&values)[4],
                                                       uint32_t (&words)[S::WORDS])
{
    cg_cluster_number<S::PARTS>::make_chunk(values, words);
    if (S::PARTS == 2 && wild)
        CG_UNROLL
    for (int j = 0; j < 4; j++)
        words[j % S::WORDS] = values[j];
}

template <class S> static __device__ __forceinline__ uint32_t cg_cluster_value(bool wild, float x)
{
    return S::PARTS == 2 && wild ? gpu_float_bits(x) : cg_cluster_number<S::PARTS>::make_word(x);
}

/* Fills both buffers: the first turn reads the second one, with the h of before. Columns that are never sent are zero.
 */
template <class S> static __device__ __forceinline__ void cg_cluster_fill(const struct cg_cluster_place &p, bool wild)
{
    const int chunks = S::ALL_STEPS * 32;
    for (int e = p.thread; e < p.groups * chunks; e += S::THREADS) {
        float x[4];
        uint32_t values[4], words[S::WORDS], none[S::WORDS] = {0};
        cg_cluster_get_h0<S>(p, e, x);
        for (int j = 0; j < 4; j++)
            values[j] = cg_cluster_value<S>(wild, x[j]);
        cg_cluster_pack<S>(wild, values, words);
        unsigned char *at = p.shared + S::HEAD + e / chunks * S::GROUP + e % chunks * 4 * S::WORDS;
        cg_cluster_write(at, none);
        cg_cluster_write(at + S::RECEIVED, words);
    }
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

/* `wild`: gives the h of each sequence a scale, and writes it as float16 in place of the float32 that came. */
template <class S>
static __device__ __forceinline__ void cg_cluster_rescale(const struct cg_cluster_place &p, unsigned char *received,
                                                          float *unscales)
{
    uint32_t *notes = reinterpret_cast<uint32_t *>(p.shared + CG_CLUSTER_NOTES_AT), most = 0, x[4], words[S::WORDS];
    for (int e = p.thread; e < S::ALL_STEPS * 32; e += S::THREADS) { /* a thread has chunks of one sequence */
        cg_cluster_read(received + e * 16, x);
        for (int j = 0; j < 4; j++)
            most = cg_cluster_greater(most, cg_cluster_magnitude(gpu_bits_float(x[j])));
    }
    most = cg_cluster_greater(most, __shfl_xor_sync(0xFFFFFFFFu, most, 1));
    most = cg_cluster_greater(most, __shfl_xor_sync(0xFFFFFFFFu, most, 2));
    if (p.lane % 4 == 0)
        notes[p.warp * 8 + p.lane / 4] = most;
    __syncthreads();
    for (int w = 0; w < S::WARPS; w++)
        most = cg_cluster_greater(most, notes[w * 8 + p.lane / 4]);
    for (int e = p.thread; e < S::ALL_STEPS * 32; e += S::THREADS) {
        cg_cluster_read(received + e * 16, x);
        const float values[4] = {gpu_bits_float(x[0]), gpu_bits_float(x[1]), gpu_bits_float(x[2]),
                                 gpu_bits_float(x[3])};
        cg_cluster_chunk<S::PARTS>(values, cg_cluster_scale(most), words);
        cg_cluster_write(received + e * 16, words);
    }
    if (p.warp == 0 && p.lane % 4 == 0)
        unscales[p.lane / 4] = cg_cluster_unscale(most);
    __syncthreads();
}

template <class S>
static __device__ __forceinline__ void cg_cluster_multiply_rows(const struct cg_cluster_place &p,
                                                                const cg_cluster_rows<S> &rows,
                                                                const unsigned char *received,
                                                                float (&sums)[S::TILES][4])
{
    float chains[S::TILES][S::LANES][S::CHAINS][4] = {};
    const int part = S::TILES == 2 ? p.warp & 1 : 0;
    const unsigned char *from = received + (part * S::STEPS * 32 + p.lane) * 4 * S::WORDS;
    CG_UNROLL
    for (int k = 0; k < S::STEPS; k++) {
        uint32_t words[S::WORDS], lower[4] = {0, 0, 0, 0};
        cg_cluster_read(from + k * 128 * S::WORDS, words);
        CG_UNROLL
        for (int i = 0; i < S::TILES; i++) {
            if (S::ALL_KEPT) {
                cg_cluster_number<S::PARTS>::multiply(chains[i][k % S::LANES], rows.upper[i][k],
                                                      rows.lower[S::ALL_KEPT ? i : 0][S::ALL_KEPT ? k : 0], words);
                continue;
            }
            cg_cluster_read(cg_cluster_lower<S>(p, i, k), lower);
            cg_cluster_number<S::PARTS>::multiply(chains[i][k % S::LANES], rows.upper[i][k], lower, words);
        }
    }
    CG_UNROLL
    for (int i = 0; i < S::TILES; i++)
        CG_UNROLL
    for (int e = 0; e < 4; e++) {
        sums[i][e] = cg_cluster_number<S::PARTS>::fold(chains[i][0], e);
        CG_UNROLL
        for (int k = 1; k < S::LANES; k++)
            sums[i][e] += cg_cluster_number<S::PARTS>::fold(chains[i][k], e);
        sums[i][e] *= rows.unscale;
    }
}

/* Two warps which share two tiles: each gets the other's sums of its own tile. */
template <class S>
static __device__ __forceinline__ void cg_cluster_swap(const struct cg_cluster_place &p, unsigned char *room,
                                                       float (&sums)[S::TILES][4])
{
    if (S::TILES == 1)
        return;
    const bool second = p.warp & 1;
    uint32_t others[4];
    CG_UNROLL
    for (int e = 0; e < 4; e++) {
        others[e] = gpu_float_bits(second ? sums[0][e] : sums[S::TILES - 1][e]);
        sums[0][e] = second ? sums[S::TILES - 1][e] : sums[0][e];
    }
    cg_cluster_write(room + (p.thread ^ 32) * 16, others);
    gpu_barrier_threads(1 + p.warp / 2, 64);
    cg_cluster_read(room + p.thread * 16, others);
    CG_UNROLL
    for (int e = 0; e < 4; e++)
        sums[0][e] += gpu_bits_float(others[e]);
}

/* From the sums of two gates for two sequences to those of four gates for one. */
static __device__ __forceinline__ void cg_cluster_gather(const struct cg_cluster_place &p, const float (&sums)[4],
                                                         float (&v)[4])
{
    const bool low = p.lane < 16;
    const float first = __shfl_xor_sync(0xFFFFFFFFu, low ? sums[1] : sums[0], 16);
    const float second = __shfl_xor_sync(0xFFFFFFFFu, low ? sums[3] : sums[2], 16);
    v[0] = low ? sums[0] : first;
    v[1] = low ? first : sums[1];
    v[2] = low ? sums[2] : second;
    v[3] = low ? second : sums[3];
}

/* Sends the h of the warp's four units, which four lanes of a sequence have, to what is received at byte `at` of all
 * blocks, and counts it on the barrier at byte `barrier`. */
template <class S>
static __device__ __forceinline__ void cg_cluster_publish(const struct cg_cluster_place &p, uint32_t at,
                                                          uint32_t barrier, bool wild,
                                                          const gpu_peer (&peers)[S::BLOCKS / 4], float h)
{
    const uint32_t mine = cg_cluster_value<S>(wild, h);
    const int column = p.lane % 8, quad = p.rank * S::WARPS + p.warp;
    uint32_t values[4], words[S::WORDS];
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        values[j] = __shfl_sync(0xFFFFFFFFu, mine, (j + 4 * (column & 1)) * 4 + column / 2);
    cg_cluster_pack<S>(wild, values, words);
    const uint32_t to = at + (uint32_t)(quad / 4 * 32 + column * 4 + quad % 4) * (4 * S::WORDS);
    if (column < p.slots)
        CG_UNROLL
    for (int i = 0; i < S::BLOCKS / 4; i++)
        gpu_send(peers[i], to, words, barrier);
}

/* ---- the states of a cell, between its steps ------------------------------------------------------------------- */

enum {
    CG_CLUSTER_STATE_C,
    CG_CLUSTER_STATE_H,
    CG_CLUSTER_MASK,
    CG_CLUSTER_LENGTH,
    CG_CLUSTER_SHIFT_V, /* LAYER_NORM: the means of the step before */
    CG_CLUSTER_SHIFT_C
};

template <class S>
static __device__ __forceinline__ float *cg_cluster_states(const struct cg_cluster_place &p, int group)
{
    return reinterpret_cast<float *>(p.shared + S::HEAD + group * S::GROUP + S::STATES_AT) + p.thread;
}

template <class S> static __device__ __forceinline__ void cg_cluster_begin_states(const struct cg_cluster_place &p)
{
    for (int group = 0; group < p.groups; group++) {
        float *states = cg_cluster_states<S>(p, group);
        const int b = cg_cluster_sequence(p, group);
        const int64_t at = (int64_t)b * p.y->hidden + p.unit;
        states[CG_CLUSTER_STATE_C * S::THREADS] = b < 0 ? 0.0f : cg_or_zero(p.y->c0, at);
        states[CG_CLUSTER_STATE_H * S::THREADS] = b < 0 ? 0.0f : cg_or_zero(p.y->h0, at);
        states[CG_CLUSTER_MASK * S::THREADS] = b < 0 ? 0.0f : cg_or_one(p.y->mask_h, at);
        states[CG_CLUSTER_LENGTH * S::THREADS] = gpu_bits_float(b < 0 ? 0u : (uint32_t)p.y->axis.lengths[b]);
        if (S::LINKED)
            states[CG_CLUSTER_SHIFT_V * S::THREADS] = states[CG_CLUSTER_SHIFT_C * S::THREADS] = 0.0f;
    }
}

template <class S> static __device__ __forceinline__ int cg_cluster_length(const float *states)
{
    return (int)gpu_float_bits(states[CG_CLUSTER_LENGTH * S::THREADS]);
}

/* ---- all steps ------------------------------------------------------------------------------------------------- */

template <class S> struct cg_cluster_forward_pass {
    struct cg_cluster_place p;
    cg_cluster_rows<S> rows;
    gpu_peer peers[S::BLOCKS / 4];
    float u[4];  /* of the step and group that come next */
    int bytes;   /* of a phase */
    int gates;   /* a bit for each gate of the unit */
    float count; /* LAYER_NORM: sums over h of all units */
    bool wild, usual;
};

template <class S>
static __device__ __forceinline__ void cg_cluster_forward_begin(cg_cluster_forward_pass<S> &a,
                                                                const struct cg_layer *layer,
                                                                const struct cg_cluster_call &call,
                                                                unsigned char *shared)
{
    a.p = cg_cluster_begin<S>(layer, call.share, shared);
    a.p.own = 4 * a.p.warp + a.p.lane / 4 % 4;
    a.p.unit = a.p.rank * S::UNITS + a.p.own;
    a.p.column = 2 * (a.p.lane % 4) + a.p.lane / 16;
    a.bytes = S::HIDDEN * S::WORDS * a.p.slots;
    a.gates = a.p.unit < (int)a.p.y->hidden ? cg_cluster_gates(*a.p.y) : 0;
    a.count = cg_count_used(a.p.y);
    cg_cluster_load_rows<S>(a.p, a.rows);
    a.wild = S::PARTS == 2 && (cg_cluster_finds_large<S>(a.p) || call.wild);
    a.usual = cg_cluster_is_usual(*a.p.y);
    cg_cluster_fill<S>(a.p, a.wild);
    cg_cluster_begin_states<S>(a.p);
    CG_UNROLL
    for (int i = 0; i < S::BLOCKS / 4; i++) /* each block begins with itself */
        a.peers[i] = gpu_find_peer(shared, (a.p.lane / 8 + 4 * i + a.p.rank) % S::BLOCKS);
    cg_cluster_start<S>(a.p, a.bytes, a.p.y->late ? a.bytes : cg_cluster_sum_bytes<S>(a.p));
}

/* The sums over what was received at byte `at` of the group, for the cell of the lane. */
template <class S>
static __device__ __forceinline__ void cg_cluster_find_sums(cg_cluster_forward_pass<S> &a, int group, int at,
                                                            float (&v)[4])
{
    unsigned char *room = a.p.shared + S::HEAD + group * S::GROUP, *received = room + at;
    float *unscales = reinterpret_cast<float *>(room + S::SCALES_AT), sums[S::TILES][4];
    if (S::PARTS == 2 && a.wild)
        cg_cluster_rescale<S>(a.p, received, unscales);
    cg_cluster_multiply_rows<S>(a.p, a.rows, received, sums);
    if (S::PARTS == 2 && a.wild)
        CG_UNROLL
    for (int e = 0; e < 4 * S::TILES; e++)
        sums[e / 4][e % 4] *= unscales[2 * (a.p.lane % 4) + e % 2];
    cg_cluster_swap<S>(a.p, room + S::SWAP_AT, sums);
    cg_cluster_gather(a.p, sums[0], v);
}

/* The links of a cell in a step of a group. */
template <class S> struct cg_cluster_forward_links {
    static constexpr bool ANY = true;
    cg_cluster_forward_pass<S> &a;
    const float *constants;
    float *states, *moments;
    int turn, group;

    /* Normalises the sums over h. */
    __device__ __forceinline__ void normalise(float (&v)[4])
    {
        float x[4];
        CG_UNROLL
        for (int j = 0; j < 4; j++)
            x[j] = a.gates >> j & 1 ? v[j] : 0.0f;
        cg_cluster_find_moments<S>(a.p, group, 0, turn, x, a.gates, a.count, states + CG_CLUSTER_SHIFT_V * S::THREADS,
                                   moments);
        CG_UNROLL
        for (int j = 0; j < 4; j++)
            v[j] = (x[j] - moments[0]) * moments[1] * constants[(7 + j) * S::UNITS];
    }
    __device__ __forceinline__ float find_q(float c)
    {
        if (!a.p.y->normed)
            return c;
        const float x[4] = {c, 0.0f, 0.0f, 0.0f};
        cg_cluster_find_moments<S>(a.p, group, 1, turn, x, a.gates & 1, (float)a.p.y->hidden,
                                   states + CG_CLUSTER_SHIFT_C * S::THREADS, moments + 2);
        return (c - moments[2]) * moments[3] * constants[11 * S::UNITS] + constants[12 * S::UNITS];
    }
    __device__ __forceinline__ float find_late(float reset)
    {
        const uint32_t at = (uint32_t)(S::HEAD + group * S::GROUP + S::LINKS_AT),
                       barrier = cg_cluster_link_at(group, 0);
        const float h = states[CG_CLUSTER_STATE_H * S::THREADS] * states[CG_CLUSTER_MASK * S::THREADS];
        float sums[4];
        cg_cluster_publish<S>(a.p, at, barrier, a.wild, a.peers, reset * h);
        cg_cluster_wait_at(a.p, barrier, turn, a.bytes);
        cg_cluster_find_sums<S>(a, group, S::LINKS_AT, sums);
        return sums[2];
    }
};

/* The cell of the lane; `v`: the sums over h. */
template <class S>
static __device__ __forceinline__ struct cg_cluster_record cg_cluster_run_cell(cg_cluster_forward_pass<S> &a, int turn,
                                                                               int group, float (&v)[4],
                                                                               const float (&u)[4], float *moments,
                                                                               struct cg_cluster_state *now)
{
    const struct cg_layer &y = *a.p.y;
    const float *constants = cg_cluster_constants<S>(a.p), bias_n = constants[3 * S::UNITS];
    const float *p = y.peephole ? constants + 4 * S::UNITS : nullptr;
    if constexpr (S::LINKED) {
        cg_cluster_forward_links<S> links = {a, constants, cg_cluster_states<S>(a.p, group), moments, turn, group};
        if (y.normed)
            links.normalise(v);
        return a.usual ? cg_cluster_cell<true>(y, v, u, p, S::UNITS, bias_n, links, now)
                       : cg_cluster_cell<false>(y, v, u, p, S::UNITS, bias_n, links, now);
    }
    return a.usual ? cg_cluster_cell<true>(y, v, u, p, S::UNITS, bias_n, now)
                   : cg_cluster_cell<false>(y, v, u, p, S::UNITS, bias_n, now);
}

/* `row`: of the step, `next_row`: of the step of the input that is loaded here. */
template <class S>
static __device__ __forceinline__ void cg_cluster_forward_step(cg_cluster_forward_pass<S> &a, int turn, int group,
                                                               int row, int next_row)
{
    const struct cg_cluster_place &p = a.p;
    const struct cg_layer &y = *p.y;
    const int b = cg_cluster_sequence(p, group), t = cg_cluster_step(p, turn, false);
    float *states = cg_cluster_states<S>(p, group);
    const float *constants = cg_cluster_constants<S>(p);
    const bool runs = t < cg_cluster_length<S>(states), last = group + 1 == p.groups;
    struct cg_cluster_state state = {states[CG_CLUSTER_STATE_C * S::THREADS], states[CG_CLUSTER_STATE_H * S::THREADS],
                                     0.0f, 0.0f};
    float u[4], v[4];
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        u[j] = a.u[j] + constants[j * S::UNITS];
    const int after = last ? 0 : group + 1, next_turn = last ? turn + 1 : turn;
    const bool goes_on = next_turn < p.steps &&
                         cg_cluster_step(p, next_turn, false) < cg_cluster_length<S>(cg_cluster_states<S>(p, after));
    cg_cluster_load_input(y, goes_on, next_row + cg_cluster_sequence(p, after), p.unit, a.u);
    if (runs) {
        state.stay_c = cg_cluster_stay(y, y.zoneout_cell_key, y.zoneout_cell, t, b, p.unit);
        state.stay_h = cg_cluster_stay(y, y.zoneout_hidden_key, y.zoneout_hidden, t, b, p.unit);
    }
    __syncwarp();
    if (turn > 0)
        cg_cluster_wait(p, group, turn - 1, a.bytes);
    cg_cluster_find_sums<S>(a, group, (1 - (turn & 1)) * S::RECEIVED, v);
    const float raw[4] = {v[0], v[1], v[2], v[3]};
    float moments[4] = {0, 0, 0, 0};
    struct cg_cluster_state now = state;
    const struct cg_cluster_record r = cg_cluster_run_cell<S>(a, turn, group, v, u, moments, &now);
    now.c = runs ? now.c : state.c;
    now.h = runs ? now.h : state.h;
    if (turn + 1 < p.steps)
        cg_cluster_publish<S>(p, (uint32_t)(S::HEAD + group * S::GROUP + (turn & 1) * S::RECEIVED),
                              cg_cluster_barrier_at(group, turn & 1), a.wild, a.peers,
                              now.h * states[CG_CLUSTER_MASK * S::THREADS]);
    states[CG_CLUSTER_STATE_C * S::THREADS] = now.c;
    states[CG_CLUSTER_STATE_H * S::THREADS] = now.h;
    if (runs)
        cg_cluster_store(y, row + b, p.unit, r, now);
    if (S::LINKED && runs && y.normed && y.training)
        cg_cluster_store_norm(y, row + b, p.unit, a.gates, raw, moments);
}

template <class S>
static __device__ __forceinline__ void cg_cluster_forward_steps(const struct cg_layer *layer,
                                                                const struct cg_cluster_call &call,
                                                                unsigned char *shared)
{
    cg_cluster_forward_pass<S> a;
    cg_cluster_forward_begin<S>(a, layer, call, shared);
    const struct cg_cluster_place &p = a.p;
    int row = cg_cluster_row(p, cg_cluster_step(p, 0, false)), next = cg_cluster_row(p, cg_cluster_step(p, 1, false));
    const bool runs = cg_cluster_step(p, 0, false) < cg_cluster_length<S>(cg_cluster_states<S>(p, 0));
    cg_cluster_load_input(*p.y, runs, row + cg_cluster_sequence(p, 0), p.unit, a.u);
    for (int turn = 0; turn < p.steps; turn++) {
        const int after = cg_cluster_row(p, cg_cluster_step(p, turn + 2, false));
        for (int group = 0; group < p.groups; group++)
            cg_cluster_forward_step<S>(a, turn, group, row, group + 1 == p.groups ? next : row);
        row = next;
        next = after;
    }
    __syncwarp();
    gpu_barrier_cluster(); /* nothing is on its way to a block that has ended */
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of a layer on clusters. See cluster.h.
 *
 * A step of the depth is four units with four gates each: lane % 4 has the unit, value j is gate j. A tile of 16 rows
 * of the product holds 16 units whose h gets the gradient; their sums go to the block that owns them, as a record of
 * 128 numbers: number q * 32 + g * 4 + e belongs to unit g + 8 (e / 2) and sequence 2 q + e % 2. The lane of a cell
 * adds the numbers of the records of all blocks in order. */
#ifndef CG_CLUSTER_BACKWARD_H
#define CG_CLUSTER_BACKWARD_H

#include "cuda-generic/recurrent/cluster/cluster_link.h"

template <int PARTS, int HIDDEN, int BLOCKS, bool LINKED>
struct cg_cluster_backward_shape : cg_cluster_block<PARTS, HIDDEN, BLOCKS, LINKED> {
    typedef cg_cluster_block<PARTS, HIDDEN, BLOCKS, LINKED> BLOCK;
    static constexpr bool BACK = true;
    static constexpr int ALL_TILES = HIDDEN / 16, TILES = ALL_TILES / BLOCK::WARPS; /* of a warp */
    static constexpr int STEPS = BLOCK::UNITS / 4, HALF_STEPS = 4, TOGETHER = PARTS == 1 || TILES < 2 ? TILES : 2;
    static constexpr struct cg_cluster_sizes SIZES = cg_cluster_size(HIDDEN, BLOCKS, PARTS, LINKED, 1);
    static constexpr int RECEIVED = SIZES.received, HEAD = SIZES.head, GROUP = SIZES.group;
    static constexpr int GRADIENTS_AT = CG_CLUSTER_FIXED_BYTES, GRADIENTS = 128 * STEPS * BLOCK::WORDS;
    static constexpr int LOWER_AT = GRADIENTS_AT + 2 * GRADIENTS, STATES_AT = 2 * RECEIVED;
    static constexpr int LINKS_AT = STATES_AT + 4 * SIZES.states * BLOCK::THREADS;
    static constexpr int RECORDS = BLOCKS * BLOCK::HALVES; /* of sums that are exchanged */
    static constexpr int WARP_SUMS_AT = 0;                 /* each warp sends its own */
    /* The weights leave no registers for what a cell stores while it is multiplied: that is stored before. */
    static constexpr bool STORES_FIRST = LINKED && BLOCKS == 16 && PARTS * HIDDEN == 512;
    static_assert(LINKS_AT + (LINKED ? RECEIVED : 0) == GROUP, "cg_cluster_size");
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
    float count;                 /* LAYER_NORM: sums over h of all units */
    bool usual;
};

/* Adds what all blocks have sent for the lane's cell to byte `at` of the group. */
template <class S>
static __device__ __forceinline__ float cg_cluster_receive(const struct cg_cluster_place &p, int group, int at)
{
    const unsigned char *room = p.shared + S::HEAD + group * S::GROUP + at;
    const float *from = reinterpret_cast<const float *>(room) + p.warp * 32 + p.lane;
    float sums[4] = {0, 0, 0, 0};
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

/* Multiplies the gradients with all tiles of the warp, and sends the sums to what is received at byte `at` of the
 * owners of the units, counted on the barrier at byte `barrier`. */
template <class S>
static __device__ __forceinline__ void cg_cluster_spread(const struct cg_cluster_place &p,
                                                         const cg_cluster_columns<S> &columns, int ring, uint32_t at,
                                                         uint32_t barrier)
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
    const uint32_t to = at + (uint32_t)(p.lane % 4 * 8 + p.lane / 4) * 16;
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
                gpu_send(columns.owners[i0 + i], to + (uint32_t)record * 512, words, barrier);
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
    float now = 0.0f;
    if (turn > 0) {
        cg_cluster_wait(p, group, turn - 1, bytes);
        now = cg_cluster_receive<S>(p, group, ((turn - 1) & 1) * S::RECEIVED);
    }
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
    const bool runs = turn < p.steps && t < length;
    cg_cluster_load_past(*p.y, runs, first, row + b, before + b, b, p.unit, &a.past);
    if (S::LINKED && p.y->normed)
        cg_cluster_announce_norm(*p.y, runs, row + b, p.unit);
}

/* The gradient of r h of a late GRU: `dz`: that of the candidate. */
template <class S>
static __device__ __forceinline__ float cg_cluster_find_late(cg_cluster_backward_pass<S> &a, int turn, int group,
                                                             float dz)
{
    const uint32_t at = (uint32_t)(S::HEAD + group * S::GROUP + S::LINKS_AT), barrier = cg_cluster_link_at(group, 0);
    const float sent[4] = {0.0f, 0.0f, dz, 0.0f};
    const int ring = a.item++ & 1;
    cg_cluster_put_gradients<S>(a.p, ring, sent);
    __syncthreads();
    cg_cluster_spread<S>(a.p, a.columns, ring, at, barrier);
    cg_cluster_wait_at(a.p, barrier, turn, a.bytes);
    return cg_cluster_receive<S>(a.p, group, S::LINKS_AT);
}

/* The cell of a lane in a step. */
struct cg_cluster_cell_back {
    int turn, group, b, row; /* row: of the step and the sequence */
    bool runs, normed, late;
    struct cg_cluster_past x;
    struct cg_cluster_norm_past of_norm;
    float mask, direct; /* direct: the gradient of h, but for what comes through W_h */
    struct cg_cluster_slopes s;
    /* Found when that has come: gradients of the pre-activations, of the contributions of W_h to them, and of these
     * before they were normalised; of the carried h, of h, of c, and of the normalised c. */
    float dz[4], sent[4], dv[4], dh, fresh, d, dq;
    float normal[4], normal_c; /* LAYER_NORM: the normalised sums and c */
    float reset_back;          /* a late GRU: the gradient of r h */
};

/* Before that has come: the derivative of the cell. */
template <class S>
static __device__ __forceinline__ void cg_cluster_derive(cg_cluster_backward_pass<S> &a, struct cg_cluster_cell_back *c)
{
    const struct cg_cluster_place &p = a.p;
    const struct cg_layer &y = *p.y;
    const int t = cg_cluster_step(p, c->turn, true);
    const float *states = cg_cluster_states<S>(p, c->group), *constants = cg_cluster_constants<S>(p);
    const float *peepholes = y.peephole ? constants + 4 * S::UNITS : nullptr, dc = states[CG_CLUSTER_DC * S::THREADS];
    float stay_c = 0, stay_h = 0, q = cg_clip(c->x.inner, y.cell_clip);
    c->mask = 0;
    c->direct = states[CG_CLUSTER_DIRECT * S::THREADS];
    if (c->runs) {
        stay_c = cg_cluster_stay(y, y.zoneout_cell_key, y.zoneout_cell, t, c->b, p.unit);
        stay_h = cg_cluster_stay(y, y.zoneout_hidden_key, y.zoneout_hidden, t, c->b, p.unit);
        c->mask = cg_or_one(y.mask_h, (int64_t)c->b * y.hidden + p.unit);
        c->direct += c->x.dy * y.dy_scale * (y.other_h ? c->x.other : 1.0f);
    }
    c->normal_c = 0;
    if (c->normed) {
        c->normal_c = (q - c->of_norm.moments[2]) * c->of_norm.moments[3];
        q = c->normal_c * constants[11 * S::UNITS] + constants[12 * S::UNITS];
    }
    c->s = a.usual ? cg_cluster_slope<true, S::LINKED>(y, c->x, q, peepholes, S::UNITS, stay_c, stay_h, dc)
                   : cg_cluster_slope<false, S::LINKED>(y, c->x, q, peepholes, S::UNITS, stay_c, stay_h, dc);
}

/* `back`: what has come through W_h. */
template <class S>
static __device__ __forceinline__ void cg_cluster_differentiate(cg_cluster_backward_pass<S> &a, float back,
                                                                struct cg_cluster_cell_back *c)
{
    const struct cg_layer &y = *a.p.y;
    const float *constants = cg_cluster_constants<S>(a.p);
    c->dh = c->direct + c->mask * back;
    c->fresh = c->s.stay_h > 0 ? 0.0f : c->dh;
    c->d = c->fresh * c->s.to_c + c->s.from_c;
    c->dq = c->runs && c->normed ? c->fresh * c->s.to_q : 0.0f;
    if (c->normed && y.cell == SEQLSTM_CELL_LSTM)
        c->d += c->s.clip * cg_cluster_normal_back<S>(a.p, c->group, c->turn, c->dq * constants[11 * S::UNITS],
                                                      c->normal_c, c->of_norm.moments[3]);
    CG_UNROLL
    for (int j = 0; j < 4; j++) /* 0 times an infinity would not be 0 */
        c->dz[j] = c->runs && (a.gates >> j & 1) ? (j < 3 ? c->d : c->fresh) * c->s.gate[j] : 0.0f;
    if (c->late) {
        c->reset_back = cg_cluster_find_late<S>(a, c->turn, c->group, c->dz[2]);
        c->dz[0] = c->runs ? c->reset_back * c->mask * c->x.before * c->s.gate[0] : 0.0f;
    }
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        c->dv[j] = c->sent[j] = j != 2 ? c->dz[j] : c->late ? 0.0f : c->dz[j] * c->s.reset;
    if (c->normed)
        cg_cluster_normalise_back<S>(a.p, c->group, c->turn, c->runs ? a.gates : 0, a.count, c->of_norm, constants,
                                     c->dv, c->normal);
}

/* Stores the gradients, and those of the states before. `back`: what has come through W_h. */
template <class S>
static __device__ __forceinline__ void cg_cluster_keep(const struct cg_cluster_place &p,
                                                       const struct cg_cluster_cell_back &c, float back)
{
    const struct cg_layer &y = *p.y;
    float *states = cg_cluster_states<S>(p, c.group);
    if (!c.runs) {
        states[CG_CLUSTER_BACK * S::THREADS] = back;
        return;
    }
    states[CG_CLUSTER_DC * S::THREADS] = c.s.from_kept + c.d * c.s.f;
    states[CG_CLUSTER_DIRECT * S::THREADS] = (c.s.stay_h > 0 ? c.dh : 0.0f) +
                                             (y.cell == SEQLSTM_CELL_GRU ? c.fresh * c.s.pass : 0.0f) +
                                             (c.late ? c.mask * c.reset_back * c.s.reset : 0.0f);
    cg_cluster_store_gradients(y, c.row, p.unit, c.dz, c.s.reset, c.x);
    if (c.late)
        y.reset_rows[(int64_t)c.row * y.hidden + p.unit] = c.s.reset * c.mask * c.x.before;
    if (c.normed)
        cg_cluster_store_norm_gradients(y, c.row, p.unit, c.dv, c.sent, c.normal, c.dq, c.normal_c);
}

template <class S>
static __device__ __forceinline__ void cg_cluster_backward_step(cg_cluster_backward_pass<S> &a, int turn, int group,
                                                                int row, int next_row, int next_before)
{
    const struct cg_cluster_place &p = a.p;
    float *states = cg_cluster_states<S>(p, group);
    const bool last = group + 1 == p.groups;
    struct cg_cluster_cell_back c = {};
    c.turn = turn;
    c.group = group;
    c.b = cg_cluster_sequence(p, group);
    c.row = row + c.b;
    c.runs = cg_cluster_step(p, turn, true) < cg_cluster_length<S>(states);
    c.normed = S::LINKED && p.y->normed;
    c.late = S::LINKED && p.y->late;
    c.x = a.past;
    if (c.normed)
        c.of_norm = cg_cluster_load_norm(*p.y, c.runs, c.row, p.unit);
    cg_cluster_prepare<S>(a, last ? turn + 1 : turn, last ? 0 : group + 1, next_row, next_before);
    cg_cluster_derive<S>(a, &c);
    __syncwarp();
    const float back = cg_cluster_come_back<S>(p, turn, group, a.bytes, states);
    cg_cluster_differentiate<S>(a, back, &c);
    const int ring = a.item++ & 1;
    cg_cluster_put_gradients<S>(p, ring, c.dv);
    __syncthreads();
    if (S::STORES_FIRST)
        cg_cluster_keep<S>(p, c, back);
    cg_cluster_spread<S>(p, a.columns, ring, (uint32_t)(S::HEAD + group * S::GROUP + (turn & 1) * S::RECEIVED),
                         cg_cluster_barrier_at(group, turn & 1));
    if (!S::STORES_FIRST)
        cg_cluster_keep<S>(p, c, back);
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
    a.gates = cg_cluster_gates(*a.p.y);
    a.count = cg_count_used(a.p.y);
    a.usual = cg_cluster_is_usual(*a.p.y);
    cg_cluster_load_columns<S>(a.p, a.columns);
    cg_cluster_begin_states<S>(a.p);
    cg_cluster_start<S>(a.p, a.bytes, a.p.y->late ? a.bytes : cg_cluster_sum_bytes<S>(a.p));
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

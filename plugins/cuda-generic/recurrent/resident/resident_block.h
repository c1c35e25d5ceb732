/* SPDX-License-Identifier: Apache-2.0 */
/* What both passes of the variant resident have in common: the place of a block, the barrier of its group, its part of
 * W_h, what it publishes. See resident.h. */
#ifndef CG_RESIDENT_BLOCK_H
#define CG_RESIDENT_BLOCK_H

#include "cuda-generic/device/device.h"
#include "cuda-generic/recurrent/cluster/cluster_cell.h"
#include "cuda-generic/recurrent/cluster/cluster_number.h"
#include "cuda-generic/recurrent/resident/resident_shape.h"

struct cg_resident_call {
    struct cg_resident r;
    int32_t groups, columns; /* columns: sequences of the largest group */
    uint32_t *exchange;
};

/* The place of a thread. */
struct cg_resident_place {
    const struct cg_layer *y; /* in shared memory */
    float *constants, *unscales, *sums;
    uint32_t *weights, *slices;
    uint32_t *values; /* of this group in the first half; the second half is half_words later */
    int64_t half_words;
    unsigned *counter; /* the word behind it is not 0 if an h before the first step is large */
    int thread, warp, lane, group, block, unit0;
    unsigned epoch;     /* the block has arrived so often; all have when the counter is epoch * blocks */
    unsigned published; /* so often, values have been published */
    float *links;       /* of this group: sums that units need of each other, see resident_link.h */
    uint32_t *spill;    /* weights of this block for which its shared memory has no room, like those there */
    bool scaled;
};

/* A step of the axis: its first row, and the sequences of the batch that have it. No rows: there is no such step. */
struct cg_resident_step {
    int t, row, most;
};

static __device__ __forceinline__ struct cg_resident_step cg_resident_get_step(const struct cg_layer &y, int turn,
                                                                               bool back)
{
    const int steps = (int)y.axis.steps, t = (y.reverse != 0) != back ? steps - 1 - turn : turn;
    struct cg_resident_step s = {t, 0, 0};
    if (turn >= 0 && turn < steps) {
        s.row = (int)y.axis.row_offsets[t];
        s.most = y.axis.batch_sizes[t];
    }
    return s;
}

/* How many of the first `sequences` belong to the group. */
static __device__ __forceinline__ int cg_resident_active(const struct cg_resident_call &call, int group, int sequences)
{
    return sequences > group ? (sequences - group - 1) / call.groups + 1 : 0;
}

/* Copies the layer and the constants of the block's units to shared memory. All threads call. */
static __device__ __forceinline__ struct cg_resident_place cg_resident_begin(const struct cg_layer *layers,
                                                                             const struct cg_resident_call &call,
                                                                             unsigned char *shared)
{
    static_assert(sizeof(struct cg_layer) <= CG_RESIDENT_CONSTANTS_AT, "the layer");
    const struct cg_resident &r = call.r;
    struct cg_resident_place p;
    p.y = reinterpret_cast<const struct cg_layer *>(shared);
    p.constants = reinterpret_cast<float *>(shared + CG_RESIDENT_CONSTANTS_AT);
    p.unscales = reinterpret_cast<float *>(shared + CG_RESIDENT_SCALES_AT);
    p.weights = reinterpret_cast<uint32_t *>(shared + cg_resident_weights_at(&r));
    p.slices = reinterpret_cast<uint32_t *>(shared + cg_resident_slices_at(&r));
    p.sums = reinterpret_cast<float *>(p.slices);
    p.thread = (int)threadIdx.x;
    p.warp = p.thread / (int)CG_WARP;
    p.lane = p.thread % (int)CG_WARP;
    p.group = (int)blockIdx.x / r.blocks;
    p.block = (int)blockIdx.x % r.blocks;
    p.unit0 = p.block * r.units;
    p.epoch = p.published = 0;
    p.scaled = true;
    const int64_t group_words = cg_resident_group_words(&r, call.columns), direction = blockIdx.y;
    p.half_words = call.groups * group_words;
    p.counter = call.exchange + direction * cg_resident_counter_words(&r) + p.group * CG_RESIDENT_COUNTER_WORDS;
    const int64_t link_words = cg_resident_link_words(&r, call.columns), spill_words = cg_resident_spill_words(&r);
    const int64_t others = link_words + r.blocks * spill_words; /* of a group */
    p.values = call.exchange + r.together * cg_resident_counter_words(&r) +
               direction * (2 * p.half_words + call.groups * others) + p.group * group_words;
    p.links = reinterpret_cast<float *>(p.values + 2 * p.half_words + p.group * (others - group_words));
    p.spill = reinterpret_cast<uint32_t *>(p.links) + link_words + p.block * spill_words;
    const uint32_t *from = reinterpret_cast<const uint32_t *>(layers + blockIdx.y);
    for (int e = p.thread; e < (int)(sizeof(struct cg_layer) / 4); e += CG_RESIDENT_THREADS)
        reinterpret_cast<uint32_t *>(shared)[e] = from[e];
    __syncthreads();
    const struct cg_layer &y = *p.y;
    for (int e = p.thread; e < CG_RESIDENT_CONSTANTS * r.units; e += CG_RESIDENT_THREADS)
        p.constants[e] = cg_cluster_constant(y, e / r.units, p.unit0 + e % r.units);
    return p;
}

/* ---- the barrier of a group ------------------------------------------------------------------------------------ */

/* What the block has written for the others is complete. All threads call. */
static __device__ __forceinline__ void cg_resident_come(struct cg_resident_place &p)
{
    __syncthreads();
    if (p.thread == 0) {
        __threadfence();
        gpu_add_release(p.counter, 1);
    }
    p.epoch++;
}

/* The same once it has published values. */
static __device__ __forceinline__ void cg_resident_arrive(struct cg_resident_place &p)
{
    cg_resident_come(p);
    p.published++;
}

/* Waits until all blocks of the group have arrived as often as this one. All threads call. */
static __device__ __forceinline__ void cg_resident_wait(const struct cg_resident_place &p, const struct cg_resident &r)
{
    if (p.thread == 0)
        gpu_wait_for(p.counter, p.epoch * (unsigned)r.blocks);
    __syncthreads();
}

/* ---- what is published ----------------------------------------------------------------------------------------- */

/* The half that is written for the `time`-th time of publishing; readers of the time before read the other one. */
static __device__ __forceinline__ uint32_t *cg_resident_half(const struct cg_resident_place &p, unsigned time)
{
    return p.values + (time & 1) * p.half_words;
}

static __device__ __forceinline__ float *cg_resident_scales(const struct cg_resident_call &call, uint32_t *half)
{
    return reinterpret_cast<float *>(half + (int64_t)call.columns * call.r.parts * call.r.words);
}

/* Publishes value number `at` of a column. */
template <int PARTS>
static __device__ __forceinline__ void cg_resident_put(const struct cg_resident_call &call, uint32_t *half, int column,
                                                       int at, float scaled)
{
    const uint32_t word = cg_cluster_number<PARTS>::make_word(scaled);
    uint16_t *to = reinterpret_cast<uint16_t *>(half) + (int64_t)column * PARTS * 2 * call.r.words + at;
    to[0] = (uint16_t)word;
    if (PARTS == 2)
        to[2 * call.r.words] = (uint16_t)(word >> 16);
}

/* Publishes 1 / scale of what this block publishes of a column. */
static __device__ __forceinline__ void cg_resident_put_scale(const struct cg_resident_place &p,
                                                             const struct cg_resident_call &call, uint32_t *half,
                                                             int column, float inverse)
{
    cg_resident_scales(call, half)[p.block * call.columns + column] = inverse;
}

/* The largest of a value over the lanes of the same sequence: `units` neighbouring lanes. */
static __device__ __forceinline__ uint32_t cg_resident_max_units(uint32_t value, int units)
{
    for (int step = 1; step < units; step *= 2)
        value = cg_cluster_greater(value, __shfl_xor_sync(0xFFFFFFFFu, value, step));
    return value;
}

/* ---- the block's part of W_h ----------------------------------------------------------------------------------- */

/* Two weights that are neighbours along the depth. */
template <int PARTS>
static __device__ __forceinline__ void cg_resident_put_weights(const struct cg_resident_place &p,
                                                               const struct cg_resident &r, int row, int word,
                                                               float lower, float upper)
{
    const uint32_t a = cg_cluster_number<PARTS>::make_word(lower), b = cg_cluster_number<PARTS>::make_word(upper);
    const bool kept = word < r.kept;
    const int pitch = kept ? r.pitch : cg_resident_depth(&r) - r.kept;
    uint32_t *to = kept ? p.weights + row * pitch + word : p.spill + (int64_t)row * pitch + word - r.kept;
    to[0] = (a & 0xFFFFu) | b << 16;
    if (PARTS == 2)
        to[(int64_t)r.rows * pitch] = a >> 16 | (b & 0xFFFF0000u);
}

/* Forward: row gate * units + u is that of W_h for this gate of unit u; a warp loads a row. */
template <int PARTS>
static __device__ __forceinline__ void cg_resident_load_rows(const struct cg_resident_place &p,
                                                             const struct cg_resident &r)
{
    const struct cg_layer &y = *p.y;
    const int n = (int)y.hidden;
    for (int row = p.warp; row < r.rows; row += CG_RESIDENT_WARPS) {
        const int gate = row / r.units, unit = p.unit0 + row % r.units, j = gate * n + unit;
        const bool there = gate < (int)y.gates && unit < n && !cg_is_unused(&y, j);
        const float *from = y.w_h + (int64_t)j * n;
        uint32_t most = 0;
        CG_UNROLL_8
        for (int d = p.lane; d < n; d += (int)CG_WARP)
            most = cg_cluster_greater(most, there ? cg_cluster_magnitude(from[d]) : 0);
        const float of_row = gpu_bits_float(gpu_warp_max(most)), scale = cg_split_scale(of_row);
        if (p.lane == 0)
            p.unscales[row] = cg_split_inverse(of_row);
        CG_UNROLL_8
        for (int word = p.lane; word < cg_resident_depth(&r); word += (int)CG_WARP) {
            const int d = 2 * word;
            cg_resident_put_weights<PARTS>(p, r, row, word, there && d < n ? from[d] * scale : 0.0f,
                                           there && d + 1 < n ? from[d + 1] * scale : 0.0f);
        }
    }
}

/* Backward: value d of the row of unit0 + row, as published by block d / segment. */
static __device__ __forceinline__ float cg_resident_get_column(const struct cg_resident_place &p,
                                                               const struct cg_resident &r, int row, int d)
{
    const struct cg_layer &y = *p.y;
    const int n = (int)y.hidden, within = d % r.segment, gate = within / r.units;
    const int unit = d / r.segment * r.units + within % r.units, j = gate * n + unit, column = p.unit0 + row;
    const bool there =
        d < 2 * r.words && gate < (int)y.gates && unit < n && column < n && row < r.units && !cg_is_unused(&y, j);
    return gpu_load_if(there, y.w_h + (int64_t)j * n + column);
}

/* Neighbouring threads load neighbouring rows. */
template <int PARTS>
static __device__ __forceinline__ void cg_resident_load_columns(const struct cg_resident_place &p,
                                                                const struct cg_resident &r)
{
    const int slots = CG_RESIDENT_THREADS / r.rows, row = p.thread % r.rows, slot = p.thread / r.rows;
    uint32_t *maxima = p.slices, most = 0;
    CG_UNROLL_8
    for (int d = slot; d < 2 * r.words; d += slots)
        most = cg_cluster_greater(most, cg_cluster_magnitude(cg_resident_get_column(p, r, row, d)));
    maxima[p.thread] = most;
    __syncthreads();
    for (int k = 0; k < slots; k++)
        most = cg_cluster_greater(most, maxima[k * r.rows + row]);
    if (slot == 0)
        p.unscales[row] = cg_split_inverse(gpu_bits_float(most));
    const float scale = cg_split_scale(gpu_bits_float(most));
    CG_UNROLL_8
    for (int word = slot; word < cg_resident_depth(&r); word += slots)
        cg_resident_put_weights<PARTS>(p, r, row, word, cg_resident_get_column(p, r, row, 2 * word) * scale,
                                       cg_resident_get_column(p, r, row, 2 * word + 1) * scale);
}

#endif

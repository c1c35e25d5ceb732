/* SPDX-License-Identifier: Apache-2.0 */
/* What both passes of a cluster have in common: its shape as constants, the place of a lane, shared memory, the order
 * of steps. See cluster.h and cluster_shape.h. */
#ifndef CG_CLUSTER_BLOCK_H
#define CG_CLUSTER_BLOCK_H

#include "cuda-generic/device/mbarrier.h"
#include "cuda-generic/recurrent/cluster/cluster_cell.h"
#include "cuda-generic/recurrent/cluster/cluster_number.h"
#include "cuda-generic/recurrent/cluster/cluster_shape.h"

/* LINKED: kernels of layers whose units need sums of each other within a step (cluster_link.h). */
template <int PARTS_, int HIDDEN_, int BLOCKS_, bool LINKED_> struct cg_cluster_block {
    static constexpr int PARTS = PARTS_, HIDDEN = HIDDEN_, BLOCKS = BLOCKS_;
    static constexpr bool LINKED = LINKED_;
    static constexpr int UNITS = HIDDEN / BLOCKS, HALVES = UNITS / 16; /* of 16 units */
    static constexpr int WARPS = 4 * HALVES, THREADS = 32 * WARPS, WORDS = 2 * PARTS;
    static constexpr bool ALL_KEPT = PARTS * HIDDEN <= 512; /* registers hold all parts of the weights */
    static constexpr int CHAINS = cg_cluster_number<PARTS>::CHAINS;
    static_assert(UNITS == 16 || UNITS == 32, "a lane per unit and sequence; a warp has a tile of four units");
    static_assert(BLOCKS % 4 == 0 && BLOCKS <= 16, "a warp sends to four blocks at once");
    static_assert(sizeof(struct cg_layer) <= CG_CLUSTER_CONSTANTS_AT - CG_CLUSTER_LAYER_AT, "the layer");
    static_assert(CG_CLUSTER_FIXED_BYTES % 16 == 0 && CG_CLUSTER_LAYER_AT % 16 == 0, "words of 16 bytes");
};

/* What a launch tells its blocks. */
struct cg_cluster_call {
    struct cg_cluster_share share;
    int32_t wild;
};

/* The place of a thread. Its cell has a unit of the layer and, in each group, the sequence of its column. */
struct cg_cluster_place {
    unsigned char *shared;
    const struct cg_layer *y; /* in shared memory */
    int rank, warp, lane, thread;
    int b0, groups, slots, steps; /* steps of the longest sequence */
    int own, unit, column;        /* own: the unit's number in its block */
};

template <class S> static __device__ __forceinline__ float *cg_cluster_constants(const struct cg_cluster_place &p)
{
    return reinterpret_cast<float *>(p.shared + CG_CLUSTER_CONSTANTS_AT) + p.own;
}

static __device__ __forceinline__ uint32_t cg_cluster_barrier_at(int group, int half)
{
    return (uint32_t)(16 * group + 8 * half);
}

/* The barriers of what is sent within a step. */
static __device__ __forceinline__ uint32_t cg_cluster_link_at(int group, int which)
{
    return (uint32_t)(CG_CLUSTER_LINKS_AT + 16 * group + 8 * which);
}

/* The sequence of a cell, or -1 if there is none. */
static __device__ __forceinline__ int cg_cluster_sequence(const struct cg_cluster_place &p, int group)
{
    const int b = p.b0 + group * p.slots + p.column;
    return p.column < p.slots && b < (int)p.y->axis.sequences && p.unit < (int)p.y->hidden ? b : -1;
}

/* The step of a turn; turns count from 0 in the order in which a kernel takes the steps. */
static __device__ __forceinline__ int cg_cluster_step(const struct cg_cluster_place &p, int turn, bool back)
{
    return (p.y->reverse != 0) != back ? p.steps - 1 - turn : turn;
}

/* The first row of a step; 0 if there is no such step. Rows fit into 32 bits. */
static __device__ __forceinline__ int cg_cluster_row(const struct cg_cluster_place &p, int step)
{
    return step >= 0 && step < p.steps ? (int)p.y->axis.row_offsets[step] : 0;
}

/* Copies the layer and the constants of the block's units to shared memory. The place lacks its cell. All threads
 * call. */
template <class S>
static __device__ __forceinline__ struct cg_cluster_place cg_cluster_begin(const struct cg_layer *layer,
                                                                           const struct cg_cluster_share &share,
                                                                           unsigned char *shared)
{
    struct cg_cluster_place p;
    p.shared = shared;
    p.y = reinterpret_cast<const struct cg_layer *>(shared + CG_CLUSTER_LAYER_AT);
    p.thread = (int)threadIdx.x;
    p.warp = p.thread / (int)CG_WARP;
    p.lane = p.thread % (int)CG_WARP;
    p.rank = gpu_cluster_rank();
    const uint32_t *from = reinterpret_cast<const uint32_t *>(layer + blockIdx.y);
    uint32_t *to = reinterpret_cast<uint32_t *>(shared + CG_CLUSTER_LAYER_AT);
    for (int e = p.thread; e < (int)(sizeof(struct cg_layer) / 4); e += S::THREADS)
        to[e] = from[e];
    __syncthreads();
    const struct cg_layer &y = *p.y;
    float *constants = reinterpret_cast<float *>(shared + CG_CLUSTER_CONSTANTS_AT);
    for (int e = p.thread; e < (S::LINKED ? CG_CLUSTER_CONSTANTS : 7) * S::UNITS; e += S::THREADS)
        constants[e] = cg_cluster_constant(y, e / S::UNITS, p.rank * S::UNITS + e % S::UNITS);
    p.slots = share.slots;
    p.b0 = (int)(blockIdx.x / S::BLOCKS) * share.groups * share.slots;
    const int left = (int)y.axis.sequences - p.b0, all = (left + p.slots - 1) / p.slots;
    p.groups = all < share.groups ? all : share.groups;
    p.steps = y.axis.lengths[p.b0];
    return p;
}

/* Barrier e of those that a launch uses: first those of all groups, then those of links. */
static __device__ __forceinline__ uint32_t cg_cluster_start_at(const struct cg_cluster_place &p, int e)
{
    return e < 2 * p.groups ? cg_cluster_barrier_at(e / 2, e % 2)
                            : cg_cluster_link_at((e - 2 * p.groups) / 2, (e - 2 * p.groups) % 2);
}

/* Starts the barriers, whose phases expect `bytes`; those of links, `link_bytes`. Then the cluster meets. */
template <class S>
static __device__ __forceinline__ void cg_cluster_start(const struct cg_cluster_place &p, int bytes, int link_bytes)
{
    const int kinds = S::LINKED ? 2 : 1;
    if (p.thread == 0) {
        for (int e = 0; e < kinds * 2 * p.groups; e++)
            gpu_mbarrier_init(reinterpret_cast<uint64_t *>(p.shared + cg_cluster_start_at(p, e)));
        gpu_mbarrier_fence();
        for (int e = 0; e < kinds * 2 * p.groups; e++)
            gpu_mbarrier_expect(reinterpret_cast<uint64_t *>(p.shared + cg_cluster_start_at(p, e)),
                                e < 2 * p.groups ? bytes : link_bytes);
    }
    gpu_barrier_cluster();
}

/* Waits for phase `phase` of the barrier at byte `at`, and expects as many bytes in its next one. */
static __device__ __forceinline__ void cg_cluster_wait_at(const struct cg_cluster_place &p, uint32_t at, int phase,
                                                          int bytes)
{
    uint64_t *barrier = reinterpret_cast<uint64_t *>(p.shared + at);
    gpu_mbarrier_wait(barrier, phase & 1);
    __syncwarp();
    if (p.thread == 0)
        gpu_mbarrier_expect(barrier, bytes);
}

/* Waits for what was sent in turn `turn`, and expects what will be sent in turn + 2. */
static __device__ __forceinline__ void cg_cluster_wait(const struct cg_cluster_place &p, int group, int turn, int bytes)
{
    cg_cluster_wait_at(p, cg_cluster_barrier_at(group, turn & 1), turn / 2, bytes);
}

/* The scale of the largest of some values, given the bits of its size, and 1 / scale. */
static __device__ __forceinline__ float cg_cluster_scale(uint32_t magnitude)
{
    return cg_split_scale(gpu_bits_float(magnitude));
}

static __device__ __forceinline__ float cg_cluster_unscale(uint32_t magnitude)
{
    return cg_split_inverse(gpu_bits_float(magnitude));
}

/* A row of W_h from column `at` on: four values, 0 where there are none. */
static __device__ __forceinline__ void cg_cluster_weights(const struct cg_layer &y, int gate, int unit, int at,
                                                          float (&x)[4])
{
    const int n = (int)y.hidden, row = gate * n + unit;
    const bool there = gate < (int)y.gates && unit < n && !cg_is_unused(&y, row);
    const float *from = y.w_h + (int64_t)row * n + at;
    if (there && n % 4 == 0 && at < n && reinterpret_cast<uintptr_t>(y.w_h) % 16 == 0) {
        const float4 four = *reinterpret_cast<const float4 *>(from);
        x[0] = four.x;
        x[1] = four.y;
        x[2] = four.z;
        x[3] = four.w;
        return;
    }
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        x[j] = there && at + j < n ? from[j] : 0.0f;
}

#endif

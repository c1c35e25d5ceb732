/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the variant small, for any cell. See small.h.
 *
 * Lane `share` of the LANES of a unit has columns 4 (share + LANES i) … + 3 of W_h for all i. Its bits are, lowest
 * first, [part | row | copy]: when the sums of the lanes have been added, it has gates `part` of sequence `row`. The
 * sums that a lane keeps always have index 0: its local gate q is gate q ^ gate0, its local row r is row r ^ row. So no
 * lane has to choose.
 *
 * Shared memory: two barriers; two buffers of masked h [ROWS][PITCH]; without AHEAD a ring of inputs
 * [RING][GATES][THREADS]; room for the cell. */
#ifndef CG_SMALL_FORWARD_H
#define CG_SMALL_FORWARD_H

#include "cuda-generic/recurrent/kernels/small_lane.h"

template <int WIDTH_, int ROWS_, int KIND_ = CG_SMALL_PLAIN> struct cg_small_shape {
    static constexpr int KIND = KIND_;
    static constexpr bool PLAIN = KIND == CG_SMALL_PLAIN || KIND == CG_SMALL_FULL;
    static constexpr int WIDTH = WIDTH_, ROWS = ROWS_, BLOCKS = WIDTH > CG_SMALL_BLOCK_MOST ? 2 : 1;
    static constexpr int UNITS = WIDTH / BLOCKS, LANES = BLOCKS == 2 ? 8 : 4, LANE_BITS = cg_small_bits(LANES);
    static constexpr int THREADS = UNITS * LANES, DEPTH = WIDTH / LANES, ROW_BITS = cg_small_bits(ROWS);
    static constexpr int PART_BITS = cg_small_lower(2, LANE_BITS - ROW_BITS), GATES = 4 >> PART_BITS;
    static constexpr int COPY_BITS = LANE_BITS - ROW_BITS - PART_BITS;
    /* Eight more, so that the same columns of four rows are in different banks. */
    static constexpr int PITCH = WIDTH + (LANES == 4 && ROWS == 4 ? 8 : 0);
    static constexpr bool AHEAD = PLAIN && (ROWS <= 2 || WIDTH == 32); /* inputs wait in registers, not in the ring */
    static constexpr int RING = 4, LEAST_BLOCKS = !PLAIN ? 1 : WIDTH == 32 ? 4 : WIDTH == 64 ? 2 : 1;
    static constexpr int ROOM_FLOATS = PLAIN ? 0 : 4 * ROWS * (THREADS / 32);
    static constexpr int HEAD_FLOATS = 4, BYTES_IN = ROWS * UNITS * 4; /* of h from the other block */
    static constexpr int SHARED_FLOATS =
        HEAD_FLOATS + 2 * ROWS * PITCH + (AHEAD ? 0 : RING * THREADS * GATES) + ROOM_FLOATS;

    /* The number of units. */
    static __device__ __forceinline__ int count_units(const struct cg_layer &y)
    {
        return KIND == CG_SMALL_FULL ? WIDTH : (int)y.hidden;
    }
    static_assert(DEPTH % 4 == 0 && PITCH % 4 == 0 && THREADS % 32 == 0, "");
    static_assert(COPY_BITS >= 0, "");
};

template <class S> struct cg_small_place {
    int64_t b0;
    int rank, unit, share, part, row, copy, gate0;

    __device__ __forceinline__ cg_small_place()
    {
        const int thread = (int)threadIdx.x;
        b0 = (int64_t)(blockIdx.x / S::BLOCKS) * S::ROWS;
        rank = S::BLOCKS > 1 ? gpu_cluster_rank() : 0;
        unit = rank * S::UNITS + thread / S::LANES;
        share = thread % S::LANES;
        part = share & ((1 << S::PART_BITS) - 1);
        row = share >> S::PART_BITS & (S::ROWS - 1);
        copy = share >> (S::PART_BITS + S::ROW_BITS);
        gate0 = part << (2 - S::PART_BITS);
    }
};

/* The lane's share of row `from` of W_h [n columns]; zeros if there is no such row. */
template <class S>
static __device__ __forceinline__ void cg_small_load_row(const float *from, bool there, bool whole, int n, int share,
                                                         float (&w)[S::DEPTH])
{
    CG_UNROLL
    for (int i = 0; i < S::DEPTH / 4; i++) {
        const int k = (share + S::LANES * i) * 4;
        float4 v = {0, 0, 0, 0};
        if (there && whole && k < n) {
            v = *reinterpret_cast<const float4 *>(from + k);
        } else if (there) {
            v.x = k < n ? from[k] : 0.0f;
            v.y = k + 1 < n ? from[k + 1] : 0.0f;
            v.z = k + 2 < n ? from[k + 2] : 0.0f;
            v.w = k + 3 < n ? from[k + 3] : 0.0f;
        }
        w[4 * i] = v.x;
        w[4 * i + 1] = v.y;
        w[4 * i + 2] = v.z;
        w[4 * i + 3] = v.w;
    }
}

/* Adds W_h h of the lane's share to `sums`. */
template <class S>
static __device__ __forceinline__ void cg_small_multiply(const cg_small_place<S> &p, const float *h,
                                                         const float (&w)[4][S::DEPTH], float (&sums)[S::ROWS][4])
{
    CG_UNROLL
    for (int i = 0; i < S::DEPTH / 4; i++) {
        CG_UNROLL
        for (int r = 0; r < S::ROWS; r++) {
            const float4 v =
                *reinterpret_cast<const float4 *>(h + (r ^ p.row) * S::PITCH + (p.share + S::LANES * i) * 4);
            CG_UNROLL
            for (int q = 0; q < 4; q++) {
                sums[r][q] = fmaf(w[q][4 * i], v.x, sums[r][q]);
                sums[r][q] = fmaf(w[q][4 * i + 1], v.y, sums[r][q]);
                sums[r][q] = fmaf(w[q][4 * i + 2], v.z, sums[r][q]);
                sums[r][q] = fmaf(w[q][4 * i + 3], v.w, sums[r][q]);
            }
        }
    }
}

/* Adds the sums of the lanes; sums[0][0 … GATES - 1] receive those that this lane keeps. */
template <class S> static __device__ __forceinline__ void cg_small_add_lanes(float (&sums)[S::ROWS][4])
{
    CG_UNROLL
    for (int half = S::ROWS / 2; half > 0; half /= 2) {
        CG_UNROLL
        for (int r = 0; r < half; r++) {
            CG_UNROLL
            for (int q = 0; q < 4; q++)
                sums[r][q] += __shfl_xor_sync(0xFFFFFFFFu, sums[r + half][q], half << S::PART_BITS);
        }
    }
    CG_UNROLL
    for (int half = 2; half >= S::GATES; half /= 2) {
        CG_UNROLL
        for (int q = 0; q < half; q++)
            sums[0][q] += __shfl_xor_sync(0xFFFFFFFFu, sums[0][q + half], half >> (2 - S::PART_BITS));
    }
    CG_UNROLL
    for (int e = 0; e < S::COPY_BITS; e++) {
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            sums[0][q] += __shfl_xor_sync(0xFFFFFFFFu, sums[0][q], 1 << (S::PART_BITS + S::ROW_BITS + e));
    }
}

/* All four gates of the lane's unit and sequence, from those that the lane and its neighbours have. */
template <class S>
static __device__ __forceinline__ void cg_small_gather(const cg_small_place<S> &p, const float (&mine)[S::GATES],
                                                       float (&all)[4])
{
    if (S::PART_BITS == 0) {
        CG_UNROLL
        for (int q = 0; q < 4; q++)
            all[q] = mine[q % S::GATES];
    } else if (S::PART_BITS == 1) {
        const float a = mine[0], b = mine[1 % S::GATES];
        const float c = __shfl_xor_sync(0xFFFFFFFFu, a, 1), d = __shfl_xor_sync(0xFFFFFFFFu, b, 1);
        all[0] = gpu_pick(p.part != 0, c, a);
        all[1] = gpu_pick(p.part != 0, d, b);
        all[2] = gpu_pick(p.part != 0, a, c);
        all[3] = gpu_pick(p.part != 0, b, d);
    } else {
        CG_UNROLL
        for (int q = 0; q < 4; q++)
            all[q] = __shfl_sync(0xFFFFFFFFu, mine[0], (int)(threadIdx.x % CG_WARP & ~3u) + q);
    }
}

/* All steps of a thread. CELL has the registers of a cell, and
 *   S                              the shape
 *   CELL(layer, place, walk, rooms)   before the first step
 *   has_weights(gate)              whether the gate has a row of W_h; it is row gate * hidden + unit
 *   has_input(q)                   whether local gate q adds an input, which this lane loads
 *   find_input(row, q)             where that of a packed row is
 *   start(u, q)                    with AHEAD: what the sum of local gate q begins with, in one of the copies
 *   run(sums, u, turn, walk)       a step; u: the inputs, which are not in the sums without AHEAD. Returns h times its
 * mask keep(row, runs)                stores the records of the step finish(layer)                  after the last step
 */
template <class CELL> struct cg_small_forward_thread {
    typedef typename CELL::S S;
    cg_small_place<S> place;
    cg_small_walk<S::ROWS> walk;
    CELL cell;
    uint64_t *barriers;
    float *buffers, *ring;
    float w[4][S::DEPTH], published;

    __device__ __forceinline__ cg_small_forward_thread(const struct cg_layer &y, float *shared)
        : walk(y, place.b0, place.row, y.reverse != 0), cell(y, place, walk, shared + S::SHARED_FLOATS - S::ROOM_FLOATS)
    {
        const int n = S::count_units(y);
        const bool whole = n % 4 == 0 && reinterpret_cast<uintptr_t>(y.w_h) % 16 == 0;
        barriers = reinterpret_cast<uint64_t *>(shared);
        buffers = shared + S::HEAD_FLOATS;
        ring = buffers + 2 * S::ROWS * S::PITCH + (int)threadIdx.x;
        CG_UNROLL
        for (int q = 0; q < 4; q++) {
            const bool there = place.unit < n && cell.has_weights(q ^ place.gate0);
            const int64_t row = (int64_t)(q ^ place.gate0) * n + place.unit;
            cg_small_load_row<S>(y.w_h + (there ? row * n : 0), there, whole, n, place.share, w[q]);
        }
    }

    /* The masked h before the first step, in both buffers, and the barriers. */
    __device__ __forceinline__ void begin(const struct cg_layer &y)
    {
        const int n = S::count_units(y);
        for (int e = (int)threadIdx.x; e < S::ROWS * S::WIDTH; e += S::THREADS) {
            const int row = e / S::WIDTH, k = e % S::WIDTH;
            const int64_t b = place.b0 + row, at = b * n + k;
            const bool there = k < n && b < y.axis.sequences;
            const float h = there ? cg_or_zero(y.h0, at) * cg_or_one(y.mask_h, at) : 0.0f;
            buffers[row * S::PITCH + k] = h;
            buffers[(S::ROWS + row) * S::PITCH + k] = h;
        }
        cg_small_begin_barriers<S>(barriers);
        published = buffers[place.row * S::PITCH + place.unit];
    }

    /* h of a step, for the next one. A sequence that has ended or not begun keeps its h. */
    __device__ __forceinline__ void publish(int turn, float *to, float h)
    {
        published = S::ROWS > 1 ? gpu_pick(walk.runs(turn), h, published) : h;
        if (place.part != 0 || place.copy != 0)
            return;
        float *at = to + place.row * S::PITCH + place.unit;
        *at = published;
        if (S::BLOCKS > 1)
            gpu_store_async(at, published, barriers + ((turn + 1) & 1), 1 - place.rank);
    }

    /* h of the step is complete in both blocks. */
    __device__ __forceinline__ void pass_barrier(int turn)
    {
        __syncthreads();
        if (S::BLOCKS > 1) {
            gpu_mbarrier_wait(barriers + ((turn + 1) & 1), turn >> 1 & 1);
            if (threadIdx.x == 0)
                gpu_mbarrier_expect(barriers + ((turn + 1) & 1), S::BYTES_IN);
        }
    }

    __device__ __forceinline__ void load(int turn, int row, float (&u)[S::GATES])
    {
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            u[q] = gpu_load_if(walk.runs(turn) && cell.has_input(q), cell.find_input(row, q));
    }

    __device__ __forceinline__ void copy(int turn, int row)
    {
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            gpu_copy_async_word(ring + (turn % S::RING * S::GATES + q) * S::THREADS, cell.find_input(row, q),
                                walk.runs(turn) && cell.has_input(q));
        gpu_copy_close();
    }

    /* A step whose input is in registers; these then receive that of two steps later, whose row is `next`. */
    __device__ __forceinline__ void step(int turn, const float *from, float *to, float (&u)[S::GATES], int &row,
                                         int &next)
    {
        const int now = row;
        float sums[S::ROWS][4] = {};
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            sums[0][q] = cell.start(u[q], q);
        load(turn + 2, next, u);
        row = next;
        next = walk.find_row(turn + 4);
        cg_small_multiply<S>(place, from, w, sums);
        cg_small_add_lanes<S>(sums);
        publish(turn, to, cell.run(sums[0], u, turn, walk));
        pass_barrier(turn);
        cell.keep(now, walk.runs(turn));
    }

    /* Two steps per round, so that registers which wait for memory need not be moved. One after the end does nothing.
     */
    __device__ __forceinline__ void run_ahead()
    {
        float *const other = buffers + S::ROWS * S::PITCH;
        float even[S::GATES], odd[S::GATES];
        int even_row = walk.find_row(0), odd_row = walk.find_row(1), even_next = walk.find_row(2),
            odd_next = walk.find_row(3);
        load(0, even_row, even);
        load(1, odd_row, odd);
        CG_NO_UNROLL
        for (int turn = 0; turn < walk.steps; turn += 2) {
            step(turn, buffers, other, even, even_row, even_next);
            step(turn + 1, other, buffers, odd, odd_row, odd_next);
        }
    }

    /* Inputs come through the ring, RING - 1 steps ahead. */
    __device__ __forceinline__ void run_ring()
    {
        int rows[S::RING], next = walk.find_row(S::RING - 1);
        CG_UNROLL
        for (int e = 0; e < S::RING - 1; e++) {
            rows[e] = walk.find_row(e);
            copy(e, rows[e]);
        }
        CG_NO_UNROLL
        for (int turn = 0; turn < walk.steps; turn++) {
            const float *from = buffers + (turn & 1) * S::ROWS * S::PITCH;
            float *to = buffers + (1 - (turn & 1)) * S::ROWS * S::PITCH, sums[S::ROWS][4] = {}, u[S::GATES];
            rows[S::RING - 1] = next;
            copy(turn + S::RING - 1, next);
            next = walk.find_row(turn + S::RING);
            cg_small_multiply<S>(place, from, w, sums);
            gpu_copy_wait<S::RING - 1>();
            CG_UNROLL
            for (int q = 0; q < S::GATES; q++)
                u[q] = ring[(turn % S::RING * S::GATES + q) * S::THREADS];
            cg_small_add_lanes<S>(sums);
            publish(turn, to, cell.run(sums[0], u, turn, walk));
            pass_barrier(turn);
            cell.keep(rows[0], walk.runs(turn));
            CG_UNROLL
            for (int e = 0; e < S::RING - 1; e++)
                rows[e] = rows[e + 1];
        }
    }
};

template <class CELL> static __device__ __forceinline__ void cg_small_run_forward(const struct cg_layer *layers)
{
    typedef typename CELL::S S;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    if (S::BLOCKS > 1)
        return;
#endif
    GPU_SHARED(float, shared);
    const struct cg_layer y = layers[blockIdx.y];
    cg_small_forward_thread<CELL> thread(y, shared);
    thread.begin(y);
    if constexpr (S::AHEAD)
        thread.run_ahead();
    else
        thread.run_ring();
    thread.cell.finish(y);
    if (S::BLOCKS > 1)
        gpu_barrier_cluster(); /* the other block may still write here */
}

#endif

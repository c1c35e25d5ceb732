/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant small, for any cell. See small.h.
 *
 * A thread has the weights from four units, `first` … + 3, to the gradients of gates 4 (share + 16 i) … + 3 of its
 * block. Those of a block are [4][UNITS]. Bits of `share`, lowest first: [part | row | copy]: when the sums of the
 * sixteen lanes have been added, a lane has unit `first` + part of sequence `row`. Copies have the same sum; each
 * computes GATES of the four gates. As in forward, the sum that a lane keeps has index 0.
 *
 * In a cluster each block has the gradients of its own units' gates, so its sums are parts of all units' sums; those of
 * the other block's units are sent there.
 *
 * Shared memory: two barriers; two buffers of gradients [ROWS][4][UNITS], those of row r at index z ^ 8 r, which keeps
 * rows in different banks; in a cluster two buffers of sums [ROWS][UNITS] from the other block; a ring of records
 * [RING][WORDS][THREADS]; room for the cell. */
#ifndef CG_SMALL_BACKWARD_H
#define CG_SMALL_BACKWARD_H

#include "cuda-generic/recurrent/kernels/small_lane.h"

template <int WIDTH_, int ROWS_, int KIND_ = CG_SMALL_PLAIN> struct cg_small_back_shape {
    static constexpr int KIND = KIND_;
    static constexpr bool PLAIN = KIND == CG_SMALL_PLAIN || KIND == CG_SMALL_FULL;
    static constexpr int WIDTH = WIDTH_, ROWS = ROWS_, BLOCKS = WIDTH > CG_SMALL_BLOCK_MOST ? 2 : 1;
    static constexpr int UNITS = WIDTH / BLOCKS, LANES = 16, SUMS = 4 * UNITS, DEPTH = SUMS / LANES;
    static constexpr int THREADS = WIDTH / 4 * LANES, ROW_BITS = cg_small_bits(ROWS), COPY_BITS = 2 - ROW_BITS;
    static constexpr int GATES = 4 >> COPY_BITS;
    static constexpr bool AHEAD = PLAIN && (ROWS <= 2 || WIDTH == 32); /* records wait in registers */
    static constexpr int RING = PLAIN ? 0 : 4,
                         WORDS = KIND == CG_SMALL_NORMED ? 16 : 8; /* or in the ring, or are loaded in their turn */
    static constexpr int LEAST_BLOCKS = !PLAIN ? 1 : WIDTH == 32 ? 4 : WIDTH == 64 && ROWS > 2 ? 2 : 1;
    static constexpr int HEAD_FLOATS = 4, BYTES_IN = ROWS * UNITS * 4; /* of sums from the other block */
    static constexpr int RING_FLOATS = RING * WORDS * THREADS, ROOM_FLOATS = PLAIN ? 0 : 4 * ROWS * (THREADS / 32);
    static constexpr int SHARED_FLOATS =
        HEAD_FLOATS + 2 * ROWS * SUMS + (BLOCKS > 1 ? 2 * ROWS * UNITS : 0) + RING_FLOATS + ROOM_FLOATS;

    /* The number of units. */
    static __device__ __forceinline__ int count_units(const struct cg_layer &y)
    {
        return KIND == CG_SMALL_FULL ? WIDTH : (int)y.hidden;
    }
    static_assert(DEPTH % 4 == 0 && UNITS % 32 == 0 && SUMS * WIDTH == 4 * DEPTH * THREADS, "");
};

template <class S> struct cg_small_back_place {
    int64_t b0;
    int rank, first, unit, local, share, part, row, copy;
    bool own; /* the unit is one of this block; alike in a warp */

    __device__ __forceinline__ cg_small_back_place()
    {
        const int thread = (int)threadIdx.x;
        b0 = (int64_t)(blockIdx.x / S::BLOCKS) * S::ROWS;
        rank = S::BLOCKS > 1 ? gpu_cluster_rank() : 0;
        share = thread % S::LANES;
        part = share & 3;
        row = share >> 2 & (S::ROWS - 1);
        copy = share >> (2 + S::ROW_BITS);
        first = thread / S::LANES * 4;
        unit = first + part;
        local = S::BLOCKS == 1 ? unit : unit % S::UNITS;
        own = S::BLOCKS == 1 || unit / S::UNITS == rank;
    }

    __device__ __forceinline__ int find_sum(int row_of, int z) const
    {
        return row_of * S::SUMS + (z ^ 8 * row_of);
    }
};

/* Four weights of a row, from unit `first` on; the one of unit first + part comes first. */
static __device__ __forceinline__ float4 cg_small_load_units(const float *from, bool whole, int n, int first, int part)
{
    float4 v = {0, 0, 0, 0};
    if (whole && first < n) {
        v = *reinterpret_cast<const float4 *>(from + first);
    } else {
        v.x = first < n ? from[first] : 0.0f;
        v.y = first + 1 < n ? from[first + 1] : 0.0f;
        v.z = first + 2 < n ? from[first + 2] : 0.0f;
        v.w = first + 3 < n ? from[first + 3] : 0.0f;
    }
    if (part & 1)
        v = {v.y, v.x, v.w, v.z};
    if (part & 2)
        v = {v.z, v.w, v.x, v.y};
    return v;
}

/* All steps of a thread. CELL has the registers of a cell, and
 *   S                                the shape
 *   CELL(layer, place, walk, rooms)  before the first turn
 *   has_weights(gate)                whether the gate has a row of W_h
 *   record                           what it loads for a turn
 *   load                             loads it (`before`: the packed row of the next turn)
 *   prepare                          computes what needs no sum
 *   copy, prepare                    the same through the ring; words are THREADS apart
 *   run(sum, runs, out)              a turn; `out` receives the gradients of the lane's gates
 *   keep(row, runs, out)             stores them
 *   end(is_end, sum)                 `is_end`: this is the turn after the last, and `sum` belongs to the initial state
 *   find_line(row, part, unit)       where part 0 … 5 of what it loads begins, for L2
 *   finish(layer)                    after the last turn */
template <class CELL> struct cg_small_backward_thread {
    typedef typename CELL::S S;
    cg_small_back_place<S> place;
    cg_small_walk<S::ROWS> walk;
    CELL cell;
    uint64_t *barriers;
    float *buffers, *coming, *shared_end;
    float w[4][S::DEPTH];

    __device__ __forceinline__ cg_small_backward_thread(const struct cg_layer &y, float *shared)
        : walk(y, place.b0, place.row, y.reverse == 0), cell(y, place, walk, shared + S::SHARED_FLOATS - S::ROOM_FLOATS)
    {
        const int n = S::count_units(y);
        const bool whole = n % 4 == 0 && reinterpret_cast<uintptr_t>(y.w_h) % 16 == 0;
        barriers = reinterpret_cast<uint64_t *>(shared);
        buffers = shared + S::HEAD_FLOATS;
        coming = buffers + 2 * S::ROWS * S::SUMS;
        shared_end = shared + S::SHARED_FLOATS;
        CG_UNROLL
        for (int e = 0; e < S::DEPTH; e++) {
            const int z = (place.share + S::LANES * (e / 4)) * 4 + e % 4, gate = z / S::UNITS;
            const int unit = place.rank * S::UNITS + z % S::UNITS;
            float4 v = {0, 0, 0, 0};
            if (unit < n && cell.has_weights(gate))
                v = cg_small_load_units(y.w_h + ((int64_t)gate * n + unit) * n, whole, n, place.first, place.part);
            w[0][e] = v.x;
            w[1][e] = v.y;
            w[2][e] = v.z;
            w[3][e] = v.w;
        }
    }

    __device__ __forceinline__ void begin()
    {
        for (int e = (int)threadIdx.x; e < S::ROWS * S::SUMS; e += S::THREADS)
            buffers[e] = 0.0f;
        cg_small_begin_barriers<S>(barriers);
    }

    __device__ __forceinline__ void multiply(const float *from, float (&sums)[S::ROWS][4])
    {
        CG_UNROLL
        for (int i = 0; i < S::DEPTH / 4; i++) {
            CG_UNROLL
            for (int r = 0; r < S::ROWS; r++) {
                const int at = place.find_sum(r ^ place.row, place.share * 4) + 4 * S::LANES * i;
                const float4 v = *reinterpret_cast<const float4 *>(from + at);
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

    static __device__ __forceinline__ float add_lanes(float (&sums)[S::ROWS][4])
    {
        CG_UNROLL
        for (int half = S::ROWS / 2; half > 0; half /= 2) {
            CG_UNROLL
            for (int r = 0; r < half; r++) {
                CG_UNROLL
                for (int q = 0; q < 4; q++)
                    sums[r][q] += __shfl_xor_sync(0xFFFFFFFFu, sums[r + half][q], half << 2);
            }
        }
        sums[0][0] += __shfl_xor_sync(0xFFFFFFFFu, sums[0][2], 2);
        sums[0][1] += __shfl_xor_sync(0xFFFFFFFFu, sums[0][3], 2);
        float sum = sums[0][0] + __shfl_xor_sync(0xFFFFFFFFu, sums[0][1], 1);
        CG_UNROLL
        for (int e = 0; e < S::COPY_BITS; e++)
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 4 << (S::ROW_BITS + e));
        return sum;
    }

    /* Sends the part of another block's unit there, or adds the part that has come. */
    __device__ __forceinline__ void exchange(int turn, float *sum)
    {
        uint64_t *barrier = barriers + (turn & 1);
        float *at = coming + ((turn & 1) * S::ROWS + place.row) * S::UNITS + place.local;
        if (place.own) {
            gpu_mbarrier_wait(barrier, turn >> 1 & 1);
            *sum += *at;
            if ((int)threadIdx.x == place.rank * (S::THREADS / 2))
                gpu_mbarrier_expect(barrier, S::BYTES_IN);
        } else if (place.copy == 0) {
            gpu_store_async(at, *sum, barrier, 1 - place.rank);
        }
    }

    /* From the gradients of the turn before to the sum of h's gradient that came through W_h, then to those of this
     * turn. `during` runs while shuffles are under way. */
    template <class DURING>
    __device__ __forceinline__ void step(int turn, const float *from, float *to, DURING &&during)
    {
        float sums[S::ROWS][4] = {}, out[S::GATES] = {};
        multiply(from, sums);
        const int row = during();
        float sum = add_lanes(sums);
        if (S::BLOCKS > 1)
            exchange(turn, &sum);
        if (place.own || S::KIND == CG_SMALL_NORMED) { /* all threads take part in sums over the units */
            cell.end(turn == walk.end, sum);
            cell.run(sum, walk.runs(turn), out);
        }
        if (place.own) {
            CG_UNROLL
            for (int e = 0; e < S::GATES; e++)
                to[place.find_sum(place.row, (place.copy * S::GATES + e) * S::UNITS + place.local)] = out[e];
        }
        __syncthreads();
        if (place.own)
            cell.keep(row, walk.runs(turn), out);
    }

    /* Two turns per round, so that registers which wait for memory need not be moved. Turns after the end do nothing.
     */
    __device__ __forceinline__ void run_ahead()
    {
        float *const other = buffers + S::ROWS * S::SUMS;
        typename CELL::record even = {}, odd = {};
        int row = walk.find_row(0), row1 = walk.find_row(1), row2 = walk.find_row(2), even_next = walk.find_row(3),
            odd_next = walk.find_row(4);
        cell.load(even, row, row1, 0, walk);
        cell.load(odd, row1, row2, 1, walk);
        const auto during = [&](int turn, auto &x, int &next) {
            const int now = row, row3 = next;
            cell.prepare(x, turn, walk);
            cell.load(x, row2, row3, turn + 2, walk);
            row = row1;
            row1 = row2;
            row2 = row3;
            next = walk.find_row(turn + 5);
            return now;
        };
        CG_NO_UNROLL
        for (int turn = 0; turn <= walk.steps; turn += 2) {
            step(turn, buffers, other, [&] { return during(turn, even, even_next); });
            step(turn + 1, other, buffers, [&] { return during(turn + 1, odd, odd_next); });
        }
    }

    /* Asks the L2 cache for the records of a turn: one line of 32 units per thread. */
    __device__ __forceinline__ void announce(int turn)
    {
        const int part = place.local / (S::UNITS / 32);
        const int unit = place.rank * S::UNITS + place.local % (S::UNITS / 32) * 32;
        if (place.own && part < 6 && walk.runs(turn))
            gpu_prefetch(cell.find_line(walk.find_row(turn), part, unit));
    }

    /* Records are loaded before the products of the turn that needs them; the L2 cache has them by then. */
    __device__ __forceinline__ void run_direct()
    {
        int row = walk.find_row(0), before = walk.find_row(1);
        CG_NO_UNROLL
        for (int turn = 0; turn <= walk.steps; turn++) {
            float *from = buffers + (turn & 1) * S::ROWS * S::SUMS,
                  *to = buffers + (1 - (turn & 1)) * S::ROWS * S::SUMS;
            typename CELL::record x = {};
            announce(turn + 3);
            if (walk.runs(turn))
                cell.load(x, row, before, turn, walk);
            step(turn, from, to, [&] {
                cell.prepare(x, turn, walk);
                return row;
            });
            row = before;
            before = walk.find_row(turn + 2);
        }
    }

    /* Records come through the ring, FAR turns ahead. */
    __device__ __forceinline__ void run_ring()
    {
        constexpr int FAR = S::RING - 1, SLOT = S::WORDS * S::THREADS;
        float *const ring = shared_end - S::ROOM_FLOATS - S::RING_FLOATS + (int)threadIdx.x;
        int rows[S::RING + 1], next = walk.find_row(S::RING); /* of this turn and the ones after it */
        CG_UNROLL
        for (int e = 0; e < S::RING; e++)
            rows[e] = walk.find_row(e);
        CG_UNROLL
        for (int e = 0; e < FAR; e++)
            cell.copy(ring + e * SLOT, rows[e], rows[e + 1], e, walk);
        CG_NO_UNROLL
        for (int turn = 0; turn <= walk.steps; turn++) {
            float *from = buffers + (turn & 1) * S::ROWS * S::SUMS,
                  *to = buffers + (1 - (turn & 1)) * S::ROWS * S::SUMS;
            rows[S::RING] = next;
            cell.copy(ring + (turn + FAR) % S::RING * SLOT, rows[FAR], rows[S::RING], turn + FAR, walk);
            next = walk.find_row(turn + S::RING + 1);
            step(turn, from, to, [&] {
                gpu_copy_wait<FAR>();
                cell.prepare(ring + turn % S::RING * SLOT, turn, walk);
                return rows[0];
            });
            CG_UNROLL
            for (int e = 0; e < S::RING; e++)
                rows[e] = rows[e + 1];
        }
    }
};

template <class CELL> static __device__ __forceinline__ void cg_small_run_backward(const struct cg_layer *layers)
{
    typedef typename CELL::S S;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    if (S::BLOCKS > 1)
        return;
#endif
    GPU_SHARED(float, shared);
    const struct cg_layer y = layers[blockIdx.y];
    cg_small_backward_thread<CELL> thread(y, shared);
    thread.begin();
    if constexpr (S::AHEAD)
        thread.run_ahead();
    else if constexpr (S::RING > 0)
        thread.run_ring();
    else
        thread.run_direct();
    if (thread.place.own)
        thread.cell.finish(y);
    if (S::BLOCKS > 1)
        gpu_barrier_cluster(); /* the other block may still write here */
}

#endif

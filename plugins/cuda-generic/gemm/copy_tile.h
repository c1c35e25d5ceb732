/* SPDX-License-Identifier: Apache-2.0 */
/* One tile of a product whose operands lie in memory as words of NUMBER: the sums of M rows with N columns. Included by
 * kernels. Asynchronous copies fetch slices of the depth STAGES - 1 slices ahead of the product, with one barrier per
 * slice.
 *
 *   shared memory   STAGES x ( rows [M][PITCH] | columns [N][PITCH] ) words, then the sums [SPLIT][M][SUM_PITCH]
 *   warps           WARPS_M x WARPS_N x SPLIT, each with 16 I rows and 8 J columns, and 16 words of each slice
 *
 * PITCH is chosen so that the eight rows of a block of fragments fall into different banks. */
#ifndef CG_COPY_TILE_H
#define CG_COPY_TILE_H

#include "cuda-generic/gemm/warp_product.h"

template <int WARPS_M_, int WARPS_N_, int SPLIT_, int I_, int J_> struct cg_copy_shape {
    enum {
        WARPS_M = WARPS_M_,
        WARPS_N = WARPS_N_,
        SPLIT = SPLIT_,
        I = I_,
        J = J_,
        M = 16 * I * WARPS_M,
        N = 8 * J * WARPS_N,
        THREADS = 32 * WARPS_M * WARPS_N * SPLIT,
        WORDS = 16 * SPLIT,
        PITCH = WORDS + 4,
        STAGES = 4,
        STAGE = (M + N) * PITCH,
        SUM_PITCH = N + 8,
        SUMS = SPLIT * M * SUM_PITCH,
        SHARED_BYTES = (STAGES * STAGE > SUMS ? STAGES * STAGE : SUMS) * (int)sizeof(uint32_t)
    };
};

/* Rows and columns of words. Those from row_end or column_end on are taken as zero. */
struct cg_copy_operands {
    const uint32_t *rows, *columns;
    int64_t row_end, column_end, words; /* words: length and pitch of each, a multiple of 16 */
};

template <typename NUMBER, typename SHAPE> struct cg_copy_tile {
    float sum[SHAPE::I][SHAPE::J][4];

    static __device__ __forceinline__ int warp()
    {
        return (int)(threadIdx.x / CG_WARP);
    }
    static __device__ __forceinline__ int split()
    {
        return warp() / (SHAPE::WARPS_M * SHAPE::WARPS_N);
    }
    static __device__ __forceinline__ int row0()
    {
        return warp() / SHAPE::WARPS_N % SHAPE::WARPS_M * 16 * SHAPE::I;
    }
    static __device__ __forceinline__ int column0()
    {
        return warp() % SHAPE::WARPS_N * 8 * SHAPE::J;
    }

    /* start(row, column) returns the initial value of that sum. */
    template <typename START> __device__ __forceinline__ void begin(START start)
    {
        const int lane = (int)(threadIdx.x % CG_WARP);
        CG_UNROLL
        for (int i = 0; i < SHAPE::I; i++)
            CG_UNROLL
        for (int j = 0; j < SHAPE::J; j++)
            CG_UNROLL
        for (int e = 0; e < 4; e++)
            sum[i][j][e] = split() > 0 ? 0.0f
                                       : start(row0() + i * 16 + NUMBER::row(lane, e),
                                               column0() + j * 8 + NUMBER::column(lane, e));
    }

    static __device__ __forceinline__ void fetch(const struct cg_copy_operands &o, int64_t word0, uint32_t *stage)
    {
        for (int e = (int)threadIdx.x; e < (SHAPE::M + SHAPE::N) * SHAPE::WORDS / 4; e += SHAPE::THREADS) {
            const int outer = e / (SHAPE::WORDS / 4), word = e % (SHAPE::WORDS / 4) * 4;
            const bool is_row = outer < SHAPE::M;
            const int64_t at = is_row ? outer : outer - SHAPE::M;
            const bool inside = word0 + word < o.words && at < (is_row ? o.row_end : o.column_end);
            const uint32_t *from = is_row ? o.rows : o.columns;
            gpu_copy_async(stage + outer * SHAPE::PITCH + word, inside ? from + at * o.words + word0 + word : from,
                           inside);
        }
    }

    /* Adds the product. All threads of the block call it; afterwards the shared memory is free. */
    __device__ void add(const struct cg_copy_operands &o, uint32_t *shared)
    {
        const int slices = (int)((o.words + SHAPE::WORDS - 1) / SHAPE::WORDS);
        for (int s = 0; s < SHAPE::STAGES - 1; s++) {
            if (s < slices)
                fetch(o, (int64_t)s * SHAPE::WORDS, shared + s * SHAPE::STAGE);
            gpu_copy_close();
        }
        for (int s = 0; s < slices; s++) {
            const int ahead = s + SHAPE::STAGES - 1;
            const uint32_t *stage = shared + s % SHAPE::STAGES * SHAPE::STAGE + 16 * split();
            gpu_copy_wait<SHAPE::STAGES - 2>();
            __syncthreads(); /* now all have slice s, and all have read slice s - 1, whose place `ahead` takes */
            if (ahead < slices)
                fetch(o, (int64_t)ahead * SHAPE::WORDS, shared + ahead % SHAPE::STAGES * SHAPE::STAGE);
            gpu_copy_close();
            NUMBER::template multiply_tile<SHAPE::I, SHAPE::J>(
                stage + row0() * SHAPE::PITCH, stage + (SHAPE::M + column0()) * SHAPE::PITCH, SHAPE::PITCH, sum);
        }
        gpu_copy_wait<0>();
        __syncthreads();
    }

    /* Writes the sums into the free shared memory; they are complete when it returns. All threads call it. */
    __device__ __forceinline__ void keep(float *shared) const
    {
        const int lane = (int)(threadIdx.x % CG_WARP);
        float *to = shared + (split() * SHAPE::M + row0()) * SHAPE::SUM_PITCH + column0();
        CG_UNROLL
        for (int i = 0; i < SHAPE::I; i++)
            CG_UNROLL
        for (int j = 0; j < SHAPE::J; j++)
            CG_UNROLL
        for (int e = 0; e < 4; e++)
            to[(i * 16 + NUMBER::row(lane, e)) * SHAPE::SUM_PITCH + j * 8 + NUMBER::column(lane, e)] = sum[i][j][e];
        __syncthreads();
    }

    /* The whole sum of an element, its splits added in order. */
    static __device__ __forceinline__ float get(const float *shared, int row, int column)
    {
        float total = 0;
        for (int s = 0; s < SHAPE::SPLIT; s++)
            total += shared[(s * SHAPE::M + row) * SHAPE::SUM_PITCH + column];
        return total;
    }
};

#endif

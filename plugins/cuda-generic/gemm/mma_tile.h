/* SPDX-License-Identifier: Apache-2.0 */
/* One tile of a product by one block on tensor cores. Included by kernels, and used like gemm_tile.h.
 *
 * Operands are float32 in global memory and become words of NUMBER (narrow.h) when they are copied to shared memory.
 * The tile goes through the depth in slices of WORDS words. While one slice is multiplied, the next is loaded into
 * registers and then stored into the other of two buffers.
 *
 *   shared memory   2 x ( A [M][PITCH] | B [N][PITCH] ) words      PITCH = WORDS + 4, so that the eight rows of a
 *                   block of fragments fall into different banks
 *   warps           WARPS_M x WARPS_N, each with M / WARPS_M rows and N / WARPS_N columns of the tile */
#ifndef CG_MMA_TILE_H
#define CG_MMA_TILE_H

#include "cuda-generic/gemm/gemm_tile.h"
#include "cuda-generic/gemm/mma.h"

struct alignas(16) cg_four {
    float x[4];
};

template <typename NUMBER, int M_, int N_, int WARPS_M, int WARPS_N, int WORDS> struct cg_mma_tile {
    enum {
        M = M_,
        N = N_,
        THREADS = 32 * WARPS_M * WARPS_N,
        PITCH = WORDS + 4,
        DEPTH = WORDS * NUMBER::PER_WORD,
        ROWS = M / WARPS_M,
        COLUMNS = N / WARPS_N,
        BUFFER = (M + N) * PITCH,
        FOURS_A = M * DEPTH / 4 / THREADS,
        FOURS_B = N * DEPTH / 4 / THREADS,
        SHARED_BYTES = 2 * BUFFER * (int)sizeof(uint32_t)
    };
    static_assert(ROWS % 16 == 0 && COLUMNS % 16 == 0 && WORDS % 8 == 0, "whole fragments");
    static_assert(M * DEPTH / 4 % THREADS == 0 && N * DEPTH / 4 % THREADS == 0, "each thread fetches as much");

    /* One operand: element (outer, d) is at outer * stride + d * depth_stride. */
    struct operand {
        const float *from;
        int64_t stride, depth_stride, outer0, outer_end;
        bool by_fours; /* four elements along the depth are contiguous and aligned */
    };

    static __device__ operand make(const float *from, int64_t stride, int64_t depth_stride, int64_t outer0, int64_t end)
    {
        operand o = {from, stride, depth_stride, outer0, end, false};
        o.by_fours = depth_stride == 1 && stride % 4 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0;
        return o;
    }

    /* Which four elements of a slice of SIZE rows thread `unit` moves. */
    template <int SIZE> static __device__ void place(const operand &o, int unit, int *outer, int *d)
    {
        const bool along_depth = o.depth_stride == 1;
        *outer = along_depth ? unit / (DEPTH / 4) : unit % SIZE;
        *d = (along_depth ? unit % (DEPTH / 4) : unit / SIZE) * 4;
    }

    template <int SIZE, int FOURS>
    static __device__ void fetch(const operand &o, int64_t d0, int64_t depth, cg_four four[FOURS])
    {
        CG_UNROLL
        for (int f = 0; f < FOURS; f++) {
            int outer, d;
            place<SIZE>(o, (int)threadIdx.x + f * THREADS, &outer, &d);
            const int64_t row = o.outer0 + outer, first = d0 + d;
            const float *at = o.from + row * o.stride + first * o.depth_stride;
            if (row < o.outer_end && o.by_fours && first + 4 <= depth)
                four[f] = *reinterpret_cast<const cg_four *>(at);
            else
                CG_UNROLL
            for (int k = 0; k < 4; k++)
                four[f].x[k] = row < o.outer_end && first + k < depth ? at[k * o.depth_stride] : 0.0f;
        }
    }

    template <int SIZE, int FOURS>
    static __device__ void keep(const operand &o, const cg_four four[FOURS], uint32_t *to)
    {
        CG_UNROLL
        for (int f = 0; f < FOURS; f++) {
            int outer, d;
            place<SIZE>(o, (int)threadIdx.x + f * THREADS, &outer, &d);
            NUMBER::pack(four[f].x, to + outer * PITCH + d / NUMBER::PER_WORD);
        }
    }

    static __device__ void multiply(const uint32_t *a, const uint32_t *b, float sum[ROWS / 16][COLUMNS / 8][4])
    {
        const int lane = (int)(threadIdx.x % CG_WARP);
        for (int word = 0; word < WORDS; word += 8) {
            uint32_t of_a[ROWS / 16][4], of_b[COLUMNS / 16][4]; /* of_b: two blocks of 8 columns at once */
            CG_UNROLL
            for (int i = 0; i < ROWS / 16; i++)
                cg_load_fragments(of_a[i], a + (i * 16 + lane % 16) * PITCH + word + lane / 16 * 4);
            CG_UNROLL
            for (int j = 0; j < COLUMNS / 16; j++)
                cg_load_fragments(of_b[j], b + (j * 16 + lane / 16 * 8 + lane % 8) * PITCH + word + lane / 8 % 2 * 4);
            CG_UNROLL
            for (int i = 0; i < ROWS / 16; i++)
                CG_UNROLL
            for (int j = 0; j < COLUMNS / 8; j++)
                NUMBER::multiply(sum[i][j], of_a[i], of_b[j / 2] + j % 2 * 2);
        }
    }

    /* All threads of the block call it. */
    static __device__ void run(const struct cg_gemm &g, int64_t tile_m, int64_t tile_n)
    {
        GPU_SHARED(uint32_t, shared);
        const int warp = (int)(threadIdx.x / CG_WARP), lane = (int)(threadIdx.x % CG_WARP);
        const int row0 = warp / WARPS_N * ROWS, column0 = warp % WARPS_N * COLUMNS;
        const operand of_a = make(g.a, g.a_row, g.a_column, tile_m * M, g.m);
        const operand of_b = make(g.b, g.b_column, g.b_row, tile_n * N, g.n);
        float sum[ROWS / 16][COLUMNS / 8][4];
        CG_UNROLL
        for (int i = 0; i < ROWS / 16; i++)
            CG_UNROLL
        for (int j = 0; j < COLUMNS / 8; j++)
            CG_UNROLL
        for (int e = 0; e < 4; e++)
            sum[i][j][e] = 0.0f;
        cg_four a[FOURS_A], b[FOURS_B];
        fetch<M, FOURS_A>(of_a, 0, g.depth, a);
        fetch<N, FOURS_B>(of_b, 0, g.depth, b);
        keep<M, FOURS_A>(of_a, a, shared);
        keep<N, FOURS_B>(of_b, b, shared + M * PITCH);
        __syncthreads();
        uint32_t *now = shared, *next = shared + BUFFER;
        for (int64_t d0 = 0; d0 < g.depth; d0 += DEPTH) {
            const bool more = d0 + DEPTH < g.depth;
            if (more) {
                fetch<M, FOURS_A>(of_a, d0 + DEPTH, g.depth, a);
                fetch<N, FOURS_B>(of_b, d0 + DEPTH, g.depth, b);
            }
            multiply(now + row0 * PITCH, now + (M + column0) * PITCH, sum);
            if (more) {
                keep<M, FOURS_A>(of_a, a, next);
                keep<N, FOURS_B>(of_b, b, next + M * PITCH);
            }
            __syncthreads();
            uint32_t *swap = now;
            now = next;
            next = swap;
        }
        CG_UNROLL
        for (int i = 0; i < ROWS / 16; i++)
            CG_UNROLL
        for (int j = 0; j < COLUMNS / 8; j++)
            CG_UNROLL
        for (int e = 0; e < 4; e++)
            cg_gemm_finish(g, tile_m * M + row0 + i * 16 + lane / 4 + e / 2 * 8,
                           tile_n * N + column0 + j * 8 + lane % 4 * 2 + e % 2, sum[i][j][e]);
    }
};

/* For many rows and columns; for few. */
template <typename NUMBER> using cg_mma_large = cg_mma_tile<NUMBER, 128, 128, 2, 4, 16>;
template <typename NUMBER> using cg_mma_small = cg_mma_tile<NUMBER, 32, 64, 2, 2, 32>;

#endif

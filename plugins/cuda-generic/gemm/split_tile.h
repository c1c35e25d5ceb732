/* SPDX-License-Identifier: Apache-2.0 */
/* One tile of a float32 product by one block, as three float16 products on tensor cores (device/split.h). Included by
 * kernels. Each slice of the depth goes through a stage of shared memory:
 *
 *   copied     float32, as it lies in memory: rows of A and columns of B [M or N][PITCH], or where neighbours in memory
 *              are rows (columns), [DEPTH][M or N]. Asynchronous copies run STAGES - 1 slices ahead.
 *   split      a thread takes a row, finds its scale, and puts its words in the same place: [M or N][PITCH], sixteen
 *              of hi, then sixteen of lo; the inverse of its scale goes to `inverse`
 *   multiplied by ldmatrix and mma.sync; the sums of the slice are scaled back and added in float32
 *
 * So each row has a scale of its own in each slice, and tensor cores, which round towards zero, add 32 products at
 * most. If a value does not fit (cg_split_fits), the block computes its whole tile in float32 afterwards.
 *
 *   shared memory   STAGES x ( A | B ) words, inverse [M + N], one flag
 *   warps           WARPS_M x WARPS_N, each with 16 I rows and 8 J columns */
#ifndef CG_SPLIT_TILE_H
#define CG_SPLIT_TILE_H

#include "cuda-generic/device/split.h"
#include "cuda-generic/gemm/mma_tile.h"

template <int WARPS_M_, int WARPS_N_, int I_, int J_> struct cg_split_shape {
    enum {
        WARPS_N = WARPS_N_,
        I = I_,
        J = J_,
        TOGETHER = 2, /* row blocks whose fragments are in registers at once */
        M = 16 * I * WARPS_M_,
        N = 8 * J * WARPS_N,
        THREADS = 32 * WARPS_M_ * WARPS_N,
        DEPTH = 32,
        HALF = DEPTH / 2,  /* words of hi, or of lo */
        PITCH = DEPTH + 4, /* eight rows of a block of fragments fall into different banks */
        STAGES = 3,
        STAGE = (M + N) * PITCH,
        SHARED_BYTES = (STAGES * STAGE + M + N + 4) * (int)sizeof(float)
    };
    static_assert((M == THREADS && N == THREADS) || M + N == THREADS, "rows of an operand are split at the same time");
    static_assert(I % TOGETHER == 0 && M % 32 == 0, "whole warps and fragments");
};

/* A_ALONG, B_ALONG: are neighbours in memory neighbours along the depth? */
template <typename SHAPE, int A_ALONG, int B_ALONG> struct cg_split_tile {
    enum { M = SHAPE::M, N = SHAPE::N, PITCH = SHAPE::PITCH, DEPTH = SHAPE::DEPTH, THREADS = SHAPE::THREADS };

    /* One operand: element (outer, d) is at outer * stride + d, or at outer + d * stride. */
    struct operand {
        const float *from;
        int64_t stride, outer0, outer_end, depth_end;
        bool by_fours; /* four neighbours are aligned */
    };

    static __device__ __forceinline__ operand make(const float *from, int64_t stride, int64_t outer0, int64_t outer_end,
                                                   int64_t depth_end)
    {
        operand o = {from, stride, outer0, outer_end, depth_end, false};
        o.by_fours = stride % 4 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0;
        return o;
    }

    /* Copies UNIT neighbours: those of them that are inside, and zeros for the others. */
    template <int ALONG, int UNIT>
    static __device__ __forceinline__ void copy(const operand &o, int64_t outer, int64_t d, float *to)
    {
        const int64_t left = ALONG ? o.depth_end - d : o.outer_end - outer;
        const bool inside = left > 0 && (ALONG ? outer < o.outer_end : d < o.depth_end);
        const int count = !inside ? 0 : left < UNIT ? (int)left : UNIT;
        const float *at = o.from + (ALONG ? outer * o.stride + d : outer + d * o.stride);
        gpu_copy_some<UNIT * 4>(to, inside ? at : o.from, count * 4);
    }

    /* Begins to copy a slice of SIZE rows (columns). */
    template <int ALONG, int UNIT, int SIZE>
    static __device__ __forceinline__ void fetch_units(const operand &o, int64_t d0, float *to)
    {
        const int row = (ALONG ? DEPTH : SIZE) / UNIT; /* units of a row of shared memory */
        for (int e = (int)threadIdx.x; e < SIZE * DEPTH / UNIT; e += THREADS) {
            const int slow = e / row, fast = e % row * UNIT;
            const int outer = ALONG ? slow : fast, d = ALONG ? fast : slow;
            copy<ALONG, UNIT>(o, o.outer0 + outer, d0 + d, to + (ALONG ? outer * PITCH + d : d * SIZE + outer));
        }
    }

    template <int ALONG, int SIZE> static __device__ __forceinline__ void fetch(const operand &o, int64_t d0, float *to)
    {
        if (o.by_fours)
            fetch_units<ALONG, 4, SIZE>(o, d0, to);
        else
            fetch_units<ALONG, 1, SIZE>(o, d0, to);
    }

    template <int ALONG, int SIZE>
    static __device__ __forceinline__ void read(const float *from, int row, float x[DEPTH])
    {
        CG_UNROLL
        for (int k = 0; k < DEPTH; k += 4) {
            if (ALONG) {
                const cg_four four = *reinterpret_cast<const cg_four *>(from + row * PITCH + k);
                CG_UNROLL
                for (int j = 0; j < 4; j++)
                    x[k + j] = four.x[j];
            } else {
                CG_UNROLL
                for (int j = 0; j < 4; j++)
                    x[k + j] = from[(k + j) * SIZE + row];
            }
        }
    }

    struct alignas(16) four_words {
        uint32_t word[4];
    };

    /* Splits a row in registers and puts its words in the row's place; returns the inverse of its scale. */
    static __device__ __forceinline__ float put(const float x[DEPTH], uint32_t *row, uint32_t *misfits)
    {
        float most = 0;
        CG_UNROLL
        for (int k = 0; k < DEPTH; k++)
            most = fmaxf(most, fabsf(x[k]));
        if (!cg_split_fits(most))
            *misfits = 1; /* all threads that write write the same value */
        const float scale = cg_split_scale(most);
        CG_UNROLL
        for (int w = 0; w < SHAPE::HALF; w += 4) {
            four_words hi, lo;
            CG_UNROLL
            for (int j = 0; j < 4; j++)
                cg_split_pair(x[2 * (w + j)] * scale, x[2 * (w + j) + 1] * scale, &hi.word[j], &lo.word[j]);
            *reinterpret_cast<four_words *>(row + w) = hi;
            *reinterpret_cast<four_words *>(row + SHAPE::HALF + w) = lo;
        }
        return cg_split_inverse(most);
    }

    /* All threads of the block call it. */
    static __device__ __forceinline__ void split(float *stage, float *inverse, uint32_t *misfits)
    {
        for (int row = (int)threadIdx.x; row < M + N; row += THREADS) {
            float x[DEPTH];
            if (row < M)
                read<A_ALONG, M>(stage, row, x);
            else
                read<B_ALONG, N>(stage + M * PITCH, row - M, x);
            if (!A_ALONG || !B_ALONG)
                __syncthreads(); /* now all have read the operand, and its words may take its place */
            inverse[row] = put(x, reinterpret_cast<uint32_t *>(stage) + row * PITCH, misfits);
        }
    }

    /* Adds the products of a slice; `a` and `b` are the warp's rows and columns, with their inverses. */
    static __device__ __forceinline__ void multiply(const uint32_t *a, const uint32_t *b, const float *inverse_a,
                                                    const float *inverse_b, int columns,
                                                    float sum[SHAPE::I][SHAPE::J][4])
    {
        enum { T = SHAPE::TOGETHER, HALF = SHAPE::HALF };
        const int lane = (int)(threadIdx.x % CG_WARP);
        CG_UNROLL
        for (int i0 = 0; i0 < SHAPE::I; i0 += T) {
            uint32_t of_a[T][2][2][4]; /* [][hi, lo][half of the slice] */
            float back[T][2];
            CG_UNROLL
            for (int i = 0; i < T; i++)
                CG_UNROLL
            for (int part = 0; part < 4; part++) {
                const uint32_t *row = a + ((i0 + i) * 16 + lane % 16) * PITCH;
                cg_load_fragments(of_a[i][part / 2][part % 2], row + part * 8 + lane / 16 * 4);
                back[i][part % 2] = inverse_a[(i0 + i) * 16 + part % 2 * 8 + lane / 4];
            }
            CG_UNROLL
            for (int j = 0; j < SHAPE::J; j++) {
                if (j >= columns) /* blocks of eight columns which lie outside of C */
                    continue;
                uint32_t hi[4], lo[4];
                cg_load_fragments(hi, b + (j * 8 + lane % 8) * PITCH + lane / 8 * 4);
                cg_load_fragments(lo, b + (j * 8 + lane % 8) * PITCH + HALF + lane / 8 * 4);
                CG_UNROLL
                for (int i = 0; i < T; i++) {
                    float large[4] = {0, 0, 0, 0}, cross[4] = {0, 0, 0, 0};
                    CG_UNROLL
                    for (int half = 0; half < 2; half++) {
                        cg_f16::multiply(large, of_a[i][0][half], hi + 2 * half);
                        cg_f16::multiply(cross, of_a[i][0][half], lo + 2 * half);
                        cg_f16::multiply(cross, of_a[i][1][half], hi + 2 * half);
                    }
                    CG_UNROLL
                    for (int e = 0; e < 4; e++)
                        sum[i0 + i][j][e] += cg_split_fold(large[e], cross[e]) * back[i][e / 2] *
                                             inverse_b[j * 8 + lane % 4 * 2 + e % 2];
                }
            }
        }
    }

    /* Where the block's sums go. */
    struct target {
        int64_t row0, column0, first, end; /* the depth from `first` to `end` */
        float *part;                       /* NULL: C itself */
    };

    static __device__ __forceinline__ void finish(const struct cg_gemm &g, const target &t, int row, int column,
                                                  float sum)
    {
        const int64_t i = t.row0 + row, j = t.column0 + column;
        if (t.part == nullptr)
            cg_gemm_finish(g, i, j, sum);
        else if (i < g.m && j < g.n)
            t.part[i * g.n + j] = sum;
    }

    /* The tile in float32, for values that do not fit. */
    static __device__ void run_plain(const struct cg_gemm &g, const target &t)
    {
        for (int e = (int)threadIdx.x; e < M * N; e += THREADS) {
            const int64_t i = t.row0 + e / N, j = t.column0 + e % N;
            float sum = 0;
            for (int64_t d = t.first; i < g.m && j < g.n && d < t.end; d++)
                sum += g.a[i * g.a_row + d * g.a_column] * g.b[d * g.b_row + j * g.b_column];
            finish(g, t, e / N, e % N, sum);
        }
    }

    /* All threads of the block call it. */
    static __device__ __forceinline__ void run(const struct cg_gemm &g, const target &t)
    {
        GPU_SHARED(float, shared);
        float *inverse = shared + SHAPE::STAGES * SHAPE::STAGE;
        uint32_t *misfits = reinterpret_cast<uint32_t *>(inverse + M + N);
        const int warp = (int)(threadIdx.x / CG_WARP), lane = (int)(threadIdx.x % CG_WARP);
        const int row0 = warp / SHAPE::WARPS_N * 16 * SHAPE::I, column0 = warp % SHAPE::WARPS_N * 8 * SHAPE::J;
        const int64_t left = (g.n - t.column0 - column0 + 7) / 8;
        const int columns = t.row0 + row0 >= g.m || left <= 0 ? 0 : left < SHAPE::J ? (int)left : (int)SHAPE::J;
        const operand of_a = make(g.a, A_ALONG ? g.a_row : g.a_column, t.row0, g.m, t.end);
        const operand of_b = make(g.b, B_ALONG ? g.b_column : g.b_row, t.column0, g.n, t.end);
        float sum[SHAPE::I][SHAPE::J][4];
        CG_UNROLL
        for (int i = 0; i < SHAPE::I; i++)
            CG_UNROLL
        for (int j = 0; j < SHAPE::J; j++)
            CG_UNROLL
        for (int e = 0; e < 4; e++)
            sum[i][j][e] = 0.0f;
        if (threadIdx.x == 0)
            *misfits = 0;
        const int slices = t.end > t.first ? (int)((t.end - t.first + DEPTH - 1) / DEPTH) : 0;
        for (int s = 0; s < slices + SHAPE::STAGES - 1; s++) { /* copies slice s, multiplies the one of two before */
            const int now = s - (SHAPE::STAGES - 1);
            if (now >= 0) {
                gpu_copy_wait<SHAPE::STAGES - 2>();
                __syncthreads(); /* all have slice `now`, and all have multiplied the one whose place slice s takes */
            }
            if (s < slices) {
                float *to = shared + s % SHAPE::STAGES * SHAPE::STAGE;
                fetch<A_ALONG, M>(of_a, t.first + (int64_t)s * DEPTH, to);
                fetch<B_ALONG, N>(of_b, t.first + (int64_t)s * DEPTH, to + M * PITCH);
            }
            gpu_copy_close();
            if (now < 0)
                continue;
            float *stage = shared + now % SHAPE::STAGES * SHAPE::STAGE;
            split(stage, inverse, misfits);
            __syncthreads();
            const uint32_t *words = reinterpret_cast<const uint32_t *>(stage);
            multiply(words + row0 * PITCH, words + (M + column0) * PITCH, inverse + row0, inverse + M + column0,
                     columns, sum);
        }
        __syncthreads();
        if (*misfits) {
            run_plain(g, t);
            return;
        }
        CG_UNROLL
        for (int i = 0; i < SHAPE::I; i++)
            CG_UNROLL
        for (int j = 0; j < SHAPE::J; j++)
            CG_UNROLL
        for (int e = 0; e < 4; e++)
            finish(g, t, row0 + i * 16 + lane / 4 + e / 2 * 8, column0 + j * 8 + lane % 4 * 2 + e % 2, sum[i][j][e]);
    }
};

#endif

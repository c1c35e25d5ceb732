/* SPDX-License-Identifier: Apache-2.0 */
/* One tile of a product by one block. Included by kernels. A tile of M x N elements goes through the depth in slices of
 * D in shared memory; each thread keeps TM x TN sums in registers.
 *
 *   shared memory   a [D][M + 1]   b [D][N + 1]      one word of padding, so that columns fall into different banks */
#ifndef CG_GEMM_TILE_H
#define CG_GEMM_TILE_H

#include "cuda-generic/device/device.h"
#include "cuda-generic/gemm/gemm.h"

/* Writes a sum to its place if that lies inside C. */
static __device__ __forceinline__ void cg_gemm_finish(const struct cg_gemm &g, int64_t row, int64_t column, float sum)
{
    if (row >= g.m || column >= g.n)
        return;
    float *at = &g.c[row * g.c_row + column];
    *at = sum + (g.bias ? g.bias[column] : 0.0f) + (g.add ? *at : 0.0f);
}

template <int M_, int N_, int TM_, int TN_> struct cg_tile {
    enum {
        M = M_,
        N = N_,
        TM = TM_,
        TN = TN_,
        D = 16,
        THREADS = (M / TM) * (N / TN),
        SHARED_BYTES = D * (M + 1 + N + 1) * (int)sizeof(float)
    };

    static __device__ void load(const float *from, int64_t outer_stride, int64_t depth_stride, int64_t outer0,
                                int64_t outer_end, int64_t depth0, int64_t depth_end, int outer_size, float *to)
    {
        const bool along_depth = depth_stride == 1;
        for (int e = (int)threadIdx.x; e < outer_size * D; e += THREADS) {
            const int outer = along_depth ? e / D : e % outer_size, d = along_depth ? e % D : e / outer_size;
            const bool inside = outer0 + outer < outer_end && depth0 + d < depth_end;
            to[d * (outer_size + 1) + outer] =
                inside ? from[(outer0 + outer) * outer_stride + (depth0 + d) * depth_stride] : 0.0f;
        }
    }

    /* All threads of the block call it. */
    static __device__ void run(const struct cg_gemm &g, int64_t tile_m, int64_t tile_n)
    {
        GPU_SHARED(float, shared);
        float *a = shared, *b = shared + D * (M + 1);
        const int64_t m0 = tile_m * M, n0 = tile_n * N;
        const int row = (int)threadIdx.x / (N / TN), column = (int)threadIdx.x % (N / TN);
        const bool busy = m0 + row < g.m && n0 + column < g.n; /* is its first element inside C? */
        float sum[TM][TN];
        for (int i = 0; i < TM; i++)
            for (int j = 0; j < TN; j++)
                sum[i][j] = 0.0f;
        for (int64_t d0 = 0; d0 < g.depth; d0 += D) {
            load(g.a, g.a_row, g.a_column, m0, g.m, d0, g.depth, M, a);
            load(g.b, g.b_column, g.b_row, n0, g.n, d0, g.depth, N, b);
            __syncthreads();
            for (int d = 0; busy && d < D; d++) {
                float x[TM], y[TN];
                for (int i = 0; i < TM; i++)
                    x[i] = a[d * (M + 1) + row + i * (M / TM)];
                for (int j = 0; j < TN; j++)
                    y[j] = b[d * (N + 1) + column + j * (N / TN)];
                for (int i = 0; i < TM; i++)
                    for (int j = 0; j < TN; j++)
                        sum[i][j] += x[i] * y[j];
            }
            __syncthreads();
        }
        for (int i = 0; i < TM; i++)
            for (int j = 0; j < TN; j++)
                cg_gemm_finish(g, m0 + row + i * (M / TM), n0 + column + j * (N / TN), sum[i][j]);
    }
};

typedef cg_tile<64, 64, 4, 4> cg_tile_large;
typedef cg_tile<16, 32, 2, 2> cg_tile_small;

#endif

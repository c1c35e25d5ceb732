/* SPDX-License-Identifier: Apache-2.0 */
/* The product kernels. See gemm.h. */
#include "cuda-generic/gemm/mma_tile.h"

template <typename TILE> __global__ void __launch_bounds__(TILE::THREADS) product(struct cg_gemm g)
{
    TILE::run(g, blockIdx.y, blockIdx.x);
}

template <typename TILE> static int launch(void *stream, const struct cg_gemm &g)
{
    /* Tiles beyond the largest grid take further launches. */
    for (int64_t first = 0; first < g.m; first += (int64_t)CG_BLOCKS_MOST * TILE::M) {
        struct cg_gemm part = g;
        part.m = g.m - first < (int64_t)CG_BLOCKS_MOST * TILE::M ? g.m - first : (int64_t)CG_BLOCKS_MOST * TILE::M;
        part.a += first * g.a_row;
        part.c += first * g.c_row;
        const dim3 grid((unsigned)((g.n + TILE::N - 1) / TILE::N), (unsigned)((part.m + TILE::M - 1) / TILE::M));
        const int code = GPU_LAUNCH(stream, grid, dim3(TILE::THREADS), TILE::SHARED_BYTES, product<TILE>, part);
        if (code != 0)
            return code;
    }
    return 0;
}

template <typename NUMBER> static int launch_mma(void *stream, const struct cg_gemm &g)
{
    const bool small = g.m <= 32 || g.m * g.n < 128 * 1024;
    return small ? launch<cg_mma_small<NUMBER>>(stream, g) : launch<cg_mma_large<NUMBER>>(stream, g);
}

extern "C" int cg_gemm_launch(void *stream, const struct cg_gemm *product)
{
    const bool small = product->m <= 16 || product->m * product->n < 64 * 1024;
    switch (product->compute) {
    case SEQLSTM_DTYPE_TF32:
        return launch_mma<cg_tf32>(stream, *product);
    case SEQLSTM_DTYPE_BFLOAT16:
        return launch_mma<cg_bf16>(stream, *product);
    case SEQLSTM_DTYPE_FLOAT16:
        return launch_mma<cg_f16>(stream, *product);
    default:
        return small ? launch<cg_tile_small>(stream, *product) : launch<cg_tile_large>(stream, *product);
    }
}

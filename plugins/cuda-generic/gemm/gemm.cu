/* SPDX-License-Identifier: Apache-2.0 */
/* The product kernels. See gemm.h. */
#include "cuda-generic/gemm/mma_tile.h"

template <typename TILE> __global__ void __launch_bounds__(TILE::THREADS) product(struct cg_gemm g)
{
    TILE::run(g, blockIdx.y, blockIdx.x);
}

/* One part of a product that is split: a product of its own. Apart from `product`, which needs no registers for it. */
template <typename TILE> __global__ void __launch_bounds__(TILE::THREADS) product_part(struct cg_gemm g)
{
    const int64_t first = (int64_t)blockIdx.z * g.part_depth, left = g.depth - first;
    g.a += first * g.a_column;
    g.b += first * g.b_row;
    g.depth = left < g.part_depth ? left : g.part_depth; /* negative: only zeros are written */
    g.c = g.parts + (int64_t)blockIdx.z * g.m * g.n;
    g.c_row = g.n;
    g.bias = nullptr;
    g.add = 0;
    TILE::run(g, blockIdx.y, blockIdx.x);
}

static __global__ void add_parts(struct cg_gemm g, int64_t parts)
{
    CG_FOR_EACH(e, g.m * g.n)
    {
        float sum = 0;
        for (int64_t p = 0; p < parts; p++)
            sum += g.parts[p * g.m * g.n + e];
        cg_gemm_finish(g, e / g.n, e % g.n, sum);
    }
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

static int launch_sum(void *stream, const struct cg_gemm &g, int64_t parts)
{
    return GPU_LAUNCH(stream, cg_blocks(g.m * g.n), CG_THREADS, 0, add_parts, g, parts);
}

/* Few tiles, which all fit into one grid. */
template <typename TILE> static int launch_parts(void *stream, const struct cg_gemm &g, int64_t parts)
{
    const dim3 grid((unsigned)((g.n + TILE::N - 1) / TILE::N), (unsigned)((g.m + TILE::M - 1) / TILE::M),
                    (unsigned)parts);
    const int code = GPU_LAUNCH(stream, grid, dim3(TILE::THREADS), TILE::SHARED_BYTES, product_part<TILE>, g);
    return code != 0 ? code : launch_sum(stream, g, parts);
}

template <typename NUMBER> static int launch_mma(void *stream, const struct cg_gemm &g, int64_t parts)
{
    const bool small = g.m <= 32 || g.m * g.n < 128 * 1024;
    return parts > 1 ? launch_parts<cg_mma_large<NUMBER>>(stream, g, parts)
           : small   ? launch<cg_mma_small<NUMBER>>(stream, g)
                     : launch<cg_mma_large<NUMBER>>(stream, g);
}

static int launch_float(void *stream, const struct cg_gemm &g, int64_t parts)
{
    if (parts > 1)
        return g.m <= 16 || g.n <= 16 ? launch_parts<cg_tile_small>(stream, g, parts)
                                      : launch_parts<cg_tile_large>(stream, g, parts);
    return g.m <= 16 || g.m * g.n < 64 * 1024 ? launch<cg_tile_small>(stream, g) : launch<cg_tile_large>(stream, g);
}

/* Split.cu has kernels for operands of these layouts: x W', dz W and dz' x. */
static bool can_split(const struct cg_gemm &g)
{
    return (g.a_column == 1 && (g.b_row == 1 || g.b_column == 1)) || (g.a_row == 1 && g.b_column == 1);
}

static int launch_split(void *stream, const struct cg_gemm &g, int64_t parts)
{
    const int code = cg_split_launch(stream, &g, parts);
    return code != 0 || parts == 1 ? code : launch_sum(stream, g, parts);
}

extern "C" int cg_gemm_launch(void *stream, const struct cg_gemm *product)
{
    struct cg_gemm g = *product;
    if (g.m == 0 || g.n == 0)
        return 0;
    const int64_t parts = g.parts != nullptr ? cg_gemm_count_parts(g.m, g.n, g.depth) : 1;
    g.part_depth = ((g.depth + parts - 1) / parts + 15) / 16 * 16; /* whole slices of a tile */
    switch (g.compute) {
    case SEQLSTM_DTYPE_TF32:
        return launch_mma<cg_tf32>(stream, g, parts);
    case SEQLSTM_DTYPE_BFLOAT16:
        return launch_mma<cg_bf16>(stream, g, parts);
    case SEQLSTM_DTYPE_FLOAT16:
        return launch_mma<cg_f16>(stream, g, parts);
    default:
        return g.f16x3 && can_split(g) ? launch_split(stream, g, parts) : launch_float(stream, g, parts);
    }
}

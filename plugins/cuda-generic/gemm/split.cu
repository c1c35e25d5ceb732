/* SPDX-License-Identifier: Apache-2.0 */
/* Float32 products by three float16 products. See split_tile.h. */
#include "cuda-generic/gemm/split_tile.h"

/* For many rows and columns; for few. */
typedef cg_split_shape<2, 2, 4, 8> large_shape;
typedef cg_split_shape<2, 2, 2, 4> small_shape;

/* Block z computes part z of the depth, if there are several. */
template <typename SHAPE, int A_ALONG, int B_ALONG>
__global__ void __launch_bounds__(SHAPE::THREADS) split_product(struct cg_gemm g)
{
    typedef cg_split_tile<SHAPE, A_ALONG, B_ALONG> tile;
    const bool parts = gridDim.z > 1;
    const int64_t first = (int64_t)blockIdx.z * g.part_depth, end = first + g.part_depth;
    const typename tile::target t = {(int64_t)blockIdx.y * SHAPE::M, (int64_t)blockIdx.x * SHAPE::N, parts ? first : 0,
                                     parts && end < g.depth ? end : g.depth,
                                     parts ? g.parts + (int64_t)blockIdx.z * g.m * g.n : nullptr};
    tile::run(g, t);
}

template <typename SHAPE, int A_ALONG, int B_ALONG>
static int launch(void *stream, const struct cg_gemm &g, int64_t parts)
{
    /* Tiles beyond the largest grid take further launches; there are none where the depth is split. */
    for (int64_t first = 0; first < g.m; first += (int64_t)CG_BLOCKS_MOST * SHAPE::M) {
        struct cg_gemm part = g;
        part.m = g.m - first < (int64_t)CG_BLOCKS_MOST * SHAPE::M ? g.m - first : (int64_t)CG_BLOCKS_MOST * SHAPE::M;
        part.a += first * g.a_row;
        part.c += first * g.c_row;
        const dim3 grid((unsigned)((g.n + SHAPE::N - 1) / SHAPE::N), (unsigned)((part.m + SHAPE::M - 1) / SHAPE::M),
                        (unsigned)parts);
        const auto kernel = split_product<SHAPE, A_ALONG, B_ALONG>;
        const int code = GPU_LAUNCH_LARGE(stream, grid, dim3(SHAPE::THREADS), SHAPE::SHARED_BYTES, kernel, part);
        if (code != 0)
            return code;
    }
    return 0;
}

template <typename SHAPE> static int launch_along(void *stream, const struct cg_gemm &g, int64_t parts)
{
    const bool a_along = g.a_column == 1, b_along = g.b_row == 1;
    return a_along && b_along ? launch<SHAPE, 1, 1>(stream, g, parts)
           : a_along          ? launch<SHAPE, 1, 0>(stream, g, parts)
                              : launch<SHAPE, 0, 0>(stream, g, parts);
}

#ifndef CG_SPLIT_TILES_MIN
#define CG_SPLIT_TILES_MIN (CG_PARTS_BLOCKS / 2) /* one for each multiprocessor; tests set it */
#endif

/* Are there enough large tiles, without most of one lying outside of C? */
static bool fits_large(const struct cg_gemm &g, int64_t parts)
{
    const int64_t m = large_shape::M, n = large_shape::N;
    const int64_t tiles = (g.m + m - 1) / m * ((g.n + n - 1) / n) * parts;
    return tiles >= CG_SPLIT_TILES_MIN && g.m > m / 2 && g.n > n / 2 && g.shared_most >= large_shape::SHARED_BYTES;
}

extern "C" int cg_split_launch(void *stream, const struct cg_gemm *product, int64_t parts)
{
    const struct cg_gemm g = *product;
    return fits_large(g, parts) ? launch_along<large_shape>(stream, g, parts)
                                : launch_along<small_shape>(stream, g, parts);
}

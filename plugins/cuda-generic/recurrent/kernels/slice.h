/* SPDX-License-Identifier: Apache-2.0 */
/* The product of rows that all blocks have published with the slice of W_h that one block keeps. Included by the
 * kernel of `grid`. Layouts: grid.h. */
#ifndef CG_SLICE_H
#define CG_SLICE_H

#include "cuda-generic/recurrent/kernels/grid.h"
#include "cuda-generic/gemm/warp_product.h"

/* Forward: column gate * units + u of a block's slice is the row of W_h of that gate of unit unit0 + u. */
static __device__ inline float cg_get_row_weight(const struct cg_layer &y, int64_t unit0, int units, int column,
                                                 int64_t d)
{
    const int64_t gate = column / units, unit = unit0 + column % units, j = gate * y.hidden + unit;
    return gate < y.gates && unit < y.hidden && !cg_is_unused(&y, j) ? y.w_h[j * y.out + d] : 0.0f;
}

/* Backward: column u belongs to unit unit0 + u and covers the rows of all gates. */
static __device__ inline float cg_get_column_weight(const struct cg_layer &y, int64_t unit0, int units, int column,
                                                    int64_t j)
{
    return column < units && !cg_is_unused(&y, j) ? y.w_h[j * y.out + unit0 + column] : 0.0f;
}

/* The sums of a warp: of 16 rows with all columns, over every splits-th 16 of `words` words. */
template <typename NUMBER>
static __device__ __forceinline__ void cg_slice_add(const uint32_t *rows, int pitch, const uint32_t *weights,
                                                    int w_pitch, int words, int split, int splits, int groups,
                                                    float sum[CG_GRID_GROUPS_MOST][4])
{
    for (int word = 16 * split; word < words; word += 16 * splits)
        NUMBER::template multiply_groups<CG_GRID_GROUPS_MOST>(rows + word, pitch, weights + word, w_pitch, groups, sum);
}

static __device__ __forceinline__ void cg_slice_clear(float sum[CG_GRID_GROUPS_MOST][4])
{
    CG_UNROLL
    for (int j = 0; j < CG_GRID_GROUPS_MOST; j++)
        CG_UNROLL
    for (int e = 0; e < 4; e++)
        sum[j][e] = 0.0f;
}

/* Writes the sums to `partial` [WARPS][16][columns]; complete when it returns. All threads call. */
template <typename NUMBER>
static __device__ __forceinline__ void cg_slice_keep(const struct cg_grid &g, const float sum[CG_GRID_GROUPS_MOST][4],
                                                     uint32_t *partial)
{
    const int lane = (int)(threadIdx.x % CG_WARP);
    float *to = reinterpret_cast<float *>(partial) + threadIdx.x / CG_WARP * 16 * g.columns;
    CG_UNROLL
    for (int j = 0; j < CG_GRID_GROUPS_MOST; j++)
        CG_UNROLL
    for (int e = 0; e < 4; e++)
        if (j < g.columns / 8)
            to[NUMBER::row(lane, e) * g.columns + j * 8 + NUMBER::column(lane, e)] = sum[j][e];
    __syncthreads();
}

/* Multiplies rows [b0, b0 + 16 tiles) of what is published in global memory with the slice; rows from m on are zero.
 * The rows pass through `rows`, which must be free before and holds the partial sums afterwards. */
template <typename NUMBER, int WARPS>
static __device__ void cg_slice_multiply(const struct cg_grid &g, const uint32_t *published, int64_t b0, int64_t m,
                                         const uint32_t *weights, uint32_t *rows)
{
    const int warp = (int)(threadIdx.x / CG_WARP), splits = WARPS / g.tiles, pitch = g.chunk + 4;
    float sum[CG_GRID_GROUPS_MOST][4];
    cg_slice_clear(sum);
    for (int word0 = 0; word0 < g.words; word0 += g.chunk) {
        const int words = g.words - word0 < g.chunk ? g.words - word0 : g.chunk;
        for (int e = (int)threadIdx.x; e < 4 * g.tiles * words; e += 32 * WARPS) {
            const int row = e / (words / 4), word = e % (words / 4) * 4;
            const cg_four none = {{0, 0, 0, 0}};
            const uint32_t *from = published + (b0 + row) * g.words + word0 + word;
            *reinterpret_cast<cg_four *>(rows + row * pitch + word) =
                b0 + row < m ? *reinterpret_cast<const cg_four *>(from) : none;
        }
        __syncthreads();
        cg_slice_add<NUMBER>(rows + warp / splits * 16 * pitch, pitch, weights + word0, g.words + 4, words,
                             warp % splits, splits, g.columns / 8, sum);
        __syncthreads(); /* now all threads have read the chunk */
    }
    cg_slice_keep<NUMBER>(g, sum, rows);
}

/* The whole sum of a column for row `row` of these, its splits added in order. */
template <int WARPS>
static __device__ float cg_slice_sum(const struct cg_grid &g, const uint32_t *rows, int row, int column)
{
    const int splits = WARPS / g.tiles, warp0 = row / 16 * splits;
    float sum = 0;
    for (int split = 0; split < splits; split++)
        sum += reinterpret_cast<const float *>(rows)[((warp0 + split) * 16 + row % 16) * g.columns + column];
    return sum;
}

#endif

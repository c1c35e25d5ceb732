/* SPDX-License-Identifier: Apache-2.0 */
/* Products by one warp of rows and columns that lie in shared memory as words of any number type. Included by
 * kernels. The sums are of 16 rows with groups of 8 columns. Lane l has four sums of each group, at row(l, e) and
 * column(l, e). */
#ifndef CG_WARP_PRODUCT_H
#define CG_WARP_PRODUCT_H

#include "cuda-generic/gemm/mma_tile.h"

/* float32 without tensor cores, in the shape of the tensor cores' number types: a lane has rows 4 (lane / 8) to 4 (lane
 * / 8) + 3 and column lane % 8 of each group of eight. */
struct cg_f32 {
    enum { PER_WORD = 1 };
    static __device__ __forceinline__ uint32_t word(float x, float)
    {
        return gpu_float_bits(x);
    }
    static __device__ __forceinline__ void put(uint32_t *row, int64_t d, float x)
    {
        row[d] = gpu_float_bits(x);
    }
    static __device__ __forceinline__ int row(int lane, int e)
    {
        return lane / 8 * 4 + e;
    }
    static __device__ __forceinline__ int column(int lane, int)
    {
        return lane % 8;
    }
    /* Multiplies 16 words of 16 I rows with 16 words of 8 J columns; both have the same pitch. */
    template <int I, int J>
    static __device__ __forceinline__ void multiply_tile(const uint32_t *a, const uint32_t *w, int pitch,
                                                         float sum[I][J][4])
    {
        const int lane = (int)(threadIdx.x % CG_WARP);
        for (int word = 0; word < 16; word += 4) {
            cg_four y[J];
            CG_UNROLL
            for (int j = 0; j < J; j++)
                y[j] = *reinterpret_cast<const cg_four *>(w + (j * 8 + lane % 8) * pitch + word);
            CG_UNROLL
            for (int r = 0; r < 4 * I; r++) {
                const uint32_t *at = a + (r / 4 * 16 + row(lane, r % 4)) * pitch + word;
                const cg_four x = *reinterpret_cast<const cg_four *>(at);
                CG_UNROLL
                for (int j = 0; j < J; j++)
                    CG_UNROLL
                for (int k = 0; k < 4; k++)
                    sum[r / 4][j][r % 4] += x.x[k] * y[j].x[k];
            }
        }
    }
};

/* The same on tensor cores. */
template <typename NUMBER> struct cg_wide : NUMBER {
    static __device__ __forceinline__ int row(int lane, int e)
    {
        return lane / 4 + e / 2 * 8;
    }
    static __device__ __forceinline__ int column(int lane, int e)
    {
        return lane % 4 * 2 + e % 2;
    }
    template <int I, int J>
    static __device__ __forceinline__ void multiply_tile(const uint32_t *a, const uint32_t *w, int pitch,
                                                         float sum[I][J][4])
    {
        const int lane = (int)(threadIdx.x % CG_WARP);
        uint32_t of_a[I][2][4], of_w[4];
        CG_UNROLL
        for (int i = 0; i < I; i++)
            CG_UNROLL
        for (int half = 0; half < 2; half++)
            cg_load_fragments(of_a[i][half], a + (i * 16 + lane % 16) * pitch + 8 * half + lane / 16 * 4);
        CG_UNROLL
        for (int j = 0; j < J; j++) {
            cg_load_fragments(of_w, w + (j * 8 + lane % 8) * pitch + lane / 8 * 4);
            CG_UNROLL
            for (int half = 0; half < 2; half++)
                CG_UNROLL
            for (int i = 0; i < I; i++)
                NUMBER::multiply(sum[i][j], of_a[i][half], of_w + 2 * half);
        }
    }
};

/* Word number `word` of a vector of `elems` values. */
template <typename NUMBER, typename GET> static __device__ uint32_t cg_slice_word(int word, int64_t elems, GET get)
{
    const int64_t d = (int64_t)word * NUMBER::PER_WORD;
    return NUMBER::word(d < elems ? get(d) : 0.0f, NUMBER::PER_WORD == 2 && d + 1 < elems ? get(d + 1) : 0.0f);
}

/* Calls CHOSEN::run<NUMBER>(chosen) with the number type of the products. */
template <typename CHOSEN> static int cg_choose_number(uint32_t compute, CHOSEN chosen)
{
    switch (compute) {
    case SEQLSTM_DTYPE_TF32:
        return CHOSEN::template run<cg_wide<cg_tf32>>(chosen);
    case SEQLSTM_DTYPE_BFLOAT16:
        return CHOSEN::template run<cg_wide<cg_bf16>>(chosen);
    case SEQLSTM_DTYPE_FLOAT16:
        return CHOSEN::template run<cg_wide<cg_f16>>(chosen);
    default:
        return CHOSEN::template run<cg_f32>(chosen);
    }
}

#endif

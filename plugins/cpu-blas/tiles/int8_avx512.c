/* SPDX-License-Identifier: Apache-2.0 */
/* int8 on vectors of AVX-512 with VNNI. */
#include <immintrin.h>

#include "cpu-blas/tiles/lanes.h"
#include "cpu-blas/tiles/memory.h"

INLINE void product_rows(const int rows, tile_file *file, int c, int a, int b)
{
    __m512i sum[BLAS_TILE_ROWS];
    UNROLL_FOR (int r = 0; r < rows; r++)
        sum[r] = _mm512_load_si512(file->sums[c][r]);
    for (int k = 0; k < TILE_WORDS; k++) {
        const __m512i right = _mm512_load_si512(file->operands[b] + k * (int)sizeof right);
        UNROLL_FOR (int r = 0; r < rows; r++)
            sum[r] = _mm512_dpbusd_epi32(sum[r], _mm512_set1_epi32((int)tile_word(file, a, r, k)), right);
    }
    UNROLL_FOR (int r = 0; r < rows; r++)
        _mm512_store_si512(file->sums[c][r], sum[r]);
}

#define ROWS(n)                                                                                                        \
    case n:                                                                                                            \
        product_rows(n, file, c, a, b);                                                                                \
        break
static void tile_product(tile_file *file, int c, int a, int b)
{
    switch (file->rows[c]) {
        ROWS(1);
        ROWS(2);
        ROWS(3);
        ROWS(4);
        ROWS(5);
        ROWS(6);
        ROWS(7);
        ROWS(8);
        ROWS(9);
        ROWS(10);
        ROWS(11);
        ROWS(12);
        ROWS(13);
        ROWS(14);
        ROWS(15);
    default:
        product_rows(BLAS_TILE_ROWS, file, c, a, b);
    }
}
#undef ROWS

#define TILE_PRODUCT(file, c, a, b) tile_product(file, c, a, b)

INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

#include "cpu-blas/tiles/int8.inc"

/* SPDX-License-Identifier: Apache-2.0 */
/* int8 on vectors of AVX2. Products of bytes are those of 16-bit integers here: the instruction for bytes limits the
 * sum of two products to 16 bits. */
#include <immintrin.h>

#include "cpu-blas/tiles/lanes.h"
#include "cpu-blas/tiles/memory.h"

enum { QUARTERS = 4 /* of the columns of a tile; the sums of each are in a vector, two for each column */ };

INLINE void product_rows(const int rows, tile_file *file, int c, int row, int a, int b)
{
    __m256i sum[2][QUARTERS];
    UNROLL_FOR (int r = 0; r < rows; r++)
        UNROLL_FOR (int i = 0; i < QUARTERS; i++)
            sum[r][i] = _mm256_setzero_si256();
    for (int k = 0; k < TILE_WORDS; k++) {
        const __m128i *from = (const __m128i *)(const void *)(file->operands[b] + k * 64);
        __m256i left[2];
        UNROLL_FOR (int r = 0; r < rows; r++)
            left[r] =
                _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128((int)tile_word(file, a, row + r, k))));
        UNROLL_FOR (int i = 0; i < QUARTERS; i++) {
            const __m256i right = _mm256_cvtepi8_epi16(_mm_load_si128(from + i));
            UNROLL_FOR (int r = 0; r < rows; r++)
                sum[r][i] = _mm256_add_epi32(sum[r][i], _mm256_madd_epi16(left[r], right));
        }
    }
    UNROLL_FOR (int r = 0; r < rows; r++)
        UNROLL_FOR (int i = 0; i < QUARTERS; i += 2) {
            __m256i *to = (__m256i *)(void *)file->sums[c][row + r] + i / 2;
            const __m256i added = _mm256_hadd_epi32(sum[r][i], sum[r][i + 1]);
            _mm256_store_si256(to, _mm256_add_epi32(_mm256_load_si256(to), _mm256_permute4x64_epi64(added, 0xD8)));
        }
}

static void tile_product(tile_file *file, int c, int a, int b)
{
    int r = 0;
    for (; r + 2 <= file->rows[c]; r += 2)
        product_rows(2, file, c, r, a, b);
    if (r < file->rows[c])
        product_rows(1, file, c, r, a, b);
}

#define TILE_PRODUCT(file, c, a, b) tile_product(file, c, a, b)

INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    __m256 half[3][2];
    memcpy(half[0], &a, sizeof a);
    memcpy(half[1], &b, sizeof b);
    memcpy(half[2], &c, sizeof c);
    for (int i = 0; i < 2; i++)
        half[2][i] = _mm256_fmadd_ps(half[0][i], half[1][i], half[2][i]);
    memcpy(&c, half[2], sizeof c);
    return c;
}

#include "cpu-blas/tiles/int8.inc"

/* SPDX-License-Identifier: Apache-2.0 */
/* int8 on tiles in portable C: exact, like AMX (Intel 64 and IA-32 Architectures Software Developer's Manual,
 * volume 2, TDPBUSD). Sums are those of 32-bit integers. */
#include <math.h>

#include "cpu-blas/tiles/memory.h"
#include "cpu-blas/tiles/lanes.h"

static void tile_product(tile_file *file, int c, int a, int b)
{
    for (int k = 0; k < TILE_WORDS; k++) {
        int32_t right[4][TILE_WORDS];
        for (int n = 0; n < TILE_WORDS; n++) {
            const uint32_t word = tile_word(file, b, k, n);
            for (int i = 0; i < 4; i++)
                right[i][n] = (int8_t)(word >> 8 * i & 0xFFu);
        }
        for (int r = 0; r < file->rows[c]; r++) {
            const uint32_t word = tile_word(file, a, r, k);
            uint32_t *sum = file->sums[c][r];
            for (int i = 0; i < 4; i++) {
                const int32_t left = (int32_t)(word >> 8 * i & 0xFFu);
                for (int n = 0; n < TILE_WORDS; n++)
                    sum[n] += (uint32_t)(left * right[i][n]);
            }
        }
    }
}

#define TILE_PRODUCT(file, c, a, b) tile_product(file, c, a, b)

INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    for (int i = 0; i < LANE_COUNT; i++)
        c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}

#include "cpu-blas/tiles/int8.inc"

/* SPDX-License-Identifier: Apache-2.0 */
/* int8 on tiles in portable C, bit for bit like AMX (Intel 64 and IA-32 Architectures Software Developer's Manual,
 * volume 2, TDPBUSD). Sums are those of 32-bit integers. */
#include <math.h>

#include "cpu-blas/tiles/emulated.h"
#include "cpu-blas/tiles/lanes.h"

static void tile_product(tile_file *file, int c, int a, int b)
{
    for (int r = 0; r < file->rows[c]; r++)
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < 16; n++)
                for (int i = 0; i < 32; i += 8) {
                    const int32_t first = (int32_t)(file->words[a][r][k] >> i & 0xFFu);
                    const int32_t second = (int8_t)(file->words[b][k][n] >> i & 0xFFu);
                    file->words[c][r][n] += (uint32_t)(first * second);
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

const struct blas_tile_kernels blas_int8_kernels_emulated = {.name = "emulated",
                                                             .tile_k = BLAS_INT8_K,
                                                             .rows = int8_rows,
                                                             .columns = int8_columns,
                                                             .product = product,
                                                             .release = release,
                                                             .sums = int8_sums,
                                                             .largest = int8_largest};

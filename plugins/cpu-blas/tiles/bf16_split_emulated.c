/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 parts on tiles in portable C, bit for bit like AMX (Intel 64 and IA-32 Architectures Software Developer's
 * Manual, volume 2, TDPBF16PS). Within one product of tiles, even and odd elements of k have a sum each. These are
 * added to each other, then to the previous content of the tile. The caller sets denormals to zero (isa.h). */
#include "cpu-blas/tiles/memory.h"
#include "cpu-blas/tiles/lanes.h"

static float word_float(uint32_t word)
{
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

static void tile_product(tile_file *file, int c, int a, int b)
{
    for (int r = 0; r < file->rows[c]; r++) {
        float even[16] = {0}, odd[16] = {0}, sum[16];
        for (int k = 0; k < 16; k++) {
            const uint32_t pair = tile_word(file, a, r, k);
            const float first = word_float(pair << 16), second = word_float(pair & 0xFFFF0000u);
            for (int n = 0; n < 16; n++) {
                const uint32_t other = tile_word(file, b, k, n);
                even[n] += first * word_float(other << 16);
                odd[n] += second * word_float(other & 0xFFFF0000u);
            }
        }
        memcpy(sum, file->sums[c][r], sizeof sum);
        for (int n = 0; n < 16; n++)
            sum[n] += even[n] + odd[n];
        memcpy(file->sums[c][r], sum, sizeof sum);
    }
}

#define TILE_PRODUCT(file, c, a, b) tile_product(file, c, a, b)

#include "cpu-blas/tiles/bf16_split.inc"

const struct blas_tile_kernels blas_bf16_kernels_emulated = {.name = "emulated",
                                                             .tile_k = BLAS_TILE_K,
                                                             .sequences_min = 4,
                                                             .rows_min = 1,
                                                             .product_rows_min = 1,
                                                             .rows = split_rows,
                                                             .across = split_across,
                                                             .columns = split_columns,
                                                             .columns_across = split_columns_across,
                                                             .product = product,
                                                             .release = release};

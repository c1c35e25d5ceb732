/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces on tiles in portable C, bit for bit those of AMX (Intel 64 and IA-32 Architectures Software Developer's
 * Manual, volume 2, TDPBF16PS): within one product of tiles, even and odd elements of k have a sum each, which are
 * added to one another and then to what the tile held. The caller has denormals flushed (isa.h). */
#include <string.h>

#include "pieces.h"
#include "recurrent_unit.h"

typedef struct tile_file {
    uint8_t rows[8];
    uint32_t words[8][BLAS_TILE_ROWS][16];
} tile_file;
static _Thread_local tile_file own;
#define TILE_FILE(tiles) ((void)(tiles), &own)

static void tiles_config(tile_file *file, const uint8_t rows[8])
{
    memcpy(file->rows, rows, sizeof file->rows);
    memset(file->words, 0, sizeof file->words);
}

static void tiles_release(tile_file *file) { (void)file; }

static void tile_load(tile_file *file, int t, const void *from, int64_t stride)
{
    for (int r = 0; r < file->rows[t]; r++)
        memcpy(file->words[t][r], (const char *)from + r * stride, sizeof file->words[t][r]);
}

static void tile_store(const tile_file *file, int t, void *to, int64_t stride)
{
    for (int r = 0; r < file->rows[t]; r++)
        memcpy((char *)to + r * stride, file->words[t][r], sizeof file->words[t][r]);
}

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
            const uint32_t pair = file->words[a][r][k];
            const float first = word_float(pair << 16), second = word_float(pair & 0xFFFF0000u);
            for (int n = 0; n < 16; n++) {
                const uint32_t other = file->words[b][k][n];
                even[n] += first * word_float(other << 16);
                odd[n] += second * word_float(other & 0xFFFF0000u);
            }
        }
        memcpy(sum, file->words[c][r], sizeof sum);
        for (int n = 0; n < 16; n++)
            sum[n] += even[n] + odd[n];
        memcpy(file->words[c][r], sum, sizeof sum);
    }
}

#define TILE_ZERO(file, t)               memset((file)->words[t], 0, sizeof (file)->words[t])
#define TILE_LOAD(file, t, from, stride) tile_load(file, t, from, stride)
#define TILE_STORE(file, t, to, stride)  tile_store(file, t, to, stride)
#define TILE_PRODUCT(file, c, a, b)      tile_product(file, c, a, b)

#include "pieces.inc"

const struct blas_pieces_kernels blas_pieces_kernels_emulated = {
    .name = "emulated", .sequences_min = 4, .rows_min = 1, .product_rows_min = 1,
    .rows = split_rows, .across = split_across, .columns = split_columns, .columns_across = split_columns_across,
    .product = product, .release = release};

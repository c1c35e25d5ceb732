/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles in memory, for product.inc. Those of A and B stay where they are; the four of sums are copied. */
#ifndef BLAS_TILES_MEMORY_H
#define BLAS_TILES_MEMORY_H

#include <string.h>

#include "cpu-blas/tiles/tiles.h"

enum { TILE_SUMS = 4, TILE_WORDS = 16 /* in a row */ };

typedef struct tile_file {
    const uint8_t *rows;     /* of each tile */
    const char *operands[8]; /* from TILE_SUMS on; a row has BLAS_TILE_K words of 16 bits */
    uint32_t sums[TILE_SUMS][BLAS_TILE_ROWS][TILE_WORDS] __attribute__((aligned(64)));
} tile_file;

#define TILE_FILE(file, tiles)                                                                                         \
    tile_file file##_own;                                                                                              \
    tile_file *const file = &file##_own;                                                                               \
    file->rows = (tiles)->rows

static void tiles_config(const uint8_t rows[8])
{
    (void)rows;
}

static void tiles_release(void)
{
}

/* Word `at` of row r of an operand. */
static inline uint32_t tile_word(const tile_file *file, int t, int r, int at)
{
    uint32_t word;
    memcpy(&word, file->operands[t] + (r * TILE_WORDS + at) * (int)sizeof word, sizeof word);
    return word;
}

static inline void sums_clear(tile_file *file, int t)
{
    memset(file->sums[t], 0, file->rows[t] * sizeof file->sums[t][0]);
}

static inline void sums_load(tile_file *file, int t, const void *from, int64_t stride)
{
    for (int r = 0; r < file->rows[t]; r++)
        memcpy(file->sums[t][r], (const char *)from + r * stride, sizeof file->sums[t][r]);
}

static inline void sums_store(const tile_file *file, int t, void *to, int64_t stride)
{
    for (int r = 0; r < file->rows[t]; r++)
        memcpy((char *)to + r * stride, file->sums[t][r], sizeof file->sums[t][r]);
}

#define TILE_ZERO(file, t)               sums_clear(file, t)
#define TILE_LOAD(file, t, from, stride) sums_load(file, t, from, stride)
#define TILE_OPERAND(file, t, from)      ((file)->operands[t] = (const char *)(from))
#define TILE_STORE(file, t, to, stride)  sums_store(file, t, to, stride)

#endif

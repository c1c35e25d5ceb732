/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles in portable C, for product.inc. */
#ifndef BLAS_TILES_EMULATED_H
#define BLAS_TILES_EMULATED_H

#include <string.h>

#include "cpu-blas/tiles/tiles.h"

typedef struct tile_file {
    uint8_t rows[8];
    uint32_t words[8][BLAS_TILE_ROWS][16];
} tile_file;

/* The tiles of this thread. Called once for each product: otherwise the compiler would compute the address of the
 * thread-local variable at every access. */
static __attribute__((noinline)) tile_file *tile_file_own(void)
{
    static _Thread_local tile_file own;
    return &own;
}

#define TILE_FILE(tiles) ((void)(tiles), tile_file_own())

static void tiles_config(tile_file *file, const uint8_t rows[8])
{
    memcpy(file->rows, rows, sizeof file->rows);
    memset(file->words, 0, sizeof file->words);
}

static void tiles_release(tile_file *file)
{
    (void)file;
}

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

#define TILE_ZERO(file, t)               memset((file)->words[t], 0, sizeof(file)->words[t])
#define TILE_LOAD(file, t, from, stride) tile_load(file, t, from, stride)
#define TILE_STORE(file, t, to, stride)  tile_store(file, t, to, stride)

#endif

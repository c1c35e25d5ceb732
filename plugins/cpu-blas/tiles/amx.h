/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of AMX, for product.inc. */
#ifndef BLAS_TILES_AMX_H
#define BLAS_TILES_AMX_H

#include <immintrin.h>
#include <string.h>

#include "cpu-blas/tiles/tiles.h"

typedef struct tile_file tile_file; /* the processor's own */
#define TILE_FILE(file, tiles)                                                                                         \
    tile_file *const file = NULL;                                                                                      \
    (void)(tiles)

static void tiles_config(const uint8_t rows[8])
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int t = 0; t < 8; t++)
        config.bytes[t] = BLAS_TILE_K * sizeof(uint16_t);
    memcpy(config.rows, rows, 8);
    _tile_loadconfig(&config);
    __asm__ volatile("" ::: "memory"); /* otherwise the compiler may move loads of tiles before stores */
}

static void tiles_release(void)
{
    _tile_release();
}

#define ON_TILES(file, statement)                                                                                      \
    do {                                                                                                               \
        (void)(file);                                                                                                  \
        statement;                                                                                                     \
    } while (0)
#define TILE_ZERO(file, t)               ON_TILES(file, _tile_zero(t))
#define TILE_LOAD(file, t, from, stride) ON_TILES(file, _tile_loadd(t, from, stride))
#define TILE_OPERAND(file, t, from)      ON_TILES(file, _tile_loadd(t, from, BLAS_TILE_K *(int64_t)sizeof(uint16_t)))
#define TILE_STORE(file, t, to, stride)  ON_TILES(file, _tile_stored(t, to, stride))

#endif

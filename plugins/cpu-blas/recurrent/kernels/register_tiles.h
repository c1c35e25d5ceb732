/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of the two products: up to NN_ROWS rows by as many vectors as registers hold the sums of. */
#ifndef BLAS_RECURRENT_REGISTER_TILES_H
#define BLAS_RECURRENT_REGISTER_TILES_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu-blas/isa/vector.h"
#include "cpu-blas/recurrent/kernels/kernels.h"
#if VW == 16
#include "cpu-blas/recurrent/kernels/tall.h"
#elif VW == 8
#include "cpu-blas/recurrent/kernels/walk_avx2.h"
#endif

/* A loop that ends after few turns is foreseen by the processor, and the end of one tile runs beside the next. */
enum { TURN_K = BLAS_TURN_K };

enum { LINE = GROUP / VW }; /* vectors of a cache line, and of a group of columns */

/* Lines that a tile prefetches in each turn. Memory keeps up with a steady stream, not with bursts: a slice of 64
 * columns, which has four lines for each k, is asked for slowly where there are eight tiles to do it. */
INLINE int fetch_rate(int64_t tiles)
{
    return tiles < 8 ? BLAS_FETCH_FAST : BLAS_FETCH_SLOW;
}

/* The same of a strip, which has one line for each k and a tile reads alone. */
INLINE int strip_fetch_rate(int64_t tiles)
{
    return tiles >= 4 ? 1 : tiles >= 2 ? 2 : 4;
}

/* Is there one beside the i-th of the TURN_K? */
INLINE bool fetch_now(const int fetch, const int i)
{
    return fetch > 0 && i % (TURN_K / fetch) == 0;
}

/* TILES: kind(x, m, nv) of each tile there is; TILE_TABLE: the tiles x_m_nv, [m - 1][nv - 1]. */
/* clang-format off */
#if VW == 16
#define TILES_OF(kind, x, m) kind(x, m, 1) kind(x, m, 2) kind(x, m, 3) kind(x, m, 4)
#define TILES(kind, x) \
    TILES_OF(kind, x, 1) \
    TILES_OF(kind, x, 2) \
    TILES_OF(kind, x, 3) \
    TILES_OF(kind, x, 4) \
    TILES_OF(kind, x, 5) \
    TILES_OF(kind, x, 6)
#elif VW == 8
#define TILES(kind, x) \
    kind(x, 1, 2) kind(x, 1, 4) kind(x, 1, 8) \
    kind(x, 2, 2) kind(x, 2, 4) \
    kind(x, 3, 2) kind(x, 3, 4) \
    kind(x, 4, 2) kind(x, 4, 3) \
    kind(x, 5, 2) \
    kind(x, 6, 2)
#else
#define TILES(kind, x) kind(x, 1, 4) kind(x, 2, 4)
#endif
#define TILE_ENTRY(x, m, nv) [(m) - 1][(nv) - 1] = x##_##m##_##nv,
#define TILE_TABLE(x)        {TILES(TILE_ENTRY, x)}
/* clang-format on */

/* Vectors that a tile of m rows takes of the `left` ones that a panel still has. */
INLINE int tile_vectors(int64_t m, int left)
{
#if VW == 8
    if (m == 4)
        return left == 4 || left == 2 ? 2 : 3;
    const int most = m == 1 && left == 8 ? 8 : m <= 3 ? 4 : 2;
    return left < most ? left : most;
#else
    (void)m;
    return left < NN_VECTORS ? left : NN_VECTORS;
#endif
}

#endif

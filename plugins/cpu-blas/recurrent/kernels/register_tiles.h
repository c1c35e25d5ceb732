/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of products and outer products: up to NN_ROWS rows, by as many vectors as there are registers for
 * their sums. */
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

/* Loops of few iterations are predicted by the processor, so that the end of one tile overlaps with the next one. */
enum { TURN_K = BLAS_TURN_K };

enum { LINE = GROUP / VW }; /* vectors in a cache line, and in a group of columns */

/* The cache lines that a tile prefetches in each iteration. Memory keeps up with a steady stream, not with bursts. A
 * slice of 64 columns has four lines for each k; it is prefetched at the slow rate if there are eight tiles to do
 * it. */
INLINE int fetch_rate(int64_t tiles)
{
    return tiles < 8 ? BLAS_FETCH_FAST : BLAS_FETCH_SLOW;
}

/* The same for a strip, which has one line for each k, all read by one tile. */
INLINE int strip_fetch_rate(int64_t tiles)
{
    return tiles >= 4 ? 1 : tiles >= 2 ? 2 : 4;
}

/* Returns true if the i-th of the TURN_K multiplications prefetches. */
INLINE bool fetch_now(const int fetch, const int i)
{
    return fetch > 0 && i % (TURN_K / fetch) == 0;
}

/* TILES calls kind(x, m, nv) for each tile size. TILE_TABLE is the table [m - 1][nv - 1] of the functions x_m_nv. */
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

/* The vectors that a tile of m rows takes of the `left` ones that remain in a panel. */
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

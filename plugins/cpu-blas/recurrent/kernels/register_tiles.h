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

/* TILES: kind(m, nv) of each tile there is; TILE_TABLE: the tiles of that name, [m - 1][nv - 1]. */
/* clang-format off */
#if VW == 16
#define TILES(kind) \
    TILES_OF(kind, 1) TILES_OF(kind, 2) TILES_OF(kind, 3) TILES_OF(kind, 4) TILES_OF(kind, 5) TILES_OF(kind, 6)
#define TILES_OF(kind, m) kind(m, 1) kind(m, 2) kind(m, 3) kind(m, 4)
#define TILE_TABLE(name) \
    { \
        TILE_NAMES(name, 1), \
        TILE_NAMES(name, 2), \
        TILE_NAMES(name, 3), \
        TILE_NAMES(name, 4), \
        TILE_NAMES(name, 5), \
        TILE_NAMES(name, 6) \
    }
#define TILE_NAMES(name, m) {name##_##m##_1, name##_##m##_2, name##_##m##_3, name##_##m##_4}
#elif VW == 8
#define TILES(kind) \
    kind(1, 2) kind(1, 4) kind(1, 8) \
    kind(2, 2) kind(2, 4) \
    kind(3, 2) kind(3, 4) \
    kind(4, 2) kind(4, 3) \
    kind(5, 2) \
    kind(6, 2)
#define TILE_TABLE(name) \
    { \
        [0] = {[1] = name##_1_2, [3] = name##_1_4, [7] = name##_1_8}, \
        [1] = {[1] = name##_2_2, [3] = name##_2_4}, \
        [2] = {[1] = name##_3_2, [3] = name##_3_4}, \
        [3] = {[1] = name##_4_2, [2] = name##_4_3}, \
        [4] = {[1] = name##_5_2}, \
        [5] = {[1] = name##_6_2} \
    }
#else
#define TILES(kind) kind(1, 4) kind(2, 4)
#define TILE_TABLE(name) {[0] = {[3] = name##_1_4}, [1] = {[3] = name##_2_4}}
#endif
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

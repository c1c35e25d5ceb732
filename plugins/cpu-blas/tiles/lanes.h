/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of sixteen numbers in the compiler's own type, from which tiles are made. */
#ifndef BLAS_TILES_LANES_H
#define BLAS_TILES_LANES_H

#include <stdint.h>
#include <string.h>

#include "cpu-blas/isa/vector.h"

enum { LANE_COUNT = 16 };

typedef float lanes __attribute__((vector_size(64)));
typedef uint32_t bits __attribute__((vector_size(64)));

INLINE lanes lanes_load(const float *from)
{
    lanes x;
    memcpy(&x, from, sizeof x);
    return x;
}

/* Loads the first `count` numbers, and zeros for the rest. `count` may be negative or larger than the vector. */
INLINE lanes lanes_load_first(const float *from, int64_t count)
{
    float x[LANE_COUNT] __attribute__((aligned(64))) = {0};
    for (int at = 0; at < LANE_COUNT && at < count; at += VW)
        v_store(x + at, v_load_first(from + at, (int)(count - at < VW ? count - at : VW)));
    return lanes_load(x);
}

#endif

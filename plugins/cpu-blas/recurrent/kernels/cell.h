/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the cells of all kinds: vectors of a panel, zoneout, sums. */
#ifndef BLAS_RECURRENT_CELL_H
#define BLAS_RECURRENT_CELL_H

#include <stdint.h>

#include "cpu-blas/recurrent/kernels/kernels.h"
#include "cpu-blas/recurrent/kernels/math.h"

enum { VECTORS = GROUP / VW }; /* that hold the units of a panel */

static inline void add_to(float *p, vf a)
{
    v_store(p, v_add(v_load(p), a));
}

/* The units of row r from lane v on, at most GROUP. */
static inline int lanes_left(int32_t units, int64_t unit_step, int64_t r, int v)
{
    int64_t left = units - r * unit_step - v;
    return left < GROUP ? (int)left : GROUP;
}

/* The new value where its bit is set (training), or the expected value (inference). */
INLINE vf zoneout_mix(const struct blas_cell *cell, const uint16_t *bits, int v, float rate, vf old, vf now)
{
    if (bits)
        return v_select(v_bits((uint32_t)*bits >> v), now, old);
    if (rate > 0.0f && !cell->training)
        return v_fma(v_set(rate), old, v_mul(v_set(1.0f - rate), now));
    return now;
}

/* Splits a gradient by zoneout: returns the part for the new value, and puts the part for the old value in
 * *old_part. */
INLINE vf zoneout_split(const uint16_t *bits, int v, vf d, vf *old_part)
{
    *old_part = v_zero();
    if (!bits)
        return d;
    vm fresh = v_bits((uint32_t)*bits >> v);
    *old_part = v_select(fresh, v_zero(), d);
    return v_select(fresh, d, v_zero());
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a recurrent layer in int8 (ops.h says what is rounded): x and h are unsigned bytes q = scale v + shift,
 * columns of panels signed bytes, each times a factor of its own. So of a column
 *
 *   sum of products = factor scale (w v) + factor shift (sum of w)
 *
 * and what the cell reads is packed.scale times it, plus packed.offset, which takes the shift out and has the bias.
 * Layer norm reads both products apart, and adds the bias itself: `offset` is that of x then, `offset_h` that of h. A
 * row with a weight that is not finite gives NaN. */
#ifndef BLAS_RECURRENT_INT8_H
#define BLAS_RECURRENT_INT8_H

#include "cpu-blas/recurrent/op.h"

enum { BLAS_INT8_SUM = 65536 }; /* so many products of 255 by 127 are summed in 32 bits */

/* Factors of a panel's columns: 127 over the largest weight of the row in both matrices. */
void blas_int8_factors(const struct blas_recurrent *op, int64_t panel, int64_t input, const float *w_x,
                       const float *w_h, float factors[PANEL]);

/* Scales and offsets of a panel whose weights have been packed. `bias`: the canonical one, or NULL. */
void blas_int8_offsets(const struct blas_recurrent *op, const struct blas_packed *packed, int64_t input, int64_t panel,
                       const float factors[PANEL], const float *bias);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* int8 weights of a recurrent layer (ops.h specifies the rounding). x and h are unsigned 8-bit integers q = scale v +
 * shift. Columns of panels are signed 8-bit integers, each column with its own factor. So for a column
 *
 *   sum of products = factor scale (w v) + factor shift (sum of w)
 *
 * The cell reads this sum times packed.scale, plus packed.offset, which removes the shift and adds the bias. Layer
 * norm reads both products separately and adds the bias itself; then `offset` belongs to the product with x,
 * `offset_h` to the one with h. A row with a weight that is not finite gives NaN. */
#ifndef BLAS_RECURRENT_INT8_H
#define BLAS_RECURRENT_INT8_H

#include "cpu-blas/recurrent/layout.h"

enum { BLAS_INT8_SUM = 65536 }; /* the most products of 255 by 127 whose sum fits 32 bits */

/* The factors of a panel's columns: 127 / (the largest absolute weight of the row in both matrices). */
void blas_int8_factors(const struct blas_recurrent *op, int64_t panel, int64_t input, const float *w_x,
                       const float *w_h, float factors[PANEL]);

/* The scales and offsets of a panel whose weights are packed. `bias`: in the canonical layout, or NULL. */
void blas_int8_offsets(const struct blas_recurrent *op, const struct blas_packed *packed, int64_t input, int64_t panel,
                       const float factors[PANEL], const float *bias);

#endif

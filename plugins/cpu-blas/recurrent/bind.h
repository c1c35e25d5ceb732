/* SPDX-License-Identifier: Apache-2.0 */
/* Which batches members share by units. */
#ifndef BLAS_RECURRENT_BIND_H
#define BLAS_RECURRENT_BIND_H

#include "cpu-blas/recurrent/op.h"

/* Returns true if the members of a queue share the units of a batch with so many sequences: with few rows for each
 * member, or weights that each member alone would read from memory in every step. Only possible if no step needs a sum
 * over all units. */
bool blas_shares_units(const struct blas_recurrent *op, int64_t sequences, int32_t members);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sum, maximum or minimum of several vectors, element by element. */
#ifndef COMM_SHM_REDUCE_H
#define COMM_SHM_REDUCE_H

#include <stdint.h>

/* to[i] = from[0][i] ∘ from[1][i] ∘ …, in this order; 16-bit floats are reduced in float32 and rounded once. `to` may
 * be one of `from`. */
void shm_reduce(uint32_t dtype, uint32_t reduction, void *to, const void *const *from, int32_t count, int64_t elems);

/* The same, of vectors that all become the result. */
void shm_reduce_in_place(uint32_t dtype, uint32_t reduction, void *const *vectors, int32_t count, int64_t elems);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Tall register tiles: up to TALL_ROWS rows by one vector, for products with a single group of columns that fits one
 * vector. In a tile of only NN_ROWS such rows, each sum would wait for itself: a multiply-add takes four cycles, in
 * which a processor can start eight. For example, the last panel of 650 or 200 units is one group wide. */
#ifndef BLAS_RECURRENT_TALL_H
#define BLAS_RECURRENT_TALL_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu-blas/isa/vector.h"
#include "cpu-blas/recurrent/kernels/kernels.h"

enum { TALL_ROWS = 16 };

#ifdef __clang__
#define UNROLL_TALL_FOR _Pragma("unroll") for
#else
#define UNROLL_TALL_FOR _Pragma("GCC unroll 16") for
#endif

/* acc[r] += sum of `count` products of a scalar of row r and a vector of b. The scalars of a row are contiguous and
 * rows are `a_stride` apart; with `across` it is the other way round. With each product, a line from `ahead` on is
 * prefetched, unless `ahead` is NULL. */
INLINE void tall_add(const int m, const bool across, const float *a, int64_t a_stride, const float *b, int64_t b_row,
                     int64_t count, const float *ahead, vf *acc)
{
    const float *rows[TALL_ROWS / 4]; /* every fourth row: an address can include two strides, and registers are few */
    UNROLL_TALL_FOR (int i = 0; i < TALL_ROWS / 4; i++) {
        rows[i] = across || 4 * i >= m ? a : a + 4 * i * a_stride;
        __asm__("" : "+r"(rows[i]));
    }
    for (int64_t k = 0; k < count; k++, b += b_row) {
        if (ahead)
            __builtin_prefetch(ahead + k * GROUP, 0, 2);
        const vf bv = v_load_once(b);
        UNROLL_TALL_FOR (int r = 0; r < m; r++)
            acc[r] = v_fma(v_set(across ? a[r] : rows[r / 4][r % 4 * a_stride]), bv, acc[r]);
        a += across ? a_stride : 0;
        UNROLL_TALL_FOR (int i = 0; i < TALL_ROWS / 4; i++)
            rows[i]++;
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Tall register tiles: up to TALL_ROWS rows by one vector, for products of one group of columns where a vector has them
 * all. A tile of NN_ROWS such rows would wait for its own sums: a multiply-add takes four cycles, in which a processor
 * can begin eight. The last panel of 650 or 200 units is one group wide. */
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

/* acc[r] += sum of `count` products of a scalar of row r and a vector of b. Scalars of a row follow one another, and
 * rows are `a_stride` apart; or, `across`, the other way about. Beside each product a line from `ahead` on is
 * prefetched, unless that is NULL. */
INLINE void tall_add(const int m, const bool across, const float *a, int64_t a_stride, const float *b, int64_t b_row,
                     int64_t count, const float *ahead, vf *acc)
{
    const float *rows[TALL_ROWS / 4]; /* every fourth: an address has room for two strides, registers are few */
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

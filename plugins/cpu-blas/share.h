/* SPDX-License-Identifier: Apache-2.0 */
/* Divides work among the members of a queue into fixed parts, so that results depend only on shapes and on the number
 * of members.
 *
 * [0, count) is cut into at most `members` ranges at multiples of `unit`. Sizes differ by at most one unit, and no
 * range has fewer than `grain` items, unless it is the only one. Part p always covers the same items, whichever
 * thread runs it. */
#ifndef BLAS_SHARE_H
#define BLAS_SHARE_H

#include "cpu-blas/plugin.h"

/* Works on items [begin, end) as part `part` of the division. */
typedef void blas_part_fn(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end);

struct blas_division {
    int64_t count;
    int64_t unit;
    int32_t parts;
};

static inline struct blas_division blas_divide(int64_t count, int64_t unit, int64_t grain, int32_t members)
{
    int64_t parts = grain > 0 ? count / grain : count;
    if (parts > (count + unit - 1) / unit)
        parts = (count + unit - 1) / unit;
    if (parts > members)
        parts = members;
    return (struct blas_division){count, unit, parts < 1 ? 1 : (int32_t)parts};
}

static inline int64_t blas_part_begin(const struct blas_division *d, int32_t part)
{
    int64_t units = (d->count + d->unit - 1) / d->unit;
    int64_t begin = (units * part / d->parts) * d->unit;
    return begin < d->count ? begin : d->count;
}

/* Runs fn once for each part, and returns when all are done. A single part runs on the calling thread. */
void blas_share(const struct blas_call *call, const struct blas_division *division, blas_part_fn *fn, void *context);

/* BLAS_GRAIN_ELEMS elements are copied in about five microseconds, enough work for a thread of its own. Slower
 * operations count each element several times. Matrix products do about eight times as many multiply-adds in that
 * time. */
enum { BLAS_GRAIN_ELEMS = 65536, BLAS_GRAIN_PRODUCTS = 8 * BLAS_GRAIN_ELEMS };

/* The rows of such work, with `elems` elements each. */
static inline int64_t blas_grain_rows(int64_t elems)
{
    return elems >= BLAS_GRAIN_ELEMS ? 1 : (BLAS_GRAIN_ELEMS + elems - 1) / elems;
}

#endif

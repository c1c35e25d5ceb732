/* SPDX-License-Identifier: Apache-2.0 */
/* Division of work among the members of a queue: fixed parts, so that results depend on shapes and on the
 * number of members alone.
 *
 * [0, count) is cut into at most `members` ranges at multiples of `unit`, no range below `grain` items
 * (but a single one), sizes differing by one unit at most. Part p always covers the same items; which thread
 * runs it does not matter.
 */
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

/* Runs fn once for each part and returns when all are done; inline when there is one. */
void blas_share(const struct blas_call *call, const struct blas_division *division, blas_part_fn *fn, void *context);

/* Elements copied in some five microseconds, which are worth a thread of their own; slower work counts its
 * elements several times. Products of matrices do about eight times as many multiply-adds in that time. */
enum { BLAS_GRAIN_ELEMS = 65536, BLAS_GRAIN_PRODUCTS = 8 * BLAS_GRAIN_ELEMS };

/* Rows of such work, `elems` elements each. */
static inline int64_t blas_grain_rows(int64_t elems)
{
    return elems >= BLAS_GRAIN_ELEMS ? 1 : (BLAS_GRAIN_ELEMS + elems - 1) / elems;
}

#endif

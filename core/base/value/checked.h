/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on sizes that reports overflow. Each returns true and writes `out`, or returns false and leaves it alone.
 * [any thread] */
#ifndef SL_BASE_VALUE_CHECKED_H
#define SL_BASE_VALUE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sl_checked_add_size(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline bool sl_checked_mul_size(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

static inline bool sl_checked_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

static inline bool sl_checked_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

/* False for a negative value. */
static inline bool sl_checked_i64_to_size(int64_t value, size_t *out)
{
    if (value < 0 || (uint64_t)value > SIZE_MAX)
        return false;
    *out = (size_t)value;
    return true;
}

/* Rounds up to a multiple of `step`, which is not 0. */
static inline bool sl_checked_round_up_size(size_t value, size_t step, size_t *out)
{
    size_t rest = value % step;
    if (rest == 0) {
        *out = value;
        return true;
    }
    return sl_checked_add_size(value, step - rest, out);
}

#endif

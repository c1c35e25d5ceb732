/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that are never a target, such as the mark of a beginning. A model has learned nothing about them but that they
 * do not come, so they are not candidates when it writes: two texts that differ in them alone are the same text. */
#ifndef SL_DECODE_NEVER_H
#define SL_DECODE_NEVER_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_NEVER_MOST = 4 };

/* Zeroed: none. */
struct sl_never {
    int32_t ids[SL_NEVER_MOST];
    int32_t count;
};

static inline bool sl_never_has(const struct sl_never *never, int32_t id)
{
    for (int32_t i = 0; i < never->count; i++)
        if (never->ids[i] == id)
            return true;
    return false;
}

#endif

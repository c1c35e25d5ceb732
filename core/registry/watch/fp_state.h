/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point modes of a thread: rounding, flushing to zero, exceptions that trap. Reading them takes a few
 * nanoseconds. [any] */
#ifndef SL_REGISTRY_WATCH_FP_STATE_H
#define SL_REGISTRY_WATCH_FP_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Control bits of the floating-point unit, without the exception flags that any arithmetic sets. */
struct sl_fp_state {
    uint32_t vector; /* MXCSR, or FPCR */
    uint32_t x87;    /* control word; 0 where there is none */
};

struct sl_fp_state sl_fp_state_get(void);
void sl_fp_state_set(struct sl_fp_state state);

static inline bool sl_fp_state_is_equal(struct sl_fp_state a, struct sl_fp_state b)
{
    return a.vector == b.vector && a.x87 == b.x87;
}

#endif

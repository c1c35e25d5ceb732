/* SPDX-License-Identifier: Apache-2.0 */
/* How a signal reaches a loop: the handler (installed by the program) sets a flag, the loop polls it between steps. A
 * caller may also set it from another thread. Lock-free, safe in signal handlers. */
#ifndef SL_BASE_SYSTEM_INTERRUPT_H
#define SL_BASE_SYSTEM_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct sl_interrupt {
    _Atomic int stop; /* 0, or the number of the signal that asks to save and leave */
    _Atomic int save; /* 1: save a checkpoint and go on */
};

/* The signal that asks to stop, or 0. NULL never asks. */
static inline int sl_interrupt_get_stop(const struct sl_interrupt *interrupt)
{
    return interrupt ? atomic_load_explicit(&interrupt->stop, memory_order_relaxed) : 0;
}

/* Has anything been asked for? */
static inline bool sl_interrupt_is_pending(const struct sl_interrupt *interrupt)
{
    return sl_interrupt_get_stop(interrupt) != 0 ||
           (interrupt && atomic_load_explicit(&interrupt->save, memory_order_relaxed) != 0);
}

/* True once per request to save. */
static inline bool sl_interrupt_take_save(struct sl_interrupt *interrupt)
{
    return interrupt && atomic_load_explicit(&interrupt->save, memory_order_relaxed) &&
           atomic_exchange_explicit(&interrupt->save, 0, memory_order_relaxed) != 0;
}

#endif

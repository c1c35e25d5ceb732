/* SPDX-License-Identifier: Apache-2.0 */
/* See turns.h. */
#include "base/system/turns.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/system/clock.h"
#include "base/system/relax.h"

/* More than waking a thread takes on an idle virtual machine (25 us): a thread that was not waited for while it woke
 * would find the lock taken again, and sleep. */
#define TURNS_WAIT_NS 50000
#define TURNS_LOOKS   8 /* before the clock is asked */

/* The seat of the thread whose call ended last, on lines of its own; NULL: it has begun another. It orders no other
 * memory. */
static _Alignas(128) _Atomic(const char *) outside;
static _Thread_local char seat;

void sl_turns_begin(void)
{
    const char *last = &seat;
    if (atomic_load_explicit(&outside, memory_order_relaxed) == last)
        atomic_compare_exchange_strong(&outside, &last, NULL);
}

/* Takes the place outside, if it is free. */
static bool leave(void)
{
    const char *last = NULL;
    return atomic_load_explicit(&outside, memory_order_relaxed) == NULL &&
           atomic_compare_exchange_strong(&outside, &last, &seat);
}

bool sl_turns_end(void)
{
    int64_t end_ns = 0;
    do {
        for (int looks = 0; looks < TURNS_LOOKS; looks++) {
            if (leave())
                return true;
            sl_relax();
        }
        if (end_ns == 0)
            end_ns = sl_clock_ns() + TURNS_WAIT_NS;
    } while (sl_clock_ns() < end_ns);
    atomic_store(&outside, &seat);
    return false;
}

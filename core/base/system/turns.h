/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of threads which hold one lock of the caller between their calls of the library, as those of Python do. A
 * thread that finds the lock taken sleeps, and waking it takes 25 us on a virtual machine that is idle. So a call ends
 * only when the thread whose call ended last has begun another: it has then let go of the lock. Neither function sleeps
 * or takes a lock. All threads of the process take turns. [any thread] */
#ifndef SL_BASE_SYSTEM_TURNS_H
#define SL_BASE_SYSTEM_TURNS_H

#include <stdbool.h>

/* A call of the running thread begins. */
void sl_turns_begin(void);
/* It ends. False: the other thread did not begin a call within 50 us, and is waited for no more. */
bool sl_turns_end(void);

#endif

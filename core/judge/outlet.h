/* SPDX-License-Identifier: Apache-2.0 */
/* Watches what a plugin may not do at all: write to stdout or stderr. While it watches, both go to an unnamed file;
 * what stands in it at the end was the plugin's. Messages through the host's log keep going where they went.
 *
 * Invariants:
 *  1. Watching does not nest: only the outermost begin and end do anything.
 *  2. One thread begins and ends; any may write or log in between.
 */
#ifndef SL_JUDGE_OUTLET_H
#define SL_JUDGE_OUTLET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/system/log.h"

struct sl_outlet {
    struct sl_log log; /* for hosts: `inner` through the watch */
    const struct sl_log *inner;
    bool stderr_too;
    int depth;
    int file, kept[2]; /* the unnamed file; stdout and stderr as they were, or -1 */
    pthread_mutex_t lock;
};

/* `stderr_too` false: for a debugger, that last words be seen. `inner` may be NULL. Must stay at its address. */
void sl_outlet_init(struct sl_outlet *outlet, const struct sl_log *inner, bool stderr_too);
void sl_outlet_deinit(struct sl_outlet *outlet);

/* Where the system gives no file or descriptor, nothing is watched. */
void sl_outlet_begin(struct sl_outlet *outlet);

/* True when something was written; `text` says it, as the end of "it …". */
bool sl_outlet_end(struct sl_outlet *outlet, char *text, size_t capacity_bytes);

#endif

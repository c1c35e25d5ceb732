/* SPDX-License-Identifier: Apache-2.0 */
/* Detects writes to stdout and stderr, which a plugin must not do. While it watches, both go to an unnamed file;
 * whatever is in the file at the end came from the plugin. Messages through the host's log go where they always go.
 *
 * Invariants
 * 1. Watching does not nest: only the outermost begin and end have an effect.
 * 2. One thread begins and ends; any thread may write or log in between. */
#ifndef SL_REGISTRY_WATCH_OUTLET_H
#define SL_REGISTRY_WATCH_OUTLET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "base/system/log.h"

struct sl_outlet {
    struct sl_log log; /* for hosts: passes messages on to `inner` */
    const struct sl_log *inner;
    bool stderr_too;
    _Atomic int depth; /* pauses of other threads read it */
    int error;         /* of writing to stdout what was ours before a begin; 0: none */
    int file, kept[2]; /* the unnamed file; the original stdout and stderr, or -1 */
    uint64_t inode;    /* of the unnamed file: a plugin may close its descriptor */
    pthread_mutex_t lock;
};

/* `stderr_too` false: leaves stderr visible, for use in a debugger. `inner` may be NULL. The struct must not move. */
void sl_outlet_init(struct sl_outlet *outlet, const struct sl_log *inner, bool stderr_too);
void sl_outlet_deinit(struct sl_outlet *outlet);

/* While paused, stdout and stderr are what they were: for messages of the host. Every pause is ended. [any] */
void sl_outlet_pause(struct sl_outlet *outlet, bool pause);

/* While held, no thread can pause. [any] */
void sl_outlet_hold(struct sl_outlet *outlet);
void sl_outlet_let_go(struct sl_outlet *outlet);

/* In a child of fork() that is held: ends what a thread of its parent had begun, whose file the child leaves alone. */
void sl_outlet_renew(struct sl_outlet *outlet);

/* If the system provides no file or descriptor, nothing is watched. */
void sl_outlet_begin(struct sl_outlet *outlet);

/* Before the outermost end: writes what has come so far to the original stderr, each line after `name` and a colon,
 * with control characters as escapes. It may have been asked for, as oneDNN's by DNNL_VERBOSE. */
void sl_outlet_pass_on(struct sl_outlet *outlet, const char *name);

/* Returns true if something was written. `text` then describes it, as the end of a sentence "it …". */
bool sl_outlet_end(struct sl_outlet *outlet, char *text, size_t capacity_bytes);

#endif

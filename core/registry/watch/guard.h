/* SPDX-License-Identifier: Apache-2.0 */
/* Guards the state of the process that plugins must not change. Used around code of a plugin:
 *
 *   struct sl_process_guard guard;
 *   sl_process_guard_begin(&guard);
 *   ... code of the plugin ...
 *   changes = sl_process_guard_end(&guard, text, sizeof text);
 *
 * A pair takes about 20 us. Other threads must not change the same state in between.
 */
#ifndef SL_REGISTRY_WATCH_GUARD_H
#define SL_REGISTRY_WATCH_GUARD_H

#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>

#include "registry/watch/environment.h"
#include "registry/watch/fp_state.h"

enum { SL_GUARD_SIGNALS = 32, SL_GUARD_FILES = 3, SL_GUARD_LIMITS = 8, SL_GUARD_TIMERS = 3 };

/* What changed. */
enum {
    SL_CHANGED_MODE = 1u << 0, /* floating-point modes of this thread */
    SL_CHANGED_FOLDER = 1u << 1,
    SL_CHANGED_LOCALE = 1u << 2,
    SL_CHANGED_HANDLER = 1u << 3, /* of a signal */
    SL_CHANGED_MASK = 1u << 4,    /* of this thread's signals */
    SL_CHANGED_ENVIRONMENT = 1u << 5,
    SL_CHANGED_UMASK = 1u << 6,
    SL_CHANGED_LIMIT = 1u << 7,
    SL_CHANGED_FILE = 1u << 8,        /* stdin, stdout or stderr was closed or replaced */
    SL_CHANGED_TIMER = 1u << 9,       /* one was started, whose signal would end the process */
    SL_CHANGED_DESCRIPTOR = 1u << 10, /* descriptors of the guard itself were closed, and so maybe any */
    SL_CHANGED_FOR_GOOD = 1u << 11    /* beside the others: something of it could not be restored */
};

/* An open file, remembered so that it can be opened again: a duplicate of its descriptor, or -1. */
struct sl_guarded_file {
    int duplicate;
    uint64_t device, inode;
};

struct sl_process_guard {
    struct sl_fp_state fp;
    struct sl_guarded_file folder;                   /* the current one */
    struct sl_guarded_file standard[SL_GUARD_FILES]; /* stdin, stdout, stderr */
    char locale[512];
    locale_t thread_locale;
    struct sigaction actions[SL_GUARD_SIGNALS];
    bool has_action[SL_GUARD_SIGNALS];
    sigset_t mask;
    struct sl_environment environment;
    mode_t umask;
    struct rlimit limits[SL_GUARD_LIMITS];
    bool timers[SL_GUARD_TIMERS]; /* do they run? */
};

void sl_process_guard_begin(struct sl_process_guard *guard);

/* Restores what has changed, and returns it: bits SL_CHANGED_…; 0: nothing. `text` says what, and what could not be
 * restored; it completes "it …". */
uint32_t sl_process_guard_end(struct sl_process_guard *guard, char *text, size_t capacity_bytes);

/* Between these two no other thread changes the process for a moment, as asking for the umask does. */
void sl_process_guard_hold(void);
void sl_process_guard_let_go(void);

#endif

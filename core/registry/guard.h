/* SPDX-License-Identifier: Apache-2.0 */
/* Guards the state of the process that plugins must not change: floating-point modes, the current folder, the locale,
 * signal handlers. Used around every dlopen, query and open:
 *
 *   struct sl_process_guard guard;
 *   sl_process_guard_begin(&guard);
 *   ... code of the plugin ...
 *   changed = sl_process_guard_end(&guard, text, sizeof text);
 */
#ifndef SL_REGISTRY_GUARD_H
#define SL_REGISTRY_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SL_GUARD_SIGNALS = 32 };

/* Control bits of the floating-point unit, without the exception flags that any arithmetic sets. */
struct sl_fp_state {
    uint32_t vector; /* MXCSR, or FPCR */
    uint32_t x87;    /* control word; 0 where there is none */
};

struct sl_fp_state sl_fp_state_get(void);
void sl_fp_state_set(struct sl_fp_state state);

struct sl_process_guard {
    struct sl_fp_state fp;
    int folder; /* descriptor of the current folder, or -1 */
    uint64_t folder_device, folder_inode;
    char locale[256];
    struct sigaction actions[SL_GUARD_SIGNALS];
    bool has_action[SL_GUARD_SIGNALS];
};

void sl_process_guard_begin(struct sl_process_guard *guard);

/* Restores modes, folder and handlers (not the locale: seqlstm's numbers do not depend on it). False: nothing had
 * changed. True: `text` says what; it completes "it …". */
bool sl_process_guard_end(struct sl_process_guard *guard, char *text, size_t capacity_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Watches each call of a plugin's function:
 *
 *   struct sl_watched_call call;
 *   sl_watch_begin(&call, table->id, SL_FUNCTION_FORWARD);
 *   ... the function ...
 *   sl_watch_end(&call);
 *
 * In every call it notes what runs (running.h) and restores the floating-point modes: about 30 ns. Calls 1, 2, 4, 8, …
 * of each function are guarded as a whole (guard.h): what a plugin does to the process it nearly always does the first
 * time. After that all of its calls are guarded, since it will do it again. What had to be restored is reported once
 * for each function, as a warning in the log of the plugin. A call that begins in one thread while a call of another is
 * guarded is not guarded itself.
 *
 * Counters and logs are kept per plugin for the whole process, since what they guard belongs to the process.
 */
#ifndef SL_REGISTRY_WATCH_WATCH_H
#define SL_REGISTRY_WATCH_WATCH_H

#include <stdbool.h>

#include "base/system/log.h"
#include "registry/watch/guard.h"
#include "registry/watch/running.h"

struct sl_watched_call {
    struct sl_running running;
    struct sl_fp_state mode;
    struct sl_process_guard *guard; /* NULL: this call is not guarded */
    bool captures;
};

/* `plugin`: the id in its table, which must stay where it is: it is known by its address. */
void sl_watch_begin(struct sl_watched_call *call, const char *plugin, enum sl_plugin_function function);
void sl_watch_end(struct sl_watched_call *call);
/* The same for a call that has run before with the same arguments: it is not counted, and only guarded as a whole when
 * every call is. Neither allocates nor writes anything that threads share. */
void sl_watch_begin_again(struct sl_watched_call *call, const char *plugin, enum sl_plugin_function function);
void sl_watch_end_again(struct sl_watched_call *call);

/* Where reports about the plugin go from now on; NULL: nowhere. */
void sl_watch_report_to(const char *plugin, const struct sl_log *log);

/* Every call is guarded and every change reported: for the conformance kit. */
void sl_watch_guard_all(bool all);

/* For a program, which owns stdout and stderr: what a plugin writes there in a guarded call is kept out of its output,
 * and reported. */
void sl_watch_capture_output(bool capture);

/* Code of a plugin that is not a watched call: guarded, too, unless a call of another thread is just then. */
struct sl_watched_code {
    struct sl_process_guard guard;
    bool guards, captures;
    char change[400]; /* after the end, as the end of a sentence "it …": what was restored; empty: nothing */
    char wrote[400];  /* what came to stdout or stderr; empty: nothing */
};

void sl_watch_begin_code(struct sl_watched_code *code);
/* Returns what has changed, as sl_process_guard_end. `plugin`: an id or a path. */
uint32_t sl_watch_end_code(struct sl_watched_code *code, const char *plugin, enum sl_plugin_function function);

/* Captures flush stdout before they begin: the error of that, as in errno; 0: none. */
int sl_watch_get_output_error(void);

/* Messages of the host in between are written between pause and its end. */
void sl_watch_pause_capture(bool pause);

/* For a program: called when a plugin has written beyond its buffers, with the message of the error that follows, or
 * has closed files of the program. The process is damaged: a program does well to end at once. NULL: nothing is called.
 */
void sl_watch_on_damage(void (*end)(const char *message));
void sl_watch_note_damage(const char *message);

/* Writes to descriptor `to` what the running call has written to stdout or stderr, with `?` for control characters.
 * [also in signal handlers] */
void sl_watch_spill(int to);

#endif

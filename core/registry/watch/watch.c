/* SPDX-License-Identifier: Apache-2.0 */
/* See watch.h. */
#include "registry/watch/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/value/text.h"
#include "registry/watch/outlet.h"

enum { PLUGINS_MOST = 128, TEXT_BYTES = 800 };
#define CHANGED_OUTPUT (1u << 31) /* beside SL_CHANGED_… */

struct plugin {
    const char *_Atomic id; /* NULL: unused */
    const struct sl_log *_Atomic log;
    _Atomic bool caught; /* it has misbehaved: from now on every call is guarded */
    struct {
        _Atomic uint32_t calls, told; /* told: changes that have been reported */
    } functions[SL_FUNCTION_COUNT];
};

static struct plugin plugins[PLUGINS_MOST];
static _Atomic bool guards_all, captures, capturing; /* capturing: a call is being captured */
static struct sl_outlet outlet;
static _Atomic bool has_outlet;
/* One thread guards at a time: guards of two would see each other's redirections. */
static pthread_mutex_t guarding = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* ---- one at a time ------------------------------------------------------------------------------------------- */

/* Of a thread that forks: no other thread guards. */
static _Thread_local bool guards_alone;
static bool held_outlet; /* of the fork that goes on */

static void hold_for_fork(void)
{
    guards_alone = pthread_mutex_trylock(&guarding) == 0;
    const bool held = atomic_load(&has_outlet);
    if (held)
        sl_outlet_hold(&outlet);
    sl_process_guard_hold();
    held_outlet = held;
}

static void let_go(void)
{
    const bool held = held_outlet;
    sl_process_guard_let_go();
    if (held)
        sl_outlet_let_go(&outlet);
}

static void let_go_in_parent(void)
{
    let_go();
    if (guards_alone)
        pthread_mutex_unlock(&guarding);
}

/* A child of fork() has none of the other threads: the one that guarded would hold the lock for ever, and keep what the
 * child writes to stdout and stderr. */
static void let_go_in_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    if (held_outlet && !(guards_alone && atomic_load(&capturing))) {
        sl_outlet_renew(&outlet);
        atomic_store(&capturing, false);
    }
    let_go();
    guarding = fresh;
}

static void watch_forks(void)
{
    pthread_atfork(hold_for_fork, let_go_in_parent, let_go_in_child);
}

static bool start_guarding(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return pthread_mutex_trylock(&guarding) == 0;
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

/* NULL: there are too many plugins; this one is not counted. */
static struct plugin *find_plugin(const char *id)
{
    const size_t start = ((uintptr_t)id >> 3) * 2654435761u;
    for (size_t k = 0; k < PLUGINS_MOST; k++) {
        struct plugin *plugin = &plugins[(start + k) % PLUGINS_MOST];
        const char *known = atomic_load_explicit(&plugin->id, memory_order_acquire);
        if (known == id || (known == NULL && atomic_compare_exchange_strong(&plugin->id, &known, id)) || known == id)
            return plugin;
    }
    return NULL;
}

/* Counts the call. Two threads may count as one: that does no harm. */
static bool is_due(struct plugin *plugin, enum sl_plugin_function function)
{
    _Atomic uint32_t *calls = &plugin->functions[function].calls;
    uint32_t count = atomic_load_explicit(calls, memory_order_relaxed) + 1;
    atomic_store_explicit(calls, count, memory_order_relaxed);
    return (count & (count - 1)) == 0 || atomic_load_explicit(&plugin->caught, memory_order_relaxed) ||
           atomic_load_explicit(&guards_all, memory_order_relaxed);
}

static bool begin_capture(void)
{
    if (!atomic_load_explicit(&captures, memory_order_relaxed) || atomic_exchange(&capturing, true))
        return false;
    sl_outlet_begin(&outlet);
    return true;
}

static bool end_capture(char *text, size_t capacity_bytes)
{
    bool wrote = sl_outlet_end(&outlet, text, capacity_bytes);
    atomic_store(&capturing, false);
    return wrote;
}

/* No other thread pauses the capture meanwhile: the guard would take that for a change. */
static void begin_guard(struct sl_process_guard *guard)
{
    const bool held = atomic_load(&has_outlet);
    if (held)
        sl_outlet_hold(&outlet);
    sl_process_guard_begin(guard);
    if (held)
        sl_outlet_let_go(&outlet);
}

static uint32_t end_guard(struct sl_process_guard *guard, char *text, size_t capacity_bytes)
{
    const bool held = atomic_load(&has_outlet);
    if (held)
        sl_outlet_hold(&outlet);
    const uint32_t changes = sl_process_guard_end(guard, text, capacity_bytes);
    if (held)
        sl_outlet_let_go(&outlet);
    return changes;
}

void sl_watch_begin(struct sl_watched_call *call, const char *plugin, enum sl_plugin_function function)
{
    struct plugin *known = find_plugin(plugin);
    call->guard = NULL;
    call->captures = false;
    if (known && is_due(known, function) && start_guarding()) {
        call->guard = malloc(sizeof *call->guard);
        if (call->guard == NULL)
            pthread_mutex_unlock(&guarding);
    }
    if (call->guard) {
        call->captures = begin_capture();
        begin_guard(call->guard);
    }
    sl_running_begin(&call->running, plugin, function);
    call->mode = sl_fp_state_get();
}

void sl_watch_begin_again(struct sl_watched_call *call, const char *plugin, enum sl_plugin_function function)
{
    struct plugin *known = find_plugin(plugin);
    if ((known && atomic_load_explicit(&known->caught, memory_order_relaxed)) ||
        atomic_load_explicit(&guards_all, memory_order_relaxed)) {
        sl_watch_begin(call, plugin, function);
        return;
    }
    call->guard = NULL;
    call->captures = false;
    sl_running_begin_here(&call->running, plugin, function);
    call->mode = sl_fp_state_get();
}

static void report(const struct sl_watched_call *call, uint32_t change, const char *text)
{
    struct plugin *known = find_plugin(call->running.plugin);
    const struct sl_log *log = known ? atomic_load(&known->log) : NULL;
    if (known)
        atomic_store(&known->caught, true);
    if (!log)
        return;
    uint32_t told = atomic_fetch_or(&known->functions[call->running.function].told, change);
    if ((told & change) != change || atomic_load(&guards_all))
        sl_log_printf(log, SL_LOG_WARN, "the backend %s misbehaves: its %s %s%s", call->running.plugin,
                      sl_plugin_function_name(call->running.function), text,
                      change & (CHANGED_OUTPUT | SL_CHANGED_FOR_GOOD) ? "" : "; seqlstm undid it");
}

static void check_output(struct sl_watched_call *call)
{
    char text[TEXT_BYTES];
    sl_outlet_pass_on(&outlet, call->running.plugin);
    if (end_capture(text, sizeof text))
        report(call, CHANGED_OUTPUT, text);
}

static void note_closed(const char *plugin, enum sl_plugin_function function)
{
    char text[TEXT_BYTES];
    sl_text_snprintf(text, sizeof text, "the backend %s is faulty: its %s closed files of the program", plugin,
                     sl_plugin_function_name(function));
    sl_watch_note_damage(text);
}

void sl_watch_end(struct sl_watched_call *call)
{
    char text[TEXT_BYTES];
    uint32_t changes = 0;
    bool mode = !sl_fp_state_is_equal(sl_fp_state_get(), call->mode);
    bool members = atomic_load_explicit(&call->running.mode_changed, memory_order_relaxed);
    if (mode && !call->guard)
        sl_fp_state_set(call->mode);
    if (call->guard) {
        changes = end_guard(call->guard, text, sizeof text);
        free(call->guard);
        if (changes & SL_CHANGED_DESCRIPTOR)
            note_closed(call->running.plugin, call->running.function);
        if (call->captures)
            check_output(call);
        pthread_mutex_unlock(&guarding);
    }
    sl_running_end(&call->running); /* now: what crashed above was damaged by the call */
    if (changes)
        report(call, changes, text);
    else if (mode)
        report(call, SL_CHANGED_MODE, "changed the floating-point mode");
    if (members)
        report(call, SL_CHANGED_MODE, "changed the floating-point mode of a thread of the pool");
}

void sl_watch_begin_code(struct sl_watched_code *code)
{
    code->change[0] = code->wrote[0] = 0;
    code->guards = start_guarding();
    code->captures = code->guards && begin_capture();
    if (code->guards)
        begin_guard(&code->guard);
}

uint32_t sl_watch_end_code(struct sl_watched_code *code, const char *plugin, enum sl_plugin_function function)
{
    if (!code->guards)
        return 0;
    const uint32_t changes = end_guard(&code->guard, code->change, sizeof code->change);
    if (changes & SL_CHANGED_DESCRIPTOR)
        note_closed(plugin, function);
    if (code->captures && !end_capture(code->wrote, sizeof code->wrote))
        code->wrote[0] = 0;
    pthread_mutex_unlock(&guarding);
    return changes;
}

void sl_watch_end_again(struct sl_watched_call *call)
{
    if (call->guard || !sl_fp_state_is_equal(sl_fp_state_get(), call->mode) ||
        atomic_load_explicit(&call->running.mode_changed, memory_order_relaxed))
        sl_watch_end(call);
    else
        sl_running_end_here(&call->running);
}

void sl_watch_report_to(const char *plugin, const struct sl_log *log)
{
    struct plugin *known = find_plugin(plugin);
    if (known)
        atomic_store(&known->log, log);
}

void sl_watch_guard_all(bool all)
{
    atomic_store(&guards_all, all);
}

void sl_watch_capture_output(bool capture)
{
    if (capture && !atomic_exchange(&has_outlet, true))
        sl_outlet_init(&outlet, NULL, true);
    atomic_store(&captures, capture);
}

int sl_watch_get_output_error(void)
{
    return outlet.error;
}

void sl_watch_pause_capture(bool pause)
{
    if (atomic_load(&has_outlet))
        sl_outlet_pause(&outlet, pause);
}

static void (*_Atomic end_at_damage)(const char *message);

void sl_watch_on_damage(void (*end)(const char *message))
{
    atomic_store(&end_at_damage, end);
}

void sl_watch_note_damage(const char *message)
{
    void (*end)(const char *) = atomic_load(&end_at_damage);
    if (end)
        end(message);
}

void sl_watch_spill(int to)
{
    char part[512];
    ssize_t n;
    off_t at = 0;
    if (!atomic_load(&has_outlet) || outlet.depth == 0 || outlet.file < 0)
        return;
    while ((n = pread(outlet.file, part, sizeof part, at)) > 0) {
        for (ssize_t k = 0; k < n; k++)
            if ((part[k] >= 0 && part[k] < ' ' && part[k] != '\n') || part[k] == 0x7f)
                part[k] = '?';
        if (write(to, part, (size_t)n) != n)
            return;
        at += n;
    }
}

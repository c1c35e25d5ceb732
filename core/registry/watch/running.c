/* SPDX-License-Identifier: Apache-2.0 */
/* See running.h. */
#include "registry/watch/running.h"

#include <stddef.h>

/* Signal handlers read these, so they must be there without an allocation: hence the model. */
static _Thread_local struct sl_running *here __attribute__((tls_model("initial-exec")));
static struct sl_running *_Atomic anywhere;
static _Atomic uint32_t *_Atomic mirrored;
static void (*_Atomic ends)(void); /* see sl_running_on_return; NULL: nothing is to be done */

const char *sl_plugin_function_name(uint32_t function)
{
    static const char *const names[SL_FUNCTION_COUNT] = {
        "nothing",         "load",          "query",         "open",        "close",
        "device_count",    "device_info",   "supports",      "op_create",   "op_sizes",
        "op_bind",         "weights_pack",  "forward",       "backward",    "estimate",
        "binding_destroy", "op_destroy",    "get_extension", "idle_ranges", "own_bytes",
        "rebind",          "recorder",      "memory",        "streams",     "describe",
        "group_create",    "group_destroy", "run",           "poll",        "abort",
        "allocate"};
    return function < SL_FUNCTION_COUNT ? names[function] : "?";
}

static void note(struct sl_running *running)
{
    _Atomic uint32_t *mirror = atomic_load_explicit(&mirrored, memory_order_relaxed);
    here = running;
    atomic_store_explicit(&anywhere, running, memory_order_relaxed);
    if (mirror)
        atomic_store_explicit(mirror, running ? running->function : SL_FUNCTION_NONE, memory_order_relaxed);
}

void sl_running_begin(struct sl_running *running, const char *plugin, enum sl_plugin_function function)
{
    running->plugin = plugin;
    running->function = function;
    running->outer = here;
    atomic_store_explicit(&running->mode_changed, false, memory_order_relaxed);
    note(running);
}

void sl_running_begin_here(struct sl_running *running, const char *plugin, enum sl_plugin_function function)
{
    running->plugin = plugin;
    running->function = function;
    running->outer = here;
    atomic_store_explicit(&running->mode_changed, false, memory_order_relaxed);
    here = running;
}

void sl_running_on_return(void (*end)(void))
{
    atomic_store(&ends, end);
}

static void check_return(void)
{
    void (*end)(void) = atomic_load_explicit(&ends, memory_order_relaxed);
    if (end)
        end();
}

void sl_running_end_here(const struct sl_running *running)
{
    check_return();
    here = (struct sl_running *)running->outer;
}

void sl_running_end(const struct sl_running *running)
{
    check_return();
    note((struct sl_running *)running->outer);
}

struct sl_running *sl_running_get(void)
{
    return here;
}

void sl_running_set(struct sl_running *running)
{
    here = running;
}

const struct sl_running *sl_running_find(bool *out_here)
{
    *out_here = here != NULL;
    return here ? here : atomic_load_explicit(&anywhere, memory_order_relaxed);
}

void sl_running_mirror(_Atomic uint32_t *mirror)
{
    atomic_store(&mirrored, mirror);
}

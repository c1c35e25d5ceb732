/* SPDX-License-Identifier: Apache-2.0 */
/* Which function of which plugin runs: for the message of a crash, and for the conformance kit, which watches another
 * process.
 *
 * Each thread notes it for itself, and the last note of any thread is kept for threads that a plugin started itself.
 * Noting takes a few nanoseconds.
 */
#ifndef SL_REGISTRY_WATCH_RUNNING_H
#define SL_REGISTRY_WATCH_RUNNING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The functions of a plugin, and what else runs code of it. */
enum sl_plugin_function {
    SL_FUNCTION_NONE,
    SL_FUNCTION_LOAD, /* what the dynamic linker runs: constructors, also of the libraries that the plugin needs */
    SL_FUNCTION_QUERY,
    SL_FUNCTION_OPEN,
    SL_FUNCTION_CLOSE,
    SL_FUNCTION_DEVICE_COUNT,
    SL_FUNCTION_DEVICE_INFO,
    SL_FUNCTION_SUPPORTS,
    SL_FUNCTION_OP_CREATE,
    SL_FUNCTION_OP_SIZES,
    SL_FUNCTION_OP_BIND,
    SL_FUNCTION_WEIGHTS_PACK,
    SL_FUNCTION_FORWARD,
    SL_FUNCTION_BACKWARD,
    SL_FUNCTION_ESTIMATE,
    SL_FUNCTION_BINDING_DESTROY,
    SL_FUNCTION_OP_DESTROY,
    SL_FUNCTION_GET_EXTENSION,
    SL_FUNCTION_IDLE_RANGES,
    SL_FUNCTION_OWN_BYTES,
    SL_FUNCTION_REBIND,
    SL_FUNCTION_RECORDER, /* any of struct seqlstm_recorder */
    SL_FUNCTION_MEMORY,   /* any of struct seqlstm_memory */
    SL_FUNCTION_STREAMS,
    SL_FUNCTION_DESCRIBE, /* those of struct seqlstm_collectives */
    SL_FUNCTION_GROUP_CREATE,
    SL_FUNCTION_GROUP_DESTROY,
    SL_FUNCTION_RUN,
    SL_FUNCTION_POLL,
    SL_FUNCTION_ABORT,
    SL_FUNCTION_ALLOCATE,
    SL_FUNCTION_COUNT
};

/* "op_create"; "?" for a number that is none. [any, also in signal handlers] */
const char *sl_plugin_function_name(uint32_t function);

/* One running call. It lies on the stack of the call, and is passed on to the threads that work for it. */
struct sl_running {
    const char *plugin; /* its id, or its file while it has none */
    enum sl_plugin_function function;
    const struct sl_running *outer; /* of this thread; NULL: none */
    _Atomic bool mode_changed;      /* a thread of the pool came back with other floating-point modes */
};

void sl_running_begin(struct sl_running *running, const char *plugin, enum sl_plugin_function function);
void sl_running_end(const struct sl_running *running);
/* Notes it for this thread alone. */
void sl_running_begin_here(struct sl_running *running, const char *plugin, enum sl_plugin_function function);
void sl_running_end_here(const struct sl_running *running);

/* In a child that a plugin made with fork(), while its function runs: `end` is called when the function returns, since
 * parent and child would both go on with the same files. It should end the process. */
void sl_running_on_return(void (*end)(void));

/* The call that runs on this thread; NULL: none. */
struct sl_running *sl_running_get(void);
/* For a thread that works for a call of another: it runs `running` from now on, or nothing with NULL. */
void sl_running_set(struct sl_running *running);

/* The running call of this thread or, with *out_here false, of another; NULL: no plugin runs. [any, also in signal
 * handlers] */
const struct sl_running *sl_running_find(bool *out_here);

/* From now on the number of the running function is also written to *mirror, which another process may read. NULL: no
 * more. Only for a process with one thread that calls plugins. */
void sl_running_mirror(_Atomic uint32_t *mirror);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN, loaded when the backend is opened and not linked, so that a missing library gives a clear message instead of
 * an error of the dynamic linker. Its functions are members of `odn`, named without their prefix `dnnl_`. They may be
 * called once odn_library_load has succeeded.
 *
 * Threads: oneDNN's CPU code runs on OpenMP, or without threads; other builds are refused. The number of threads of
 * a parallel region is a property of the calling thread. odn_threads_set sets it and returns the old value. A
 * primitive must be executed with the number with which it was created. */
#ifndef ODN_LIBRARY_H
#define ODN_LIBRARY_H

#include <seqlstm/status.h>

#include "cpu-onednn/version.h"

#define ODN_FUNCTIONS(X)                                                                                               \
    X(version)                                                                                                         \
    X(engine_create)                                                                                                   \
    X(engine_destroy)                                                                                                  \
    X(stream_create)                                                                                                   \
    X(stream_destroy)                                                                                                  \
    X(primitive_desc_destroy)                                                                                          \
    X(primitive_desc_query_md)                                                                                         \
    X(primitive_create)                                                                                                \
    X(primitive_destroy)                                                                                               \
    X(primitive_execute)                                                                                               \
    X(primitive_get_primitive_desc)                                                                                    \
    X(sgemm)                                                                                                           \
    X(memory_create)                                                                                                   \
    X(memory_destroy)                                                                                                  \
    X(memory_set_data_handle)                                                                                          \
    X(memory_desc_get_size)                                                                                            \
    X(memory_desc_equal)                                                                                               \
    X(reorder_primitive_desc_create)                                                                                   \
    X(primitive_attr_create)                                                                                           \
    X(primitive_attr_destroy)                                                                                          \
    X(primitive_attr_set_rnn_data_qparams)                                                                             \
    X(primitive_attr_set_rnn_weights_qparams)                                                                          \
    X(primitive_attr_set_scratchpad_mode)                                                                              \
    X(set_primitive_cache_capacity)                                                                                    \
    ODN_VERSION_FUNCTIONS(X)

#define ODN_MEMBER(name) __typeof__(&dnnl_##name) name;
struct odn_functions {
    ODN_FUNCTIONS(ODN_MEMBER)
};
#undef ODN_MEMBER
extern struct odn_functions odn;

/* Opens the library on the first call. `file`: "auto", or its name or path. UNAVAILABLE, with the reason, if it is
 * absent, has another major version, is not built for OpenMP or lacks a function. [any] */
seqlstm_status odn_library_load(const char *file, struct seqlstm_error *err);

/* Such as "2.6.3"; "" before it is loaded. */
const char *odn_library_version(void);

int odn_threads_set(int threads);

/* Runs small products once per process. On its first run the library generates code, and its own code is read from the
 * file (7 MB in all). If this happens before the process is measured, memory predictions include it. [any] */
void odn_library_warm_up(void);

#endif

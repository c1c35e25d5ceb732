/* SPDX-License-Identifier: Apache-2.0 */
/* Does a call write only what it may? Looked at in the runs of `exec->is_fenced`: the bytes behind what it writes; in
 * the executor's first runs also what it only reads. Only in the host's memory.
 *
 *   struct sl_exec_fences fences;
 *   sl_exec_begin_fences(exec, c, SL_FUNCTION_FORWARD, workspace, reserve, &fences);
 *   ... the call ...
 *   status = sl_exec_end_fences(exec, c, SL_FUNCTION_FORWARD, &fences, err);
 */
#ifndef SL_EXEC_CALL_FENCES_H
#define SL_EXEC_CALL_FENCES_H

#include "exec/exec_private.h"
#include "registry/watch/fence.h"

struct sl_exec_fences {
    struct sl_fence workspace, reserve;
    bool reads; /* the hashes of what the call reads are in `exec->calls[c].hashes` */
};

/* `workspace`, `reserve`: those of the call; NULL: it has none. */
void sl_exec_begin_fences(const struct sl_exec *exec, int32_t c, enum sl_plugin_function function,
                          const void *workspace, const void *reserve, struct sl_exec_fences *fences);

/* Errors: INTERNAL, with a message that names plugin, function and what it wrote. */
seqlstm_status sl_exec_end_fences(const struct sl_exec *exec, int32_t c, enum sl_plugin_function function,
                                  const struct sl_exec_fences *fences, struct seqlstm_error *err);

#endif

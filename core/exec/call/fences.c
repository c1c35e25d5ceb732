/* SPDX-License-Identifier: Apache-2.0 */
/* See fences.h. */
#include "exec/call/fences.h"

#include <stdio.h>

#include "base/operation/op_signature.h"
#include "base/value/hash.h"
#include "exec/place/place.h"
#include "exec/rows.h"

/* Runs of the executor in which all that a call reads is hashed: that costs about as much as reading it once. */
enum { HASHED_RUNS = 2 };

/* The gaps behind what a call writes, forward or backward. */
static const struct sl_exec_gap *get_gaps(const struct sl_exec *exec, int32_t c, enum sl_plugin_function function,
                                          int32_t *out_count)
{
    const struct sl_exec_call *own = &exec->calls[c];
    const bool backward = function == SL_FUNCTION_BACKWARD;
    *out_count = own->gap_counts[backward];
    return own->gaps + (backward ? own->gap_counts[0] : 0);
}

/* Bytes of slot s that the call may read and not write; 0: there are none. A call over all steps of a loop has no value
 * of the step before, and gets the initial one. */
static int64_t get_read_bytes(const struct sl_exec *exec, int32_t c, int32_t s)
{
    const struct sl_exec_call *own = &exec->calls[c];
    const int32_t t = exec->plan->calls[c].node->slots[s];
    const bool is_read = own->roles[s] == SL_SLOT_INPUT || own->roles[s] == SL_SLOT_PARAM;
    const bool is_there = is_read && own->slots[s] != NULL;
    if (!is_there || (exec->loop.step < 0 && exec->graph->tensors[t].role == SL_TENSOR_BEFORE))
        return 0;
    return sl_exec_get_bytes(exec, t);
}

/* Steps and pieces after the first read the same parameters again. */
static bool is_hashed(const struct sl_exec *exec, int32_t c)
{
    return exec->calls[c].place == SL_PLACE_HOST && exec->runs <= HASHED_RUNS && exec->loop.step <= 0 &&
           exec->pieces.running <= 0;
}

void sl_exec_begin_fences(const struct sl_exec *exec, int32_t c, enum sl_plugin_function function,
                          const void *workspace, const void *reserve, struct sl_exec_fences *fences)
{
    const struct seqlstm_sizes *sizes = &exec->plan->calls[c].sizes;
    const struct sl_exec_call *own = &exec->calls[c];
    const bool host = own->place == SL_PLACE_HOST;
    int32_t count;
    const struct sl_exec_gap *gaps = get_gaps(exec, c, function, &count);
    sl_fence_begin(&fences->workspace, host ? workspace : NULL, sizes->workspace_bytes);
    sl_fence_begin(&fences->reserve, host ? reserve : NULL, sizes->reserve_bytes);
    for (int32_t g = 0; g < count; g++)
        sl_fence_fill(exec->places[SL_PLACE_HOST].activations + gaps[g].offset);
    fences->reads = is_hashed(exec, c);
    for (int32_t s = 0; fences->reads && s < own->slot_count; s++)
        own->hashes[s] = sl_hash_bytes(own->slots[s], (size_t)get_read_bytes(exec, c, s), 0);
}

seqlstm_status sl_exec_end_fences(const struct sl_exec *exec, int32_t c, enum sl_plugin_function function,
                                  const struct sl_exec_fences *fences, struct seqlstm_error *err)
{
    const struct seqlstm_backend *table = sl_backend_get_table(exec->plan->calls[c].backend);
    const struct sl_node *node = exec->plan->calls[c].node;
    const struct sl_exec_call *own = &exec->calls[c];
    char damage[192];
    int32_t count;
    const struct sl_exec_gap *gaps = get_gaps(exec, c, function, &count);
    for (int32_t g = 0; g < count; g++)
        if (!sl_fence_is_filled(exec->places[SL_PLACE_HOST].activations + gaps[g].offset)) {
            snprintf(damage, sizeof damage, "wrote beyond %s `%.100s`",
                     function == SL_FUNCTION_BACKWARD ? "the gradient of" : "its output",
                     exec->graph->tensors[gaps[g].tensor].name);
            return sl_fence_fail(table, function, damage, err);
        }
    for (int32_t s = 0; fences->reads && s < own->slot_count; s++)
        if (own->hashes[s] != sl_hash_bytes(own->slots[s], (size_t)get_read_bytes(exec, c, s), 0)) {
            snprintf(damage, sizeof damage, "changed `%.100s`, which it may only read",
                     exec->graph->tensors[node->slots[s]].name);
            return sl_fence_fail(table, function, damage, err);
        }
    SEQLSTM_TRY(sl_fence_end(&fences->workspace, table, function, "workspace", err));
    return sl_fence_end(&fences->reserve, table, function, "reserve", err);
}

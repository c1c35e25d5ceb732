/* SPDX-License-Identifier: Apache-2.0 */
/* Flat operations of training, on the backend that the plan chose for each. */
#ifndef SL_EXEC_VECTORS_H
#define SL_EXEC_VECTORS_H

#include "exec/exec_private.h"
#include "registry/call_time.h"

/* Index of the plan's call for a flat operation. Errors: INVALID_ARGUMENT: the plan is not one of training. */
seqlstm_status sl_exec_find_vector(const struct sl_exec *exec, uint32_t op, uint32_t kind, int32_t *out_v,
                                   struct seqlstm_error *err);
/* The place of that call; the host when there is none. */
int32_t sl_exec_get_vector_place(const struct sl_exec *exec, uint32_t op, uint32_t kind);

/* Runs call v on slots that lie in its place. */
seqlstm_status sl_exec_run_vector(struct sl_exec *exec, int32_t v, void *const *slots, uint32_t slot_count,
                                  int64_t elems, struct seqlstm_error *err);
/* The same for one of several parts, which are one activity of a profile: between `begin` and `end`. */
struct sl_call_time sl_exec_begin_vector(struct sl_exec *exec, int32_t v);
seqlstm_status sl_exec_run_vector_part(struct sl_exec *exec, int32_t v, void *const *slots, uint32_t slot_count,
                                       int64_t elems, struct seqlstm_error *err);
void sl_exec_end_vector(struct sl_exec *exec, int32_t v, const struct sl_call_time *time, int64_t elems);
/* y += x, both in the place of that operation. */
seqlstm_status sl_exec_add(struct sl_exec *exec, float *y, const float *x, int64_t elems, struct seqlstm_error *err);

/* Frees the bindings, which no device uses any more: those outside of captures, or those of a capture. */
void sl_exec_unbind_vectors(struct sl_exec *exec);
void sl_exec_release_vectors(struct sl_exec *exec, struct sl_exec_capture *capture);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers in each memory domain, and which copy of a tensor is valid where. */
#ifndef SL_EXEC_PLACE_H
#define SL_EXEC_PLACE_H

#include "exec/exec_private.h"

/* Finds the place of every call and makes the buffers. */
seqlstm_status sl_exec_open_places(struct sl_exec *exec, const float *class_weights, struct seqlstm_error *err);
void sl_exec_close_places(struct sl_exec *exec);

/* Zeroed memory in a place, whose owner releases it. NO_MEMORY: on a device the message says what the plan needs there,
 * and which batch fits. */
seqlstm_status sl_exec_allocate(struct sl_exec *exec, struct sl_exec_place *place, int64_t bytes, void *out_pointer,
                                struct seqlstm_error *err);

/* As sl_params_provide and sl_params_locate, with that message. */
seqlstm_status sl_exec_provide_part(struct sl_exec *exec, int32_t place, enum sl_param_part part, int64_t begin,
                                    int64_t elems, float **out_elems, struct seqlstm_error *err);
seqlstm_status sl_exec_locate_part(struct sl_exec *exec, int32_t place, enum sl_param_part part, int64_t begin,
                                   float **out_elems, struct seqlstm_error *err);

/* At the start of a run: the batch's tensors are valid on the host, computed ones nowhere. */
void sl_exec_begin_values(struct sl_exec *exec);

/* The address of tensor t (of its gradient) in a place, valid or not; NULL when it has no room. */
void *sl_exec_at(struct sl_exec *exec, int32_t place, int32_t t);
float *sl_exec_grad_at(struct sl_exec *exec, int32_t place, int32_t t);

/* The same, made valid there by a copy if need be. NULL when the batch has no such field. */
seqlstm_status sl_exec_provide(struct sl_exec *exec, int32_t place, int32_t t, void **out_tensor,
                               struct seqlstm_error *err);
seqlstm_status sl_exec_provide_grad(struct sl_exec *exec, int32_t place, int32_t t, float **out_grad,
                                    struct seqlstm_error *err);

/* The bytes of tensor t in the running shape. */
int64_t sl_exec_get_bytes(const struct sl_exec *exec, int32_t t);

/* Notes that t has been written in a place: its other copies are stale. */
void sl_exec_note_written(struct sl_exec *exec, int32_t place, int32_t t);

#endif

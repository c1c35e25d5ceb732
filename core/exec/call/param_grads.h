/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the parameters of a call. Its own->grads are set before any of these is called. */
#ifndef SL_EXEC_PARAM_GRADS_H
#define SL_EXEC_PARAM_GRADS_H

#include "exec/exec_private.h"

/* Sets to zero the gradients that no call has written yet: the call is about to add to them, or is not made at all. */
seqlstm_status sl_exec_clear_unwritten(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);
/* Before the call: what it adds to is made valid where it runs. *out_add: it adds, and does not overwrite. */
seqlstm_status sl_exec_begin_params(struct sl_exec *exec, int32_t c, bool accumulate, bool *out_add,
                                    struct seqlstm_error *err);
/* After the call. */
void sl_exec_note_params(struct sl_exec *exec, int32_t c);
/* The address of the gradient of the parameter at slot s, in the place of the call. */
seqlstm_status sl_exec_locate_param(struct sl_exec *exec, int32_t c, int32_t s, float **out_grad,
                                    struct seqlstm_error *err);

/* The gradients of parameters from this element on are complete when all calls from c on have run backward. */
int64_t sl_exec_find_complete(const struct sl_exec *exec, int32_t c);

/* Calls on_rows for the embeddings among the calls [first, end). */
void sl_exec_name_rows(struct sl_exec *exec, int32_t first, int32_t end, sl_exec_rows_fn *on_rows, void *context);

#endif

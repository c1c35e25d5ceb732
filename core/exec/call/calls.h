/* SPDX-License-Identifier: Apache-2.0 */
/* One call of the plan, forward or backward. */
#ifndef SL_EXEC_CALLS_H
#define SL_EXEC_CALLS_H

#include "exec/exec_private.h"

/* Runs call c forward: on the running step of a loop, on the running piece, or on all rows. */
seqlstm_status sl_exec_forward_call(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);
/* Before its pieces: packs the weights of call c if they have changed. */
seqlstm_status sl_exec_pack_call(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);
/* Outputs of call c on the sequences axis: rows of sequences without a step are their initial state, or zero. */
seqlstm_status sl_exec_fill_empty(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);

/* Runs call c backward, on the running piece or on all rows: collects the gradients of its outputs, makes and adds up
 * those of its inputs and, unless one call makes them for all pieces later, of its parameters. */
seqlstm_status sl_exec_backward_call(struct sl_exec *exec, int32_t c, bool accumulate, struct seqlstm_error *err);

/* ---- parts of a backward call, for loops and pieces ---- */

/* Fills the slots of a call; what it reads is made valid where it runs. */
seqlstm_status sl_exec_place_slots(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);
/* The arguments of the call, whose slots and gradients are filled. */
struct seqlstm_backward sl_exec_get_backward(struct sl_exec *exec, int32_t c, uint32_t parts);
/* Calls the backend. */
seqlstm_status sl_exec_call_backward(struct sl_exec *exec, int32_t c, const struct seqlstm_backward *args,
                                     struct seqlstm_error *err);
/* Does slot s hold an initial state of a recurrent call? */
bool sl_exec_is_initial_state(const struct sl_node *node, int32_t s);

#endif

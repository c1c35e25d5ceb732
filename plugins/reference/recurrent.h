/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent stacks.
 *
 *   recurrent.c           slots
 *   recurrent_stack.c     sizes, reserve; the stack and one layer of it as views of a call
 *   recurrent_forward.c   layers, directions, steps and sequences, outputs and final states
 *   recurrent_backward.c  the same in reverse
 *   recurrent_cell.c      the equations of ops.h for one sequence at one step, forward
 *   recurrent_cell_backward.c   and their derivatives
 */
#ifndef REF_RECURRENT_H
#define REF_RECURRENT_H

#include "recurrent_stack.h"

seqlstm_status ref_recurrent_forward(const struct ref_call *call, struct seqlstm_error *err);
seqlstm_status ref_recurrent_backward(const struct ref_call *call, struct seqlstm_error *err);

#endif

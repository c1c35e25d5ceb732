/* SPDX-License-Identifier: Apache-2.0 */
/* The borders of a stage: what it exchanges with the stages before and after it.
 *
 * What a stage writes and a later one reads goes from stage to stage, through those between; gradients come back the
 * same way, as running sums. So every sum is added in the order in which a single executor adds it, and has its bits.
 *
 * A border between two units is crossed once; one within a unit that runs in pieces, for each piece:
 *
 *   forward     what earlier units wrote │ rows of piece 0 │ rows of piece 1 │ … │ what the unit wrote at its end
 *   backward    the gradients of these, in reverse
 *   at last     gradients of parameters that both sides use (a tied matrix)
 */
#ifndef SL_EXEC_CALL_BORDER_H
#define SL_EXEC_CALL_BORDER_H

#include "exec/exec_private.h"

enum { SL_EXEC_BEFORE, SL_EXEC_AFTER }; /* the borders of a stage */

/* Finds what crosses the borders of the request's stage. UNSUPPORTED: the stages cannot be cut there. */
seqlstm_status sl_exec_open_borders(struct sl_exec *exec, const struct sl_exec_stage *stage, struct seqlstm_error *err);
void sl_exec_close_borders(struct sl_exec *exec);

/* ---- forward; calls [first, end) are those of a unit in this stage ---- */

/* At the beginning of a step that adds to the gradients: those of parameters that are used on both sides. */
seqlstm_status sl_exec_pass_param_sums(struct sl_exec *exec, struct seqlstm_error *err);
seqlstm_status sl_exec_enter_unit(struct sl_exec *exec, int32_t first, int32_t end, struct seqlstm_error *err);
seqlstm_status sl_exec_leave_unit(struct sl_exec *exec, int32_t first, int32_t end, struct seqlstm_error *err);
seqlstm_status sl_exec_receive_piece(struct sl_exec *exec, int32_t first, struct seqlstm_error *err);
seqlstm_status sl_exec_send_piece(struct sl_exec *exec, int32_t end, struct seqlstm_error *err);

/* ---- backward ---- */

seqlstm_status sl_exec_enter_unit_back(struct sl_exec *exec, int32_t first, int32_t end, struct seqlstm_error *err);
seqlstm_status sl_exec_leave_unit_back(struct sl_exec *exec, int32_t first, struct seqlstm_error *err);
seqlstm_status sl_exec_receive_piece_grads(struct sl_exec *exec, int32_t end, struct seqlstm_error *err);
seqlstm_status sl_exec_send_piece_grads(struct sl_exec *exec, int32_t first, struct seqlstm_error *err);
/* Before a call adds to the gradients of its parameters: receives those of later stages, if it uses one of them. */
seqlstm_status sl_exec_await_params(struct sl_exec *exec, int32_t c, struct seqlstm_error *err);
/* At the end of backward. */
seqlstm_status sl_exec_pass_params(struct sl_exec *exec, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that run piece by piece: a unit of the plan (dispatch/plan/plan.h), or the part of it that is in this
 * executor's stage.
 *
 *   forward     piece 0: all calls │ piece 1: all calls │ …
 *   backward    the last piece first; then one call for each operation makes the weight gradients of all pieces
 *
 * A stage receives what it reads of a piece from the stage before, and sends on what later stages read (border.h), so
 * that stages work at the same time, on different pieces.
 */
#ifndef SL_EXEC_CALL_PIECES_H
#define SL_EXEC_CALL_PIECES_H

#include "exec/exec_private.h"

/* UNSUPPORTED: a call works on another device than the processor. */
seqlstm_status sl_exec_open_pieces(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_pieces(struct sl_exec *exec);

/* Calls [first, end) of one unit, on a batch that has pieces. */
seqlstm_status sl_exec_pieces_forward(struct sl_exec *exec, int32_t first, int32_t end, struct seqlstm_error *err);
seqlstm_status sl_exec_pieces_backward(struct sl_exec *exec, int32_t first, int32_t end, bool accumulate,
                                       struct seqlstm_error *err);

#endif

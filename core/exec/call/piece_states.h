/* SPDX-License-Identifier: Apache-2.0 */
/* The states of recurrent calls at the borders of pieces.
 *
 *   border   0            1            2            P
 *            | piece 0    | piece 1    |            |         a piece reads its left border, and writes its right one
 *            initial                                final
 *
 * Sequences are sorted by length, so those that go on in the next piece are the first rows of a border. The rows after
 * them belong to sequences that ended in the piece before: they are final states.
 */
#ifndef SL_EXEC_CALL_PIECE_STATES_H
#define SL_EXEC_CALL_PIECE_STATES_H

#include "exec/exec_private.h"

/* Makes room for the states of all calls. */
seqlstm_status sl_exec_open_piece_states(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_piece_states(struct sl_exec *exec);

/* Points the slots of call c to the borders of the running piece; nothing if it has no states. */
void sl_exec_place_piece_states(struct sl_exec *exec, int32_t c);
/* The same for the first piece, while none runs; nothing if the batch has no pieces. */
void sl_exec_place_first_states(struct sl_exec *exec, int32_t c);
/* After the last piece: the final states of all sequences with steps, in the tensors that hold them. */
void sl_exec_collect_piece_states(struct sl_exec *exec, int32_t c);

/* Points the gradients of call c to the borders of the running piece. Those of border 0 stay where they are, if the
 * initial states have gradients. False: the call has no states. */
bool sl_exec_place_piece_grads(struct sl_exec *exec, int32_t c);

#endif

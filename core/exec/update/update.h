/* SPDX-License-Identifier: Apache-2.0 */
/* The update of the parameters, in steps. sl_exec_update (exec.h) does all of them. */
#ifndef SL_EXEC_UPDATE_H
#define SL_EXEC_UPDATE_H

#include "exec/exec_private.h"

/* Adds the terms of regularizers to the gradients of parameters with owned[p]; NULL: of all. */
seqlstm_status sl_exec_regularize(struct sl_exec *exec, const bool *owned, struct seqlstm_error *err);

/* Finds out whether captures may include the update. */
void sl_exec_open_update(struct sl_exec *exec);
/* Puts the update's numbers into the step block. */
void sl_exec_begin_update(struct sl_exec *exec, const struct sl_exec_update *update);
/* Copies what the update reads to device_place. */
seqlstm_status sl_exec_bring_update(struct sl_exec *exec, struct seqlstm_error *err);
/* Starts its operations. */
seqlstm_status sl_exec_make_update(struct sl_exec *exec, struct seqlstm_error *err);
/* Notes what the update has written; sl_exec_make_update does so itself, a launched capture does not. */
void sl_exec_note_update(struct sl_exec *exec);
/* Waits for it, and reads the sum of squares. */
seqlstm_status sl_exec_finish_update(struct sl_exec *exec, double *out_squares, struct seqlstm_error *err);

#endif

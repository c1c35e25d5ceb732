/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the calls of a step one by one, or captures them and launches the capture. */
#ifndef SL_EXEC_CAPTURE_H
#define SL_EXEC_CAPTURE_H

#include "exec/exec_private.h"

/* All calls of a step, one by one. */
typedef seqlstm_status sl_exec_calls_fn(struct sl_exec *exec, const struct sl_exec_step *step,
                                        struct seqlstm_error *err);

/* Finds out whether steps may be captured. */
seqlstm_status sl_exec_open_capture(struct sl_exec *exec, struct seqlstm_error *err);
/* Runs a step by `calls`, or by a capture of them. */
seqlstm_status sl_exec_run_calls(struct sl_exec *exec, const struct sl_exec_step *step, sl_exec_calls_fn *calls,
                                 struct seqlstm_error *err);
void sl_exec_drop_captures(struct sl_exec *exec, struct sl_exec_shape *shape);

#endif

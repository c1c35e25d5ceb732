/* SPDX-License-Identifier: Apache-2.0 */
/* Captures of the calls of a step. */
#ifndef SL_EXEC_CAPTURE_H
#define SL_EXEC_CAPTURE_H

#include "exec/capture/frame.h"

/* Finds out whether steps may be captured. */
seqlstm_status sl_exec_open_capture(struct sl_exec *exec, struct seqlstm_error *err);
/* May the step be launched, or its calls be started, while other steps are under way? */
bool sl_exec_may_start(const struct sl_exec *exec, const struct sl_exec_step *step);
/* Finds the capture of the bound batch's step, or makes it of `calls` if it is time. NULL: the calls are to be run one
 * by one. */
seqlstm_status sl_exec_prepare_capture(struct sl_exec *exec, const struct sl_exec_step *step, sl_exec_calls_fn *calls,
                                       struct sl_exec_capture **out_capture, struct seqlstm_error *err);
/* Launches it, and notes what it does. sl_exec_land waits for it. */
seqlstm_status sl_exec_launch_capture(struct sl_exec *exec, struct sl_exec_capture *capture,
                                      const struct sl_exec_step *step, struct seqlstm_error *err);
/* Starts the calls of a step that has no capture, in a frame of their own. sl_exec_land waits for it. */
seqlstm_status sl_exec_start_calls(struct sl_exec *exec, const struct sl_exec_step *step, sl_exec_calls_fn *calls,
                                   struct seqlstm_error *err);
void sl_exec_drop_captures(struct sl_exec *exec, struct sl_exec_shape *shape);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of captured steps: how a step is started without waiting for the one before, and how its results come back. */
#ifndef SL_EXEC_FRAME_H
#define SL_EXEC_FRAME_H

#include "exec/exec_private.h"

/* All calls of a step, one by one. */
typedef seqlstm_status sl_exec_calls_fn(struct sl_exec *exec, const struct sl_exec_step *step,
                                        struct seqlstm_error *err);

/* One block on the device, in device_place, of all that changes from run to run. */
seqlstm_status sl_exec_open_live(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_live(struct sl_exec *exec);
/* Points the axes of a new shape to the block, before the shape is bound. */
void sl_exec_attach_live(struct sl_exec *exec, struct sl_exec_shape *shape);
/* Copies the values of this run. */
seqlstm_status sl_exec_renew_live(struct sl_exec *exec, struct seqlstm_error *err);

/* Makes the ring, in device_place. */
seqlstm_status sl_exec_open_frame(struct sl_exec *exec, struct seqlstm_error *err);
/* After the device has finished. */
void sl_exec_close_frame(struct sl_exec *exec);

/* Notes that the fields of the batch, and carried states that begin at zero, are made valid on the device by the frame
 * of the step that is about to be captured or launched. */
void sl_exec_note_frame(struct sl_exec *exec);

/* Notes what both ends have to copy for the bound batch. */
void sl_exec_make_frame(struct sl_exec *exec, struct sl_exec_capture *capture);
/* Start both ends, while `capture` is recorded. */
seqlstm_status sl_exec_begin_frame(struct sl_exec *exec, struct sl_exec_capture *capture, struct seqlstm_error *err);
seqlstm_status sl_exec_end_frame(struct sl_exec *exec, struct sl_exec_capture *capture, struct seqlstm_error *err);
/* Adds a copy to the end of the frame; false: there is no room. */
bool sl_exec_add_to_frame(struct sl_exec_capture *capture, void *to, const void *from, int64_t bytes);

/* Sends what the step needs to the device and launches the capture; if it is exec->loose, whose frame is made, starts
 * `calls` between both ends. There must be fewer than SL_EXEC_AHEAD steps whose results have not been fetched. */
seqlstm_status sl_exec_launch(struct sl_exec *exec, struct sl_exec_capture *capture, const struct sl_exec_step *step,
                              sl_exec_calls_fn *calls, struct seqlstm_error *err);
/* Waits for the oldest launched step and fetches its results. */
seqlstm_status sl_exec_land(struct sl_exec *exec, struct sl_exec_result *out_result, struct seqlstm_error *err);

/* Around the calls of a step that is not captured: marks its begin and end on the device. */
seqlstm_status sl_exec_mark_begin(struct sl_exec *exec, struct seqlstm_error *err);
seqlstm_status sl_exec_mark_end(struct sl_exec *exec, struct seqlstm_error *err);
/* After the step: adds the time for which the device had nothing to do before it. */
seqlstm_status sl_exec_count_idle(struct sl_exec *exec, struct seqlstm_error *err);

#endif

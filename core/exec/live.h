/* SPDX-License-Identifier: Apache-2.0 */
/* One block on the device, in device_place, of all that changes from run to run. */
#ifndef SL_EXEC_LIVE_H
#define SL_EXEC_LIVE_H

#include "exec/exec_private.h"

seqlstm_status sl_exec_open_live(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_live(struct sl_exec *exec);
/* Points the axes of a new shape to the block, before the shape is bound. */
void sl_exec_attach_live(struct sl_exec *exec, struct sl_exec_shape *shape);
/* Copies the values of this run. */
seqlstm_status sl_exec_renew_live(struct sl_exec *exec, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The next batch's fields are copied to the devices while the present batch is computed. */
#ifndef SL_EXEC_STAGING_H
#define SL_EXEC_STAGING_H

#include "exec/exec_private.h"

/* Makes room for the next batch's fields, if there is none yet; waits for the devices. */
seqlstm_status sl_exec_open_staging(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_staging(struct sl_exec *exec);

/* Starts to copy the fields of the next batch, which must fit. */
seqlstm_status sl_exec_stage(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);
/* At the end of a run: waits for the copies. */
seqlstm_status sl_exec_finish_staging(struct sl_exec *exec, struct seqlstm_error *err);
/* At the start of a run: uses the copies, if they are of this batch. */
seqlstm_status sl_exec_take_staged(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);

#endif

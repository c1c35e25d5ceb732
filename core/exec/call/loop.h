/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that run step by step. */
#ifndef SL_EXEC_LOOP_H
#define SL_EXEC_LOOP_H

#include "exec/exec_private.h"

seqlstm_status sl_exec_open_loop(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_loop(struct sl_exec *exec);
seqlstm_status sl_exec_loop_forward(struct sl_exec *exec, struct seqlstm_error *err);
seqlstm_status sl_exec_loop_backward(struct sl_exec *exec, bool accumulate, struct seqlstm_error *err);

#endif

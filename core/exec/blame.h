/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of backends name the operation and the backend. */
#ifndef SL_EXEC_BLAME_H
#define SL_EXEC_BLAME_H

#include "exec/exec_private.h"

/* Puts "lstm_1 on cpu-blas: " before the message. Returns `status`. */
seqlstm_status sl_exec_blame(const struct sl_call *call, seqlstm_status status, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions on the host alone, with as little as possible around the calls. */
#ifndef SL_EXEC_LEAN_H
#define SL_EXEC_LEAN_H

#include "exec/exec_private.h"

/* Finds out whether the executor can run leanly. */
void sl_exec_open_lean(struct sl_exec *exec);

#endif

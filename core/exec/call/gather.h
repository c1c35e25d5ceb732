/* SPDX-License-Identifier: Apache-2.0 */
/* Weight gradients of calls whose rows ran in parts: the steps of a loop, or pieces. */
#ifndef SL_EXEC_CALL_GATHER_H
#define SL_EXEC_CALL_GATHER_H

#include "exec/exec_private.h"

/* Can one call over all rows make the weight gradients of call c? It can if the operation keeps nothing from its
 * forward call, or is STEPWISE. */
bool sl_exec_can_gather(const struct sl_exec *exec, int32_t c);

/* After the backward of all parts: makes the weight gradients of all rows at once; or, if the parts have made them,
 * zeros for those that none has made. */
seqlstm_status sl_exec_gather_weights(struct sl_exec *exec, int32_t c, bool accumulate, struct seqlstm_error *err);

#endif

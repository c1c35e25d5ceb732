/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings by shape of batch. */
#ifndef SL_EXEC_SHAPES_H
#define SL_EXEC_SHAPES_H

#include "exec/exec_private.h"

/* The bindings of the batch's shape; NULL: there are none. */
const struct sl_exec_shape *sl_exec_find_shape(const struct sl_exec *exec, const struct sl_batch *batch);
/* Makes the bindings of a later batch's shape, if there are none, while the present batch is computed; its bindings are
 * the newest ones, so they stay. */
seqlstm_status sl_exec_prepare_shape(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);
/* Finds or makes the bindings of the batch's shape, and copies its ids and positions. */
seqlstm_status sl_exec_bind(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);
void sl_exec_unbind_all(struct sl_exec *exec);

#endif

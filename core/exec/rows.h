/* SPDX-License-Identifier: Apache-2.0 */
/* How many rows a call has at the running shape, and where they begin. */
#ifndef SL_EXEC_ROWS_H
#define SL_EXEC_ROWS_H

#include "exec/exec_private.h"

/* The axis of a call's rows. */
const struct seqlstm_axis *sl_exec_get_axis(const struct sl_exec_shape *shape, enum sl_axis axis);

/* Rows on an axis at the running shape; in a loop, those of the running step, and in pieces those of the running one.
 */
int64_t sl_exec_get_rows(const struct sl_exec *exec, enum sl_axis axis);

/* Rows that call c reads when it writes `rows`. */
int64_t sl_exec_get_rows_in(const struct sl_exec *exec, const struct sl_exec_shape *shape, int32_t c, int64_t rows);

/* Bytes from the beginning of a tensor to its rows of the running step or piece. */
int64_t sl_exec_get_shift(const struct sl_exec *exec, const struct sl_tensor *tensor);

/* Does call c run at all at the running shape? */
bool sl_exec_has_rows(const struct sl_exec *exec, int32_t c);

#endif

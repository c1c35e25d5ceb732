/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that follow from a batch. */
#ifndef SL_EXEC_INDICES_H
#define SL_EXEC_INDICES_H

#include "exec/exec_private.h"

/* Room for the index tensors that the graph reads. */
seqlstm_status sl_exec_open_indices(struct sl_exec *exec, struct seqlstm_error *err);
void sl_exec_close_indices(struct sl_exec *exec);
/* Their values for a batch. */
void sl_exec_fill_indices(struct sl_exec *exec, const struct sl_batch *batch);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of an embedding's gradient may differ from zero: an update uses few rows of a large table. The others need
 * not be cleared, added up, or, where a gradient of zero changes nothing, updated. Kept for matrices that only
 * embeddings read and that have no regularizer, while all gradients lie on the host.
 *
 * A matrix is *known* after a backward pass that began with a cleared gradient, until another writer changes it.
 */
#ifndef SL_EXEC_USED_ROWS_H
#define SL_EXEC_USED_ROWS_H

#include "exec/params/params.h"

struct sl_used_rows {
    int64_t offset, rows, columns; /* in the flat gradients */
    bool known;
    uint8_t *flags; /* [rows] 1: it may differ from zero */
};

/* Errors: NO_MEMORY. */
seqlstm_status sl_used_rows_create(struct sl_params *params, const struct sl_graph *graph, struct seqlstm_error *err);
void sl_used_rows_destroy(struct sl_params *params);

/* Clears the gradient at `offset`, if its used rows are known; otherwise the caller clears all of it. Either way no row
 * of it is used afterwards. False: not cleared, or none is kept for it. */
bool sl_used_rows_clear(struct sl_params *params, int64_t offset);
/* These rows have been added to; ids below 0 are none. */
void sl_used_rows_mark(struct sl_params *params, int64_t offset, const int32_t *ids, int64_t count);
/* Rows with a flag have been added to from outside; `flags` NULL: to any. */
void sl_used_rows_add(struct sl_params *params, int64_t offset, const uint8_t *flags);
/* Any gradients have been written from outside. */
void sl_used_rows_forget(struct sl_params *params);

/* Elements [begin, end) of the trainable gradients, from `at` on: all others before `end` are zero. Both are multiples
 * of 16, except the end of all. False: there are no more. */
struct sl_grad_range {
    int64_t begin, end;
};
bool sl_used_rows_next(const struct sl_params *params, int64_t at, struct sl_grad_range *out);

#endif

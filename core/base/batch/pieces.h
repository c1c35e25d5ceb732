/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces: the ranges of steps into which the steps of a batch are cut, so that layers on several ranks can work at the
 * same time, each on another range. */
#ifndef SL_BASE_BATCH_PIECES_H
#define SL_BASE_BATCH_PIECES_H

#include <seqlstm/backend.h>

enum { SL_PIECES_MOST = 1024 };

/* Cuts the steps of the axis into `pieces` ranges with about as many rows each, or into single steps if there are
 * fewer: piece p is [out_bounds[p], out_bounds[p + 1]). Returns their number; 0: the axis has no rows. It depends on
 * nothing but the axis and `pieces`. `out_bounds` has room for pieces + 1. */
int32_t sl_steps_cut(const struct seqlstm_axis *axis, int32_t pieces, int64_t *out_bounds);

#endif

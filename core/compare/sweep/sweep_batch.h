/* SPDX-License-Identifier: Apache-2.0 */
/* One batch size of a sweep. */
#ifndef SL_COMPARE_SWEEP_SWEEP_BATCH_H
#define SL_COMPARE_SWEEP_SWEEP_BATCH_H

#include "compare/sweep/sweep_candidates.h"

/* Times all candidates on batches of this size for about `seconds`, and appends the result to the report. The first
 * size also decides which candidates are excluded, by what they accept and by their results. */
seqlstm_status sl_sweep_run_batch(struct sl_sweep *sweep, int64_t batch, double seconds);

#endif

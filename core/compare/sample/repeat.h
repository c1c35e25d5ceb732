/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a longer batch from a short one. */
#ifndef SL_COMPARE_SAMPLE_REPEAT_H
#define SL_COMPARE_SAMPLE_REPEAT_H

#include "base/batch/batch.h"

/* Makes a batch of `sequences` >= batch->sequences. It contains each sequence several times, each time with another
 * id. NO_MEMORY. */
seqlstm_status sl_batch_repeat(const struct sl_batch *batch, int64_t sequences, struct sl_batch **out_batch,
                               struct seqlstm_error *err);

#endif

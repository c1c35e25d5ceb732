/* SPDX-License-Identifier: Apache-2.0 */
/* A longer batch out of a short one. */
#ifndef SL_COMPARE_REPEAT_H
#define SL_COMPARE_REPEAT_H

#include "base/batch/batch.h"

/* A batch of `sequences` >= batch->sequences: each of its sequences several times, each time with an id of its own.
 * NO_MEMORY. */
seqlstm_status sl_batch_repeat(const struct sl_batch *batch, int64_t sequences, struct sl_batch **out_batch,
                               struct seqlstm_error *err);

#endif

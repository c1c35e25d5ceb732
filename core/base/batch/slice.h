/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of a batch: its sequences first, first + stride, first + 2 stride, …, which are sorted as those of the batch
 * are. */
#ifndef SL_BASE_BATCH_SLICE_H
#define SL_BASE_BATCH_SLICE_H

#include "base/batch/batch.h"
#include "base/batch/data_facts.h"
#include "base/batch/profile.h"

/* Sequences of a slice. */
int64_t sl_slice_count(int64_t sequences, int64_t first, int64_t stride);

/* A batch of its own with the sequences of a slice, of which there is at least one; numbers of records, sequences and
 * batch stay. Rows that `pad_to` added count in the first slice. Errors: NO_MEMORY. [any] */
seqlstm_status sl_batch_slice(const struct sl_batch *batch, int64_t first, int64_t stride, struct sl_batch **out_slice,
                              struct seqlstm_error *err);

/* Makes each profile that of its first slice, which has most rows. */
void sl_profiles_slice(struct sl_profiles *profiles, int64_t stride);

/* An upper bound of the slices of all batches. */
struct sl_envelope sl_envelope_slice(const struct sl_envelope *envelope, int64_t stride);

#endif

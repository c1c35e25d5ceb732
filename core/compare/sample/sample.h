/* SPDX-License-Identifier: Apache-2.0 */
/* A few batches of the user's own training data, for comparing and timing.
 *
 * They have even distances in the first epoch. The first one has the most rows. If the data have fewer sequences
 * than a batch should, sequences are repeated. No batch carries states. */
#ifndef SL_COMPARE_SAMPLE_SAMPLE_H
#define SL_COMPARE_SAMPLE_SAMPLE_H

#include "base/batch/data_facts.h"
#include "data/dataset/dataset.h"
#include "session/session.h"

enum { SL_SAMPLE_MOST = 8, SL_SAMPLE_SEQUENCES_MOST = 1 << 20 }; /* the most batches, and the most sequences of each */

struct sl_sample {
    struct sl_batch *batches[SL_SAMPLE_MOST];
    int32_t count;
    struct sl_envelope envelope; /* of these batches */
};

/* `batch_size` 0: the model's; `most` 1 .. SL_SAMPLE_MOST. Errors: CORRUPT_DATA (no batch with a row), NO_MEMORY. */
seqlstm_status sl_sample_create(const struct sl_dataset *data, uint64_t seed, int64_t batch_size, int32_t most,
                                struct sl_sample *out_sample, struct seqlstm_error *err);
void sl_sample_deinit(struct sl_sample *sample);

/* A sample with one batch of up to `most` sequences, as many as the reference runs in a few seconds. */
seqlstm_status sl_sample_create_small(const struct sl_session *session, int64_t most, struct sl_sample *out_sample,
                                      struct seqlstm_error *err);

#endif

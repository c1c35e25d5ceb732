/* SPDX-License-Identifier: Apache-2.0 */
/* Upper bound of the batches of a dataset. Private to core/data. [any thread] */
#ifndef SL_DATA_DATASET_ENVELOPE_H
#define SL_DATA_DATASET_ENVELOPE_H

#include <seqlstm/status.h>

#include "base/batch/data_facts.h"
#include "model/data_config.h"

struct sl_dataset;

/* The limits of the batches. */
struct sl_envelope_rule {
    int64_t batch_size; /* most sequences; 0: no limit but max_tokens */
    int64_t max_tokens; /* most rows, or one longer sequence; 0: no limit */
    int64_t bptt;       /* steps of a segment; 0: whole sequences */
    enum sl_padding padding;
};

/* Errors: NO_MEMORY. */
seqlstm_status sl_envelope_compute(const struct sl_dataset *dataset, const struct sl_envelope_rule *rule,
                                   struct sl_envelope *out, struct seqlstm_error *err);

/* Cuts a stream into parallel streams of equal length: batch_size of them, or one per position where there are fewer
 * positions. streams * steps <= positions; 0 and 0 where there are none. */
void sl_stream_cut(int64_t positions, int64_t batch_size, int64_t *out_streams, int64_t *out_steps);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Upper bound of the batches of a dataset. Private to core/data. [any thread] */
#ifndef SL_DATA_ENVELOPE_H
#define SL_DATA_ENVELOPE_H

#include <seqlstm/status.h>

#include "base/data_facts.h"

struct sl_dataset;

/* For batches of at most batch_size sequences and, where max_tokens > 0, max_tokens rows (or one longer
 * sequence). Errors: NO_MEMORY. */
seqlstm_status sl_envelope_compute(const struct sl_dataset *dataset, int64_t batch_size, int64_t max_tokens,
                                   struct sl_envelope *out, struct seqlstm_error *err);

/* Parts of a stream and their steps, for batch_size parts asked for: parts * steps <= positions. Fewer parts
 * where there are fewer positions; 0 and 0 for none. */
void sl_stream_cut(int64_t positions, int64_t batch_size, int64_t *out_parts, int64_t *out_steps);

#endif

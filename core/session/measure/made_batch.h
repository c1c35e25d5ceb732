/* SPDX-License-Identifier: Apache-2.0 */
/* Batches without data, to time steps on. */
#ifndef SL_SESSION_MEASURE_MADE_BATCH_H
#define SL_SESSION_MEASURE_MADE_BATCH_H

#include <stdint.h>

#include <seqlstm/status.h>

struct sl_batch;
struct sl_data_facts;

/* A batch of the given lengths as the facts describe it: zeros, with weights of 1. Lengths do not increase;
 * `source_lengths` NULL: no source, `lengths` NULL: no steps. NO_MEMORY. */
seqlstm_status sl_session_make_batch(const struct sl_data_facts *facts, int64_t sequences, const int32_t *lengths,
                                     const int32_t *source_lengths, struct sl_batch **out_batch,
                                     struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* From the packed rows of a batch back to records in input order. */
#ifndef SL_SESSION_PREDICT_RECORDS_H
#define SL_SESSION_PREDICT_RECORDS_H

#include <seqlstm/status.h>

#include "session/predict/prediction.h"

struct sl_batch;
struct sl_dataset;
struct sl_session;

/* The sequence of the batch that record first_record + n is, for each n: [sequences], to be freed. INTERNAL when one is
 * missing. */
seqlstm_status sl_session_find_order(const struct sl_batch *batch, int64_t first_record, int64_t **out_sequences,
                                     struct seqlstm_error *err);

/* Passes on the predictions of the batch that ran last, in the order of its records, which are first_record, … . `data`
 * may be NULL: no texts of the input. */
seqlstm_status sl_session_hand_out(struct sl_session *session, const struct sl_dataset *data,
                                   const struct sl_batch *batch, int64_t first_record, sl_prediction_fn *write,
                                   void *context, struct seqlstm_error *err);

#endif

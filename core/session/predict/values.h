/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for sequences of numbers in memory. */
#ifndef SL_SESSION_PREDICT_VALUES_H
#define SL_SESSION_PREDICT_VALUES_H

#include <seqlstm/status.h>

#include "predict/prediction.h"

struct sl_session;

/* Predictions for `count` sequences, one after the other in `values`, in the units of the data. */
seqlstm_status sl_session_predict_values(struct sl_session *session, const float *values, const int64_t *lengths,
                                         int64_t count, sl_prediction_fn *write, void *context,
                                         struct seqlstm_error *err);

struct sl_kept_predictor;
void sl_kept_predictor_deinit(struct sl_kept_predictor *kept);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for the records of a file. */
#ifndef SL_SESSION_PREDICT_PREDICT_H
#define SL_SESSION_PREDICT_PREDICT_H

#include <seqlstm/status.h>

#include "data/dataset/dataset.h"
#include "predict/prediction.h"

struct sl_layer;
struct sl_model;
struct sl_session;

/* Runs the model over the input and passes on one record after the other. `attention`: texts with their attention
 * weights. Errors: INVALID_CONFIG: a model without attention. */
seqlstm_status sl_session_predict(struct sl_session *session, const struct sl_input_request *input, bool attention,
                                  sl_prediction_fn *write, void *context, struct seqlstm_error *err);

/* The output of layer `layer_name` for each record, in place of the model's; NULL: the input of the last layer. In the
 * network's units; `classes` of a prediction is NULL. Errors: INVALID_CONFIG: no such layer; as predict. */
seqlstm_status sl_session_embed(struct sl_session *session, const struct sl_input_request *input,
                                const char *layer_name, sl_prediction_fn *write, void *context,
                                struct seqlstm_error *err);

#endif

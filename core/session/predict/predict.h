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

/* The layer that `embedding` names, or the last one of the encoder; without an encoder the one before the last layer,
 * if the last layer makes classes or values of it. */
const struct sl_layer *sl_session_find_embedding_layer(const struct sl_model *model);

/* The output of layer `layer_name` for each record, in place of the model's; NULL: the input of the last layer. In the
 * network's units; `classes` of a prediction is NULL. Errors: INVALID_CONFIG: no such layer; as predict. */
seqlstm_status sl_session_embed(struct sl_session *session, const struct sl_input_request *input,
                                const char *layer_name, sl_prediction_fn *write, void *context,
                                struct seqlstm_error *err);

#endif

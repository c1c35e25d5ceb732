/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that a decoder writes, in input order. */
#ifndef SL_SESSION_PREDICT_TEXTS_H
#define SL_SESSION_PREDICT_TEXTS_H

#include <stdbool.h>

#include <seqlstm/status.h>

#include "session/predict/prediction.h"

struct sl_batcher;
struct sl_dataset;
struct sl_session;

/* Writes texts for all batches. */
seqlstm_status sl_session_predict_texts(struct sl_session *session, const struct sl_dataset *data,
                                        struct sl_batcher *batcher, bool attention, sl_prediction_fn *write,
                                        void *context, struct seqlstm_error *err);

#endif

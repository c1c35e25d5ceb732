/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for whole sequences in memory. */
#ifndef SL_PREDICT_WHOLE_H
#define SL_PREDICT_WHOLE_H

#include "predict/context.h"

/* As seqlstm_predict (<seqlstm/predictor.h>). */
seqlstm_status sl_context_predict(struct sl_context *context, const void *x, const int64_t *lengths, int64_t count,
                                  float *y, struct seqlstm_error *err);

#endif

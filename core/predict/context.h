/* SPDX-License-Identifier: Apache-2.0 */
/* What one thread needs to predict: an executor for each use of the predictor, with its buffers. One thread at a time.
 */
#ifndef SL_PREDICT_CONTEXT_H
#define SL_PREDICT_CONTEXT_H

#include "predict/predictor.h"

struct sl_context;
struct sl_predictor_lane;

/* Opens what streams need, and runs it once. NO_MEMORY; errors of backends. [any thread] */
seqlstm_status sl_context_open(const struct sl_predictor *predictor, struct sl_context **out_context,
                               struct seqlstm_error *err);
void sl_context_close(struct sl_context *context); /* NULL is fine */

/* The executor and the packer of a use, opened when it is first needed. INVALID_ARGUMENT: it is not planned. */
seqlstm_status sl_context_provide(struct sl_context *context, enum sl_predictor_use use,
                                  struct sl_predictor_lane **out_lane, struct seqlstm_error *err);
/* Runs the packed batch. */
seqlstm_status sl_context_run(struct sl_context *context, struct sl_predictor_lane *lane, struct seqlstm_error *err);

#endif

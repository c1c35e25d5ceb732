/* SPDX-License-Identifier: Apache-2.0 */
/* What one thread needs to predict: an executor for each use of the predictor, with its buffers. One thread at a time.
 */
#ifndef SL_PREDICT_CONTEXT_H
#define SL_PREDICT_CONTEXT_H

#include "predict/predictor.h"

struct sl_context;
struct sl_decoder;
struct sl_exec;
struct sl_predictor_lane;

/* Opens what streams need, and runs it once. NO_MEMORY; errors of backends. [any thread] */
seqlstm_status sl_context_open(const struct sl_predictor *predictor, struct sl_context **out_context,
                               struct seqlstm_error *err);
void sl_context_close(struct sl_context *context); /* NULL is fine */
/* As in struct sl_predictor_request. */
bool sl_context_shares_lock(const struct sl_context *context);

/* The executor and the packer of a use, opened when it is first needed. INVALID_ARGUMENT: it is not planned. */
seqlstm_status sl_context_provide(struct sl_context *context, enum sl_predictor_use use,
                                  struct sl_predictor_lane **out_lane, struct seqlstm_error *err);
/* Runs a batch. Whole sequences begin with zeros as states. */
seqlstm_status sl_context_run(struct sl_predictor_lane *lane, const struct sl_batch *batch, struct seqlstm_error *err);

/* The executor of a use, to be watched. */
seqlstm_status sl_context_provide_exec(struct sl_context *context, enum sl_predictor_use use, struct sl_exec **out_exec,
                                       struct seqlstm_error *err);
/* What writes texts, opened when it is first needed. */
seqlstm_status sl_context_provide_decoder(struct sl_context *context, struct sl_decoder **out_decoder,
                                          struct seqlstm_error *err);
/* What writes texts that join and leave (joined_texts.h). It has the executors of the decoder: only one of both may be
 * in use. */
seqlstm_status sl_context_provide_continuous(struct sl_context *context, struct seqlstm_error *err);
/* NULL before it is opened. */
const struct sl_decoder *sl_context_find_decoder(const struct sl_context *context);

#endif

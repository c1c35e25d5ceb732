/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for all batches of a dataset, and for texts in memory. */
#ifndef SL_PREDICT_BATCHES_H
#define SL_PREDICT_BATCHES_H

#include <stddef.h>

#include "predict/context.h"
#include "predict/prediction.h"

struct sl_batcher;
struct sl_interrupt;
struct sl_outlet;

/* One epoch of a batcher of the phase PREDICT, whose batches fit; the predictions are passed on in the order of the
 * records. CANCELLED: `interrupt` (may be NULL) asked for it. [one thread at a time per context] */
seqlstm_status sl_context_predict_batches(struct sl_context *context, struct sl_batcher *batcher,
                                          const struct sl_outlet *outlet, const struct sl_interrupt *interrupt,
                                          struct seqlstm_error *err);

/* Texts as records of the data that the model was trained on; `bytes` NULL: they end with a NUL. INVALID_ARGUMENT: a
 * text that is none or several records, or is longer than the predictor's limits; UNSUPPORTED: the model reads no
 * texts. */
seqlstm_status sl_context_predict_texts(struct sl_context *context, const char *const *texts, const size_t *bytes,
                                        int64_t count, sl_prediction_fn *write, void *write_context,
                                        struct seqlstm_error *err);

#endif

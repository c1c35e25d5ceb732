/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in memory as a dataset. They are joined to a file in the format of the training data, and read as one is, so
 * that they are cut into tokens, shortened and completed as the training data were. */
#ifndef SL_PREDICT_TEXT_INPUT_H
#define SL_PREDICT_TEXT_INPUT_H

#include "base/value/buf.h"
#include "predict/context.h"

struct sl_batcher;
struct sl_dataset;

struct sl_text_input {
    struct sl_dataset *data; /* record k is text k */
    struct sl_buf file;      /* which it reads */
};

/* Errors as sl_context_predict_texts (batches.h). Close accepts what a failed open has left. */
seqlstm_status sl_text_input_open(const struct sl_context *context, const char *const *texts, const size_t *bytes,
                                  int64_t count, struct sl_text_input *out, struct seqlstm_error *err);
void sl_text_input_close(struct sl_text_input *input);

/* Batches that fit the predictor; sl_batcher_close frees it. NO_MEMORY. */
seqlstm_status sl_text_input_open_batcher(const struct sl_context *context, const struct sl_text_input *input,
                                          struct sl_batcher **out_batcher, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a model with a decoder that are written beside each other, and may join and leave at any token. Not between
 * other calls of the same context that write texts. */
#ifndef SL_PREDICT_JOINED_TEXTS_H
#define SL_PREDICT_JOINED_TEXTS_H

#include <stddef.h>

#include "predict/context.h"

/* The texts join those that are there, in their order, as far as there is room. tags[k] names text k until it is
 * written; out_joined[k]: there was room for it and for all before it.
 * Errors as sl_context_predict_texts; then none has joined of those for which out_joined is false. */
seqlstm_status sl_context_join_texts(struct sl_context *context, const char *const *texts, const size_t *bytes,
                                     void *const *tags, int64_t count, bool *out_joined, struct seqlstm_error *err);

/* What was written for a text; NULL: the model's probabilities are no numbers. Valid during the call. */
struct sl_joined_answer {
    const char *text;
    size_t bytes;
    double score;
};

/* A text has left. */
typedef seqlstm_status sl_joined_write_fn(void *context, void *tag, const struct sl_joined_answer *answer,
                                          struct seqlstm_error *err);

/* One more token for each. After an error all have left. */
seqlstm_status sl_context_step_texts(struct sl_context *context, sl_joined_write_fn *write, void *write_context,
                                     struct seqlstm_error *err);

/* From now on texts that have ended are computed until all have ended, as padded batches do. Errors as
 * sl_context_provide_continuous. */
seqlstm_status sl_context_pad_texts(struct sl_context *context, struct seqlstm_error *err);

/* The text leaves before its end; nothing happens if it is not there. */
void sl_context_drop_text(struct sl_context *context, const void *tag);
int64_t sl_context_count_texts(const struct sl_context *context);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Attention weights of one text, with its tokens. */
#ifndef SL_PREDICT_ATTENTION_H
#define SL_PREDICT_ATTENTION_H

#include "predict/prediction.h"

struct sl_arena;
struct sl_attention_trace;
struct sl_batch;
struct sl_hypothesis;
struct sl_predictor;

/* In memory of the arena. NO_MEMORY. */
seqlstm_status sl_prediction_view_attention(const struct sl_predictor *predictor,
                                            const struct sl_attention_trace *trace, const struct sl_batch *batch,
                                            int64_t sequence, const struct sl_hypothesis *text, struct sl_arena *arena,
                                            struct sl_prediction_attention *out, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Attention weights of one text, with its tokens. */
#ifndef SL_SESSION_PREDICT_ATTENTION_H
#define SL_SESSION_PREDICT_ATTENTION_H

#include <seqlstm/status.h>

#include "session/predict/prediction.h"

struct sl_arena;
struct sl_attention_trace;
struct sl_batch;
struct sl_hypothesis;
struct sl_session;

/* In memory of the arena. NO_MEMORY. */
seqlstm_status sl_session_view_attention(const struct sl_session *session, const struct sl_attention_trace *trace,
                                         const struct sl_batch *batch, int64_t sequence,
                                         const struct sl_hypothesis *text, struct sl_arena *arena,
                                         struct sl_prediction_attention *out, struct seqlstm_error *err);

#endif

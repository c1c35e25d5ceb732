/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a predictor of a trained session. */
#ifndef SL_SESSION_PREDICT_PREDICTOR_H
#define SL_SESSION_PREDICT_PREDICTOR_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "predict/predictor.h"

struct sl_session;

/* Limits as in struct seqlstm_predictor_options; 0: the defaults named there. */
struct sl_predictor_limits {
    int64_t sequences, steps, rows, streams, stream_steps;
    const char *layer;
    int32_t threads;
};

/* The session must stay open and must not train while the predictor lives. INVALID_ARGUMENT: a limit that is out of
 * range; INVALID_CONFIG: no such layer; as predict. */
seqlstm_status sl_session_open_predictor(struct sl_session *session, const struct sl_predictor_limits *limits,
                                         struct sl_predictor **out_predictor, struct seqlstm_error *err);

#endif

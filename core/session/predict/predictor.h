/* SPDX-License-Identifier: Apache-2.0 */
/* Makes predictors of a trained session. The session must stay open and must not train while one lives. */
#ifndef SL_SESSION_PREDICT_PREDICTOR_H
#define SL_SESSION_PREDICT_PREDICTOR_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "predict/predictor.h"

struct sl_session;

/* What it is to be able to do. */
struct sl_predictor_wish {
    struct sl_envelope envelopes[SL_USE_COUNT]; /* of each use; sequences 0: it is not used so. That of SL_USE_DECODER
                                                 * follows from SL_USE_ENCODER */
    const struct sl_layer *output;              /* the layer whose output is wanted; NULL: the model's */
    int32_t threads;                            /* of each context; 0: the threads of the session, for one context */
    bool attention;                             /* its texts come with attention weights */
    bool stays;                                 /* for many calls: contexts warm up, and streams can be saved */
    bool measures;     /* the variants of narrow uses are timed; the model's policy permitting */
    bool reproducible; /* as in sl_predictor_request, as the next three */
    bool shares_lock;
    int64_t sequences, rows;
};

/* Errors as those of predict. */
seqlstm_status sl_session_make_predictor(struct sl_session *session, const struct sl_predictor_wish *wish,
                                         struct sl_predictor **out_predictor, struct seqlstm_error *err);

/* Steps of the longest sequence in the training data, as an encoder reads it; 0: nothing is known. A text that training
 * reads in parts is no sequence to predict for: it counts as a part, or as the default for `rows` if that is more. */
int64_t sl_session_get_longest(const struct sl_session *session);

/* Limits as in struct seqlstm_predictor_options; 0: the defaults named there. */
struct sl_predictor_limits {
    int64_t sequences, steps, rows, streams, stream_steps;
    const char *layer;
    int32_t threads;
    bool measures;       /* as in struct sl_predictor_wish */
    int64_t chunk_steps; /* most steps of each of `sequences` streams that are computed together; 0: never */
    bool embeds;         /* the layer that embed writes; `layer` is NULL */
    bool reproducible;   /* as in struct sl_predictor_request, as the next */
    bool shares_lock;
};

/* INVALID_ARGUMENT: a limit that is out of range; INVALID_CONFIG: no such layer; as predict. */
seqlstm_status sl_session_open_predictor(struct sl_session *session, const struct sl_predictor_limits *limits,
                                         struct sl_predictor **out_predictor, struct seqlstm_error *err);

#endif

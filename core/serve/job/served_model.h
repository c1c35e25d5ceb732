/* SPDX-License-Identifier: Apache-2.0 */
/* A model that is served: a trained run, prepared once. */
#ifndef SL_SERVE_JOB_SERVED_MODEL_H
#define SL_SERVE_JOB_SERVED_MODEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/dataset/state.h"
#include "decode/never.h"
#include "predict/predictor.h"
#include "session/predict/predictor.h"

struct sl_session;

/* What uses a version of a model. */
struct sl_served_uses {
    atomic_llong count; /* jobs, streams and workers; and the list of models while it is the newest version */
    atomic_bool over;   /* nothing but workers will use it again, and they let it go */
};

/* One version of a model. Immutable while it is served, but for its uses, and shared by all threads. */
struct sl_served_model {
    const char *name;             /* in paths; borrowed */
    int slot;                     /* which of the models of the server it is a version of */
    struct sl_served_uses *uses;  /* NULL: it is not counted */
    struct sl_session *session;   /* its own; NULL: it is borrowed */
    struct sl_served_model *next; /* in the list of older versions */
    struct sl_predictor *predictor;
    const struct sl_data_state *state;
    const struct sl_vocabulary *classes; /* names of the outputs; NULL: none */
    bool reads_ids, reads_steps;         /* token ids instead of values; sequences instead of single rows */
    bool reads_text;                     /* texts can be sent instead of ids */
    bool decodes;                        /* an encoder and a decoder: texts become texts, nothing else is read */
    bool gives_steps;                    /* a row of output for each step instead of for each sequence */
    int64_t input_features, input_classes, output_features;
    int64_t steps;           /* most steps of a sequence */
    bool continues;          /* a language model: texts can be continued */
    int64_t text_steps;      /* most tokens of a prompt and its continuation */
    struct sl_never never;   /* tokens that are never drawn */
    int64_t sequences, rows; /* of a batch */
    bool streams;            /* it can continue from request to request */
    int64_t chunk_steps;     /* most steps of a sequence that are computed at once; 0: whole sequences */
};

/* One use of the model begins, and ends. NULL is fine. [any thread] */
static inline void sl_served_model_hold(const struct sl_served_model *model)
{
    if (model && model->uses)
        atomic_fetch_add(&model->uses->count, 1);
}

static inline void sl_served_model_release(const struct sl_served_model *model)
{
    if (model && model->uses)
        atomic_fetch_sub(&model->uses->count, 1);
}

/* It has one use then; also after an error it is closed. `limits`: of a batch. Errors as sl_session_open_predictor;
 * UNSUPPORTED: a decoder whose input is no text. */
seqlstm_status sl_served_model_open(struct sl_session *session, const char *name,
                                    const struct sl_predictor_limits *limits, struct sl_served_model *out,
                                    struct seqlstm_error *err);
/* Names of its outputs in the protocol: of numbers, and of texts. */
static inline const char *sl_served_model_get_output(const struct sl_served_model *model)
{
    return model->decodes ? "score" : "y";
}

static inline const char *sl_served_model_get_labels(const struct sl_served_model *model)
{
    return model->decodes ? "text" : "label";
}

void sl_served_model_close(struct sl_served_model *model);

#endif

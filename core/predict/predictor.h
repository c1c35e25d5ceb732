/* SPDX-License-Identifier: Apache-2.0 */
/* A model that is ready to predict: its plans and its weights, shared by all threads.
 *
 *   predictor ─ context (one for each thread: executors, buffers) ─ whole sequences, steps of streams
 *            ╰─ stream  (one sequence in progress: its states)
 *
 * A model is planned for each use: whole sequences; the next steps of one stream; the next step of many streams as one
 * batch. The session makes the plans (session/predict/predictor.h); this layer runs them. The C library
 * (<seqlstm/predictor.h>), `seqlstm predict` and `seqlstm generate` stand on it.
 *
 * Invariants:
 *  1. A predictor is immutable; contexts and streams are used by one thread at a time.
 *  2. Once a context has been opened, steps of streams on it allocate nothing.
 */
#ifndef SL_PREDICT_PREDICTOR_H
#define SL_PREDICT_PREDICTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/pool.h"
#include "data/dataset/state.h"
#include "decode/never.h"
#include "dispatch/plan/plan.h"
#include "exec/params/params.h"
#include "model/model.h"

struct sl_predictor;

enum sl_predictor_use {
    SL_USE_WHOLE,   /* whole sequences, packed */
    SL_USE_ALONE,   /* one whole sequence: kernels for wide batches would read all weights in layouts that do not pay */
    SL_USE_FEW,     /* a few of them */
    SL_USE_STREAM,  /* the next steps of one stream */
    SL_USE_STREAMS, /* the next step of many streams */
    SL_USE_CHUNKS,  /* the next steps of many streams, of each as many as it has */
    SL_USE_ENCODER, /* of a model that writes texts */
    SL_USE_DECODER, /* one step of all its hypotheses */
    SL_USE_COUNT
};

/* Does a run continue from states? */
static inline bool sl_predictor_use_carries(enum sl_predictor_use use)
{
    return use == SL_USE_STREAM || use == SL_USE_STREAMS || use == SL_USE_CHUNKS;
}

enum { SL_SINGLE_STREAM_BYTES = 1536 << 10, SL_SINGLE_BYTES = 704 << 10 };

/* One sequence with few weights is planned for one thread and computed by one, however many there are: a step takes one
 * or two microseconds, and waiting for another thread at each of them takes longer whenever that has lost its core.
 * With more weights, whole sequences are limited by reading them from the second-level cache, and two threads have two.
 * The next step of a stream may come when the other threads sleep, so that it waits for them only where the weights do
 * not fit in that cache. `packed_bytes`: of its plan. */
static inline bool sl_predictor_use_is_single(enum sl_predictor_use use, int64_t packed_bytes)
{
    return (use == SL_USE_STREAM && packed_bytes <= SL_SINGLE_STREAM_BYTES) ||
           (use == SL_USE_ALONE && packed_bytes <= SL_SINGLE_BYTES);
}

/* The model as it is planned for one use; NULL: it is not used so. */
struct sl_predictor_plan {
    struct sl_graph *graph;
    struct sl_plan *plan;
};

enum { SL_STREAM_REASON_BYTES = 512, SL_FEW_SEQUENCES = 8 };

struct sl_predictor_request {
    const struct sl_model *model; /* must outlive the predictor, as must the next two */
    const struct sl_data_state *state;
    struct sl_params *params;                     /* trained; must not change meanwhile */
    const struct sl_layer *output;                /* the layer whose output the graphs have; NULL: the model's */
    struct sl_predictor_plan plans[SL_USE_COUNT]; /* taken over, also after an error */
    uint64_t weights;                             /* a hash of the weights: states of streams belong to them */
    int32_t threads;                              /* of each context */
    struct sl_pool *pool;                         /* for the only context, in place of threads of its own; NULL */
    int64_t sequences, rows; /* most of one batch, the rows of a source included; 0: the batches are known to fit */
    struct sl_never never;   /* of a decoder */
    bool warms;              /* contexts run what streams need once as they open */
    bool attention;          /* the decoder keeps attention weights */
    bool reproducible;       /* each sequence and stream is computed by itself: its bits depend on nothing else */
    bool shares_lock;        /* calls of its contexts end in turn (base/system/turns.h) */
};

seqlstm_status sl_predictor_create(const struct sl_predictor_request *request, struct sl_predictor **out_predictor,
                                   struct seqlstm_error *err);
void sl_predictor_destroy(struct sl_predictor *predictor); /* NULL is fine */

/* What it reads and writes. [any thread] */
const struct sl_model *sl_predictor_get_model(const struct sl_predictor *predictor);
const struct sl_data_state *sl_predictor_get_state(const struct sl_predictor *predictor);
const struct sl_graph *sl_predictor_find_graph(const struct sl_predictor *predictor, enum sl_predictor_use use);
/* Width of a row of the output, and whether there is one for each step. */
int64_t sl_predictor_get_features(const struct sl_predictor *predictor);
bool sl_predictor_has_step_output(const struct sl_predictor *predictor);
/* The output is in the units of the targets, and not probabilities. */
bool sl_predictor_gives_values(const struct sl_predictor *predictor);
/* Tokens that are never drawn. */
const struct sl_never *sl_predictor_get_never(const struct sl_predictor *predictor);
/* Does it write texts, and can it read them from memory? */
bool sl_predictor_decodes(const struct sl_predictor *predictor);
bool sl_predictor_reads_texts(const struct sl_predictor *predictor);
/* Why there are no streams; "": there are. */
const char *sl_predictor_get_stream_reason(const struct sl_predictor *predictor);

#endif

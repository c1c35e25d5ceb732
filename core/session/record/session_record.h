/* SPDX-License-Identifier: Apache-2.0 */
/* What a session holds.
 *
 * Invariants:
 *  1. sl_session_close destroys all of it, in reverse order of making: executors, plans, graphs, parameters, batchers,
 *     datasets, state, registry, pool, model.
 *  2. One set of parameters serves all executors.
 */
#ifndef SL_SESSION_RECORD_SESSION_RECORD_H
#define SL_SESSION_RECORD_SESSION_RECORD_H

#include "base/memory/memory.h"
#include "base/system/file_lock.h"
#include "base/system/pool.h"
#include "data/batch/batcher.h"
#include "data/dataset/dataset.h"
#include "dispatch/stages/pipeline.h"
#include "exec/owners.h"
#include "model/yaml/diagnostics.h"
#include "parallel/ranks.h"
#include "predict/context.h"
#include "timeline/timeline.h"
#include "registry/registry.h"
#include "session/record/options.h"
#include "session/record/stages.h"
#include "session/record/stored.h"

/* A predictor of the last call, and its only context. Zeroed: none. */
struct sl_kept_predictor {
    struct sl_predictor *predictor;
    struct sl_context *context;
    struct sl_envelope envelope;
    uint64_t version; /* of the parameters */
};

struct sl_session {
    struct sl_session_options options;
    struct sl_diagnostics *diagnostics; /* the caller's */
    struct sl_model *model;
    bool is_run;               /* opened from a run folder */
    bool replay;               /* the thread count of the stored plan applies too: resume, --plan */
    bool changed;              /* by --set or an overlay: the saved configuration is written again */
    char *folder;              /* of the run; NULL before one is made */
    char *made;                /* a new run: the first folder that was made for it, "" for none; NULL: a saved run */
    struct sl_file_lock *lock; /* of the folder; NULL: nothing is written into it */
    struct sl_memory memory;

    struct sl_data_state *state;
    struct sl_dataset *train_data;
    struct sl_dataset *valid_data;
    struct sl_batcher *train_batcher;
    struct sl_batcher *valid_batcher;
    bool noted[SL_SPLIT_COUNT]; /* training has said in the log what is to be said of the split */
    struct sl_step_cost cost;   /* count 0: not measured */

    struct sl_pool *pool;
    struct sl_pool *planned_pool; /* plans are made for it, and measured if they have profiles; NULL: for `pool` */
    struct sl_registry *registry;
    struct sl_stored_plan stored;
    struct sl_stored_quantization quantization;
    struct sl_cost_cache *costs; /* NULL until something may be measured */

    struct sl_params *params;
    bool has_weights; /* params hold trained values */
    float *class_weights;
    struct sl_stage train;
    struct sl_stage evaluate;
    struct sl_kept_predictor kept; /* of values in memory */
    struct sl_decoding decoding;   /* of the validation in training, or of the evaluation that is planned */
    struct sl_stage test;          /* only if the run has no validation: planned to predict the memory */
    struct sl_decoding test_decoding;
    struct sl_sampling sampling; /* of training */

    struct sl_recorder *recorder; /* NULL: no profile is taken */
    struct sl_timeline *timeline; /* of what it recorded; NULL: none */

    struct sl_pipeline pipeline;      /* of training; stages 0: steps do not run in pieces */
    struct sl_owners owners;          /* of its parameters */
    struct sl_connection *connection; /* to the other ranks, while they train together; NULL: there are none */
    struct sl_ranks ranks;            /* of a divided training */
};

/* Is each batch of its training divided into shards? */
static inline bool sl_session_is_divided(const struct sl_session *session)
{
    return sl_parallel_is_divided(&session->model->parallel);
}

/* Into how many; 1: it is not. */
static inline int32_t sl_session_count_shards(const struct sl_session *session)
{
    return sl_parallel_count_shards(&session->model->parallel);
}

/* Are the edges of its buckets chosen for the measured cost of a step? */
static inline bool sl_session_measures_buckets(const struct sl_session *session)
{
    return session->model->data.batching.bucketing.kind == SL_BUCKETING_AUTO;
}

#endif

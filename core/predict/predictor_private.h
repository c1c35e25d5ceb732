/* SPDX-License-Identifier: Apache-2.0 */
/* What predictors, contexts and streams are made of. */
#ifndef SL_PREDICT_PREDICTOR_PRIVATE_H
#define SL_PREDICT_PREDICTOR_PRIVATE_H

#include "decode/continuous.h"
#include "decode/decoder.h"
#include "exec/exec.h"
#include "predict/packer.h"
#include "predict/predictor.h"

struct sl_predictor {
    struct sl_predictor_request made; /* as it was asked for */
    struct sl_packed packed[SL_USE_COUNT];
    struct sl_memory memory;
    const struct sl_graph *graph; /* of the first use that is planned */
    bool undoes_targets;          /* the output is scaled back */
    char reason[SL_STREAM_REASON_BYTES];
    int64_t state_elems; /* of one stream */
    uint64_t identity;   /* of model and weights: saved streams carry it */
};

/* Where the executor of a lean lane reads and writes one state of its rows. */
struct sl_state_rows {
    float *in;
    const float *out;
    int64_t features;
};

/* One use in a context. `exec` NULL: not opened yet. */
struct sl_predictor_lane {
    struct sl_exec *exec;
    struct sl_packer packer;      /* of streams, and of whole sequences in memory; without room until it is needed */
    struct sl_state_rows *states; /* [state_count] of streams on the host; else NULL */
    void *gathered;               /* SL_USE_CHUNKS: [rows, features] the input of all streams; else NULL */
};

struct sl_context {
    const struct sl_predictor *predictor;
    struct sl_pool *pool;
    struct sl_params *params;         /* shares the predictor's; on devices each context has its own copy */
    struct sl_decoder *decoder;       /* NULL: not opened */
    struct sl_continuous *continuous; /* of the same executors; NULL: not opened */
    struct sl_memory memory;
    struct sl_predictor_lane lanes[SL_USE_COUNT];
};

/* Its states one after the other: h and c of each recurrent layer. */
struct sl_stream {
    const struct sl_predictor *predictor;
    int64_t position;
    float *values;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Phases of the model, planned and opened. */
#ifndef SL_SESSION_RECORD_STAGES_H
#define SL_SESSION_RECORD_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "decode/decoder.h"
#include "decode/sampler.h"
#include "dispatch/planner.h"
#include "exec/exec.h"

/* One phase of the model. */
struct sl_stage {
    struct sl_graph *graph;
    struct sl_plan *plan;
    struct sl_exec *exec; /* NULL: only planned */
};

/* An encoder, and a decoder that runs step by step. */
struct sl_stage_pair {
    struct sl_stage encoder, step;
    int64_t own_bytes; /* memory of the decoder or sampler that drives them */
};

/* Writes texts (prepare/decoding.h). Zeroed: not planned. */
struct sl_decoding {
    struct sl_stage_pair pair;
    bool attention;             /* it keeps the attention weights of its texts */
    struct sl_decoder *decoder; /* NULL until opened */
};

/* Scheduled sampling (prepare/sampling.h). Zeroed: not planned. */
struct sl_sampling {
    struct sl_stage_pair pair;
    struct sl_sampler *sampler; /* NULL until opened */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a run folder stores about plans and int8, as read back. */
#ifndef SL_SESSION_RECORD_STORED_H
#define SL_SESSION_RECORD_STORED_H

#include <stdint.h>

#include "base/memory/arena.h"
#include "base/operation/cost.h"
#include "dispatch/planner.h"
#include "graph/graph.h"

/* Choices that a plan follows, as sl_plan_request.stored. */
struct sl_choices {
    struct sl_plan_choice *items;
    int32_t count;
};

/* What a stored plan decides; texts in one arena. */
struct sl_stored_plan {
    struct sl_arena arena;
    struct sl_choices phases; /* of training and evaluation */
    struct sl_choices decoding, sampling;
    int32_t threads; /* 0: the plan has none */
    int32_t pieces;  /* into which the steps of a batch are cut; 0: the plan has none */
    struct sl_plan_device *devices;
    int32_t device_count;
    int64_t *edges;                        /* of buckets that were measured */
    int64_t edge_count;                    /* 0: none */
    struct sl_step_cost cost;              /* count 0: not measured */
    struct sl_whole_steps train, evaluate; /* the comparison of whole steps; source SL_COST_NONE: there was none */
};

/* quantization.json of a run; texts in one arena. */
struct sl_stored_quantization {
    struct sl_arena arena;
    struct sl_quantization layers; /* count 0: the run has none */
    uint64_t weights;              /* hash of the weights that it was made for */
};

#endif

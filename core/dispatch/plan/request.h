/* SPDX-License-Identifier: Apache-2.0 */
/* The request for a plan, and what the planner may use for measuring. */
#ifndef SL_DISPATCH_PLAN_REQUEST_H
#define SL_DISPATCH_PLAN_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/batch/profile.h"
#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "base/system/pool.h"
#include "dispatch/plan/choice.h"
#include "dispatch/plan/plan.h"

struct sl_tuning;

/* Two plans whose whole steps are to be timed. */
struct sl_whole_steps_request {
    const struct sl_plan *plans[2];
    const struct sl_tuning *tuning;
    int32_t optimizer_states;
    double seconds; /* a target */
};

/* Nanoseconds for a mean batch; 0: there is not enough time. */
typedef seqlstm_status sl_whole_steps_fn(const struct sl_whole_steps_request *request, double out_ns[2],
                                         struct seqlstm_error *err);

/* What measuring costs and predicting memory need. Borrowed. */
struct sl_tuning {
    const struct sl_profiles *profiles; /* of the real data; weights add up to 1 */
    struct sl_pool *pool;
    struct sl_cost_cache *cache;          /* NULL: nothing is measured */
    bool measure;                         /* false: only what the cache holds */
    double seconds;                       /* limit for all measurements of this plan */
    sl_whole_steps_fn *time_whole_steps;  /* NULL: whole steps are not timed */
    const struct sl_interrupt *interrupt; /* may be NULL */
    const struct sl_log *log;             /* may be NULL */
};

struct sl_plan_request {
    const struct sl_graph *graph;
    struct sl_registry *registry;
    const char *forced_backend;          /* `--backend ID`: runs everything that it accepts; NULL */
    const struct sl_tuning *tuning;      /* NULL: policy `measured` uses estimates */
    const struct sl_plan_choice *stored; /* choices to replay, by phase and node name; NULL */
    int32_t stored_count;
    const struct sl_whole_steps *stored_whole_steps; /* the stored comparison of this phase; NULL */
    int32_t optimizer_states;                        /* for the memory table */
    int32_t threads;                                 /* members of the pool that runs and times it; 0: any number */
};

#endif

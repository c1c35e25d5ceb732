/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the reference on the user's own model and batch, and checks backends against it, layer by layer.
 *
 * A walk forward computes every tensor in float64, rounded to float32 so that both sides read the same numbers. A
 * walk backward computes every gradient. On the way back, each operation, and each coarser operation that a backend
 * may take instead, is given to the backends with the reference's inputs and upstream gradients, so that an error in
 * one layer does not reach the next. Tolerances are those of the conformance kit (tolerance.h). */
#ifndef SL_JUDGE_ORACLE_H
#define SL_JUDGE_ORACLE_H

#include "base/system/pool.h"
#include "registry/registry.h"
#include "exec/params/params.h"
#include "graph/graph.h"
#include "judge/check.h"
#include "judge/offer.h"

/* One operation on one backend. */
struct sl_judgement {
    const struct sl_node *node;
    const struct sl_backend *backend;
    bool backward;           /* gradients were compared, too */
    enum sl_verdict verdict; /* PASS, FAIL, UNSUPPORTED; SKIP if no judgement is possible */
    double worst;            /* error / tolerance */
    struct sl_offer offer;   /* what the backend offered */
    const char *detail;      /* "" if it passed */
};

/* A backend to be judged. */
struct sl_oracle_subject {
    const struct sl_backend *backend;
    const char *variant; /* NULL: the backend's first */
};

struct sl_oracle_request {
    const struct sl_graph *graph;
    const struct sl_batch *batch; /* fits into the graph's envelope */
    const struct sl_params *params;
    const float *class_weights; /* NULL: all 1 */
    const struct sl_backend *reference;
    struct sl_pool *pool; /* the threads of the subjects */
    uint64_t seed;        /* the seed of the masks */
    const struct sl_oracle_subject *subjects;
    int32_t subject_count;
    const struct sl_interrupt *interrupt;
};

/* Judges all nodes and alternatives in the graph's order; an alternative comes after the last node that it replaces.
 * Each has a judgement for every subject. Everything lives in `arena`. Errors: CANCELLED, NO_MEMORY, also where a
 * subject finds none; errors of the reference. */
seqlstm_status sl_oracle_run(const struct sl_oracle_request *request, struct sl_arena *arena,
                             struct sl_judgement **out_judgements, int32_t *out_count, struct seqlstm_error *err);

#endif

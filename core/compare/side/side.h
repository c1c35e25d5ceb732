/* SPDX-License-Identifier: Apache-2.0 */
/* A side of a comparison: a backend, the other backends that the model needs, and an executor.
 *
 * A side is in this process (local_side.h) or, if two plugins need different copies of one library, in its own process
 * (remote_side.h). Both kinds have the same functions and exchange plain data.
 *
 * How to use a side: ask what it offers for each unit, tell it what runs where, judge it against the reference, start
 * it on a batch, let it take turns, stop it.
 *
 * Units. Unit u < node_count is node u of the graph; the other units are the alternatives, in the graph's order. All
 * sides of a comparison have the same graph. */
#ifndef SL_COMPARE_SIDE_SIDE_H
#define SL_COMPARE_SIDE_SIDE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/memory/arena.h"
#include "graph/graph.h"

enum { SL_OTHERS_MOST = 8 };

/* What a side can do with one unit. */
struct sl_compare_side_unit {
    bool accepted;
    char variant[SEQLSTM_MAX_VARIANT_BYTES]; /* accepted */
    char reason[400];                        /* refused: "recurrent_dropout 0.25 (m.yaml:22:18): …" */
    struct {                                 /* the other backends that accept the unit, best first */
        char id[SEQLSTM_MAX_ID_BYTES];
        char variant[SEQLSTM_MAX_VARIANT_BYTES];
    } others[SL_OTHERS_MOST];
    int32_t other_count;
};

struct sl_compare_side_facts {
    char id[SEQLSTM_MAX_ID_BYTES]; /* of the side's own backend */
    char version[128];             /* a longer one ends in "…" */
    char file[PATH_MAX];           /* "" if it is built in */
    /* the class of the device that it computes on */
    char device[sizeof((struct seqlstm_device_info *)0)->device_class];
    bool on_device;                     /* its memory is not the host's, so calls return before the work is done */
    struct sl_compare_side_unit *units; /* [unit_count] */
    int32_t unit_count;
};

/* Unit `unit` runs on backend `id`. */
struct sl_compare_side_choice {
    int32_t unit;
    char id[SEQLSTM_MAX_ID_BYTES];
    char variant[SEQLSTM_MAX_VARIANT_BYTES];
};

struct sl_compare_side_verdict {
    bool failed;
    double worst; /* error / tolerance; 0 if nothing was compared */
    char detail[400];
};

/* The results of one step: the gradients of all parameters (training), or the output. */
struct sl_compare_side_result {
    double loss; /* mean; 0 in inference */
    int64_t elems;
    const float *values; /* valid until the next call */
};

struct sl_compare_side;

struct sl_compare_side_table {
    void (*close)(struct sl_compare_side *side);
    /* Everything lives in `arena`. */
    seqlstm_status (*get_facts)(struct sl_compare_side *side, struct sl_arena *arena,
                                struct sl_compare_side_facts *out_facts, struct seqlstm_error *err);
    /* Makes the side's plan. `choices`: the units that run, in order. */
    seqlstm_status (*plan)(struct sl_compare_side *side, const struct sl_compare_side_choice *choices, int32_t count,
                           struct seqlstm_error *err);
    /* Checks the side's own backend against the reference, on a batch of the sample's size or the largest that the
     * reference can run in reasonable time. out_verdicts [unit_count]. */
    seqlstm_status (*judge)(struct sl_compare_side *side, struct sl_compare_side_verdict *out_verdicts,
                            struct seqlstm_error *err);
    /* Creates weights (with equal values), buffers and bindings for batch `batch` of the sample, and runs two steps
     * to warm up. Returns the results of the first and the time of the second. */
    seqlstm_status (*start)(struct sl_compare_side *side, int32_t batch, struct sl_compare_side_result *out_result,
                            int64_t *out_ns, struct seqlstm_error *err);
    /* Releases what start made. */
    seqlstm_status (*stop)(struct sl_compare_side *side, struct seqlstm_error *err);
    /* Runs `lead` steps without timing, then `steps` with timing. out_ns: [1 + calls] medians, first the whole step. */
    seqlstm_status (*take_turn)(struct sl_compare_side *side, int32_t lead, int32_t steps, double *out_ns,
                                struct seqlstm_error *err);
};

/* The beginning of every kind of side. */
struct sl_compare_side {
    const struct sl_compare_side_table *table;
};

static inline int32_t sl_unit_count(const struct sl_graph *graph)
{
    return graph->node_count + graph->alternative_count;
}

static inline const struct sl_node *sl_unit_get(const struct sl_graph *graph, int32_t unit)
{
    return unit < graph->node_count ? &graph->nodes[unit] : &graph->alternatives[unit - graph->node_count].node;
}

#endif

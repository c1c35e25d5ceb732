/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a step on the stages of a pipeline. See pipeline.h. */
#include <stdlib.h>

#include "dispatch/stages/pipeline.h"

/* What a call costs in addition for each piece: starting it, and passing rows between stages. An estimate. */
static const double piece_ns = 5e3;

/* The share of backward that makes weight gradients, once for all pieces: a matrix product like that for the inputs. */
static double get_weights_share(const struct sl_call *call)
{
    switch (call->node->desc.head.op) {
    case SEQLSTM_OP_RECURRENT:
    case SEQLSTM_OP_DENSE:
        return 0.5;
    case SEQLSTM_OP_EMBEDDING:
        return 1;
    default:
        return 0;
    }
}

struct simulation {
    const struct sl_plan *plan;
    const struct sl_pipeline *pipeline;
    int32_t open;
    struct sl_unit *units; /* [call_count] */
    double *done;          /* [stages] when a stage has finished what it has begun */
    double *pieces;        /* [pieces] when the stages so far have finished a piece */
};

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* A stage runs calls that take `each` for a piece, in turn forward or backward, and `rest` at the end. */
static void run(struct simulation *s, int32_t stage, double each, double rest, bool backward)
{
    const int32_t count = s->pipeline->pieces;
    for (int32_t k = 0; k < count; k++) {
        double *piece = &s->pieces[backward ? count - 1 - k : k];
        s->done[stage] = *piece = later(s->done[stage], *piece) + each;
    }
    s->done[stage] += rest;
}

/* A stage runs calls on all steps. */
static void run_whole(struct simulation *s, int32_t stage, double ns)
{
    double begin = s->done[stage];
    for (int32_t p = 0; p < s->pipeline->pieces; p++)
        begin = later(begin, s->pieces[p]);
    s->done[stage] = begin + ns;
    for (int32_t p = 0; p < s->pipeline->pieces; p++)
        s->pieces[p] = s->done[stage];
}

static void run_unit(struct simulation *s, const struct sl_unit *unit, int32_t stage, bool backward)
{
    const int32_t *bounds = s->pipeline->bounds;
    const int32_t first = unit->first > bounds[stage] ? unit->first : bounds[stage];
    const int32_t end = unit->end < bounds[stage + 1] ? unit->end : bounds[stage + 1];
    const int32_t count = s->pipeline->pieces;
    double all = 0, weights = 0;
    for (int32_t c = first; c < end; c++) {
        const struct sl_call *call = &s->plan->calls[c];
        const double ns = backward ? call->cost.backward_ns : call->cost.forward_ns;
        all += ns;
        weights += backward ? ns * get_weights_share(call) : 0;
    }
    if (first >= end)
        return;
    if (unit->pieced)
        run(s, stage, (all - weights) / count + (count > 1 ? piece_ns * (end - first) : 0), weights, backward);
    else
        run_whole(s, stage, all);
}

static bool has_open(const struct simulation *s, const struct sl_unit *unit)
{
    return s->open >= unit->first && s->open < unit->end;
}

/* The units of the plan. The open call joins those beside it that run in pieces. */
static int32_t list_units(const struct simulation *s, struct sl_unit *units)
{
    const int32_t calls = s->plan->call_count;
    int32_t count = 0;
    for (int32_t c = 0; c < calls; c = units[count - 1].end) {
        struct sl_unit unit = sl_plan_find_unit(s->plan->graph, s->plan->calls, calls, c);
        struct sl_unit *before = count > 0 ? &units[count - 1] : NULL;
        unit.pieced |= has_open(s, &unit);
        if (before && before->pieced && unit.pieced && (has_open(s, &unit) || has_open(s, before)))
            before->end = unit.end;
        else
            units[count++] = unit;
    }
    return count;
}

static double simulate(struct simulation *s)
{
    const int32_t stages = s->pipeline->stages, count = list_units(s, s->units);
    double last = 0;
    for (int32_t u = 0; u < count; u++)
        for (int32_t stage = 0; stage < stages; stage++)
            run_unit(s, &s->units[u], stage, false);
    for (int32_t u = count - 1; u >= 0; u--)
        for (int32_t stage = stages - 1; stage >= 0; stage--)
            run_unit(s, &s->units[u], stage, true);
    for (int32_t stage = 0; stage < stages; stage++)
        last = later(last, s->done[stage]);
    return last;
}

double sl_pipeline_simulate(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t open)
{
    struct simulation s = {.plan = plan, .pipeline = pipeline, .open = open};
    s.done = calloc((size_t)pipeline->stages + 1, sizeof *s.done);
    s.pieces = calloc((size_t)pipeline->pieces + 1, sizeof *s.pieces);
    s.units = calloc((size_t)plan->call_count + 1, sizeof *s.units);
    const double ns = s.done && s.pieces && s.units ? simulate(&s) : 0;
    free(s.units);
    free(s.done);
    free(s.pieces);
    return ns;
}

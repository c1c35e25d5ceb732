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

/* ---- times ------------------------------------------------------------------------------------------------------ */

seqlstm_status sl_piece_times_init(struct sl_piece_times *times, int32_t calls, int32_t pieces,
                                   struct seqlstm_error *err)
{
    const size_t count = (size_t)calls * (size_t)pieces;
    *times = (struct sl_piece_times){.calls = calls, .pieces = pieces, .count = (int64_t)(2 * count) + 2 * calls};
    times->forward = calloc((size_t)times->count + 1, sizeof *times->forward);
    if (!times->forward)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the times of pieces");
    times->backward = times->forward + count;
    times->packs = times->backward + count;
    times->weights = times->packs + calls;
    return SEQLSTM_OK;
}

void sl_piece_times_deinit(struct sl_piece_times *times)
{
    free(times->forward);
    *times = (struct sl_piece_times){0};
}

double sl_piece_times_sum(const struct sl_piece_times *times)
{
    double sum = 0;
    for (int64_t k = 0; k < times->count; k++)
        sum += times->forward[k]; /* all others follow */
    return sum;
}

/* From the costs of the plan. The open call, if there is one, runs in pieces too. */
static void fill_from_costs(const struct sl_plan *plan, int32_t open, struct sl_piece_times *times)
{
    for (int32_t c = 0; c < times->calls; c++) {
        const struct sl_call *call = &plan->calls[c];
        const bool pieced = c == open || sl_plan_find_unit(plan->graph, plan->calls, times->calls, c).pieced;
        const int32_t count = pieced ? times->pieces : 1;
        const double more = pieced && times->pieces > 1 ? piece_ns : 0, back = call->cost.backward_ns;
        times->weights[c] = pieced ? back * get_weights_share(call) : 0;
        for (int32_t p = 0; p < count; p++) {
            times->forward[c * times->pieces + p] = call->cost.forward_ns / count + more;
            times->backward[c * times->pieces + p] = (back - times->weights[c]) / count + more;
        }
    }
}

/* ---- the stages ------------------------------------------------------------------------------------------------- */

struct simulation {
    const struct sl_plan *plan;
    const struct sl_pipeline *pipeline;
    const struct sl_piece_times *times;
    double exchange_ns;
    int32_t open;
    struct sl_unit *units; /* [call_count] */
    double *done;          /* [stages] when a stage has finished what it has begun */
    double *pieces;        /* [pieces] when the stages so far have finished a piece */
};

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* Of calls [first, end) for one piece. */
static double sum_piece(const struct simulation *s, int32_t first, int32_t end, int32_t piece, bool backward)
{
    const double *times = backward ? s->times->backward : s->times->forward;
    double sum = 0;
    for (int32_t c = first; c < end; c++)
        sum += times[c * s->times->pieces + piece];
    return sum;
}

/* Of calls [first, end): packing in the forward pass, weight gradients in the backward pass. */
static double sum_once(const struct simulation *s, int32_t first, int32_t end, bool backward)
{
    double sum = 0;
    for (int32_t c = first; c < end; c++)
        sum += backward ? s->times->weights[c] : s->times->packs[c];
    return sum;
}

/* A stage packs its weights, runs calls piece by piece, in turn forward or backward, and passes each piece on; and
 * makes the weight gradients at the end. */
static void run(struct simulation *s, int32_t stage, int32_t first, int32_t end, bool passes, bool backward)
{
    const int32_t count = s->times->pieces;
    if (!backward)
        s->done[stage] += sum_once(s, first, end, false);
    for (int32_t k = 0; k < count; k++) {
        const int32_t p = backward ? count - 1 - k : k;
        s->done[stage] = later(s->done[stage], s->pieces[p]) + sum_piece(s, first, end, p, backward);
        if (passes)
            s->done[stage] += s->exchange_ns;
        s->pieces[p] = s->done[stage];
    }
    if (backward)
        s->done[stage] += sum_once(s, first, end, true);
}

static void set_pieces(struct simulation *s, double ns)
{
    for (int32_t p = 0; p < s->times->pieces; p++)
        s->pieces[p] = ns;
}

/* A unit begins when all pieces of the one before it have ended. */
static void wait_for_pieces(struct simulation *s)
{
    double last = 0;
    for (int32_t p = 0; p < s->times->pieces; p++)
        last = later(last, s->pieces[p]);
    set_pieces(s, last);
}

/* A stage runs calls on all steps. */
static void run_whole(struct simulation *s, int32_t stage, double ns)
{
    s->done[stage] = later(s->done[stage], s->pieces[0]) + ns;
    set_pieces(s, s->done[stage]);
}

static void run_stage(struct simulation *s, const struct sl_unit *unit, int32_t stage, bool backward)
{
    const int32_t *bounds = s->pipeline->bounds;
    const int32_t first = unit->first > bounds[stage] ? unit->first : bounds[stage];
    const int32_t end = unit->end < bounds[stage + 1] ? unit->end : bounds[stage + 1];
    const bool passes = backward ? first > unit->first : end < unit->end;
    if (first < end && unit->pieced)
        run(s, stage, first, end, passes, backward);
    else if (first < end)
        run_whole(s, stage, sum_piece(s, first, end, 0, backward) + sum_once(s, first, end, backward));
}

static void run_unit(struct simulation *s, const struct sl_unit *unit, bool backward)
{
    const int32_t stages = s->pipeline->stages;
    wait_for_pieces(s);
    for (int32_t k = 0; k < stages; k++)
        run_stage(s, unit, backward ? stages - 1 - k : k, backward);
}

/* The units of the plan. That of the open call joins those beside it that run in pieces. */
static int32_t list_units(const struct simulation *s, struct sl_unit *units)
{
    const int32_t calls = s->plan->call_count;
    int32_t count = 0;
    bool opened = false; /* by the open call: the unit before */
    for (int32_t c = 0; c < calls; c = units[count - 1].end) {
        struct sl_unit unit = sl_plan_find_unit(s->plan->graph, s->plan->calls, calls, c);
        struct sl_unit *before = count > 0 ? &units[count - 1] : NULL;
        const bool opens = s->open >= unit.first && s->open < unit.end;
        unit.pieced |= opens;
        if (before && before->pieced && unit.pieced && (opens || opened))
            before->end = unit.end;
        else
            units[count++] = unit;
        opened = opens;
    }
    return count;
}

static double simulate(struct simulation *s)
{
    const int32_t count = list_units(s, s->units);
    double last = 0;
    for (int32_t u = 0; u < count; u++)
        run_unit(s, &s->units[u], false);
    for (int32_t u = count - 1; u >= 0; u--)
        run_unit(s, &s->units[u], true);
    for (int32_t stage = 0; stage < s->pipeline->stages; stage++)
        last = later(last, s->done[stage]);
    return last;
}

static seqlstm_status simulate_open(const struct sl_plan *plan, const struct sl_pipeline *pipeline,
                                    const struct sl_piece_times *times, double exchange_ns, int32_t open,
                                    double *out_ns, struct seqlstm_error *err)
{
    struct simulation s = {
        .plan = plan, .pipeline = pipeline, .times = times, .exchange_ns = exchange_ns, .open = open};
    s.done = calloc((size_t)pipeline->stages + 1, sizeof *s.done);
    s.pieces = calloc((size_t)times->pieces + 1, sizeof *s.pieces);
    s.units = calloc((size_t)plan->call_count + 1, sizeof *s.units);
    const bool fits = s.done && s.pieces && s.units;
    if (fits)
        *out_ns = simulate(&s);
    free(s.units);
    free(s.done);
    free(s.pieces);
    if (!fits)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the times of stages");
    return SEQLSTM_OK;
}

seqlstm_status sl_pipeline_simulate_times(const struct sl_plan *plan, const struct sl_pipeline *pipeline,
                                          const struct sl_piece_times *times, double exchange_ns, double *out_ns,
                                          struct seqlstm_error *err)
{
    return simulate_open(plan, pipeline, times, exchange_ns, -1, out_ns, err);
}

seqlstm_status sl_pipeline_simulate(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t open,
                                    double *out_ns, struct seqlstm_error *err)
{
    struct sl_piece_times times;
    SEQLSTM_TRY(sl_piece_times_init(&times, plan->call_count, pipeline->pieces, err));
    fill_from_costs(plan, open, &times);
    const seqlstm_status status = simulate_open(plan, pipeline, &times, 0, open, out_ns, err);
    sl_piece_times_deinit(&times);
    return status;
}

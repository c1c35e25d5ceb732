/* SPDX-License-Identifier: Apache-2.0 */
/* See pipeline.h. */
#include "dispatch/stages/pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool knows_costs(const struct sl_plan *plan)
{
    double sum = 0;
    for (int32_t c = 0; c < plan->call_count; c++)
        sum += sl_cost_get_ns(&plan->calls[c].cost);
    return sum > 0;
}

/* Can a stage begin with call c? A loop stays in one stage. */
static bool may_cut(const struct sl_plan *plan, int32_t c)
{
    const struct sl_unit unit = sl_plan_find_unit(plan->graph, plan->calls, plan->call_count, c);
    return unit.first == c || unit.pieced;
}

/* least[s * (n + 1) + c]: the cost of the dearest of s + 1 stages of calls [0, c), at best; from: where its last stage
 * then begins. */
struct table {
    int32_t calls, stages;
    const double *costs;
    double *least;
    int32_t *from;
};

static void fill(const struct sl_plan *plan, struct table *t)
{
    const int32_t n = t->calls;
    for (int32_t s = 0; s < t->stages; s++)
        for (int32_t c = 0; c <= n; c++) {
            double *least = &t->least[s * (n + 1) + c], sum = 0;
            *least = INFINITY;
            for (int32_t k = c - 1; k >= 0 && sum < *least; k--) {
                sum += t->costs[k];
                const double before = s == 0 ? (k == 0 ? 0 : INFINITY) : t->least[(s - 1) * (n + 1) + k];
                const double dearest = before > sum ? before : sum;
                if (dearest < *least && may_cut(plan, k)) {
                    *least = dearest;
                    t->from[s * (n + 1) + c] = k;
                }
            }
        }
}

static void sum_stages(const double *costs, struct sl_pipeline *out)
{
    for (int32_t s = 0; s < out->stages; s++) {
        out->stage_ns[s] = 0;
        for (int32_t c = out->bounds[s]; c < out->bounds[s + 1]; c++)
            out->stage_ns[s] += costs[c];
    }
}

static seqlstm_status cut(const struct sl_plan *plan, const double *costs, struct sl_pipeline *out,
                          struct seqlstm_error *err)
{
    const int32_t n = plan->call_count, stages = out->stages;
    struct table t = {n, stages, costs, NULL, NULL};
    int32_t places = 0;
    for (int32_t c = 0; c < n; c++)
        places += may_cut(plan, c);
    if (stages > places || stages > SL_STAGES_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "`pipeline: %d` is more than the %d parts into which the layers can be cut; use `pipeline: %d`",
                     stages, places, places < SL_STAGES_MOST ? places : SL_STAGES_MOST);
    t.least = calloc((size_t)stages * (size_t)(n + 1), sizeof *t.least);
    t.from = calloc((size_t)stages * (size_t)(n + 1), sizeof *t.from);
    if (t.least && t.from) {
        fill(plan, &t);
        out->bounds[stages] = n;
        for (int32_t s = stages - 1; s >= 0; s--)
            out->bounds[s] = t.from[s * (n + 1) + out->bounds[s + 1]];
        sum_stages(costs, out);
    }
    const bool made = t.least && t.from;
    free(t.least);
    free(t.from);
    if (!made)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stages");
    return SEQLSTM_OK;
}

/* Without known costs there are four pieces for each stage. */
static seqlstm_status choose_pieces(const struct sl_plan *plan, bool known, struct sl_pipeline *out,
                                    struct seqlstm_error *err)
{
    static const int32_t counts[] = {1, 2, 3, 4, 6, 8, 12, SL_PIECES_AUTO_MOST};
    double least = INFINITY;
    int32_t best = 4 * out->stages < SL_PIECES_AUTO_MOST ? 4 * out->stages : SL_PIECES_AUTO_MOST;
    for (size_t k = 0; known && k < sizeof counts / sizeof *counts; k++) {
        double ns;
        out->pieces = counts[k];
        SEQLSTM_TRY(sl_pipeline_simulate(plan, out, -1, &ns, err));
        if (ns < least) {
            least = ns;
            best = counts[k];
        }
    }
    out->pieces = best < plan->graph->pieces ? best : plan->graph->pieces;
    out->chosen = true;
    return SEQLSTM_OK;
}

/* Where costs are not known, every call counts the same. */
static seqlstm_status cut_by_costs(const struct sl_plan *plan, bool known, struct sl_pipeline *out,
                                   struct seqlstm_error *err)
{
    double *costs = calloc((size_t)plan->call_count + 1, sizeof *costs);
    if (!costs)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stages");
    for (int32_t c = 0; c < plan->call_count; c++)
        costs[c] = known ? sl_cost_get_ns(&plan->calls[c].cost) : 1;
    const seqlstm_status status = cut(plan, costs, out, err);
    free(costs);
    return status;
}

seqlstm_status sl_pipeline_cut_times(const struct sl_plan *plan, const struct sl_piece_times *times,
                                     struct sl_pipeline *pipeline, struct seqlstm_error *err)
{
    struct sl_pipeline made = *pipeline;
    double *costs = calloc((size_t)plan->call_count + 1, sizeof *costs);
    if (!costs)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stages");
    for (int32_t c = 0; c < plan->call_count; c++) {
        costs[c] = times->packs[c] + times->weights[c];
        for (int32_t p = 0; p < times->pieces; p++)
            costs[c] += times->forward[c * times->pieces + p] + times->backward[c * times->pieces + p];
    }
    const seqlstm_status status = cut(plan, costs, &made, err);
    free(costs);
    SEQLSTM_TRY(status);
    made.pieces = times->pieces;
    made.alone_ns = sl_piece_times_sum(times);
    SEQLSTM_TRY(sl_pipeline_simulate_times(plan, &made, times, 0, &made.step_ns, err));
    *pipeline = made;
    return SEQLSTM_OK;
}

seqlstm_status sl_pipeline_make(const struct sl_plan *plan, int32_t stages, int32_t pieces, struct sl_pipeline *out,
                                struct seqlstm_error *err)
{
    const bool known = knows_costs(plan);
    struct sl_pipeline made = {.stages = stages, .pieces = pieces};
    SEQLSTM_TRY(cut_by_costs(plan, known, &made, err));
    if (pieces == 0)
        SEQLSTM_TRY(choose_pieces(plan, known, &made, err));
    for (int32_t c = 0; known && c < plan->call_count; c++)
        made.alone_ns += sl_cost_get_ns(&plan->calls[c].cost);
    if (known)
        SEQLSTM_TRY(sl_pipeline_simulate(plan, &made, -1, &made.step_ns, err));
    else
        memset(made.stage_ns, 0, sizeof made.stage_ns);
    *out = made;
    return SEQLSTM_OK;
}

seqlstm_status sl_pipeline_list_barriers(const struct sl_plan *plan, const struct sl_pipeline *pipeline,
                                         struct sl_pipeline_barrier *out, int32_t capacity, int32_t *out_count,
                                         struct seqlstm_error *err)
{
    double whole, open;
    int32_t count = 0;
    *out_count = 0;
    SEQLSTM_TRY(sl_pipeline_simulate(plan, pipeline, -1, &whole, err));
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_call *call = &plan->calls[c];
        const enum sl_barrier reason = sl_graph_find_barrier(plan->graph, call->node);
        if (reason == SL_BARRIER_NONE || !sl_axis_is_steps(sl_graph_get_axis(plan->graph, call->node)))
            continue;
        SEQLSTM_TRY(sl_pipeline_simulate(plan, pipeline, c, &open, err));
        if (count < capacity)
            out[count] =
                (struct sl_pipeline_barrier){call, reason, knows_costs(plan) && open < whole ? whole - open : 0};
        count++;
    }
    *out_count = count;
    return SEQLSTM_OK;
}

const char *sl_barrier_get_reason(enum sl_barrier barrier)
{
    static const char *const reasons[] = {
        [SL_BARRIER_NONE] = "it does not",
        [SL_BARRIER_DIRECTION] = "it reads the steps in reverse",
        [SL_BARRIER_STEPS] = "it needs whole sequences",
        [SL_BARRIER_SOURCE] = "it belongs to the encoder",
        [SL_BARRIER_LOOP] = "it runs step by step with input feeding",
    };
    return reasons[barrier];
}

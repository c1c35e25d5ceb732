/* SPDX-License-Identifier: Apache-2.0 */
/* See tune.h. */
#include "dispatch/cost/tune.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "dispatch/cost/cost_key.h"
#include "dispatch/cost/estimate.h"
#include "dispatch/cost/timing.h"
#include "dispatch/cost/tune_record.h"

/* A candidate is not timed if it took, on less work, more than this many times what the best candidate is expected to
 * take. */
static const double skip_by_experience = 30;
static const int64_t least_ns = 20000000; /* the least time for a subgraph */

/* A profile in place of sampled ones: one batch as large as the envelope allows, of sequences of equal length. */
static seqlstm_status suppose_profile(const struct sl_graph *graph, struct sl_profiles *out, struct seqlstm_error *err)
{
    const struct sl_envelope *envelope = &graph->facts.envelope;
    int64_t n = envelope->sequences > 0 ? envelope->sequences : 1;
    bool has_source = graph->facts.source.kind != SL_FIELD_NONE;
    int32_t *lengths = malloc((size_t)n * 2 * sizeof *lengths);
    if (lengths == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the profile of a batch");
    for (int64_t k = 0; k < 2 * n; k++) {
        int64_t steps = (k < n ? envelope->rows : envelope->source_rows) / n;
        lengths[k] = steps < 1 ? 1 : steps < INT32_MAX ? (int32_t)steps : INT32_MAX;
    }
    seqlstm_status status =
        sl_profiles_add(out, n, graph->facts.has_steps ? lengths : NULL, has_source ? lengths + n : NULL, 1, err);
    free(lengths);
    return status;
}

seqlstm_status sl_tuner_init(struct sl_tuner *tuner, const struct sl_subgraphs *subgraphs,
                             const struct sl_tuning *tuning, struct seqlstm_error *err)
{
    *tuner = (struct sl_tuner){.subgraphs = subgraphs, .tuning = tuning};
    bool has_source = subgraphs->graph->facts.source.kind != SL_FIELD_NONE;
    bool sampled = tuning && tuning->cache && tuning->profiles->count > 0 &&
                   (!has_source || tuning->profiles->items[0].source_lengths);
    const struct sl_profiles *profiles = sampled ? tuning->profiles : &tuner->usual;
    if (profiles == &tuner->usual) {
        SEQLSTM_TRY(suppose_profile(subgraphs->graph, &tuner->usual, err));
        tuner->tuning = NULL;
    }
    tuner->sides[0] = *profiles;
    tuner->sides[1] = sl_profiles_get_source(profiles);
    if (tuner->tuning == NULL)
        return SEQLSTM_OK;
    for (int side = 0; side < 2; side++)
        tuner->process[side] =
            sl_cost_key_begin(tuning->pool ? sl_pool_get_members(tuning->pool) : 1, &tuner->sides[side]);
    const double share = tuning->time_whole_steps ? 1 - SL_TUNER_WHOLE_STEPS_SHARE : 1;
    tuner->deadline_ns = sl_clock_ns() + (int64_t)(share * tuning->seconds * 1e9);
    return SEQLSTM_OK;
}

void sl_tuner_deinit(struct sl_tuner *tuner)
{
    sl_profiles_deinit(&tuner->usual);
    sl_experience_deinit(&tuner->experience);
}

/* ---- one subgraph ---- */

static double find_best(const struct sl_subgraph *subgraph)
{
    double best = -1;
    for (int32_t c = 0; c < subgraph->candidate_count; c++) {
        double ns = sl_cost_get_ns(&subgraph->candidates[c].cost);
        if (!subgraph->candidates[c].excluded && (best < 0 || ns < best))
            best = ns;
    }
    return best;
}

/* Did a candidate take so long on less work that it is not timed? Then that time is recorded as a lower bound.
 * `quickest`: the expected time of the best candidate. */
static seqlstm_status is_known_slow(struct sl_tuner *tuner, const struct sl_subgraph *subgraph,
                                    const union seqlstm_any_desc *desc, const struct sl_candidate *candidate,
                                    double quickest, double work_ns, bool *out_slow, struct seqlstm_error *err)
{
    double bound = sl_experience_get_bound(&tuner->experience, candidate, desc->head.op, work_ns);
    *out_slow = quickest > 0 && bound > skip_by_experience * quickest;
    return *out_slow ? sl_tuner_keep(tuner, subgraph, desc, candidate, true, bound, 0, err) : SEQLSTM_OK;
}

/* The expected time of the quickest candidate by experience; 0: unknown. */
static double predict_quickest(const struct sl_tuner *tuner, const struct sl_subgraph *subgraph,
                               const union seqlstm_any_desc *desc, double work_ns)
{
    double quickest = 0;
    struct sl_cost cost;
    for (int32_t c = 0; c < subgraph->candidate_count; c++)
        if (!subgraph->candidates[c].excluded &&
            sl_experience_predict(&tuner->experience, &subgraph->candidates[c], desc->head.op, work_ns, &cost) &&
            (quickest == 0 || sl_cost_get_ns(&cost) < quickest))
            quickest = sl_cost_get_ns(&cost);
    return quickest;
}

/* Times the candidates of a subgraph that are not skipped, and records the results. */
static seqlstm_status time_subgraph(struct sl_tuner *tuner, struct sl_subgraph *subgraph,
                                    const union seqlstm_any_desc *desc, double best, int64_t budget_ns,
                                    struct seqlstm_error *err)
{
    struct sl_call_parts parts = sl_tuner_get_parts(tuner, subgraph->node);
    struct sl_timed_op *timed_ops = calloc((size_t)subgraph->candidate_count + 1, sizeof *timed_ops);
    struct sl_candidate **candidates = calloc((size_t)subgraph->candidate_count + 1, sizeof *candidates);
    int32_t count = 0;
    struct sl_cost work = {0};
    const struct sl_profiles *profiles = sl_tuner_get_profiles(tuner, subgraph->node);
    seqlstm_status status = sl_cost_guess(tuner->subgraphs->graph, subgraph->node, desc, profiles, &work, err);
    double work_ns = sl_cost_get_ns(&work), quickest = predict_quickest(tuner, subgraph, desc, work_ns);
    if (status == SEQLSTM_OK && (!timed_ops || !candidates))
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory to time backends");
    for (int32_t c = 0; status == SEQLSTM_OK && c < subgraph->candidate_count; c++) {
        struct sl_candidate *candidate = &subgraph->candidates[c];
        bool slow = sl_tuner_skips(candidate, best);
        if (!slow)
            status = is_known_slow(tuner, subgraph, desc, candidate, quickest, work_ns, &slow, err);
        if (slow)
            continue;
        candidates[count] = candidate;
        timed_ops[count++] = (struct sl_timed_op){.backend = candidate->backend,
                                                  .device = candidate->device,
                                                  .op = candidate->op,
                                                  .sizes = &candidate->sizes};
    }
    struct sl_timing_request request = {.desc = desc,
                                        .on_steps = parts.on_steps,
                                        .backward = parts.backward,
                                        .input_grad = parts.input_grad,
                                        .param_grad = parts.param_grad,
                                        .profiles = profiles,
                                        .pool = tuner->tuning->pool,
                                        .interrupt = tuner->tuning->interrupt,
                                        .budget_ns = budget_ns};
    if (status == SEQLSTM_OK && count > 0)
        status = sl_timing_run(&request, timed_ops, count, err);
    for (int32_t r = 0; status == SEQLSTM_OK && r < count; r++)
        status = timed_ops[r].failed ? sl_subgraph_refuse_candidate(tuner->subgraphs, subgraph, candidates[r],
                                                                    timed_ops[r].failure, err)
                                     : sl_tuner_keep(tuner, subgraph, desc, candidates[r], false,
                                                     timed_ops[r].forward_ns, timed_ops[r].backward_ns, err);
    tuner->timed += count;
    free(timed_ops);
    free(candidates);
    return status;
}

static seqlstm_status open_candidates(struct sl_tuner *tuner, struct sl_subgraph *subgraph,
                                      const union seqlstm_any_desc *desc, struct seqlstm_error *err)
{
    for (int32_t c = 0; c < subgraph->candidate_count; c++) {
        struct sl_candidate *candidate = &subgraph->candidates[c];
        if (!candidate->excluded)
            SEQLSTM_TRY(sl_tuner_open_candidate(tuner, subgraph, desc, candidate, err));
        if (!candidate->excluded)
            SEQLSTM_TRY(sl_cost_estimate(tuner->subgraphs->graph, subgraph->node, desc, candidate,
                                         sl_tuner_get_profiles(tuner, subgraph->node), &candidate->cost, err));
    }
    return SEQLSTM_OK;
}

/* ---- all subgraphs ---- */

/* Subgraphs that compete with each other form a region, named by the lowest of their nodes. */
static void find_regions(const struct sl_subgraphs *subgraphs, int32_t *region)
{
    for (int32_t n = 0; n < subgraphs->graph->node_count; n++)
        region[n] = n;
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < subgraphs->count; i++) {
            const struct sl_subgraph *subgraph = &subgraphs->items[i];
            if (sl_subgraph_count_candidates(subgraph) == 0)
                continue;
            int32_t lowest = region[subgraph->first];
            for (int32_t n = subgraph->first; n < subgraph->first + subgraph->count; n++)
                lowest = region[n] < lowest ? region[n] : lowest;
            for (int32_t n = subgraph->first; n < subgraph->first + subgraph->count; n++) {
                changed = changed || region[n] != lowest;
                region[n] = lowest;
            }
        }
    }
}

/* What is left to do for the costs of one subgraph. */
struct task {
    double best;  /* of the estimates */
    double share; /* expected time for timing it, relative to other subgraphs */
    bool done;    /* cached or timed */
};

/* Estimates all costs, and takes those of subgraphs that are complete in the cache. */
static seqlstm_status start_tasks(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct task *tasks,
                                  struct seqlstm_error *err)
{
    for (int32_t i = 0; i < tuner->subgraphs->count; i++) {
        struct sl_subgraph *subgraph = &tuner->subgraphs->items[i];
        SEQLSTM_TRY(open_candidates(tuner, subgraph, &subgraph->node->desc, err));
        tasks[i] = (struct task){.best = find_best(subgraph)};
        if (policy != SL_POLICY_MEASURED || tuner->tuning == NULL || tasks[i].best < 0)
            continue;
        tasks[i].done = sl_tuner_recall(tuner, subgraph, &subgraph->node->desc, tasks[i].best, SL_COST_CACHED);
        tasks[i].share = tasks[i].done ? 0 : tasks[i].best * sl_subgraph_count_candidates(subgraph);
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_task(struct sl_tuner *tuner, struct sl_subgraph *subgraph, struct task *task, double all,
                               struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    /* an identical subgraph may have been timed already */
    if (sl_tuner_recall(tuner, subgraph, &subgraph->node->desc, task->best, SL_COST_MEASURED)) {
        task->done = true;
        return SEQLSTM_OK;
    }
    int64_t left = tuner->deadline_ns - sl_clock_ns();
    if (left <= 0)
        return SEQLSTM_OK;
    int64_t budget = (int64_t)((double)left * task->share / all);
    sl_log_printf(tuner->tuning->log, SL_LOG_STATUS,
                  "measuring which backend is fastest for `%s` (once; the result is kept)", subgraph->node->name);
    seqlstm_status status =
        time_subgraph(tuner, subgraph, &subgraph->node->desc, task->best, budget > least_ns ? budget : least_ns, &why);
    if (status == SEQLSTM_CANCELLED || status == SEQLSTM_NO_MEMORY) {
        if (err)
            *err = why;
        return status;
    }
    if (status != SEQLSTM_OK)
        sl_log_printf(tuner->tuning->log, SL_LOG_DEBUG, "`%s` cannot be timed: %s", subgraph->node->name, why.message);
    task->done =
        status == SEQLSTM_OK && sl_tuner_recall(tuner, subgraph, &subgraph->node->desc, task->best, SL_COST_MEASURED);
    return SEQLSTM_OK;
}

/* Replaces measured costs by estimates: by experience from other subgraphs, or else by the earlier estimates. */
static seqlstm_status estimate_again(struct sl_tuner *tuner, struct sl_subgraph *subgraph, struct seqlstm_error *err)
{
    const union seqlstm_any_desc *desc = &subgraph->node->desc;
    struct sl_cost work;
    SEQLSTM_TRY(sl_cost_guess(tuner->subgraphs->graph, subgraph->node, desc,
                              sl_tuner_get_profiles(tuner, subgraph->node), &work, err));
    SEQLSTM_TRY(open_candidates(tuner, subgraph, desc, err));
    for (int32_t c = 0; c < subgraph->candidate_count; c++)
        if (!subgraph->candidates[c].excluded)
            sl_experience_predict(&tuner->experience, &subgraph->candidates[c], desc->head.op, sl_cost_get_ns(&work),
                                  &subgraph->candidates[c].cost);
    return SEQLSTM_OK;
}

/* If one subgraph of a region has no measured cost, estimates the costs of the whole region. */
static seqlstm_status unify_regions(struct sl_tuner *tuner, const struct task *tasks, struct seqlstm_error *err)
{
    const struct sl_subgraphs *subgraphs = tuner->subgraphs;
    int32_t *region = calloc((size_t)subgraphs->graph->node_count + 1, sizeof *region);
    bool *unsure = calloc((size_t)subgraphs->graph->node_count + 1, sizeof *unsure);
    seqlstm_status status = SEQLSTM_OK;
    if (!region || !unsure) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the plan");
    } else {
        find_regions(subgraphs, region);
        for (int32_t i = 0; i < subgraphs->count; i++)
            if (!tasks[i].done && sl_subgraph_count_candidates(&subgraphs->items[i]) > 0)
                unsure[region[subgraphs->items[i].first]] = true;
    }
    for (int32_t i = 0; status == SEQLSTM_OK && i < subgraphs->count; i++)
        if (unsure[region[subgraphs->items[i].first]])
            status = estimate_again(tuner, &subgraphs->items[i], err);
    free(region);
    free(unsure);
    return status;
}

seqlstm_status sl_tuner_price_all(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct seqlstm_error *err)
{
    struct task *tasks = calloc((size_t)tuner->subgraphs->count + 1, sizeof *tasks);
    if (tasks == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    bool measured = policy == SL_POLICY_MEASURED && tuner->tuning;
    seqlstm_status status = start_tasks(tuner, policy, tasks, err);
    double all = 0;
    for (int32_t i = 0; i < tuner->subgraphs->count; i++)
        all += tasks[i].share;
    for (int32_t i = 0; status == SEQLSTM_OK && measured && tuner->tuning->measure && i < tuner->subgraphs->count;
         i++) {
        if (tasks[i].best >= 0 && !tasks[i].done)
            status = run_task(tuner, &tuner->subgraphs->items[i], &tasks[i], all, err);
        all -= tasks[i].share;
    }
    if (status == SEQLSTM_OK && measured)
        status = unify_regions(tuner, tasks, err);
    free(tasks);
    return status;
}

seqlstm_status sl_tuner_price_one(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct sl_subgraph *subgraph,
                                  const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                  struct seqlstm_error *err)
{
    const struct sl_profiles *profiles = sl_tuner_get_profiles(tuner, subgraph->node);
    SEQLSTM_TRY(
        sl_cost_estimate(tuner->subgraphs->graph, subgraph->node, desc, candidate, profiles, &candidate->cost, err));
    struct sl_subgraph one = *subgraph;
    one.candidates = candidate;
    one.candidate_count = 1;
    double best = sl_cost_get_ns(&candidate->cost);
    if (policy == SL_POLICY_MEASURED && tuner->tuning && !sl_tuner_recall(tuner, &one, desc, best, SL_COST_CACHED) &&
        tuner->tuning->measure && sl_clock_ns() < tuner->deadline_ns) {
        seqlstm_status status = time_subgraph(tuner, &one, desc, best, 4 * least_ns, err);
        if (status == SEQLSTM_CANCELLED)
            return status;
        if (status == SEQLSTM_OK)
            sl_tuner_recall(tuner, &one, desc, best, SL_COST_MEASURED);
    }
    if (candidate->cost.source == SL_COST_GUESS)
        candidate->cost = (struct sl_cost){0};
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See tune.h. */
#include "dispatch/plan/request.h"
#include "dispatch/cost/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/operation/op_signature.h"
#include "dispatch/cost/cost_key.h"
#include "dispatch/cost/estimate.h"
#include "dispatch/cost/timing.h"

/* A candidate is not timed if its estimate is more than skip_by_estimate times the best one, or if it took, on less
 * work, more than skip_by_experience times what the best candidate is expected to take. */
static const double skip_by_estimate = 3, skip_by_experience = 30;
static const int64_t least_ns = 20000000; /* the least time for a span */

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

seqlstm_status sl_tuner_init(struct sl_tuner *tuner, const struct sl_spans *spans, const struct sl_tuning *tuning,
                             struct seqlstm_error *err)
{
    *tuner = (struct sl_tuner){.spans = spans, .tuning = tuning};
    bool has_source = spans->graph->facts.source.kind != SL_FIELD_NONE;
    bool sampled = tuning && tuning->cache && tuning->profiles->count > 0 &&
                   (!has_source || tuning->profiles->items[0].source_lengths);
    const struct sl_profiles *profiles = sampled ? tuning->profiles : &tuner->usual;
    if (profiles == &tuner->usual) {
        SEQLSTM_TRY(suppose_profile(spans->graph, &tuner->usual, err));
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

/* ---- one span ---- */

static int get_side(const struct sl_tuner *tuner, const struct sl_node *node)
{
    return sl_axis_is_source(sl_graph_get_axis(tuner->spans->graph, node));
}

static const struct sl_profiles *get_profiles(const struct sl_tuner *tuner, const struct sl_node *node)
{
    return &tuner->sides[get_side(tuner, node)];
}

/* What a call has to compute, besides what its descriptor says. */
struct parts {
    bool on_steps, backward, input_grad, param_grad;
};

static struct parts get_parts(const struct sl_graph *graph, const struct sl_node *node)
{
    struct parts parts = {.on_steps = sl_node_is_on_steps(graph, node), .backward = node->needs_backward};
    for (int32_t s = 0; s < node->slot_count; s++) {
        const struct sl_tensor *tensor = node->slots[s] >= 0 ? &graph->tensors[node->slots[s]] : NULL;
        if (tensor == NULL || !tensor->needs_grad)
            continue;
        int32_t first = node->desc.head.op == SEQLSTM_OP_MERGE ? SEQLSTM_SLOT_MERGE_X : 0;
        parts.param_grad |= tensor->role == SL_TENSOR_PARAM;
        parts.input_grad |= s == first;
    }
    return parts;
}

/* The keys of refusals have this bit instead of the parts. */
#define REFUSAL (1u << 31)

static struct sl_cost_key get_refusal_key(const struct sl_tuner *tuner, const struct sl_node *node,
                                          const union seqlstm_any_desc *desc, const struct sl_candidate *candidate)
{
    return sl_cost_key_get(&tuner->process[get_side(tuner, node)], candidate->backend, candidate->device,
                           candidate->variant, desc, REFUSAL);
}

struct sl_cost_key sl_tuner_get_key(const struct sl_tuner *tuner, const struct sl_node *node,
                                    const union seqlstm_any_desc *desc, const struct sl_candidate *candidate)
{
    struct parts parts = get_parts(tuner->spans->graph, node);
    uint32_t bits = parts.on_steps | (uint32_t)parts.backward << 1 | (uint32_t)parts.input_grad << 2 |
                    (uint32_t)parts.param_grad << 3;
    return sl_cost_key_get(&tuner->process[get_side(tuner, node)], candidate->backend, candidate->device,
                           candidate->variant, desc, bits);
}

static double find_best(const struct sl_span *span)
{
    double best = -1;
    for (int32_t c = 0; c < span->candidate_count; c++) {
        double ns = sl_cost_get_ns(&span->candidates[c].cost);
        if (!span->candidates[c].excluded && (best < 0 || ns < best))
            best = ns;
    }
    return best;
}

/* Is it excluded, or not worth timing? `best`: the least estimate. */
static bool is_skipped(const struct sl_candidate *candidate, double best)
{
    return candidate->excluded || sl_cost_get_ns(&candidate->cost) > skip_by_estimate * best;
}

/* Takes the costs of a span from the cache. True: none is missing. A candidate that was skipped must not win by an
 * estimate that is too good: its cost is at least three times the best. `best`: the least estimate. */
static bool recall(const struct sl_tuner *tuner, struct sl_span *span, const union seqlstm_any_desc *desc, double best,
                   enum sl_cost_source source)
{
    const struct sl_cost_record *records[64];
    double fastest = -1;
    int32_t count = span->candidate_count < 64 ? span->candidate_count : 64;
    for (int32_t c = 0; c < count; c++) {
        records[c] = NULL;
        if (is_skipped(&span->candidates[c], best))
            continue;
        struct sl_cost_key key = sl_tuner_get_key(tuner, span->node, desc, &span->candidates[c]);
        records[c] = sl_cost_cache_find(tuner->tuning->cache, &key);
        if (records[c] == NULL)
            return false;
        double ns = records[c]->forward_ns + records[c]->backward_ns;
        fastest = fastest < 0 || ns < fastest ? ns : fastest;
    }
    for (int32_t c = 0; c < count; c++) {
        struct sl_cost *cost = &span->candidates[c].cost;
        if (records[c])
            *cost = (struct sl_cost){records[c]->bound ? SL_COST_BOUND : source, records[c]->forward_ns,
                                     records[c]->backward_ns};
        else if (!span->candidates[c].excluded && sl_cost_get_ns(cost) < skip_by_estimate * fastest)
            *cost = (struct sl_cost){SL_COST_BOUND, skip_by_estimate * fastest, 0};
    }
    return true;
}

/* Records what a candidate took, or (bound) takes at least, for this plan and for later runs. */
static seqlstm_status keep(struct sl_tuner *tuner, const struct sl_span *span, const union seqlstm_any_desc *desc,
                           const struct sl_candidate *candidate, bool bound, double forward_ns, double backward_ns,
                           struct seqlstm_error *err)
{
    struct sl_cost_record record = {.key = sl_tuner_get_key(tuner, span->node, desc, candidate),
                                    .forward_ns = forward_ns,
                                    .backward_ns = backward_ns,
                                    .bound = bound};
    struct sl_cost work, cost = {SL_COST_MEASURED, forward_ns, backward_ns};
    SEQLSTM_TRY(sl_cost_guess(tuner->spans->graph, span->node, desc, get_profiles(tuner, span->node), &work, err));
    if (!bound) /* a bound is no timing */
        SEQLSTM_TRY(sl_experience_add(&tuner->experience, candidate, desc->head.op, sl_cost_get_ns(&work), &cost, err));
    snprintf(record.label, sizeof record.label, "%.24s:%.31s/%.16s", sl_backend_get_id(candidate->backend),
             candidate->variant, sl_op_name(desc->head.op));
    return sl_cost_cache_add(tuner->tuning->cache, &record, err);
}

/* Did a candidate take so long on less work that it is not timed? Then that time is recorded as a lower bound.
 * `quickest`: the expected time of the best candidate. */
static seqlstm_status is_known_slow(struct sl_tuner *tuner, const struct sl_span *span,
                                    const union seqlstm_any_desc *desc, const struct sl_candidate *candidate,
                                    double quickest, double work_ns, bool *out_slow, struct seqlstm_error *err)
{
    double bound = sl_experience_get_bound(&tuner->experience, candidate, desc->head.op, work_ns);
    *out_slow = quickest > 0 && bound > skip_by_experience * quickest;
    return *out_slow ? keep(tuner, span, desc, candidate, true, bound, 0, err) : SEQLSTM_OK;
}

/* The expected time of the quickest candidate by experience; 0: unknown. */
static double predict_quickest(const struct sl_tuner *tuner, const struct sl_span *span,
                               const union seqlstm_any_desc *desc, double work_ns)
{
    double quickest = 0;
    struct sl_cost cost;
    for (int32_t c = 0; c < span->candidate_count; c++)
        if (!span->candidates[c].excluded &&
            sl_experience_predict(&tuner->experience, &span->candidates[c], desc->head.op, work_ns, &cost) &&
            (quickest == 0 || sl_cost_get_ns(&cost) < quickest))
            quickest = sl_cost_get_ns(&cost);
    return quickest;
}

/* Times the candidates of a span that are not skipped, and records the results. */
static seqlstm_status time_span(struct sl_tuner *tuner, struct sl_span *span, const union seqlstm_any_desc *desc,
                                double best, int64_t budget_ns, struct seqlstm_error *err)
{
    struct parts parts = get_parts(tuner->spans->graph, span->node);
    struct sl_timed_op *timed_ops = calloc((size_t)span->candidate_count + 1, sizeof *timed_ops);
    struct sl_candidate **candidates = calloc((size_t)span->candidate_count + 1, sizeof *candidates);
    int32_t count = 0;
    struct sl_cost work = {0};
    const struct sl_profiles *profiles = get_profiles(tuner, span->node);
    seqlstm_status status = sl_cost_guess(tuner->spans->graph, span->node, desc, profiles, &work, err);
    double work_ns = sl_cost_get_ns(&work), quickest = predict_quickest(tuner, span, desc, work_ns);
    if (status == SEQLSTM_OK && (!timed_ops || !candidates))
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory to time backends");
    for (int32_t c = 0; status == SEQLSTM_OK && c < span->candidate_count; c++) {
        struct sl_candidate *candidate = &span->candidates[c];
        bool slow = is_skipped(candidate, best);
        if (!slow)
            status = is_known_slow(tuner, span, desc, candidate, quickest, work_ns, &slow, err);
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
        status =
            timed_ops[r].failed
                ? sl_span_refuse_candidate(tuner->spans, span, candidates[r], timed_ops[r].failure, err)
                : keep(tuner, span, desc, candidates[r], false, timed_ops[r].forward_ns, timed_ops[r].backward_ns, err);
    tuner->timed += count;
    free(timed_ops);
    free(candidates);
    return status;
}

/* The reason of the backend's last refusal. */
static const char *get_reason(const struct sl_span *span, const struct sl_candidate *candidate)
{
    int32_t r = span->refusal_count - 1;
    while (span->refusals[r].rank != candidate->rank)
        r--;
    return span->refusals[r].reason;
}

/* Creating an op may take a trial run, so refusals are cached: the backend is not asked again in a later run. */
static seqlstm_status open_candidate(struct sl_tuner *tuner, struct sl_span *span, const union seqlstm_any_desc *desc,
                                     struct sl_candidate *candidate, struct seqlstm_error *err)
{
    if (tuner->tuning == NULL || candidate->op)
        return sl_span_open_candidate(tuner->spans, span, desc, candidate, err);
    struct sl_cost_record record = {.key = get_refusal_key(tuner, span->node, desc, candidate), .refused = true};
    const struct sl_cost_record *kept = sl_cost_cache_find(tuner->tuning->cache, &record.key);
    if (kept && kept->refused)
        return sl_span_refuse_candidate(tuner->spans, span, candidate, kept->label, err);
    SEQLSTM_TRY(sl_span_open_candidate(tuner->spans, span, desc, candidate, err));
    if (!candidate->excluded)
        return SEQLSTM_OK;
    snprintf(record.label, sizeof record.label, "%s", get_reason(span, candidate));
    return sl_cost_cache_add(tuner->tuning->cache, &record, err);
}

static seqlstm_status open_candidates(struct sl_tuner *tuner, struct sl_span *span, const union seqlstm_any_desc *desc,
                                      struct seqlstm_error *err)
{
    for (int32_t c = 0; c < span->candidate_count; c++) {
        struct sl_candidate *candidate = &span->candidates[c];
        if (!candidate->excluded)
            SEQLSTM_TRY(open_candidate(tuner, span, desc, candidate, err));
        if (!candidate->excluded)
            SEQLSTM_TRY(sl_cost_estimate(tuner->spans->graph, span->node, desc, candidate,
                                         get_profiles(tuner, span->node), &candidate->cost, err));
    }
    return SEQLSTM_OK;
}

/* ---- all spans ---- */

/* Spans that compete with each other form a region, named by the lowest of their nodes. */
static void find_regions(const struct sl_spans *spans, int32_t *region)
{
    for (int32_t n = 0; n < spans->graph->node_count; n++)
        region[n] = n;
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < spans->count; i++) {
            const struct sl_span *span = &spans->items[i];
            if (sl_span_count_candidates(span) == 0)
                continue;
            int32_t lowest = region[span->first];
            for (int32_t n = span->first; n < span->first + span->count; n++)
                lowest = region[n] < lowest ? region[n] : lowest;
            for (int32_t n = span->first; n < span->first + span->count; n++) {
                changed = changed || region[n] != lowest;
                region[n] = lowest;
            }
        }
    }
}

/* What is left to do for the costs of one span. */
struct task {
    double best;  /* of the estimates */
    double share; /* expected time for timing it, relative to other spans */
    bool done;    /* cached or timed */
};

/* Estimates all costs, and takes those of spans that are complete in the cache. */
static seqlstm_status start_tasks(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct task *tasks,
                                  struct seqlstm_error *err)
{
    for (int32_t i = 0; i < tuner->spans->count; i++) {
        struct sl_span *span = &tuner->spans->items[i];
        SEQLSTM_TRY(open_candidates(tuner, span, &span->node->desc, err));
        tasks[i] = (struct task){.best = find_best(span)};
        if (policy != SL_POLICY_MEASURED || tuner->tuning == NULL || tasks[i].best < 0)
            continue;
        tasks[i].done = recall(tuner, span, &span->node->desc, tasks[i].best, SL_COST_CACHED);
        tasks[i].share = tasks[i].done ? 0 : tasks[i].best * sl_span_count_candidates(span);
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_task(struct sl_tuner *tuner, struct sl_span *span, struct task *task, double all,
                               struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    if (recall(tuner, span, &span->node->desc, task->best, SL_COST_MEASURED)) { /* an identical span has been timed */
        task->done = true;
        return SEQLSTM_OK;
    }
    int64_t left = tuner->deadline_ns - sl_clock_ns();
    if (left <= 0)
        return SEQLSTM_OK;
    int64_t budget = (int64_t)((double)left * task->share / all);
    seqlstm_status status =
        time_span(tuner, span, &span->node->desc, task->best, budget > least_ns ? budget : least_ns, &why);
    if (status == SEQLSTM_CANCELLED || status == SEQLSTM_NO_MEMORY) {
        if (err)
            *err = why;
        return status;
    }
    if (status != SEQLSTM_OK)
        sl_log_printf(tuner->tuning->log, SL_LOG_DEBUG, "`%s` cannot be timed: %s", span->node->name, why.message);
    task->done = status == SEQLSTM_OK && recall(tuner, span, &span->node->desc, task->best, SL_COST_MEASURED);
    return SEQLSTM_OK;
}

/* Replaces measured costs by estimates: by experience from other spans, or else by the earlier estimates. */
static seqlstm_status estimate_again(struct sl_tuner *tuner, struct sl_span *span, struct seqlstm_error *err)
{
    const union seqlstm_any_desc *desc = &span->node->desc;
    struct sl_cost work;
    SEQLSTM_TRY(sl_cost_guess(tuner->spans->graph, span->node, desc, get_profiles(tuner, span->node), &work, err));
    SEQLSTM_TRY(open_candidates(tuner, span, desc, err));
    for (int32_t c = 0; c < span->candidate_count; c++)
        if (!span->candidates[c].excluded)
            sl_experience_predict(&tuner->experience, &span->candidates[c], desc->head.op, sl_cost_get_ns(&work),
                                  &span->candidates[c].cost);
    return SEQLSTM_OK;
}

/* If one span of a region has no measured cost, estimates the costs of the whole region. */
static seqlstm_status unify_regions(struct sl_tuner *tuner, const struct task *tasks, struct seqlstm_error *err)
{
    const struct sl_spans *spans = tuner->spans;
    int32_t *region = calloc((size_t)spans->graph->node_count + 1, sizeof *region);
    bool *unsure = calloc((size_t)spans->graph->node_count + 1, sizeof *unsure);
    seqlstm_status status = SEQLSTM_OK;
    if (!region || !unsure) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the plan");
    } else {
        find_regions(spans, region);
        for (int32_t i = 0; i < spans->count; i++)
            if (!tasks[i].done && sl_span_count_candidates(&spans->items[i]) > 0)
                unsure[region[spans->items[i].first]] = true;
    }
    for (int32_t i = 0; status == SEQLSTM_OK && i < spans->count; i++)
        if (unsure[region[spans->items[i].first]])
            status = estimate_again(tuner, &spans->items[i], err);
    free(region);
    free(unsure);
    return status;
}

seqlstm_status sl_tuner_price_all(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct seqlstm_error *err)
{
    struct task *tasks = calloc((size_t)tuner->spans->count + 1, sizeof *tasks);
    if (tasks == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    bool measured = policy == SL_POLICY_MEASURED && tuner->tuning;
    seqlstm_status status = start_tasks(tuner, policy, tasks, err);
    double all = 0;
    for (int32_t i = 0; i < tuner->spans->count; i++)
        all += tasks[i].share;
    for (int32_t i = 0; status == SEQLSTM_OK && measured && tuner->tuning->measure && i < tuner->spans->count; i++) {
        if (tasks[i].best >= 0 && !tasks[i].done)
            status = run_task(tuner, &tuner->spans->items[i], &tasks[i], all, err);
        all -= tasks[i].share;
    }
    if (status == SEQLSTM_OK && measured)
        status = unify_regions(tuner, tasks, err);
    free(tasks);
    return status;
}

seqlstm_status sl_tuner_price_one(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct sl_span *span,
                                  const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                  struct seqlstm_error *err)
{
    const struct sl_profiles *profiles = get_profiles(tuner, span->node);
    SEQLSTM_TRY(sl_cost_estimate(tuner->spans->graph, span->node, desc, candidate, profiles, &candidate->cost, err));
    struct sl_span one = *span;
    one.candidates = candidate;
    one.candidate_count = 1;
    double best = sl_cost_get_ns(&candidate->cost);
    if (policy == SL_POLICY_MEASURED && tuner->tuning && !recall(tuner, &one, desc, best, SL_COST_CACHED) &&
        tuner->tuning->measure && sl_clock_ns() < tuner->deadline_ns) {
        seqlstm_status status = time_span(tuner, &one, desc, best, 4 * least_ns, err);
        if (status == SEQLSTM_CANCELLED)
            return status;
        if (status == SEQLSTM_OK)
            recall(tuner, &one, desc, best, SL_COST_MEASURED);
    }
    if (candidate->cost.source == SL_COST_GUESS)
        candidate->cost = (struct sl_cost){0};
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See whole_steps.h. */
#include "dispatch/plan/request.h"
#include "dispatch/route/whole_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cost/cost_key.h"
#include "dispatch/memory/layout.h"

static const double close_by = 0.10; /* routes whose totals differ by more are not compared */
static const double trifle = 0.01;   /* of a step: routes that differ in less are not compared */
static const double unsure = 0.02;   /* whole steps of identical plans differed by up to 1.5 % */

struct comparison {
    const struct sl_whole_steps_setup *request;
    struct sl_route pair[2];    /* the cheapest and the second */
    struct sl_cost_key keys[2]; /* of them */
    struct sl_cost_key key;     /* of both */
    double ns[2];
};

/* ---- the second-best route ---- */

static bool is_measured(const struct sl_candidate_routes *routes, const struct sl_route *route)
{
    for (int32_t k = 0; k < route->count; k++)
        if (routes->candidates[route->steps[k]]->cost.source < SL_COST_CACHED)
            return false;
    return true;
}

/* Would `fallback: error` refuse a plan with this route? */
static bool is_forbidden(const struct comparison *comparison, const struct sl_route *route)
{
    const struct sl_candidate_routes *routes = comparison->request->routes;
    if (comparison->request->frame->graph->model->dispatch.fallback != SL_FALLBACK_ERROR)
        return false;
    for (int32_t k = 0; k < route->count; k++)
        if (sl_candidate_is_fallback(routes->subgraphs[route->steps[k]], routes->candidates[route->steps[k]]))
            return true;
    return false;
}

/* The second route; count 0: there is none, or none that comes near. */
static seqlstm_status find_rival(struct comparison *comparison, struct seqlstm_error *err)
{
    const struct sl_candidate_routes *routes = comparison->request->routes;
    struct sl_route *second = &comparison->pair[1];
    bool open = true;
    SEQLSTM_TRY(sl_route_find_second(&routes->problem, &comparison->pair[0], trifle, second, err));
    bool close = second->count > 0 && second->cost_ns <= (1 + close_by) * comparison->pair[0].cost_ns &&
                 is_measured(routes, second) && !is_forbidden(comparison, second);
    if (close)
        SEQLSTM_TRY(sl_candidate_routes_open(routes, comparison->request->tuner->subgraphs, second, &open, err));
    if (!close || !open)
        second->count = 0;
    return SEQLSTM_OK;
}

/* ---- the cache ---- */

static struct sl_cost_key get_plan_key(const struct comparison *comparison, const struct sl_route *route)
{
    const struct sl_candidate_routes *routes = comparison->request->routes;
    struct sl_cost_key key = {{3, 4}};
    for (int32_t k = 0; k < route->count; k++) {
        const struct sl_cost_key step =
            sl_tuner_get_key(comparison->request->tuner, routes->subgraphs[route->steps[k]]->node,
                             &routes->subgraphs[route->steps[k]]->node->desc, routes->candidates[route->steps[k]]);
        sl_cost_key_join(&key, &step);
    }
    return key;
}

/* The plan whose time stands first in the record. The keys decide: unlike the costs, they do not change. */
static int get_first(const struct comparison *comparison)
{
    return memcmp(&comparison->keys[0], &comparison->keys[1], sizeof comparison->keys[0]) <= 0 ? 0 : 1;
}

static void find_keys(struct comparison *comparison)
{
    for (int w = 0; w < 2; w++)
        comparison->keys[w] = get_plan_key(comparison, &comparison->pair[w]);
    const int first = get_first(comparison);
    comparison->key = comparison->keys[first];
    sl_cost_key_join(&comparison->key, &comparison->keys[1 - first]);
}

static bool recall(struct comparison *comparison)
{
    const struct sl_cost_record *record =
        sl_cost_cache_find(comparison->request->tuner->tuning->cache, &comparison->key);
    if (record == NULL)
        return false;
    const int first = get_first(comparison);
    comparison->ns[first] = record->forward_ns;
    comparison->ns[1 - first] = record->backward_ns;
    return true;
}

static seqlstm_status keep(const struct comparison *comparison, struct seqlstm_error *err)
{
    const int first = get_first(comparison);
    const struct sl_cost_record record = {.key = comparison->key,
                                          .forward_ns = comparison->ns[first],
                                          .backward_ns = comparison->ns[1 - first],
                                          .label = "whole steps of two plans"};
    return sl_cost_cache_add(comparison->request->tuner->tuning->cache, &record, err);
}

/* ---- timing ---- */

/* A plan of the route, as an executor needs it. Its ops stay the candidates' and the frame's: it is not to be
 * destroyed. */
static seqlstm_status lay_out(const struct comparison *comparison, const struct sl_route *route,
                              struct sl_plan *out_plan, struct seqlstm_error *err)
{
    const struct sl_candidate_routes *routes = comparison->request->routes;
    *out_plan = *comparison->request->frame;
    struct sl_call *calls = SL_ARENA_ARRAY(out_plan->arena, struct sl_call, (size_t)route->count);
    if (calls == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    for (int32_t k = 0; k < route->count; k++)
        calls[k] = sl_candidate_make_call(routes->subgraphs[route->steps[k]], routes->candidates[route->steps[k]]);
    out_plan->calls = calls;
    out_plan->call_count = route->count;
    return sl_plan_lay_out(out_plan, calls, comparison->request->optimizer_states, err);
}

/* *out_timed false: they could not be timed, or there is no time for it. */
static seqlstm_status time_both(struct comparison *comparison, bool *out_timed, struct seqlstm_error *err)
{
    const struct sl_tuning *tuning = comparison->request->tuner->tuning;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_plan plans[2];
    for (int w = 0; w < 2; w++)
        SEQLSTM_TRY(lay_out(comparison, &comparison->pair[w], &plans[w], err));
    const struct sl_whole_steps_request request = {.plans = {&plans[0], &plans[1]},
                                                   .tuning = tuning,
                                                   .optimizer_states = comparison->request->optimizer_states,
                                                   .seconds = tuning->seconds * SL_TUNER_WHOLE_STEPS_SHARE};
    sl_log_printf(tuning->log, SL_LOG_STATUS, "measuring whole steps of the two best plans (once; the result is kept)");
    seqlstm_status status = tuning->time_whole_steps(&request, comparison->ns, &why);
    *out_timed = status == SEQLSTM_OK && comparison->ns[0] > 0 && comparison->ns[1] > 0;
    if (status == SEQLSTM_CANCELLED) {
        if (err)
            *err = why;
        return status;
    }
    if (status != SEQLSTM_OK)
        sl_log_printf(tuning->log, SL_LOG_DEBUG, "whole steps of the best two plans are not timed: %s", why.message);
    for (int w = 0; w < 2; w++) /* the cache stores tenths: whole numbers stay the same */
        comparison->ns[w] = floor(comparison->ns[w] + 0.5);
    return *out_timed ? keep(comparison, err) : SEQLSTM_OK;
}

/* ---- the decision ---- */

/* If whole steps tie, the times of the operations decide, which are more precise. */
static int find_winner(const struct comparison *comparison)
{
    return comparison->ns[1] < (1 - unsure) * comparison->ns[0] ? 1 : 0;
}

static seqlstm_status describe(const struct comparison *comparison, int winner, enum sl_cost_source source,
                               struct sl_whole_steps *out, struct seqlstm_error *err)
{
    const struct sl_candidate_routes *routes = comparison->request->routes;
    const struct sl_route *other = &comparison->pair[1 - winner];
    struct sl_plan_choice *choices =
        SL_ARENA_ARRAY(comparison->request->frame->arena, struct sl_plan_choice, (size_t)other->count);
    if (choices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    *out = (struct sl_whole_steps){.source = source,
                                   .chosen_ns = comparison->ns[winner],
                                   .other_ns = comparison->ns[1 - winner],
                                   .other = choices,
                                   .overturned = winner == 1};
    for (int32_t k = 0; k < other->count; k++) {
        const struct sl_candidate *candidate = routes->candidates[other->steps[k]];
        if (!sl_route_has_step(&comparison->pair[winner], other->steps[k]))
            choices[out->other_count++] =
                (struct sl_plan_choice){.node = routes->subgraphs[other->steps[k]]->node->name,
                                        .backend = sl_backend_get_id(candidate->backend),
                                        .variant = candidate->variant,
                                        .phase = comparison->request->frame->graph->phase};
    }
    return SEQLSTM_OK;
}

static seqlstm_status compare(struct comparison *comparison, int *out_winner, struct sl_whole_steps *out,
                              struct seqlstm_error *err)
{
    SEQLSTM_TRY(find_rival(comparison, err));
    if (comparison->pair[1].count == 0)
        return SEQLSTM_OK;
    find_keys(comparison);
    bool known = recall(comparison);
    const enum sl_cost_source source = known ? SL_COST_CACHED : SL_COST_MEASURED;
    if (!known)
        SEQLSTM_TRY(time_both(comparison, &known, err));
    if (!known)
        return SEQLSTM_OK;
    *out_winner = find_winner(comparison);
    return describe(comparison, *out_winner, source, out, err);
}

seqlstm_status sl_whole_steps_compare(const struct sl_whole_steps_setup *request, struct sl_route *io_route,
                                      struct sl_whole_steps *out_steps, struct seqlstm_error *err)
{
    const struct sl_tuning *tuning = request->tuner->tuning;
    struct comparison comparison = {.request = request, .pair = {*io_route, {0}}};
    int winner = 0;
    if (tuning == NULL || tuning->time_whole_steps == NULL || !tuning->measure ||
        !is_measured(request->routes, io_route))
        return SEQLSTM_OK;
    seqlstm_status status = compare(&comparison, &winner, out_steps, err);
    *io_route = comparison.pair[winner];
    free(comparison.pair[1 - winner].steps);
    return status;
}

/* ---- stored ---- */

static bool is_same(const struct sl_call *call, const struct sl_plan_choice *choice)
{
    return strcmp(choice->node, call->node->name) == 0 &&
           strcmp(choice->backend, sl_backend_get_id(call->backend)) == 0 &&
           strcmp(choice->variant, call->variant) == 0;
}

/* Is the plan the stored one, and not the one that it was compared with? */
static bool is_followed(const struct sl_plan_request *request, const struct sl_plan *plan)
{
    const struct sl_whole_steps *comparison = request->stored_whole_steps;
    int32_t count = 0;
    for (int32_t i = 0; i < request->stored_count; i++)
        count += request->stored[i].phase == plan->graph->phase;
    for (int32_t c = 0; c < plan->call_count; c++) {
        bool stored = false;
        for (int32_t i = 0; i < request->stored_count && !stored; i++)
            stored = request->stored[i].phase == plan->graph->phase && is_same(&plan->calls[c], &request->stored[i]);
        for (int32_t k = 0; k < comparison->other_count; k++)
            stored = stored && !is_same(&plan->calls[c], &comparison->other[k]);
        if (!stored)
            return false;
    }
    return count == plan->call_count;
}

seqlstm_status sl_whole_steps_replay(const struct sl_plan_request *request, struct sl_plan *plan,
                                     struct seqlstm_error *err)
{
    const struct sl_whole_steps *stored = request->stored_whole_steps;
    if (stored == NULL || !is_followed(request, plan))
        return SEQLSTM_OK;
    struct sl_plan_choice *choices = SL_ARENA_ARRAY(plan->arena, struct sl_plan_choice, (size_t)stored->other_count);
    bool complete = choices != NULL;
    for (int32_t k = 0; k < stored->other_count && complete; k++) {
        const struct sl_plan_choice *from = &stored->other[k];
        choices[k] = (struct sl_plan_choice){.node = sl_arena_strdup(plan->arena, from->node),
                                             .backend = sl_arena_strdup(plan->arena, from->backend),
                                             .variant = sl_arena_strdup(plan->arena, from->variant),
                                             .phase = from->phase};
        complete = choices[k].node && choices[k].backend && choices[k].variant;
    }
    if (!complete)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    plan->whole_steps = *stored;
    plan->whole_steps.source = SL_COST_STORED;
    plan->whole_steps.other = choices;
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* graph + registry -> plan:
 *
 *   1. candidate.c         asks every backend about every operation
 *   2. constraint.c        excludes candidates by pins, stored choices and --backend
 *   3. tune.c              gives each candidate a cost
 *   4. route.c             finds the cheapest route through the graph
 *   5. whole_steps.c       compares it with the second-best one, if that is close
 *   6. layout.c, touched.c place the buffers and predict the memory
 *
 * If an operation refuses when it is created, its candidate is excluded, and step 4 is repeated.
 */
#include "dispatch/planner.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "dispatch/candidate/candidate.h"
#include "dispatch/failure.h"
#include "dispatch/route/loop_domain.h"
#include "dispatch/memory/layout.h"
#include "dispatch/route/constraint.h"
#include "dispatch/cost/refusal_cost.h"
#include "dispatch/route/whole_steps.h"
#include "dispatch/memory/sizes.h"
#include "dispatch/memory/touched.h"
#include "dispatch/cost/tune.h"
#include "dispatch/route/candidate_routes.h"

struct planner {
    const struct sl_plan_request *request;
    const struct sl_graph *graph;
    enum sl_dispatch_policy policy;
    struct sl_plan *plan;
    struct sl_call *calls;
    struct sl_vector_call *vectors;
    struct sl_backend **listed; /* in order, the forced one first */
    uint32_t listed_count;
    struct sl_subgraphs subgraphs;
    struct sl_tuner tuner;
    struct sl_candidate_routes routes;
    struct seqlstm_error *err;
};

static seqlstm_status no_memory(struct planner *p)
{
    SEQLSTM_FAIL(p->err, SEQLSTM_NO_MEMORY, "no memory for the plan");
}

static seqlstm_status list_backends(struct planner *p)
{
    uint32_t count = sl_registry_get_backend_count(p->request->registry);
    p->listed = SL_ARENA_ARRAY(p->plan->arena, struct sl_backend *, count + 1);
    if (p->listed == NULL)
        return no_memory(p);
    const char *forced = p->request->forced_backend;
    struct sl_backend *first = forced ? sl_registry_find_backend(p->request->registry, forced) : NULL;
    if (forced && first == NULL)
        return sl_registry_fail_unloaded(p->request->registry, forced, p->err);
    if (first)
        p->listed[p->listed_count++] = first;
    for (uint32_t b = 0; b < count; b++) {
        struct sl_backend *backend = sl_registry_get_backend(p->request->registry, b);
        if (backend != first)
            p->listed[p->listed_count++] = backend;
    }
    return p->listed_count > 0 ? SEQLSTM_OK : sl_failure_no_backend(p->graph, p->request->registry, p->err);
}

/* Lists the other candidates: other backends, and other variants of this one. */
static seqlstm_status list_rivals(struct planner *p, const struct sl_subgraph *subgraph,
                                  const struct sl_candidate *chosen, struct sl_call *call)
{
    struct sl_rival *rivals = SL_ARENA_ARRAY(p->plan->arena, struct sl_rival, (size_t)subgraph->candidate_count + 1);
    if (rivals == NULL)
        return no_memory(p);
    for (int32_t c = 0; c < subgraph->candidate_count; c++) {
        const struct sl_candidate *candidate = &subgraph->candidates[c];
        if (candidate != chosen && !candidate->excluded)
            rivals[call->rival_count++] =
                (struct sl_rival){sl_backend_get_id(candidate->backend), candidate->variant, candidate->cost};
    }
    call->rivals = rivals;
    return SEQLSTM_OK;
}

/* Turns a chosen candidate into the next call. */
static seqlstm_status add_call(struct planner *p, struct sl_subgraph *subgraph, struct sl_candidate *candidate)
{
    struct sl_call *call = &p->calls[p->plan->call_count++];
    *call = sl_candidate_make_call(subgraph, candidate);
    candidate->op = NULL;
    SEQLSTM_TRY(list_rivals(p, subgraph, candidate, call));
    if (call->fallback && p->graph->model->dispatch.fallback == SL_FALLBACK_ERROR)
        return sl_failure_fallback(p->graph, call, p->err);
    return sl_subgraph_find_refusal_costs(&p->tuner, p->policy, subgraph, &call->cost, p->err);
}

/* ---- the route ---- */

static seqlstm_status follow_route(struct planner *p, const struct sl_route *route)
{
    for (int32_t k = 0; k < route->count; k++)
        SEQLSTM_TRY(add_call(p, p->routes.subgraphs[route->steps[k]], p->routes.candidates[route->steps[k]]));
    return SEQLSTM_OK;
}

/* The subgraph whose refusals explain why no route gets past a node: the node's own. If it is pinned, the widest
 * subgraph that contains it, since some variants run only whole stacks. */
static const struct sl_subgraph *find_stuck(const struct planner *p, int32_t node)
{
    const struct sl_subgraph *found = &p->subgraphs.items[node];
    for (int32_t i = 0; found->pin && i < p->subgraphs.count; i++) {
        const struct sl_subgraph *subgraph = &p->subgraphs.items[i];
        if (subgraph->first <= node && node < subgraph->first + subgraph->count && subgraph->count > found->count)
            found = subgraph;
    }
    return found;
}

/* One search. *out_open false: an op refused when it was created; another route may exist. */
static seqlstm_status search_route(struct planner *p, struct sl_route *route, bool *out_open)
{
    sl_candidate_routes_deinit(&p->routes);
    free(route->steps);
    *route = (struct sl_route){.stuck = -1};
    SEQLSTM_TRY(sl_candidate_routes_init(&p->routes, &p->subgraphs, p->err));
    seqlstm_status status = p->policy == SL_POLICY_ORDER ? sl_route_find_first(&p->routes.problem, route, p->err)
                                                         : sl_route_find_cheapest(&p->routes.problem, route, p->err);
    if (status == SEQLSTM_UNSUPPORTED && route->stuck >= 0)
        return sl_failure_refused(p->graph, p->request->registry, find_stuck(p, route->stuck), p->err);
    SEQLSTM_TRY(status);
    return sl_candidate_routes_open(&p->routes, &p->subgraphs, route, out_open, p->err);
}

/* Finds the candidates and their costs. */
static seqlstm_status price(struct planner *p)
{
    SEQLSTM_TRY(sl_subgraphs_create(p->plan->arena, p->graph, p->listed, p->listed_count, &p->subgraphs, p->err));
    p->subgraphs.threads = p->plan->threads;
    SEQLSTM_TRY(sl_subgraphs_constrain(&p->subgraphs, p->request, p->err));
    SEQLSTM_TRY(sl_tuner_init(&p->tuner, &p->subgraphs, p->request->tuning, p->err));
    if (p->policy != SL_POLICY_ORDER)
        SEQLSTM_TRY(sl_tuner_price_all(&p->tuner, p->policy, p->err));
    return sl_subgraphs_settle_loop(&p->subgraphs, p->err);
}

/* Chooses a backend for each operation of the update: the first in the list that accepts it. */
static seqlstm_status choose_vectors(struct planner *p)
{
    for (int32_t v = 0; v < p->graph->vector_op_count; v++) {
        const union seqlstm_any_desc *desc = &p->graph->vector_ops[v];
        struct sl_subgraph subgraph;
        struct sl_candidate *chosen = NULL;
        SEQLSTM_TRY(sl_subgraph_ask(&p->subgraphs, NULL, desc, &subgraph, p->err));
        for (int32_t c = 0; c < subgraph.candidate_count && !chosen; c++) {
            SEQLSTM_TRY(sl_subgraph_open_candidate(&p->subgraphs, &subgraph, desc, &subgraph.candidates[c], p->err));
            chosen = subgraph.candidates[c].excluded ? NULL : &subgraph.candidates[c];
        }
        if (chosen == NULL) {
            struct sl_node node = {.name = "update", .layer = -1, .desc = *desc};
            subgraph.node = &node;
            return sl_failure_refused(p->graph, p->request->registry, &subgraph, p->err);
        }
        p->vectors[p->plan->vector_count++] = (struct sl_vector_call){.desc = desc,
                                                                      .backend = chosen->backend,
                                                                      .device = chosen->device,
                                                                      .op = chosen->op,
                                                                      .sizes = chosen->sizes};
    }
    return SEQLSTM_OK;
}

/* The cheapest route, or the second-best if it is faster in whole steps. */
static seqlstm_status choose_route(struct planner *p, struct sl_route *route)
{
    for (bool open = false; !open;)
        SEQLSTM_TRY(search_route(p, route, &open));
    SEQLSTM_TRY(choose_vectors(p));
    const struct sl_whole_steps_setup steps = {
        .routes = &p->routes, .tuner = &p->tuner, .frame = p->plan, .optimizer_states = p->request->optimizer_states};
    return p->policy == SL_POLICY_MEASURED ? sl_whole_steps_compare(&steps, route, &p->plan->whole_steps, p->err)
                                           : SEQLSTM_OK;
}

static seqlstm_status choose_calls(struct planner *p)
{
    struct sl_route route = {.stuck = -1};
    SEQLSTM_TRY(price(p));
    seqlstm_status status = choose_route(p, &route);
    if (status == SEQLSTM_OK)
        status = follow_route(p, &route);
    free(route.steps);
    SEQLSTM_TRY(status);
    SEQLSTM_TRY(sl_whole_steps_replay(p->request, p->plan, p->err));
    const struct sl_profiles *profiles = p->request->tuning ? p->request->tuning->profiles : NULL;
    return sl_sizes_profile(p->graph, profiles, p->calls, p->plan->call_count, p->err);
}

static seqlstm_status make(struct planner *p)
{
    SEQLSTM_TRY(list_backends(p));
    p->calls = SL_ARENA_ARRAY(p->plan->arena, struct sl_call, (size_t)p->graph->node_count);
    p->vectors = SL_ARENA_ARRAY(p->plan->arena, struct sl_vector_call, (size_t)p->graph->vector_op_count);
    if (p->calls == NULL || p->vectors == NULL)
        return no_memory(p);
    p->plan->calls = p->calls;
    p->plan->vectors = p->vectors;
    p->plan->policy = p->policy;
    p->plan->replayed = sl_plan_request_is_replay(p->request);
    int64_t start = sl_clock_ns();
    SEQLSTM_TRY(choose_calls(p));
    p->plan->timed = p->tuner.timed;
    bool compared = p->plan->whole_steps.source == SL_COST_MEASURED;
    p->plan->timed_seconds = p->tuner.timed > 0 || compared ? (double)(sl_clock_ns() - start) * 1e-9 : 0;
    SEQLSTM_TRY(sl_plan_list_devices(p->plan, p->err));
    SEQLSTM_TRY(sl_plan_lay_out(p->plan, p->calls, p->request->optimizer_states, p->err));
    return sl_touched_count(p->plan, p->request->tuning ? p->request->tuning->profiles : NULL, p->err);
}

seqlstm_status sl_plan_create(const struct sl_plan_request *request, struct sl_plan **out_plan,
                              struct seqlstm_error *err)
{
    struct sl_arena *arena = malloc(sizeof *arena);
    if (arena == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    sl_arena_init(arena);
    struct sl_plan *plan = SL_ARENA_NEW(arena, struct sl_plan);
    if (plan == NULL) {
        free(arena);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    }
    plan->arena = arena;
    plan->graph = request->graph;
    plan->threads = request->threads;
    struct planner planner = {.request = request,
                              .graph = request->graph,
                              .plan = plan,
                              .err = err,
                              .policy = request->graph->model->dispatch.policy};
    seqlstm_status status = make(&planner);
    sl_candidate_routes_deinit(&planner.routes);
    sl_subgraphs_destroy(&planner.subgraphs);
    sl_tuner_deinit(&planner.tuner);
    if (status != SEQLSTM_OK) {
        sl_plan_destroy(plan);
        return status;
    }
    *out_plan = plan;
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* graph + registry -> plan. Policy `order`: for each operation the first listed backend that accepts it; an
 * alternative is taken where a backend at least as early in the list accepts it as those that would run the
 * operations it stands for. Pins, stored choices and a forced backend come before.
 */
#include "dispatch/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/op_signature.h"
#include "dispatch/choice.h"
#include "dispatch/plan_layout.h"

struct planner {
    const struct sl_plan_request *request;
    const struct sl_graph *graph;
    struct sl_plan *plan;
    struct sl_call *calls;
    struct sl_vector_call *vectors;
    struct sl_backend **listed; /* in order, the forced one first */
    uint32_t listed_count;
    struct sl_backend *one;     /* storage of a candidate list of one */
    char variant[64];
    struct seqlstm_error *err;
};

static seqlstm_status no_memory(struct planner *p)
{
    SEQLSTM_FAIL(p->err, SEQLSTM_NO_MEMORY, "no memory for the plan");
}

/* Fails with the place of the node's layer in `where`. */
static seqlstm_status fail_at(struct planner *p, const struct sl_node *node, struct sl_place place,
                              const char *text)
{
    if (place.line == 0 && node && node->layer >= 0)
        place = p->graph->model->layers[node->layer].place;
    seqlstm_error_set(p->err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "%s", text);
    if (p->err && place.line > 0)
        snprintf(p->err->where, sizeof p->err->where, "%s:%d:%d", place.file, place.line, place.column);
    return SEQLSTM_UNAVAILABLE;
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
        SEQLSTM_FAIL(p->err, SEQLSTM_UNAVAILABLE,
                     "the backend `%s` is not loaded; `seqlstm backends -v` says why", forced);
    if (first)
        p->listed[p->listed_count++] = first;
    for (uint32_t b = 0; b < count; b++) {
        struct sl_backend *backend = sl_registry_get_backend(p->request->registry, b);
        if (backend != first)
            p->listed[p->listed_count++] = backend;
    }
    if (p->listed_count == 0)
        SEQLSTM_FAIL(p->err, SEQLSTM_UNAVAILABLE,
                     "no backend is loaded; `seqlstm backends -v` says which were looked for and why not");
    return SEQLSTM_OK;
}

static const struct sl_pin *find_pin(const struct planner *p, const struct sl_node *node)
{
    if (node->layer < 0)
        return NULL;
    const struct sl_dispatch_config *dispatch = &p->graph->model->dispatch;
    for (size_t i = 0; i < dispatch->pin_count; i++)
        if (strcmp(dispatch->pins[i].layer, p->graph->model->layers[node->layer].name) == 0)
            return &dispatch->pins[i];
    return NULL;
}

static const struct sl_plan_choice *find_stored(const struct planner *p, const char *name)
{
    for (int32_t i = 0; i < p->request->stored_count; i++)
        if (strcmp(p->request->stored[i].node, name) == 0)
            return &p->request->stored[i];
    return NULL;
}

/* The candidate list of one backend, "id" or "id:variant". */
static seqlstm_status narrow(struct planner *p, const char *id, size_t id_bytes, const char *variant,
                             struct sl_candidates *out)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)id_bytes, id);
    p->one = sl_registry_find_backend(p->request->registry, name);
    if (p->one == NULL)
        SEQLSTM_FAIL(p->err, SEQLSTM_UNAVAILABLE,
                     "the backend `%s` is not loaded; `seqlstm backends -v` says why", name);
    snprintf(p->variant, sizeof p->variant, "%s", variant);
    *out = (struct sl_candidates){.backends = &p->one, .count = 1,
                                  .variant = variant[0] ? p->variant : NULL, .pinned = true};
    return SEQLSTM_OK;
}

static seqlstm_status get_candidates(struct planner *p, const struct sl_node *node,
                                     struct sl_candidates *out)
{
    *out = (struct sl_candidates){.backends = p->listed, .count = p->listed_count};
    const struct sl_pin *pin = find_pin(p, node);
    if (pin) {
        const char *colon = strchr(pin->backend, ':');
        size_t bytes = colon ? (size_t)(colon - pin->backend) : strlen(pin->backend);
        return narrow(p, pin->backend, bytes, colon ? colon + 1 : "", out);
    }
    const struct sl_plan_choice *stored = find_stored(p, node->name);
    if (stored)
        return narrow(p, stored->backend, strlen(stored->backend), stored->variant, out);
    return SEQLSTM_OK;
}

static bool is_fallback(const struct sl_choice *choice)
{
    for (int32_t r = 0; r < choice->refusal_count; r++)
        if (!(choice->refusals[r].code & SEQLSTM_REFUSED_OPERATION))
            return true;
    return false;
}

/* Turns a made choice into the next call. */
static seqlstm_status add_call(struct planner *p, const struct sl_node *node, int32_t first,
                               int32_t count, const struct sl_choice *choice)
{
    struct sl_call *call = &p->calls[p->plan->call_count++];
    *call = (struct sl_call){.node = node, .node_first = first, .node_count = count,
                             .backend = choice->backend, .device = choice->device,
                             .variant = choice->variant, .op = choice->op,
                             .refusals = choice->refusals, .refusal_count = choice->refusal_count,
                             .fallback = is_fallback(choice)};
    call->sizes.struct_size = sizeof call->sizes;
    SEQLSTM_TRY(sl_backend_get_table(call->backend)->op_sizes(call->op, &call->sizes, p->err));
    if (call->fallback && p->graph->model->dispatch.fallback == SL_FALLBACK_ERROR) {
        struct sl_buf buf = {0};
        sl_buf_printf(&buf, "`%s` falls back to %s, and `dispatch.fallback: error` forbids it: ", node->name,
                      sl_backend_get_id(call->backend));
        sl_choice_write_refusals(&buf, call->refusals, call->refusal_count);
        seqlstm_status status =
            fail_at(p, node, call->refusals[0].place, buf.failed ? "a layer falls back" : buf.data);
        sl_buf_deinit(&buf);
        return status;
    }
    return SEQLSTM_OK;
}

static seqlstm_status refuse(struct planner *p, const struct sl_node *node,
                             const struct sl_candidates *candidates, const struct sl_choice *choice)
{
    struct sl_buf buf = {0};
    sl_buf_printf(&buf, "%s runs `%s` (%s): ",
                  candidates->pinned ? "the backend it is pinned to does not run; no other"
                                     : "no listed backend",
                  node->name, sl_op_name(node->desc.head.op));
    sl_choice_write_refusals(&buf, choice->refusals, choice->refusal_count);
    struct sl_place none = {0};
    seqlstm_status status =
        fail_at(p, node, choice->refusal_count ? choice->refusals[0].place : none,
                buf.failed ? "no listed backend runs an operation of the model" : buf.data);
    sl_buf_deinit(&buf);
    return status;
}

/* Takes an alternative that starts at node `first`, if it is worth it. */
static seqlstm_status try_alternative(struct planner *p, int32_t first, int32_t *out_taken)
{
    *out_taken = 0;
    for (int32_t a = 0; a < p->graph->alternative_count; a++) {
        const struct sl_alternative *alternative = &p->graph->alternatives[a];
        if (alternative->first != first)
            continue;
        struct sl_candidates candidates;
        SEQLSTM_TRY(get_candidates(p, &alternative->node, &candidates));
        if (p->request->stored_count && !find_stored(p, alternative->node.name))
            continue; /* the stored plan ran the nodes apart */
        struct sl_choice choice;
        SEQLSTM_TRY(sl_choice_make(p->plan->arena, p->graph, &alternative->node,
                                   &alternative->node.desc, &candidates, &choice, p->err));
        if (!choice.found)
            continue;
        uint32_t best = UINT32_MAX;
        for (int32_t n = first; n < first + alternative->count; n++) {
            struct sl_candidates own;
            uint32_t rank;
            seqlstm_status status = get_candidates(p, &p->graph->nodes[n], &own);
            if (status == SEQLSTM_OK)
                status = sl_choice_rank(&p->graph->nodes[n].desc, &own, &rank, p->err);
            if (status != SEQLSTM_OK) {
                sl_backend_get_table(choice.backend)->op_destroy(choice.op);
                return status;
            }
            if (rank < best)
                best = rank;
        }
        if (choice.rank > best) {
            sl_backend_get_table(choice.backend)->op_destroy(choice.op);
            continue;
        }
        *out_taken = alternative->count;
        return add_call(p, &alternative->node, first, alternative->count, &choice);
    }
    return SEQLSTM_OK;
}

static seqlstm_status choose_calls(struct planner *p)
{
    int32_t n = 0;
    while (n < p->graph->node_count) {
        int32_t taken;
        SEQLSTM_TRY(try_alternative(p, n, &taken));
        if (taken == 0) {
            const struct sl_node *node = &p->graph->nodes[n];
            struct sl_candidates candidates;
            struct sl_choice choice;
            SEQLSTM_TRY(get_candidates(p, node, &candidates));
            SEQLSTM_TRY(sl_choice_make(p->plan->arena, p->graph, node, &node->desc, &candidates,
                                       &choice, p->err));
            if (!choice.found)
                return refuse(p, node, &candidates, &choice);
            SEQLSTM_TRY(add_call(p, node, n, 1, &choice));
            taken = 1;
        }
        n += taken;
    }
    return SEQLSTM_OK;
}

static seqlstm_status choose_vectors(struct planner *p)
{
    struct sl_candidates candidates = {.backends = p->listed, .count = p->listed_count};
    for (int32_t v = 0; v < p->graph->vector_op_count; v++) {
        const union seqlstm_any_desc *desc = &p->graph->vector_ops[v];
        struct sl_choice choice;
        SEQLSTM_TRY(sl_choice_make(p->plan->arena, p->graph, NULL, desc, &candidates, &choice, p->err));
        if (!choice.found) {
            struct sl_node node = {.name = "update", .layer = -1, .desc = *desc};
            return refuse(p, &node, &candidates, &choice);
        }
        struct sl_vector_call *call = &p->vectors[p->plan->vector_count++];
        *call = (struct sl_vector_call){.desc = desc, .backend = choice.backend, .device = choice.device,
                                        .op = choice.op};
        call->sizes.struct_size = sizeof call->sizes;
        SEQLSTM_TRY(sl_backend_get_table(call->backend)->op_sizes(call->op, &call->sizes, p->err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status make(struct planner *p)
{
    SEQLSTM_TRY(list_backends(p));
    p->calls = SL_ARENA_ARRAY(p->plan->arena, struct sl_call, (size_t)p->graph->node_count);
    p->vectors =
        SL_ARENA_ARRAY(p->plan->arena, struct sl_vector_call, (size_t)p->graph->vector_op_count);
    if (p->calls == NULL || p->vectors == NULL)
        return no_memory(p);
    p->plan->calls = p->calls;
    p->plan->vectors = p->vectors;
    SEQLSTM_TRY(choose_calls(p));
    SEQLSTM_TRY(choose_vectors(p));
    SEQLSTM_TRY(sl_plan_list_devices(p->plan, p->err));
    return sl_plan_lay_out(p->plan, p->calls, p->request->optimizer_states, p->err);
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
    struct planner planner = {.request = request, .graph = request->graph, .plan = plan, .err = err};
    seqlstm_status status = make(&planner);
    if (status != SEQLSTM_OK) {
        sl_plan_destroy(plan);
        return status;
    }
    *out_plan = plan;
    return SEQLSTM_OK;
}

void sl_plan_destroy(struct sl_plan *plan)
{
    if (plan == NULL)
        return;
    for (int32_t c = 0; c < plan->call_count; c++)
        sl_backend_get_table(plan->calls[c].backend)->op_destroy(plan->calls[c].op);
    for (int32_t v = 0; v < plan->vector_count; v++)
        sl_backend_get_table(plan->vectors[v].backend)->op_destroy(plan->vectors[v].op);
    struct sl_arena *arena = plan->arena;
    sl_arena_deinit(arena);
    free(arena);
}

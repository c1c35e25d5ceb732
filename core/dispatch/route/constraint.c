/* SPDX-License-Identifier: Apache-2.0 */
/* See constraint.h. */
#include "dispatch/plan/request.h"
#include "base/value/error_place.h"
#include "dispatch/route/constraint.h"

#include <stdio.h>
#include <string.h>

#include "base/value/buf.h"

/* The backend, and perhaps the variant, that a subgraph is restricted to. */
struct wish {
    const char *backend;
    size_t backend_bytes;
    const char *variant;   /* "": any */
    struct sl_place place; /* line 0: none */
};

static bool is_wished(const struct wish *wish, const struct sl_candidate *candidate)
{
    const char *id = sl_backend_get_id(candidate->backend);
    return strlen(id) == wish->backend_bytes && memcmp(id, wish->backend, wish->backend_bytes) == 0 &&
           (wish->variant[0] == '\0' || strcmp(wish->variant, candidate->variant) == 0);
}

static bool is_loaded(const struct sl_subgraphs *subgraphs, const struct wish *wish)
{
    for (uint32_t b = 0; b < subgraphs->listed_count; b++) {
        const char *id = sl_backend_get_id(subgraphs->listed[b]);
        if (strlen(id) == wish->backend_bytes && memcmp(id, wish->backend, wish->backend_bytes) == 0)
            return true;
    }
    return false;
}

static void exclude_all(struct sl_subgraph *subgraph)
{
    for (int32_t c = 0; c < subgraph->candidate_count; c++)
        subgraph->candidates[c].excluded = true;
}

/* Excludes all other candidates. A backend that accepts the subgraph, but lacks the variant, counts as refusing. */
static seqlstm_status insist(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph,
                             const struct wish *wish, struct seqlstm_error *err)
{
    if (!is_loaded(subgraphs, wish)) {
        seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__,
                          "the backend `%.*s` is not loaded; `seqlstm backends -v` shows why", (int)wish->backend_bytes,
                          wish->backend);
        if (wish->place.line > 0)
            sl_error_place_set(err, wish->place.file, wish->place.line, wish->place.column);
        return SEQLSTM_UNAVAILABLE;
    }
    subgraph->pin = wish->backend;
    subgraph->pin_place = wish->place;
    struct sl_candidate *other = NULL; /* of the wished backend, with another variant */
    bool found = false;
    struct wish any = *wish;
    any.variant = "";
    for (int32_t c = 0; c < subgraph->candidate_count; c++) {
        struct sl_candidate *candidate = &subgraph->candidates[c];
        found = found || is_wished(wish, candidate);
        if (is_wished(&any, candidate) && !other)
            other = candidate;
        candidate->excluded = candidate->excluded || !is_wished(wish, candidate);
    }
    int32_t kept = 0; /* refusals of other backends do not matter */
    for (int32_t r = 0; r < subgraph->refusal_count; r++)
        if (strlen(subgraph->refusals[r].backend) == wish->backend_bytes &&
            memcmp(subgraph->refusals[r].backend, wish->backend, wish->backend_bytes) == 0)
            subgraph->refusals[kept++] = subgraph->refusals[r];
    subgraph->refusal_count = kept;
    if (found || other == NULL)
        return SEQLSTM_OK;
    struct sl_buf reason = {0};
    sl_buf_printf(&reason, "it has no variant `%s` for this operation; it has", wish->variant);
    for (int32_t c = 0, listed = 0; c < subgraph->candidate_count; c++)
        if (is_wished(&any, &subgraph->candidates[c]) && subgraph->candidates[c].device == other->device)
            sl_buf_printf(&reason, "%s `%s`", listed++ ? "," : "", subgraph->candidates[c].variant);
    seqlstm_status status = sl_subgraph_refuse_candidate(subgraphs, subgraph, other, sl_buf_text(&reason), err);
    sl_buf_deinit(&reason);
    return status;
}

static const struct sl_pin *find_pin(const struct sl_subgraphs *subgraphs, const struct sl_subgraph *subgraph)
{
    const struct sl_model *model = subgraphs->graph->model;
    for (size_t i = 0; subgraph->node->layer >= 0 && i < model->dispatch.pin_count; i++)
        if (strcmp(model->dispatch.pins[i].layer, model->layers[subgraph->node->layer].name) == 0)
            return &model->dispatch.pins[i];
    return NULL;
}

static seqlstm_status follow_pin(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph,
                                 const struct sl_pin *pin, struct seqlstm_error *err)
{
    const char *colon = strchr(pin->backend, ':');
    struct wish wish = {.backend = pin->backend,
                        .backend_bytes = colon ? (size_t)(colon - pin->backend) : strlen(pin->backend),
                        .variant = colon ? colon + 1 : "",
                        .place = pin->place};
    return insist(subgraphs, subgraph, &wish, err);
}

/* ---- stored choices ---- */

bool sl_plan_request_is_replay(const struct sl_plan_request *request)
{
    for (int32_t i = 0; i < request->stored_count; i++)
        if (request->stored[i].phase == request->graph->phase)
            return true;
    return false;
}

static const struct sl_plan_choice *find_stored(const struct sl_plan_request *request,
                                                const struct sl_subgraph *subgraph, bool binding)
{
    for (int32_t i = 0; i < request->stored_count; i++) {
        const struct sl_plan_choice *choice = &request->stored[i];
        if ((!binding || choice->phase == request->graph->phase) && strcmp(choice->node, subgraph->node->name) == 0)
            return choice;
    }
    return NULL;
}

static bool is_within(const struct sl_subgraph *inner, const struct sl_subgraph *outer)
{
    return inner->first >= outer->first && inner->first + inner->count <= outer->first + outer->count;
}

/* Does the stored plan run the nodes of the subgraph in a larger subgraph, or in smaller ones? */
static bool is_run_otherwise(const struct sl_subgraphs *subgraphs, const struct sl_plan_request *request,
                             const struct sl_subgraph *subgraph, bool binding)
{
    for (int32_t i = 0; i < subgraphs->count; i++) {
        const struct sl_subgraph *other = &subgraphs->items[i];
        if (other != subgraph && (is_within(subgraph, other) || is_within(other, subgraph)) &&
            find_stored(request, other, binding) && (binding || sl_subgraph_count_candidates(other) > 0))
            return true;
    }
    return false;
}

static seqlstm_status follow_stored(const struct sl_subgraphs *subgraphs, const struct sl_plan_request *request,
                                    struct sl_subgraph *subgraph, bool binding, struct seqlstm_error *err)
{
    const struct sl_plan_choice *choice = find_stored(request, subgraph, binding);
    /* the stored plan was made before quantization */
    if (subgraph->node->is_quantized)
        return SEQLSTM_OK;
    if (choice == NULL) {
        if (is_run_otherwise(subgraphs, request, subgraph, binding))
            exclude_all(subgraph);
        return SEQLSTM_OK;
    }
    struct wish wish = {
        .backend = choice->backend, .backend_bytes = strlen(choice->backend), .variant = choice->variant};
    if (binding)
        return insist(subgraphs, subgraph, &wish, err);
    bool found = false;
    for (int32_t c = 0; c < subgraph->candidate_count; c++)
        found = found || is_wished(&wish, &subgraph->candidates[c]);
    for (int32_t c = 0; found && c < subgraph->candidate_count; c++)
        subgraph->candidates[c].excluded = !is_wished(&wish, &subgraph->candidates[c]);
    return SEQLSTM_OK;
}

/* ---- --backend ---- */

static bool has_candidate_of(const struct sl_subgraph *subgraph, const struct sl_backend *backend)
{
    for (int32_t c = 0; c < subgraph->candidate_count; c++)
        if (subgraph->candidates[c].backend == backend && !subgraph->candidates[c].excluded)
            return true;
    return false;
}

/* Gives the forced backend every node that it can run, alone or together with other nodes. */
static void force(struct sl_subgraphs *subgraphs, const struct sl_backend *forced)
{
    for (int32_t i = 0; i < subgraphs->count; i++) {
        struct sl_subgraph *subgraph = &subgraphs->items[i];
        bool owned = false;
        for (int32_t k = 0; k < subgraphs->count && !owned; k++) {
            const struct sl_subgraph *other = &subgraphs->items[k];
            owned = has_candidate_of(other, forced) && other->first < subgraph->first + subgraph->count &&
                    subgraph->first < other->first + other->count;
        }
        for (int32_t c = 0; owned && !subgraph->pin && c < subgraph->candidate_count; c++)
            if (subgraph->candidates[c].backend != forced)
                subgraph->candidates[c].excluded = true;
    }
}

seqlstm_status sl_subgraphs_constrain(struct sl_subgraphs *subgraphs, const struct sl_plan_request *request,
                                      struct seqlstm_error *err)
{
    bool binding = sl_plan_request_is_replay(request);
    for (int32_t i = 0; i < subgraphs->count; i++) {
        struct sl_subgraph *subgraph = &subgraphs->items[i];
        const struct sl_pin *pin = find_pin(subgraphs, subgraph);
        SEQLSTM_TRY(pin ? follow_pin(subgraphs, subgraph, pin, err)
                        : follow_stored(subgraphs, request, subgraph, binding, err));
    }
    if (request->forced_backend)
        force(subgraphs, sl_registry_find_backend(request->registry, request->forced_backend));
    return SEQLSTM_OK;
}

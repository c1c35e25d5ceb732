/* SPDX-License-Identifier: Apache-2.0 */
/* See candidate.h. */
#include "dispatch/candidate/candidate.h"

#include <string.h>

#include "dispatch/plan/refusal.h"
#include "registry/plugin.h"

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
}

static seqlstm_status note_refusal(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph, uint32_t rank,
                                   const struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    struct sl_option_place option = sl_graph_find_option(subgraphs->graph, subgraph->node, answer->option);
    char value[SL_OPTION_VALUE_BYTES];
    sl_option_place_name_value(&option, answer->option, answer->value, value);
    struct sl_refusal refusal = {
        .backend = sl_backend_get_id(subgraphs->listed[rank]),
        .rank = rank,
        .code = answer->code,
        .option_id = answer->option,
        .option = answer->option == SEQLSTM_OPTION_NONE ? "" : option.key,
        .value = sl_arena_strdup(subgraphs->arena, value),
        .reason = sl_arena_strdup(subgraphs->arena, answer->reason),
        .hint = sl_arena_strdup(subgraphs->arena, answer->hint),
        .place = option.place,
    };
    if (!refusal.value || !refusal.reason || !refusal.hint)
        return no_memory(err);
    int32_t at = subgraph->refusal_count++; /* sorted by the place of the backend in the list */
    for (; at > 0 && subgraph->refusals[at - 1].rank > rank; at--)
        subgraph->refusals[at] = subgraph->refusals[at - 1];
    subgraph->refusals[at] = refusal;
    return SEQLSTM_OK;
}

/* Turns an answer into candidates, one for each variant, or into a refusal. */
static seqlstm_status note_answer(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph, uint32_t rank,
                                  uint32_t device, const struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    if (!answer->accepted)
        return note_refusal(subgraphs, subgraph, rank, answer, err);
    for (uint32_t v = 0; v < answer->variant_count; v++) {
        struct sl_candidate candidate = {.backend = subgraphs->listed[rank],
                                         .rank = rank,
                                         .device = device,
                                         .variant_index = v,
                                         .variant = sl_arena_strdup(subgraphs->arena, answer->variants[v])};
        if (candidate.variant == NULL)
            return no_memory(err);
        subgraph->candidates[subgraph->candidate_count++] = candidate;
    }
    return SEQLSTM_OK;
}

static seqlstm_status ask_all(const struct sl_subgraphs *subgraphs, const union seqlstm_any_desc *desc,
                              struct sl_subgraph *subgraph, struct seqlstm_error *err)
{
    for (uint32_t rank = 0; rank < subgraphs->listed_count; rank++) {
        struct seqlstm_answer answer;
        uint32_t device;
        if (!sl_backend_find_device(subgraphs->listed[rank], &device))
            continue;
        SEQLSTM_TRY(sl_backend_supports(subgraphs->listed[rank], device, &desc->head, &answer, err));
        SEQLSTM_TRY(note_answer(subgraphs, subgraph, rank, device, &answer, err));
    }
    return SEQLSTM_OK;
}

/* Asks for float32 instead, if no backend has the precision of the model. Refusals of the precision stay noted; all
 * other answers are replaced. */
static seqlstm_status ask_in_float32(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph,
                                     struct seqlstm_error *err)
{
    struct sl_node *node = SL_ARENA_NEW(subgraphs->arena, struct sl_node);
    if (node == NULL)
        return no_memory(err);
    *node = *subgraph->node;
    node->desc.head.dtype_compute = SEQLSTM_DTYPE_FLOAT32;
    node->is_quantized = false;
    if (node->desc.head.op == SEQLSTM_OP_RECURRENT)
        node->desc.recurrent.data_scale = node->desc.recurrent.data_shift = 0;
    subgraph->node = node;
    int32_t kept = 0;
    for (int32_t r = 0; r < subgraph->refusal_count; r++)
        if (subgraph->refusals[r].option_id == SEQLSTM_OPTION_DTYPE)
            subgraph->refusals[kept++] = subgraph->refusals[r];
    subgraph->refusal_count = kept;
    return ask_all(subgraphs, &node->desc, subgraph, err);
}

seqlstm_status sl_subgraph_ask(const struct sl_subgraphs *subgraphs, const struct sl_node *node,
                               const union seqlstm_any_desc *desc, struct sl_subgraph *out_subgraph,
                               struct seqlstm_error *err)
{
    size_t most = (size_t)subgraphs->listed_count * SEQLSTM_MAX_VARIANTS;
    struct sl_subgraph subgraph = {.node = node};
    subgraph.candidates = SL_ARENA_ARRAY(subgraphs->arena, struct sl_candidate, most);
    subgraph.refusals = SL_ARENA_ARRAY(subgraphs->arena, struct sl_refusal, most + subgraphs->listed_count);
    if (!subgraph.candidates || !subgraph.refusals)
        return no_memory(err);
    SEQLSTM_TRY(ask_all(subgraphs, desc, &subgraph, err));
    if (subgraph.candidate_count == 0 && node != NULL && desc->head.dtype_compute != SEQLSTM_DTYPE_FLOAT32)
        SEQLSTM_TRY(ask_in_float32(subgraphs, &subgraph, err));
    *out_subgraph = subgraph;
    return SEQLSTM_OK;
}

seqlstm_status sl_subgraphs_create(struct sl_arena *arena, const struct sl_graph *graph,
                                   struct sl_backend *const *listed, uint32_t listed_count,
                                   struct sl_subgraphs *out_subgraphs, struct seqlstm_error *err)
{
    struct sl_subgraphs subgraphs = {.arena = arena, .graph = graph, .listed = listed, .listed_count = listed_count};
    subgraphs.items =
        SL_ARENA_ARRAY(arena, struct sl_subgraph, (size_t)graph->node_count + (size_t)graph->alternative_count);
    if (subgraphs.items == NULL)
        return no_memory(err);
    for (int32_t n = 0; n < graph->node_count; n++) {
        struct sl_subgraph *subgraph = &subgraphs.items[subgraphs.count++];
        SEQLSTM_TRY(sl_subgraph_ask(&subgraphs, &graph->nodes[n], &graph->nodes[n].desc, subgraph, err));
        subgraph->first = n;
        subgraph->count = 1;
    }
    for (int32_t a = 0; a < graph->alternative_count; a++) {
        const struct sl_alternative *alternative = &graph->alternatives[a];
        struct sl_subgraph *subgraph = &subgraphs.items[subgraphs.count++];
        SEQLSTM_TRY(sl_subgraph_ask(&subgraphs, &alternative->node, &alternative->node.desc, subgraph, err));
        subgraph->first = alternative->first;
        subgraph->count = alternative->count;
    }
    *out_subgraphs = subgraphs;
    return SEQLSTM_OK;
}

void sl_subgraphs_destroy(struct sl_subgraphs *subgraphs)
{
    for (int32_t i = 0; i < subgraphs->count; i++)
        for (int32_t c = 0; c < subgraphs->items[i].candidate_count; c++) {
            struct sl_candidate *candidate = &subgraphs->items[i].candidates[c];
            if (candidate->op)
                sl_plugin_destroy_op(sl_backend_get_table(candidate->backend), candidate->op);
            candidate->op = NULL;
        }
}

seqlstm_status sl_subgraph_refuse_candidate(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph,
                                            struct sl_candidate *candidate, const char *reason,
                                            struct seqlstm_error *err)
{
    struct seqlstm_answer answer = {.struct_size = sizeof answer, .code = SEQLSTM_BIT_REFUSED_OPTION};
    snprintf(answer.reason, sizeof answer.reason, "%.255s", reason);
    candidate->excluded = true;
    return note_refusal(subgraphs, subgraph, candidate->rank, &answer, err);
}

/* Says which backend it was, unless the message says so itself. */
static seqlstm_status fail_in(const struct sl_backend *backend, enum sl_plugin_function function, seqlstm_status status,
                              const struct seqlstm_error *why, struct seqlstm_error *err)
{
    const char *id = sl_backend_get_id(backend);
    if (strncmp(why->message, "the backend ", 12) == 0)
        SEQLSTM_FAIL(err, status, "%s", why->message);
    SEQLSTM_FAIL(err, status, "the backend %s failed in %s: %.700s", id, sl_plugin_function_name(function),
                 why->message);
}

/* Asks for the sizes of calls on at most `threads` threads (0: any number). */
static seqlstm_status ask_sizes(const struct sl_backend *backend, const struct seqlstm_op *op, int32_t threads,
                                struct seqlstm_sizes *out_sizes, struct seqlstm_error *err)
{
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes, .members = threads};
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_plugin_get_sizes(sl_backend_get_table(backend), op, &sizes, &why);
    *out_sizes = sizes;
    return status == SEQLSTM_OK ? status : fail_in(backend, SL_FUNCTION_OP_SIZES, status, &why, err);
}

seqlstm_status sl_subgraph_open_candidate(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph,
                                          const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                          struct seqlstm_error *err)
{
    if (candidate->op)
        return SEQLSTM_OK;
    const struct seqlstm_backend *table = sl_backend_get_table(candidate->backend);
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_plugin_create_op(table, sl_backend_get_instance(candidate->backend), candidate->device,
                                                &desc->head, candidate->variant, &candidate->op, &why);
    if (status == SEQLSTM_UNSUPPORTED)
        return sl_subgraph_refuse_candidate(subgraphs, subgraph, candidate, why.message, err);
    if (status != SEQLSTM_OK)
        return fail_in(candidate->backend, SL_FUNCTION_OP_CREATE, status, &why, err);
    return ask_sizes(candidate->backend, candidate->op, subgraphs->threads, &candidate->sizes, err);
}

int32_t sl_subgraph_count_candidates(const struct sl_subgraph *subgraph)
{
    int32_t count = 0;
    for (int32_t c = 0; c < subgraph->candidate_count; c++)
        count += !subgraph->candidates[c].excluded;
    return count;
}

bool sl_candidate_is_fallback(const struct sl_subgraph *subgraph, const struct sl_candidate *candidate)
{
    for (int32_t r = 0; r < subgraph->refusal_count; r++)
        if (subgraph->refusals[r].rank < candidate->rank &&
            !(subgraph->refusals[r].code & SEQLSTM_BIT_REFUSED_OPERATION))
            return true;
    return false;
}

struct sl_call sl_candidate_make_call(const struct sl_subgraph *subgraph, const struct sl_candidate *candidate)
{
    return (struct sl_call){.node = subgraph->node,
                            .node_first = subgraph->first,
                            .node_count = subgraph->count,
                            .backend = candidate->backend,
                            .device = candidate->device,
                            .variant = candidate->variant,
                            .op = candidate->op,
                            .sizes = candidate->sizes,
                            .refusals = subgraph->refusals,
                            .refusal_count = subgraph->refusal_count,
                            .cost = candidate->cost,
                            .fallback = sl_candidate_is_fallback(subgraph, candidate)};
}

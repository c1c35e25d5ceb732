/* SPDX-License-Identifier: Apache-2.0 */
/* See refusal_cost.h. */
#include "dispatch/cost/refusal_cost.h"

#include <string.h>

#include "dispatch/plan/refusal.h"
#include "registry/plugin.h"
#include "dispatch/cost/desc_option.h"

enum { OPTIONS_MOST = 8 };

/* Removes refused options until the backend accepts. *out_keys: the removed ones; NULL: it never accepts. */
static seqlstm_status strip(const struct sl_tuner *tuner, const struct sl_subgraph *subgraph,
                            struct sl_backend *backend, uint32_t device, uint32_t option, union seqlstm_any_desc *desc,
                            struct seqlstm_answer *out_answer, const char **out_keys, struct seqlstm_error *err)
{
    struct sl_arena *arena = tuner->subgraphs->arena;
    const char *keys = NULL;
    *out_keys = NULL;
    for (int i = 0; i < OPTIONS_MOST && sl_desc_remove_option(desc, option); i++) {
        const char *key = sl_graph_find_option(tuner->subgraphs->graph, subgraph->node, option).key;
        keys = keys ? sl_arena_printf(arena, "%s, %s", keys, key) : sl_arena_strdup(arena, key);
        if (keys == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
        SEQLSTM_TRY(sl_backend_supports(backend, device, &desc->head, out_answer, err));
        if (out_answer->accepted) {
            *out_keys = keys;
            return SEQLSTM_OK;
        }
        option = out_answer->option;
    }
    return SEQLSTM_OK;
}

static seqlstm_status find_refusal_cost(struct sl_tuner *tuner, enum sl_dispatch_policy policy,
                                        struct sl_subgraph *subgraph, const struct sl_cost *chosen,
                                        struct sl_refusal *refusal, struct seqlstm_error *err)
{
    struct sl_backend *backend = tuner->subgraphs->listed[refusal->rank];
    union seqlstm_any_desc desc = subgraph->node->desc;
    struct seqlstm_answer answer;
    struct sl_candidate candidate = {.backend = backend, .rank = refusal->rank};
    if (!sl_backend_find_device(backend, &candidate.device))
        return SEQLSTM_OK;
    SEQLSTM_TRY(
        strip(tuner, subgraph, backend, candidate.device, refusal->option_id, &desc, &answer, &refusal->without, err));
    if (refusal->without == NULL || chosen->source <= SL_COST_GUESS)
        return SEQLSTM_OK;
    candidate.variant = answer.variants[0];
    struct sl_refusal scratch[1];
    struct sl_subgraph alone = {.node = subgraph->node, .refusals = scratch}; /* its refusals are not used */
    SEQLSTM_TRY(sl_subgraph_open_candidate(tuner->subgraphs, &alone, &desc, &candidate, err));
    if (candidate.excluded)
        return SEQLSTM_OK;
    seqlstm_status status = sl_tuner_price_one(tuner, policy, &alone, &desc, &candidate, err);
    sl_plugin_destroy_op(sl_backend_get_table(backend), candidate.op);
    double ns = sl_cost_get_ns(&candidate.cost);
    if (status == SEQLSTM_OK && !candidate.excluded && candidate.cost.source != SL_COST_NONE && ns > 0)
        refusal->speedup = sl_cost_get_ns(chosen) / ns;
    return status;
}

seqlstm_status sl_subgraph_find_refusal_costs(struct sl_tuner *tuner, enum sl_dispatch_policy policy,
                                              struct sl_subgraph *subgraph, const struct sl_cost *chosen,
                                              struct seqlstm_error *err)
{
    for (int32_t r = 0; r < subgraph->refusal_count; r++)
        if (subgraph->refusals[r].option_id != SEQLSTM_OPTION_NONE)
            SEQLSTM_TRY(find_refusal_cost(tuner, policy, subgraph, chosen, &subgraph->refusals[r], err));
    return SEQLSTM_OK;
}

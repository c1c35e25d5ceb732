/* SPDX-License-Identifier: Apache-2.0 */
/* See tune_record.h. */
#include "dispatch/cost/tune_record.h"

#include <stdio.h>

#include "base/operation/op_signature.h"
#include "dispatch/cost/cost_key.h"
#include "dispatch/cost/estimate.h"

/* A candidate is not timed if its estimate is more than this many times the best one. */
static const double skip_by_estimate = 3;

static int get_side(const struct sl_tuner *tuner, const struct sl_node *node)
{
    return sl_axis_is_source(sl_graph_get_axis(tuner->subgraphs->graph, node));
}

const struct sl_profiles *sl_tuner_get_profiles(const struct sl_tuner *tuner, const struct sl_node *node)
{
    return &tuner->sides[get_side(tuner, node)];
}

struct sl_call_parts sl_tuner_get_parts(const struct sl_tuner *tuner, const struct sl_node *node)
{
    const struct sl_graph *graph = tuner->subgraphs->graph;
    struct sl_call_parts parts = {.on_steps = sl_node_is_on_steps(graph, node), .backward = node->needs_backward};
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
    struct sl_call_parts parts = sl_tuner_get_parts(tuner, node);
    uint32_t bits = parts.on_steps | (uint32_t)parts.backward << 1 | (uint32_t)parts.input_grad << 2 |
                    (uint32_t)parts.param_grad << 3;
    return sl_cost_key_get(&tuner->process[get_side(tuner, node)], candidate->backend, candidate->device,
                           candidate->variant, desc, bits);
}

bool sl_tuner_skips(const struct sl_candidate *candidate, double best)
{
    return candidate->excluded || sl_cost_get_ns(&candidate->cost) > skip_by_estimate * best;
}

bool sl_tuner_recall(const struct sl_tuner *tuner, struct sl_subgraph *subgraph, const union seqlstm_any_desc *desc,
                     double best, enum sl_cost_source source)
{
    const struct sl_cost_record *records[64];
    double fastest = -1;
    int32_t count = subgraph->candidate_count < 64 ? subgraph->candidate_count : 64;
    for (int32_t c = 0; c < count; c++) {
        records[c] = NULL;
        if (sl_tuner_skips(&subgraph->candidates[c], best))
            continue;
        struct sl_cost_key key = sl_tuner_get_key(tuner, subgraph->node, desc, &subgraph->candidates[c]);
        records[c] = sl_cost_cache_find(tuner->tuning->cache, &key);
        if (records[c] == NULL)
            return false;
        double ns = records[c]->forward_ns + records[c]->backward_ns;
        fastest = fastest < 0 || ns < fastest ? ns : fastest;
    }
    for (int32_t c = 0; c < count; c++) {
        struct sl_cost *cost = &subgraph->candidates[c].cost;
        if (records[c])
            *cost = (struct sl_cost){records[c]->bound ? SL_COST_BOUND : source, records[c]->forward_ns,
                                     records[c]->backward_ns};
        else if (!subgraph->candidates[c].excluded && sl_cost_get_ns(cost) < skip_by_estimate * fastest)
            *cost = (struct sl_cost){SL_COST_BOUND, skip_by_estimate * fastest, 0};
    }
    return true;
}

seqlstm_status sl_tuner_keep(struct sl_tuner *tuner, const struct sl_subgraph *subgraph,
                             const union seqlstm_any_desc *desc, const struct sl_candidate *candidate, bool bound,
                             double forward_ns, double backward_ns, struct seqlstm_error *err)
{
    struct sl_cost_record record = {.key = sl_tuner_get_key(tuner, subgraph->node, desc, candidate),
                                    .forward_ns = forward_ns,
                                    .backward_ns = backward_ns,
                                    .bound = bound};
    struct sl_cost work, cost = {SL_COST_MEASURED, forward_ns, backward_ns};
    SEQLSTM_TRY(sl_cost_guess(tuner->subgraphs->graph, subgraph->node, desc,
                              sl_tuner_get_profiles(tuner, subgraph->node), &work, err));
    if (!bound) /* a bound is no timing */
        SEQLSTM_TRY(sl_experience_add(&tuner->experience, candidate, desc->head.op, sl_cost_get_ns(&work), &cost, err));
    snprintf(record.label, sizeof record.label, "%.24s:%.31s/%.16s", sl_backend_get_id(candidate->backend),
             candidate->variant, sl_op_name(desc->head.op));
    return sl_cost_cache_add(tuner->tuning->cache, &record, err);
}

/* The reason of the backend's last refusal. */
static const char *get_reason(const struct sl_subgraph *subgraph, const struct sl_candidate *candidate)
{
    int32_t r = subgraph->refusal_count - 1;
    while (subgraph->refusals[r].rank != candidate->rank)
        r--;
    return subgraph->refusals[r].reason;
}

seqlstm_status sl_tuner_open_candidate(struct sl_tuner *tuner, struct sl_subgraph *subgraph,
                                       const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                       struct seqlstm_error *err)
{
    if (tuner->tuning == NULL || candidate->op)
        return sl_subgraph_open_candidate(tuner->subgraphs, subgraph, desc, candidate, err);
    struct sl_cost_record record = {.key = get_refusal_key(tuner, subgraph->node, desc, candidate), .refused = true};
    const struct sl_cost_record *kept = sl_cost_cache_find(tuner->tuning->cache, &record.key);
    if (kept && kept->refused)
        return sl_subgraph_refuse_candidate(tuner->subgraphs, subgraph, candidate, kept->label, err);
    SEQLSTM_TRY(sl_subgraph_open_candidate(tuner->subgraphs, subgraph, desc, candidate, err));
    if (!candidate->excluded)
        return SEQLSTM_OK;
    snprintf(record.label, sizeof record.label, "%s", get_reason(subgraph, candidate));
    return sl_cost_cache_add(tuner->tuning->cache, &record, err);
}

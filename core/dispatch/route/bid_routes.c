/* SPDX-License-Identifier: Apache-2.0 */
/* See ways.h. */
#include "dispatch/route/bid_routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cost/tune.h"

static int32_t find_domain(struct sl_bid_routes *ways, const struct sl_bid *bid)
{
    const char *name = sl_backend_get_device(bid->backend, bid->device)->domain;
    for (int32_t d = 0; d < ways->problem.domain_count; d++)
        if (strcmp(ways->domains[d], name) == 0)
            return d;
    snprintf(ways->domains[ways->problem.domain_count], sizeof ways->domains[0], "%s", name);
    return ways->problem.domain_count++;
}

/* Every activation that a node reads, with what it costs to bring it (and in training its gradient back) across. */
static void list_reads(struct sl_bid_routes *ways, const struct sl_graph *graph)
{
    static const double copy_ns = 10000, bytes_per_ns = 10; /* about what PCIe 4 takes */
    int32_t count = 0;
    for (int32_t n = 0; n < graph->node_count; n++)
        for (int32_t s = 0; s < graph->nodes[n].slot_count; s++) {
            int32_t t = graph->nodes[n].slots[s], writer = n - 1;
            if (t < 0 || graph->tensors[t].role != SL_TENSOR_ACTIVATION)
                continue;
            bool writes = false;
            for (; writer >= 0 && !writes; writer -= !writes)
                for (int32_t o = 0; o < graph->nodes[writer].slot_count; o++)
                    writes = writes || graph->nodes[writer].slots[o] == t;
            if (!writes)
                continue;
            const struct sl_tensor *tensor = &graph->tensors[t];
            double rows = (double)sl_graph_get_rows(graph, tensor);
            double ns = copy_ns + rows * (double)tensor->features * 4 / bytes_per_ns;
            ways->reads[count++] = (struct sl_route_read){n, writer, tensor->needs_grad ? 2 * ns : ns};
        }
    ways->problem.read_count = count;
}

static void list_steps(struct sl_bid_routes *ways, const struct sl_spans *spans)
{
    for (int32_t i = 0; i < spans->count; i++) {
        struct sl_span *span = &spans->items[i];
        for (int32_t b = 0; b < span->bid_count; b++) {
            struct sl_bid *bid = &span->bids[b];
            if (bid->out)
                continue;
            int32_t at = ways->problem.step_count++;
            if (bid->cost.source == SL_COST_ESTIMATE || bid->cost.source == SL_COST_GUESS)
                ways->problem.tie = SL_ROUTE_TIE;
            ways->spans[at] = span;
            ways->bids[at] = bid;
            ways->steps[at] = (struct sl_route_step){.first = span->first,
                                                     .count = span->count,
                                                     .domain = find_domain(ways, bid),
                                                     .rank = bid->rank,
                                                     .variant = bid->variant_index,
                                                     .cost_ns = sl_cost_get_ns(&bid->cost)};
        }
    }
}

seqlstm_status sl_bid_routes_init(struct sl_bid_routes *ways, const struct sl_spans *spans, struct seqlstm_error *err)
{
    const struct sl_graph *graph = spans->graph;
    size_t bids = 1, slots = 1;
    for (int32_t i = 0; i < spans->count; i++)
        bids += (size_t)spans->items[i].bid_count;
    for (int32_t n = 0; n < graph->node_count; n++)
        slots += (size_t)graph->nodes[n].slot_count;
    *ways = (struct sl_bid_routes){.steps = calloc(bids, sizeof *ways->steps),
                                   .spans = calloc(bids, sizeof *ways->spans),
                                   .bids = calloc(bids, sizeof *ways->bids),
                                   .reads = calloc(slots, sizeof *ways->reads),
                                   .domains = calloc(spans->listed_count + 2, sizeof *ways->domains)};
    if (!ways->steps || !ways->spans || !ways->bids || !ways->reads || !ways->domains) {
        sl_bid_routes_deinit(ways);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    }
    snprintf(ways->domains[0], sizeof ways->domains[0], "host");
    ways->problem = (struct sl_route_problem){.node_count = graph->node_count,
                                              .domain_count = 1,
                                              .steps = ways->steps,
                                              .reads = ways->reads,
                                              .tie = SL_ROUTE_TIE_MEASURED};
    list_steps(ways, spans);
    list_reads(ways, graph);
    return SEQLSTM_OK;
}

void sl_bid_routes_deinit(struct sl_bid_routes *ways)
{
    free(ways->steps);
    free(ways->spans);
    free(ways->bids);
    free(ways->reads);
    free(ways->domains);
    *ways = (struct sl_bid_routes){0};
}

seqlstm_status sl_bid_routes_open(const struct sl_bid_routes *ways, const struct sl_spans *spans,
                                  const struct sl_route *path, bool *out_open, struct seqlstm_error *err)
{
    *out_open = true;
    for (int32_t k = 0; k < path->count; k++) {
        struct sl_span *span = ways->spans[path->steps[k]];
        struct sl_bid *bid = ways->bids[path->steps[k]];
        SEQLSTM_TRY(sl_span_open_bid(spans, span, &span->node->desc, bid, err));
        *out_open = *out_open && !bid->out;
    }
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See candidate_routes.h. */
#include "dispatch/route/candidate_routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cost/tune.h"

static int32_t find_domain(struct sl_candidate_routes *routes, const struct sl_candidate *candidate)
{
    const char *name = sl_backend_get_device(candidate->backend, candidate->device)->domain;
    for (int32_t d = 0; d < routes->problem.domain_count; d++)
        if (strcmp(routes->domains[d], name) == 0)
            return d;
    snprintf(routes->domains[routes->problem.domain_count], sizeof routes->domains[0], "%s", name);
    return routes->problem.domain_count++;
}

/* Lists the activations that nodes read, with the cost of copying each (in training also its gradient back). */
static void list_reads(struct sl_candidate_routes *routes, const struct sl_graph *graph)
{
    static const double copy_ns = 10000, bytes_per_ns = 10; /* about those of PCIe 4 */
    int32_t count = 0;
    for (int32_t n = 0; n < graph->node_count; n++)
        for (int32_t s = 0; s < graph->nodes[n].slot_count; s++) {
            int32_t t = graph->nodes[n].slots[s], holder = n - 1;
            if (t < 0 || graph->tensors[t].role != SL_TENSOR_ACTIVATION)
                continue;
            bool holds = false;
            for (; holder >= 0 && !holds; holder -= !holds)
                for (int32_t o = 0; o < graph->nodes[holder].slot_count; o++)
                    holds = holds || graph->nodes[holder].slots[o] == t;
            if (!holds)
                continue;
            const struct sl_tensor *tensor = &graph->tensors[t];
            double rows = (double)sl_graph_get_rows(graph, tensor);
            double ns = copy_ns + rows * (double)tensor->features * 4 / bytes_per_ns;
            routes->reads[count++] = (struct sl_route_read){n, holder, tensor->needs_grad ? 2 * ns : ns};
        }
    routes->problem.read_count = count;
}

static void list_steps(struct sl_candidate_routes *routes, const struct sl_subgraphs *subgraphs)
{
    for (int32_t i = 0; i < subgraphs->count; i++) {
        struct sl_subgraph *subgraph = &subgraphs->items[i];
        for (int32_t c = 0; c < subgraph->candidate_count; c++) {
            struct sl_candidate *candidate = &subgraph->candidates[c];
            if (candidate->excluded)
                continue;
            int32_t at = routes->problem.step_count++;
            if (candidate->cost.source == SL_COST_ESTIMATE || candidate->cost.source == SL_COST_GUESS)
                routes->problem.tie = SL_ROUTE_TIE;
            routes->subgraphs[at] = subgraph;
            routes->candidates[at] = candidate;
            routes->steps[at] = (struct sl_route_step){.first = subgraph->first,
                                                       .count = subgraph->count,
                                                       .domain = find_domain(routes, candidate),
                                                       .rank = candidate->rank,
                                                       .variant = candidate->variant_index,
                                                       .cost_ns = sl_cost_get_ns(&candidate->cost)};
        }
    }
}

seqlstm_status sl_candidate_routes_init(struct sl_candidate_routes *routes, const struct sl_subgraphs *subgraphs,
                                        struct seqlstm_error *err)
{
    const struct sl_graph *graph = subgraphs->graph;
    size_t candidates = 1, slots = 1;
    for (int32_t i = 0; i < subgraphs->count; i++)
        candidates += (size_t)subgraphs->items[i].candidate_count;
    for (int32_t n = 0; n < graph->node_count; n++)
        slots += (size_t)graph->nodes[n].slot_count;
    *routes = (struct sl_candidate_routes){.steps = calloc(candidates, sizeof *routes->steps),
                                           .subgraphs = calloc(candidates, sizeof *routes->subgraphs),
                                           .candidates = calloc(candidates, sizeof *routes->candidates),
                                           .reads = calloc(slots, sizeof *routes->reads),
                                           .domains = calloc(subgraphs->listed_count + 2, sizeof *routes->domains)};
    if (!routes->steps || !routes->subgraphs || !routes->candidates || !routes->reads || !routes->domains) {
        sl_candidate_routes_deinit(routes);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    }
    snprintf(routes->domains[0], sizeof routes->domains[0], "host");
    routes->problem = (struct sl_route_problem){.node_count = graph->node_count,
                                                .domain_count = 1,
                                                .steps = routes->steps,
                                                .reads = routes->reads,
                                                .tie = SL_ROUTE_TIE_MEASURED};
    list_steps(routes, subgraphs);
    list_reads(routes, graph);
    return SEQLSTM_OK;
}

void sl_candidate_routes_deinit(struct sl_candidate_routes *routes)
{
    free(routes->steps);
    free(routes->subgraphs);
    free(routes->candidates);
    free(routes->reads);
    free(routes->domains);
    *routes = (struct sl_candidate_routes){0};
}

seqlstm_status sl_candidate_routes_open(const struct sl_candidate_routes *routes, const struct sl_subgraphs *subgraphs,
                                        const struct sl_route *route, bool *out_open, struct seqlstm_error *err)
{
    *out_open = true;
    for (int32_t k = 0; k < route->count; k++) {
        struct sl_subgraph *subgraph = routes->subgraphs[route->steps[k]];
        struct sl_candidate *candidate = routes->candidates[route->steps[k]];
        SEQLSTM_TRY(sl_subgraph_open_candidate(subgraphs, subgraph, &subgraph->node->desc, candidate, err));
        *out_open = *out_open && !candidate->excluded;
    }
    return SEQLSTM_OK;
}

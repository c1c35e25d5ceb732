/* SPDX-License-Identifier: Apache-2.0 */
/* See loop_domain.h. */
#include "dispatch/route/loop_domain.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/cost/tune.h"

static const char *get_domain(const struct sl_candidate *candidate)
{
    return sl_backend_get_device(candidate->backend, candidate->device)->domain;
}

static bool is_within(const struct sl_loop *loop, const struct sl_subgraph *subgraph)
{
    return subgraph->first >= loop->first && subgraph->first + subgraph->count <= loop->first + loop->count;
}

/* The least cost of the loop in one domain; negative: the domain cannot run it. `least` [count + 1] is scratch. */
static double price(const struct sl_subgraphs *subgraphs, const char *domain, double *least)
{
    const struct sl_loop *loop = &subgraphs->graph->loop;
    least[0] = 0;
    for (int32_t n = 1; n <= loop->count; n++)
        least[n] = -1;
    for (int32_t n = 0; n < loop->count; n++)
        for (int32_t i = 0; i < subgraphs->count && least[n] >= 0; i++) {
            const struct sl_subgraph *subgraph = &subgraphs->items[i];
            if (subgraph->first != loop->first + n || !is_within(loop, subgraph))
                continue;
            for (int32_t c = 0; c < subgraph->candidate_count; c++) {
                double ns = least[n] + sl_cost_get_ns(&subgraph->candidates[c].cost),
                       *end = &least[n + subgraph->count];
                if (!subgraph->candidates[c].excluded && strcmp(get_domain(&subgraph->candidates[c]), domain) == 0 &&
                    (*end < 0 || ns < *end))
                    *end = ns;
            }
        }
    return least[loop->count];
}

seqlstm_status sl_subgraphs_settle_loop(struct sl_subgraphs *subgraphs, struct seqlstm_error *err)
{
    const struct sl_loop *loop = &subgraphs->graph->loop;
    const char *best = NULL;
    double cost = -1;
    if (loop->count == 0)
        return SEQLSTM_OK;
    double *least = calloc((size_t)loop->count + 1, sizeof *least);
    if (least == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    for (int32_t i = 0; i < subgraphs->count; i++)
        for (int32_t c = 0; c < subgraphs->items[i].candidate_count && is_within(loop, &subgraphs->items[i]); c++) {
            const char *domain = get_domain(&subgraphs->items[i].candidates[c]);
            double ns = best && strcmp(best, domain) == 0 ? -1 : price(subgraphs, domain, least);
            if (ns >= 0 && (cost < 0 || ns < cost)) {
                cost = ns;
                best = domain;
            }
        }
    free(least);
    for (int32_t i = 0; best && i < subgraphs->count; i++)
        for (int32_t c = 0; c < subgraphs->items[i].candidate_count && is_within(loop, &subgraphs->items[i]); c++)
            if (strcmp(get_domain(&subgraphs->items[i].candidates[c]), best) != 0)
                subgraphs->items[i].candidates[c].excluded = true;
    return SEQLSTM_OK;
}

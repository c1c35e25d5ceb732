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

static bool is_within(const struct sl_loop *loop, const struct sl_span *span)
{
    return span->first >= loop->first && span->first + span->count <= loop->first + loop->count;
}

/* The least cost of the loop in one domain; negative: the domain cannot run it. `least` [count + 1] is scratch. */
static double price(const struct sl_spans *spans, const char *domain, double *least)
{
    const struct sl_loop *loop = &spans->graph->loop;
    least[0] = 0;
    for (int32_t n = 1; n <= loop->count; n++)
        least[n] = -1;
    for (int32_t n = 0; n < loop->count; n++)
        for (int32_t i = 0; i < spans->count && least[n] >= 0; i++) {
            const struct sl_span *span = &spans->items[i];
            if (span->first != loop->first + n || !is_within(loop, span))
                continue;
            for (int32_t c = 0; c < span->candidate_count; c++) {
                double ns = least[n] + sl_cost_get_ns(&span->candidates[c].cost), *end = &least[n + span->count];
                if (!span->candidates[c].excluded && strcmp(get_domain(&span->candidates[c]), domain) == 0 &&
                    (*end < 0 || ns < *end))
                    *end = ns;
            }
        }
    return least[loop->count];
}

seqlstm_status sl_spans_settle_loop(struct sl_spans *spans, struct seqlstm_error *err)
{
    const struct sl_loop *loop = &spans->graph->loop;
    const char *best = NULL;
    double cost = -1;
    if (loop->count == 0)
        return SEQLSTM_OK;
    double *least = calloc((size_t)loop->count + 1, sizeof *least);
    if (least == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    for (int32_t i = 0; i < spans->count; i++)
        for (int32_t c = 0; c < spans->items[i].candidate_count && is_within(loop, &spans->items[i]); c++) {
            const char *domain = get_domain(&spans->items[i].candidates[c]);
            double ns = best && strcmp(best, domain) == 0 ? -1 : price(spans, domain, least);
            if (ns >= 0 && (cost < 0 || ns < cost)) {
                cost = ns;
                best = domain;
            }
        }
    free(least);
    for (int32_t i = 0; best && i < spans->count; i++)
        for (int32_t c = 0; c < spans->items[i].candidate_count && is_within(loop, &spans->items[i]); c++)
            if (strcmp(get_domain(&spans->items[i].candidates[c]), best) != 0)
                spans->items[i].candidates[c].excluded = true;
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See rounds.h. */
#include "dispatch/cost/rounds.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/value/median.h"

static const double quartile = 0.25;

void sl_rounds_add(struct sl_rounds *rounds, double forward_ns, double backward_ns, bool disturbed)
{
    rounds->forward_ns[rounds->count] = forward_ns;
    rounds->backward_ns[rounds->count++] = backward_ns;
    rounds->disturbed += disturbed;
}

static bool are_disturbed(const struct sl_rounds *rounds)
{
    return 2 * rounds->disturbed > rounds->count;
}

bool sl_rounds_suffice(const struct sl_rounds *rounds, int32_t least)
{
    return rounds->count >= (are_disturbed(rounds) ? SL_ROUNDS_DISTURBED : least);
}

static double find_quantile(const double *values, int32_t count, double share)
{
    double sorted[SL_ROUNDS_MOST];
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, sl_float64_compare);
    return sorted[(int32_t)(share * (count - 1))];
}

double sl_rounds_find(const struct sl_rounds *rounds, double share)
{
    double totals[SL_ROUNDS_MOST];
    for (int32_t i = 0; i < rounds->count; i++)
        totals[i] = rounds->forward_ns[i] + rounds->backward_ns[i];
    return find_quantile(totals, rounds->count, share);
}

void sl_rounds_get(const struct sl_rounds *rounds, double *out_forward_ns, double *out_backward_ns)
{
    const double share = are_disturbed(rounds) ? 0 : quartile;
    *out_forward_ns = find_quantile(rounds->forward_ns, rounds->count, share);
    *out_backward_ns = find_quantile(rounds->backward_ns, rounds->count, share);
}

int64_t sl_rounds_count_preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

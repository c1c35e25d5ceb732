/* SPDX-License-Identifier: Apache-2.0 */
/* See sample.h. */
#include "decode/sample.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct sl_sample_candidate *x = a, *y = b;
    if (x->probability != y->probability)
        return x->probability > y->probability ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

int32_t sl_sample_find_best(const struct sl_never *never, const float *probabilities, int64_t classes)
{
    int32_t best = -1;
    for (int32_t c = 0; c < classes; c++)
        if (!sl_never_has(never, c) && (best < 0 || probabilities[c] > probabilities[best]))
            best = c;
    return best < 0 ? 0 : best;
}

/* Fills in p^(1/temperature) over that of the likeliest class, which is 1 and cannot underflow. Returns how many. */
static int64_t list_candidates(const struct sl_sample_rule *rule, const float *probabilities, int64_t classes,
                               struct sl_sample_candidate *out)
{
    const double most = (double)probabilities[sl_sample_find_best(&rule->never, probabilities, classes)];
    int64_t count = 0;
    for (int32_t c = 0; c < classes; c++) {
        const double share = most > 0 ? (double)probabilities[c] / most : 1;
        if (!sl_never_has(&rule->never, c))
            out[count++] = (struct sl_sample_candidate){c, pow(share, 1.0 / rule->temperature)};
    }
    return count;
}

int32_t sl_sample_draw(const struct sl_sample_rule *rule, const float *probabilities, int64_t classes, double u,
                       struct sl_sample_candidate *scratch)
{
    double sum = 0, mass = 0;
    const int64_t count = list_candidates(rule, probabilities, classes, scratch);
    if (count == 0)
        return 0;
    for (int64_t c = 0; c < count; c++)
        sum += scratch[c].probability;
    qsort(scratch, (size_t)count, sizeof *scratch, compare);
    int64_t kept = rule->top_k > 0 && rule->top_k < count ? rule->top_k : count;
    for (int64_t c = 0; c < kept; c++) {
        mass += scratch[c].probability / sum;
        if (mass >= rule->top_p)
            kept = c + 1;
    }
    u *= mass;
    for (int64_t c = 0; c < kept; c++) {
        u -= scratch[c].probability / sum;
        if (u < 0)
            return scratch[c].id;
    }
    return scratch[kept - 1].id;
}

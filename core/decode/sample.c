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

int32_t sl_sample_draw(const struct sl_sample_rule *rule, const float *probabilities, int64_t classes, double u,
                       struct sl_sample_candidate *scratch)
{
    double sum = 0, mass = 0;
    for (int64_t c = 0; c < classes; c++) {
        scratch[c] = (struct sl_sample_candidate){(int32_t)c, pow((double)probabilities[c], 1.0 / rule->temperature)};
        sum += scratch[c].probability;
    }
    qsort(scratch, (size_t)classes, sizeof *scratch, compare);
    int64_t kept = rule->top_k > 0 && rule->top_k < classes ? rule->top_k : classes;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* One class drawn from a row of probabilities:
 *
 *   p^(1/temperature) without the classes of `never`, normalised (which is softmax(logits / temperature)), restricted
 *   to the top_k best and to the smallest set of best classes whose probability reaches top_p.
 */
#ifndef SL_DECODE_SAMPLE_H
#define SL_DECODE_SAMPLE_H

#include <stdint.h>

#include "decode/never.h"

struct sl_sample_rule {
    double temperature; /* > 0 */
    int64_t top_k;      /* 0: all */
    double top_p;       /* (0, 1]; 1: all */
    struct sl_never never;
};

/* Room for one class. */
struct sl_sample_candidate {
    int32_t id;
    double probability;
};

/* The likeliest class, the first of equals. [any thread] */
int32_t sl_sample_find_best(const struct sl_never *never, const float *probabilities, int64_t classes);

/* `u` in [0, 1) is the random number. `scratch` has room for `classes`. The same u gives the same class on every
 * backend, up to ties in the last bits. [any thread] */
int32_t sl_sample_draw(const struct sl_sample_rule *rule, const float *probabilities, int64_t classes, double u,
                       struct sl_sample_candidate *scratch);

#endif

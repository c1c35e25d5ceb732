/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic loss scaling for products in float16 (Micikevicius et al. 2018, section 3.2).
 *
 * The gradient of the loss is made larger before it runs back, so that small gradients do not vanish in 16 bits, and
 * the update divides what arrives at the parameters by the same power of two, which is exact. Where something
 * overflowed on the way, it changes nothing and the scale is halved; after 2000 good updates in a row it is doubled.
 */
#ifndef SL_TRAIN_SCHEDULE_LOSS_SCALE_H
#define SL_TRAIN_SCHEDULE_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* Plain values, part of the state of a run. */
struct sl_loss_scale {
    double scale;      /* of the next update; a power of two. 0: not begun */
    int64_t good;      /* updates since it changed last */
    int64_t overflows; /* updates that were skipped, in all */
};

/* What the gradient of the loss is to be multiplied with. */
double sl_loss_scale_get(struct sl_loss_scale *state);

/* After an update, with the sum of its gradients' squares: true, and the scale is halved, when they are not finite. At
 * a scale of 1 nothing is halved any more: then the gradients are left to the rule of divergence. */
bool sl_loss_scale_settle(struct sl_loss_scale *state, double squares);

#endif

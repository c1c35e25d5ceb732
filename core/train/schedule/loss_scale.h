/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic loss scaling for products in float16 (Micikevicius et al. 2018, section 3.2).
 *
 * The gradient of the loss is multiplied by a power of two before the backward pass, so that small gradients do not
 * vanish in 16 bits, and the update divides the gradients of the parameters by the same number, which is exact. If
 * something overflowed, the update changes nothing and the scale is halved; after 2000 good updates in a row it is
 * doubled.
 */
#ifndef SL_TRAIN_SCHEDULE_LOSS_SCALE_H
#define SL_TRAIN_SCHEDULE_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SL_LOSS_SCALE_GOOD_ENOUGH = 2000, /* good updates in a row after which it is doubled */
    SL_LOSS_SCALE_LARGEST = 1 << 24
};

/* Plain values, part of the state of a run. */
struct sl_loss_scale {
    double scale;      /* of the next update; a power of two. 0: not begun */
    int64_t good;      /* updates since its last change */
    int64_t overflows; /* updates that were skipped in total */
};

/* The factor of the gradient of the loss. */
double sl_loss_scale_get(struct sl_loss_scale *state);

/* Call after an update, with the sum of squares of its gradients: returns true, and halves the scale, when they are not
 * finite. A scale of 1 is not halved: then the rule of divergence applies. */
bool sl_loss_scale_settle(struct sl_loss_scale *state, double squares);

#endif

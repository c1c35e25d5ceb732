/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic loss scaling for products in float16 (Micikevicius et al. 2018, section 3.2).
 *
 * The gradient of the loss is made larger before it runs back, so that small gradients do not vanish in 16 bits, and
 * what arrives at the parameters is divided by the same power of two, which is exact. Where something overflowed on the
 * way, the update is skipped and the scale halved; after 2000 good updates in a row it is doubled.
 */
#ifndef SL_TRAIN_LOSS_SCALE_H
#define SL_TRAIN_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "exec/exec.h"
#include "exec/params.h"

/* Plain values, part of the state of a run. */
struct sl_loss_scale {
    double scale;      /* of the next update; a power of two. 0: not begun */
    int64_t good;      /* updates since it changed last */
    int64_t overflows; /* updates that were skipped, in all */
};

/* What the gradient of the loss is to be multiplied with. */
double sl_loss_scale_get(struct sl_loss_scale *state);

/* After backward, with the sum of the gradients' squares: takes the scale out of the gradients, or halves it when they
 * are not finite (`*out_overflow`: the update is to be skipped). At a scale of 1 nothing is halved any more: then the
 * gradients are left to the rule of divergence. */
seqlstm_status sl_loss_scale_settle(struct sl_loss_scale *state, struct sl_exec *exec, struct sl_params *params,
                                    double squares, bool *out_overflow, struct seqlstm_error *err);

#endif

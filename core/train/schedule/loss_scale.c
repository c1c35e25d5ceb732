/* SPDX-License-Identifier: Apache-2.0 */
/* See loss_scale.h. */
#include "train/schedule/loss_scale.h"

#include <math.h>

enum { FIRST = 65536 };

double sl_loss_scale_get(struct sl_loss_scale *state)
{
    if (state->scale <= 0)
        state->scale = FIRST;
    return state->scale;
}

bool sl_loss_scale_settle(struct sl_loss_scale *state, double squares)
{
    if (!isfinite(squares) && state->scale > 1) {
        state->scale /= 2;
        state->good = 0;
        state->overflows++;
        return true;
    }
    if (++state->good == SL_LOSS_SCALE_GOOD_ENOUGH) {
        state->scale = fmin(state->scale * 2, SL_LOSS_SCALE_LARGEST);
        state->good = 0;
    }
    return false;
}

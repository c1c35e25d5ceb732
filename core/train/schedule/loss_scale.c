/* SPDX-License-Identifier: Apache-2.0 */
/* See loss_scale.h. */
#include "train/schedule/loss_scale.h"

#include <math.h>

enum { FIRST = 65536, GOOD_ENOUGH = 2000, LARGEST = 1 << 24 };

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
    if (++state->good == GOOD_ENOUGH) {
        state->scale = fmin(state->scale * 2, LARGEST);
        state->good = 0;
    }
    return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See loss_scale.h. */
#include "train/loss_scale.h"

#include <math.h>

enum { FIRST = 65536, GOOD_ENOUGH = 2000, LARGEST = 1 << 24 };

double
sl_loss_scale_get(struct sl_loss_scale *state)
{
    if (state->scale <= 0)
        state->scale = FIRST;
    return state->scale;
}

seqlstm_status
sl_loss_scale_settle(struct sl_loss_scale *state, struct sl_exec *exec, struct sl_params *params, double squares,
                     bool *out_overflow, struct seqlstm_error *err)
{
    double scale = state->scale;
    *out_overflow = false;
    if (!isfinite(squares) && scale > 1) {
        state->scale = scale / 2;
        state->good = 0;
        state->overflows++;
        *out_overflow = true;
        return SEQLSTM_OK;
    }
    if (++state->good == GOOD_ENOUGH) {
        state->scale = fmin(scale * 2, LARGEST);
        state->good = 0;
    }
    return scale > 1 ? sl_exec_vector(exec, SEQLSTM_VECTOR_SCALE, params->grads, NULL, params->trainable_elems,
                                      (float)(1 / scale), err)
                     : SEQLSTM_OK;
}

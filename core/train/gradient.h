/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the gradient between backward and the update: regularisers, limits, the norm. */
#ifndef SL_TRAIN_GRADIENT_H
#define SL_TRAIN_GRADIENT_H

#include <seqlstm/status.h>

#include "exec/exec.h"
#include "exec/params.h"
#include "model/train_config.h"

struct sl_gradient_result {
    double norm;  /* global, after clip_value and before clip_norm; NaN or infinite: diverged */
    double scale; /* for the update: clip_norm / norm where the norm is larger, else 1 */
};

/* grads += l1 sign(w) + 2 l2 w per view; then each element is limited by clip_value; then the norm over all
 * trainable views is taken. */
seqlstm_status sl_gradient_prepare(struct sl_exec *exec, struct sl_params *params,
                                   const struct sl_train_config *config, struct sl_gradient_result *out_result,
                                   struct seqlstm_error *err);

#endif

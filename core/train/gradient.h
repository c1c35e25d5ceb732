/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the gradient between backward and the update: regularisers, limits, the norm. */
#ifndef SL_TRAIN_GRADIENT_H
#define SL_TRAIN_GRADIENT_H

#include <stdbool.h>

#include <seqlstm/status.h>

#include "exec/exec.h"
#include "exec/params.h"
#include "model/train_config.h"

struct sl_gradient_result {
    double norm;  /* global, after clip_value and before clip_norm; NaN or infinite: diverged */
    double scale; /* for the update: clip_norm / norm where the norm is larger, else 1 */
};

/* Are gradients left as backward made them, so that their sum of squares can be taken with it? */
bool sl_gradient_is_plain(const struct sl_params *params, const struct sl_train_config *config);

/* grads += l1 sign(w) + 2 l2 w per view; then each element is limited by clip_value; then the norm over all
 * trainable views is taken. `known`: their sum of squares, if they are
 * plain and it was taken before; otherwise NULL. */
seqlstm_status sl_gradient_prepare(struct sl_exec *exec, struct sl_params *params,
                                   const struct sl_train_config *config, const double *known,
                                   struct sl_gradient_result *out_result, struct seqlstm_error *err);

#endif

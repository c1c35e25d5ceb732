/* SPDX-License-Identifier: Apache-2.0 */
/* Regularisers and limits on the flat gradient. */
#include "train/gradient.h"

#include <math.h>

static seqlstm_status
regularize(struct sl_exec *exec, struct sl_params *params, struct seqlstm_error *err)
{
    for (int32_t i = 0; i < params->view_count; i++) {
        const struct sl_param_view *view = &params->views[i];
        float *grad = params->grads + view->offset_elems;
        const float *value = params->values + view->offset_elems;
        if (!view->trainable)
            continue;
        if (view->regularizer.l1 != 0)
            SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_VECTOR_SIGN_AXPY, grad, value, view->elems,
                                       (float)view->regularizer.l1, err));
        if (view->regularizer.l2 != 0)
            SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_VECTOR_AXPY, grad, value, view->elems,
                                       (float)(2 * view->regularizer.l2), err));
    }
    return SEQLSTM_OK;
}

bool
sl_gradient_is_plain(const struct sl_params *params, const struct sl_train_config *config)
{
    bool plain = config->clip_value <= 0;
    for (int32_t i = 0; i < params->view_count; i++)
        plain = plain && (!params->views[i].trainable ||
                          (params->views[i].regularizer.l1 == 0 && params->views[i].regularizer.l2 == 0));
    return plain;
}

seqlstm_status
sl_gradient_prepare(struct sl_exec *exec, struct sl_params *params, const struct sl_train_config *config,
                    const double *known, struct sl_gradient_result *out_result, struct seqlstm_error *err)
{
    struct sl_gradient_result result = {0, 1};
    SEQLSTM_TRY(regularize(exec, params, err));
    double squares = known ? *known : 0;
    if (config->clip_value > 0) {
        /* min and max would turn a NaN into the limit: the norm before tells. */
        SEQLSTM_TRY(sl_exec_squared_norm(exec, params->grads, params->trainable_elems, &squares, err));
        if (isfinite(squares))
            SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_VECTOR_CLAMP, params->grads, NULL, params->trainable_elems,
                                       (float)config->clip_value, err));
    }
    if (known == NULL && (config->clip_value <= 0 || isfinite(squares)))
        SEQLSTM_TRY(sl_exec_squared_norm(exec, params->grads, params->trainable_elems, &squares, err));
    result.norm = sqrt(squares);
    if (config->clip_norm > 0 && result.norm > config->clip_norm)
        result.scale = config->clip_norm / result.norm;
    *out_result = result;
    return SEQLSTM_OK;
}

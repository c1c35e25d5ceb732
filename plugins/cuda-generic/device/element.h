/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of one element, for host and device: activations and their derivatives, limits, masks. The equations are
 * those of ops.h; tests/unit/cuda-generic/test_cuda_element.c checks them against the reference. */
#ifndef CG_ELEMENT_H
#define CG_ELEMENT_H

#include <math.h>
#include <stdint.h>

#include <seqlstm/ops.h>
#include <seqlstm/philox.h>

#define CG_HD SEQLSTM_HD static inline

CG_HD float cg_sigmoid(float x)
{
    const float e = expf(-fabsf(x)); /* never overflows */
    return x >= 0 ? 1.0f / (1.0f + e) : e / (1.0f + e);
}

CG_HD float cg_softplus(float x)
{
    return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
}

/* y = act(x) of one element, so not for the softmaxes. */
CG_HD float cg_activate(struct seqlstm_activation a, float x)
{
    switch (a.kind) {
    case SEQLSTM_ACT_TANH:
        return tanhf(x);
    case SEQLSTM_ACT_SIGMOID:
        return cg_sigmoid(x);
    case SEQLSTM_ACT_RELU:
        return x > 0 ? x : x == x ? 0.0f : x;
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? x : a.alpha * x;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > a.alpha ? x : x == x ? 0.0f : x;
    case SEQLSTM_ACT_SCALED_TANH:
        return a.alpha * tanhf(a.beta * x);
    case SEQLSTM_ACT_HARD_SIGMOID: {
        const float y = a.alpha * x + a.beta;
        return y < 0 ? 0.0f : y > 1 ? 1.0f : y;
    }
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? x : a.alpha * expm1f(x);
    case SEQLSTM_ACT_SOFTSIGN:
        return x / (1.0f + fabsf(x));
    case SEQLSTM_ACT_SOFTPLUS:
        return cg_softplus(x);
    case SEQLSTM_ACT_AFFINE:
        return a.alpha * x + a.beta;
    default: /* SEQLSTM_ACT_NONE */
        return x;
    }
}

/* dy / dx at x. */
CG_HD float cg_slope(struct seqlstm_activation a, float x)
{
    float y;
    switch (a.kind) {
    case SEQLSTM_ACT_TANH:
        y = tanhf(x);
        return 1.0f - y * y;
    case SEQLSTM_ACT_SIGMOID:
        y = cg_sigmoid(x);
        return y * (1.0f - y);
    case SEQLSTM_ACT_RELU:
        return x > 0 ? 1.0f : 0.0f;
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? 1.0f : a.alpha;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > a.alpha ? 1.0f : 0.0f;
    case SEQLSTM_ACT_SCALED_TANH:
        y = tanhf(a.beta * x);
        return a.alpha * a.beta * (1.0f - y * y);
    case SEQLSTM_ACT_HARD_SIGMOID:
        y = a.alpha * x + a.beta;
        return y > 0 && y < 1 ? a.alpha : 0.0f;
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? 1.0f : a.alpha * expf(x);
    case SEQLSTM_ACT_SOFTSIGN:
        y = 1.0f + fabsf(x);
        return 1.0f / (y * y);
    case SEQLSTM_ACT_SOFTPLUS:
        return cg_sigmoid(x);
    case SEQLSTM_ACT_AFFINE:
        return a.alpha;
    default:
        return 1.0f;
    }
}

/* C(z) of ops.h, and its derivative; limit 0: no clip. */
CG_HD float cg_clip(float z, float limit)
{
    return limit == 0 ? z : z > limit ? limit : z < -limit ? -limit : z;
}

CG_HD float cg_clip_slope(float z, float limit)
{
    return limit > 0 && (z > limit || z < -limit) ? 0.0f : 1.0f;
}

#endif

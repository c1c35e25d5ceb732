/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their derivatives, and softmax of a row (compiled once for each instruction set).
 *
 * Loops go through whole vectors, then load the shorter rest. */
#include "cpu-blas/rowmath/unit.h"

/* NaN stays NaN: comparisons are written so that NaN takes the branch which returns x. */
void BLAS_NAME(act_forward)(const struct seqlstm_activation *act, int64_t n, const float *in, float *out)
{
    const float alpha = act->alpha, beta = act->beta;
    const vf zero = v_set(0.0f), one = v_set(1.0f);
    switch (act->kind) {
    case SEQLSTM_ACT_TANH:
        MAP1(r = v_tanh(x));
        break;
    case SEQLSTM_ACT_SIGMOID:
        MAP1(r = v_sigmoid(x));
        break;
    case SEQLSTM_ACT_RELU:
        MAP1(r = v_select(x <= 0.0f, zero, x));
        break;
    case SEQLSTM_ACT_LEAKY_RELU:
        MAP1(r = v_select(x >= 0.0f, x, x * alpha));
        break;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        MAP1(r = v_select(x <= alpha, zero, x));
        break;
    case SEQLSTM_ACT_SCALED_TANH:
        MAP1(r = v_tanh(x * beta) * alpha);
        break;
    case SEQLSTM_ACT_HARD_SIGMOID:
        MAP1(r = x * alpha + beta; r = v_select(r <= 0.0f, zero, r); r = v_select(r >= 1.0f, one, r));
        break;
    case SEQLSTM_ACT_ELU:
        MAP1(r = v_select(x >= 0.0f, x, v_expm1(v_select(x > 0.0f, zero, x)) * alpha));
        break;
    case SEQLSTM_ACT_SOFTSIGN:
        MAP1(r = x / (v_abs(x) + 1.0f));
        break;
    case SEQLSTM_ACT_SOFTPLUS:
        MAP1(r = v_softplus(x));
        break;
    case SEQLSTM_ACT_AFFINE:
        MAP1(r = x * alpha + beta);
        break;
    default:
        if (out != in)
            memcpy(out, in, (size_t)n * sizeof *out);
        break;
    }
}

void BLAS_NAME(act_backward)(const struct seqlstm_activation *act, int64_t n, const float *in, const float *out,
                             const float *dy, float *dx)
{
    const float alpha = act->alpha, beta = act->beta;
    const vf zero = v_set(0.0f);
    switch (act->kind) {
    case SEQLSTM_ACT_TANH:
        MAP2(out, r = d * (1.0f - x * x));
        break;
    case SEQLSTM_ACT_SIGMOID:
        MAP2(out, r = d * (x * (1.0f - x)));
        break;
    case SEQLSTM_ACT_RELU:
        MAP2(out, r = v_select(x <= 0.0f, zero, d));
        break;
    case SEQLSTM_ACT_LEAKY_RELU:
        MAP2(in, r = v_select(x >= 0.0f, d, d * alpha));
        break;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        MAP2(in, r = v_select(x <= alpha, zero, d));
        break;
    case SEQLSTM_ACT_SCALED_TANH:
        MAP2(in, r = v_tanh(x * beta); r = d * ((1.0f - r * r) * (alpha * beta)));
        break;
    case SEQLSTM_ACT_HARD_SIGMOID:
        MAP2(in, r = x * alpha + beta; r = v_select((r <= 0.0f) | (r >= 1.0f), zero, d * alpha));
        break;
    case SEQLSTM_ACT_ELU:
        MAP2(in, r = v_select(x >= 0.0f, d, d * (v_exp(v_select(x > 0.0f, zero, x)) * alpha)));
        break;
    case SEQLSTM_ACT_SOFTSIGN:
        MAP2(in, r = v_abs(x) + 1.0f; r = d / (r * r));
        break;
    case SEQLSTM_ACT_SOFTPLUS:
        MAP2(in, r = d * v_sigmoid(x));
        break;
    case SEQLSTM_ACT_AFFINE:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * alpha;
        break;
    default:
        if (dx != dy)
            memcpy(dx, dy, (size_t)n * sizeof *dx);
        break;
    }
}

void BLAS_NAME(add)(int64_t n, const float *b, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += b[i];
}

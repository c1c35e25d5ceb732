/* SPDX-License-Identifier: Apache-2.0 */
/* Flat vectors: optimizers in one pass, vector operations, norm, finite check (compiled once for each instruction set).
 *
 * Memory limits the speed of optimizers, so every state is read and written once. */
#include "cpu-blas/rowmath/unit.h"

#define BLAS_RESTRICT __restrict

static void update_sgd(const struct blas_update *u, int64_t n, float *BLAS_RESTRICT p, const float *BLAS_RESTRICT g)
{
    const float step = u->learning_rate, scale = u->grad_scale, keep = 1.0f - u->decay;
    for (int64_t i = 0; i < n; i++)
        p[i] = p[i] * keep - step * (g[i] * scale);
}

static void update_momentum(const struct blas_update *u, int64_t n, float *BLAS_RESTRICT p,
                            const float *BLAS_RESTRICT g, float *BLAS_RESTRICT m)
{
    const float step = u->learning_rate, scale = u->grad_scale, keep = 1.0f - u->decay, mu = u->momentum;
    for (int64_t i = 0; i < n; i++) {
        m[i] = mu * m[i] + g[i] * scale;
        p[i] = p[i] * keep - step * m[i];
    }
}

static void update_nesterov(const struct blas_update *u, int64_t n, float *BLAS_RESTRICT p,
                            const float *BLAS_RESTRICT g, float *BLAS_RESTRICT m)
{
    const float step = u->learning_rate, scale = u->grad_scale, keep = 1.0f - u->decay, mu = u->momentum;
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        m[i] = mu * m[i] + d;
        p[i] = p[i] * keep - step * (d + mu * m[i]);
    }
}

static void update_adam(const struct blas_update *u, int64_t n, float *BLAS_RESTRICT p, const float *BLAS_RESTRICT g,
                        float *BLAS_RESTRICT m, float *BLAS_RESTRICT v)
{
    const float scale = u->grad_scale, keep = 1.0f - u->decay;
    const float b1 = u->beta_1, r1 = u->rest_1, b2 = u->beta_2, r2 = u->rest_2;
    const float step = u->learning_rate * u->correct_1, correct = u->correct_2, epsilon = u->epsilon;
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        m[i] = b1 * m[i] + r1 * d;
        v[i] = b2 * v[i] + r2 * (d * d);
        p[i] = p[i] * keep - step * m[i] / (__builtin_sqrtf(v[i] * correct) + epsilon);
    }
}

static void update_amsgrad(const struct blas_update *u, int64_t n, float *BLAS_RESTRICT p, const float *BLAS_RESTRICT g,
                           float *BLAS_RESTRICT m, float *BLAS_RESTRICT v, float *BLAS_RESTRICT w)
{
    const float scale = u->grad_scale, keep = 1.0f - u->decay;
    const float b1 = u->beta_1, r1 = u->rest_1, b2 = u->beta_2, r2 = u->rest_2;
    const float step = u->learning_rate * u->correct_1, correct = u->correct_2, epsilon = u->epsilon;
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        m[i] = b1 * m[i] + r1 * d;
        v[i] = b2 * v[i] + r2 * (d * d);
        w[i] = v[i] > w[i] ? v[i] : w[i];
        p[i] = p[i] * keep - step * m[i] / (__builtin_sqrtf(w[i] * correct) + epsilon);
    }
}

/* a: for CENTERED, m: with momentum; both may be NULL. */
static void update_rmsprop(const struct blas_update *u, int64_t n, float *BLAS_RESTRICT p, const float *BLAS_RESTRICT g,
                           float *BLAS_RESTRICT v, float *BLAS_RESTRICT m, float *BLAS_RESTRICT a)
{
    const float scale = u->grad_scale, keep = 1.0f - u->decay, step = u->learning_rate;
    const float rho = u->beta_2, rest = u->rest_2, epsilon = u->epsilon, mu = u->momentum;
    if (a == NULL && m == NULL) {
        for (int64_t i = 0; i < n; i++) {
            float d = g[i] * scale;
            v[i] = rho * v[i] + rest * (d * d);
            p[i] = p[i] * keep - step * d / (__builtin_sqrtf(v[i]) + epsilon);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        v[i] = rho * v[i] + rest * (d * d);
        float spread = v[i];
        if (a != NULL) {
            a[i] = rho * a[i] + rest * d;
            spread = v[i] - a[i] * a[i];
            spread = spread < 0.0f ? 0.0f : spread;
        }
        float move = step * d / (__builtin_sqrtf(spread) + epsilon);
        if (m != NULL)
            move = m[i] = mu * m[i] + move;
        p[i] = p[i] * keep - move;
    }
}

static void update_adagrad(const struct blas_update *u, int64_t n, float *BLAS_RESTRICT p, const float *BLAS_RESTRICT g,
                           float *BLAS_RESTRICT v)
{
    const float scale = u->grad_scale, keep = 1.0f - u->decay, step = u->learning_rate, epsilon = u->epsilon;
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        v[i] += d * d;
        p[i] = p[i] * keep - step * d / (__builtin_sqrtf(v[i]) + epsilon);
    }
}

static void update_adadelta(const struct blas_update *u, int64_t n, float *BLAS_RESTRICT p,
                            const float *BLAS_RESTRICT g, float *BLAS_RESTRICT v, float *BLAS_RESTRICT w)
{
    const float scale = u->grad_scale, keep = 1.0f - u->decay, step = u->learning_rate;
    const float rho = u->beta_2, rest = u->rest_2, epsilon = u->epsilon;
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] * scale;
        v[i] = rho * v[i] + rest * (d * d);
        float move = __builtin_sqrtf(w[i] + epsilon) / __builtin_sqrtf(v[i] + epsilon) * d;
        w[i] = rho * w[i] + rest * (move * move);
        p[i] = p[i] * keep - step * move;
    }
}

void BLAS_NAME(update)(const struct blas_update *u, int64_t n, float *param, const float *grad, float *state_1,
                       float *state_2, float *state_3)
{
    switch (u->kind) {
    case SEQLSTM_KIND_OPTIMIZER_SGD:
        update_sgd(u, n, param, grad);
        break;
    case SEQLSTM_KIND_OPTIMIZER_MOMENTUM:
        update_momentum(u, n, param, grad, state_1);
        break;
    case SEQLSTM_KIND_OPTIMIZER_NESTEROV:
        update_nesterov(u, n, param, grad, state_1);
        break;
    case SEQLSTM_KIND_OPTIMIZER_ADAM:
        if ((u->options & SEQLSTM_BIT_OPTIMIZER_AMSGRAD) != 0)
            update_amsgrad(u, n, param, grad, state_1, state_2, state_3);
        else
            update_adam(u, n, param, grad, state_1, state_2);
        break;
    case SEQLSTM_KIND_OPTIMIZER_RMSPROP:
        update_rmsprop(u, n, param, grad, state_1, u->momentum > 0.0f ? state_2 : NULL,
                       (u->options & SEQLSTM_BIT_OPTIMIZER_CENTERED) != 0 ? state_3 : NULL);
        break;
    case SEQLSTM_KIND_OPTIMIZER_ADAGRAD:
        update_adagrad(u, n, param, grad, state_1);
        break;
    default:
        update_adadelta(u, n, param, grad, state_1, state_2);
        break;
    }
}

void BLAS_NAME(vector)(uint32_t kind, float alpha, int64_t n, const float *x, float *y)
{
    switch (kind) {
    case SEQLSTM_KIND_VECTOR_FILL:
        for (int64_t i = 0; i < n; i++)
            y[i] = alpha;
        break;
    case SEQLSTM_KIND_VECTOR_AXPY:
        for (int64_t i = 0; i < n; i++)
            y[i] += alpha * x[i];
        break;
    case SEQLSTM_KIND_VECTOR_SCALE:
        for (int64_t i = 0; i < n; i++)
            y[i] *= alpha;
        break;
    case SEQLSTM_KIND_VECTOR_LERP:
        for (int64_t i = 0; i < n; i++)
            y[i] += alpha * (x[i] - y[i]);
        break;
    case SEQLSTM_KIND_VECTOR_SIGN_AXPY:
        for (int64_t i = 0; i < n; i++)
            y[i] += x[i] > 0.0f ? alpha : x[i] < 0.0f ? -alpha : 0.0f * x[i];
        break;
    case SEQLSTM_KIND_VECTOR_CLAMP:
        for (int64_t i = 0; i < n; i++) {
            float v = y[i] < -alpha ? -alpha : y[i];
            y[i] = (v > alpha ? alpha : v) + (y[i] - y[i]); /* 0, or NaN */
        }
        break;
    default:
        if (x != y)
            memcpy(y, x, (size_t)n * sizeof *y);
        break;
    }
}

/* Products and sums in double: 16 running sums, added as a binary tree. */
double BLAS_NAME(squared_norm)(int64_t n, const float *x)
{
    enum { WIDTH = 16 };
    double part[WIDTH] = {0};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        for (int j = 0; j < WIDTH; j++)
            part[j] += (double)x[i + j] * (double)x[i + j];
    for (int j = 0; i + j < n; j++)
        part[j] += (double)x[i + j] * (double)x[i + j];
    for (int width = WIDTH / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            part[j] += part[j + width];
    return part[0];
}

/* An exponent of all ones is NaN or infinity. */
bool BLAS_NAME(finite)(int64_t n, const float *x)
{
    enum { BLOCK = 4096 };
    for (int64_t i0 = 0; i0 < n; i0 += BLOCK) {
        int64_t i1 = i0 + BLOCK < n ? i0 + BLOCK : n;
        int32_t bad = 0;
        for (int64_t i = i0; i < i1; i++) {
            int32_t bits;
            memcpy(&bits, x + i, sizeof bits);
            bad |= (bits & 0x7F800000) == 0x7F800000;
        }
        if (bad != 0)
            return false;
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of a row, and the losses (compiled once for each instruction set). */
#include "cpu-blas/rowmath/unit.h"

static float largest_of(int64_t n, const float *x)
{
    vf m = v_set(-__builtin_inff());
    int64_t i = 0;
    for (; i + BLAS_LANES <= n; i += BLAS_LANES)
        m = v_max(v_load(x + i), m);
    if (i < n)
        m = v_max(v_load_tail(x + i, (int)(n - i), -__builtin_inff()), m);
    return v_largest(m);
}

void BLAS_NAME(row_stats)(int64_t n, const float *x, struct blas_row_stats *out)
{
    const float largest = largest_of(n, x);
    vf e = v_set(0.0f), s = v_set(0.0f);
    int64_t i = 0;
    for (; i + BLAS_LANES <= n; i += BLAS_LANES) {
        vf v = v_load(x + i);
        s += v;
        e += v_exp(v - largest);
    }
    if (i < n) {
        s += v_load_tail(x + i, (int)(n - i), 0.0f);
        e += v_exp(v_load_tail(x + i, (int)(n - i), -__builtin_inff()) - largest);
    }
    out->largest = largest;
    out->exp_sum = v_sum(e);
    out->sum = v_sum(s);
}

void BLAS_NAME(exp_row)(int64_t n, const float *bias, float *x, struct blas_row_stats *out)
{
    if (bias != NULL)
        for (int64_t i = 0; i < n; i++)
            x[i] += bias[i];
    const float largest = largest_of(n, x);
    vf e = v_set(0.0f), s = v_set(0.0f);
    int64_t i = 0;
    for (; i + BLAS_LANES <= n; i += BLAS_LANES) {
        vf v = v_load(x + i);
        s += v;
        v = v_exp(v - largest);
        e += v;
        v_store(x + i, v);
    }
    if (i < n) {
        s += v_load_tail(x + i, (int)(n - i), 0.0f);
        vf v = v_exp(v_load_tail(x + i, (int)(n - i), -__builtin_inff()) - largest);
        e += v;
        v_store_tail(x + i, (int)(n - i), v);
    }
    out->largest = largest;
    out->exp_sum = v_sum(e);
    out->sum = v_sum(s);
}

void BLAS_NAME(scale_shift)(int64_t n, float factor, float shift, float *e)
{
    for (int64_t i = 0; i < n; i++)
        e[i] = e[i] * factor - shift;
}

void BLAS_NAME(softmax_grad)(int64_t n, const float *in, float log_sum, float scale, float shift, float *out)
{
    MAP1(r = v_exp(x - log_sum) * scale - shift);
}

void BLAS_NAME(softmax)(int64_t n, const float *in, float *out, bool log)
{
    struct blas_row_stats stats;
    BLAS_NAME(row_stats)(n, in, &stats);
    if (log) {
        const float rest = (float)__builtin_log((double)stats.exp_sum);
        const float largest = stats.largest;
        MAP1(r = (x - largest) - rest);
    } else {
        const float largest = stats.largest, scale = 1.0f / stats.exp_sum;
        MAP1(r = v_exp(x - largest) * scale);
    }
}

void BLAS_NAME(softmax_backward)(int64_t n, const float *out, const float *dy, float *dx, bool log)
{
    vf a = v_set(0.0f);
    int64_t i = 0;
    for (; i + BLAS_LANES <= n; i += BLAS_LANES)
        a += log ? v_load(dy + i) : v_load(dy + i) * v_load(out + i);
    if (i < n) {
        vf d = v_load_tail(dy + i, (int)(n - i), 0.0f);
        a += log ? d : d * v_load_tail(out + i, (int)(n - i), 0.0f);
    }
    const float sum = v_sum(a);
    if (log)
        MAP2(out, r = d - v_exp(x) * sum);
    else
        MAP2(out, r = x * (d - sum));
}

/* ---- losses --------------------------------------------------------------------------------- */

static vf loss_of(uint32_t kind, float delta, vf x, vf target)
{
    vf d = x - target, a = v_abs(d);
    switch (kind) {
    case SEQLSTM_KIND_LOSS_MSE:
        return d * d;
    case SEQLSTM_KIND_LOSS_MAE:
        return a;
    case SEQLSTM_KIND_LOSS_HUBER:
        return v_select(a <= delta, d * d * 0.5f, (a - 0.5f * delta) * delta);
    default:
        return v_softplus(x) - target * x;
    }
}

/* Adds 64 vectors in float, and these sums in double, so that a row of 10^6 features loses no more precision than
 * one of 10^3. */
double BLAS_NAME(loss)(uint32_t kind, float delta, int64_t n, const float *x, const float *target)
{
    double total = 0.0;
    vf part = v_set(0.0f);
    int64_t i = 0;
    int count = 0;
    for (; i + BLAS_LANES <= n; i += BLAS_LANES) {
        part += loss_of(kind, delta, v_load(x + i), v_load(target + i));
        if (++count == 64) {
            total += (double)v_sum(part);
            part = v_set(0.0f);
            count = 0;
        }
    }
    if (i < n) {
        float rest[BLAS_LANES];
        v_store(rest, loss_of(kind, delta, v_load_tail(x + i, (int)(n - i), 0.0f),
                              v_load_tail(target + i, (int)(n - i), 0.0f)));
        for (int j = 0; j < n - i; j++)
            total += (double)rest[j];
    }
    return total + (double)v_sum(part);
}

void BLAS_NAME(loss_backward)(uint32_t kind, float delta, float scale, int64_t n, const float *in, const float *target,
                              float *dx)
{
    const float *dy = target;
    const vf zero = v_set(0.0f);
    switch (kind) {
    case SEQLSTM_KIND_LOSS_MSE:
        MAP2(in, r = (x - d) * (2.0f * scale));
        break;
    case SEQLSTM_KIND_LOSS_MAE:
        MAP2(in, r = x - d; r = v_select(r == 0.0f, zero, (vf)(((vi)r & (int32_t)0x80000000) ^ (vi)v_set(scale))));
        break;
    case SEQLSTM_KIND_LOSS_HUBER:
        MAP2(in, r = x - d; r = v_select(r >= delta, v_set(delta), r);
             r = v_select(r <= -delta, v_set(-delta), r) * scale);
        break;
    default:
        MAP2(in, r = (v_sigmoid(x) - d) * scale);
        break;
    }
}

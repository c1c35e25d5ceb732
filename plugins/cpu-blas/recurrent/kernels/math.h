/* SPDX-License-Identifier: Apache-2.0 */
/* exp, tanh, sigmoid and every other activation on vectors, with derivatives. Absolute errors are below 3e-7; results
 * saturate; NaN stays NaN.
 *
 *   exp(x) - 1 = (2^n - 1) + 2^n q,   n = round(x log2 e),   q = 2^f - 1 = f p(f),   |f| <= 1/2
 *
 * p interpolates (2^f - 1) / f at the Chebyshev nodes of degree 4 (the error of q is 1.6e-7). This form is exact for
 * small arguments, so that tanh and elu have small relative errors near zero, too. */
#ifndef BLAS_RECURRENT_MATH_H
#define BLAS_RECURRENT_MATH_H

#include <stdint.h>

#include <seqlstm/ops.h>

#include "cpu-blas/isa/vector.h"

enum { MATH_LANES = 8 };

/* Adding it rounds to an integer: 1.5 2^23 plus the bias of an exponent. See v_pow2_pushed. */
#define EXP_PUSH 12583039.0f

/* Coefficients of p, and of 2^f itself for 0 <= f < 1 (used with v_scale), to a relative error of 1e-7 and exact at
 * both ends. Highest power first. */
static const float exp_p[] = {0.0013381302537f, 0.0096663685154f, 0.0555038101380f, 0.2402234903802f, 0.6931471805599f};
static const float exp_whole[] = {0.0018793186f, 0.008990995f, 0.055818677f, 0.24015927f, 0.6931517f, 1.0f};
enum { EXP_P = sizeof exp_p / sizeof *exp_p };

/* p(f) of all lanes. Each stage is computed for all lanes before the next one, so that their chains of dependent
 * operations run side by side. */
INLINE void v_exp_polynomial(const int lanes, const vf *f, vf *p)
{
    const vf first = v_constant(exp_p[0]), second = v_constant(exp_p[1]);
    UNROLL_FOR (int i = 0; i < lanes; i++)
        p[i] = v_fma(first, f[i], second);
    UNROLL_FOR (int k = 2; k < EXP_P; k++) {
        const vf c = v_constant(exp_p[k]);
        UNROLL_FOR (int i = 0; i < lanes; i++)
            p[i] = v_fma(p[i], f[i], c);
    }
}

#ifndef BLAS_SIMD_SCALE
/* For lanes whose bit is set in `which`: limits x to +-`most`, then splits t = `rate` x into an integer n, plus
 * EXP_PUSH in `pushed`, and the rest f. */
INLINE void v_exp_reduce(const int lanes, const unsigned which, const float most, const float rate, const vf *x, vf *f,
                         vf *pushed)
{
    const vf push = v_constant(EXP_PUSH), up = v_constant(most), low = v_constant(-most), by = v_constant(rate);
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        if (!(which >> i & 1))
            continue;
        const vf t = v_min(up, v_max(low, x[i]));
        pushed[i] = v_fma(t, by, push);
        f[i] = v_fma(t, by, v_sub(push, pushed[i]));
    }
}
#endif

/* First part of v_curves: d = e + 1 with e = exp(-x); where bit i of `tanhs` is set, d = e - 1 with e = exp(2 x). e
 * stays below 2^63, so that the product of two denominators is finite. The rounding of log2 e causes a relative
 * error of e that grows with x, and none where e is near one. */
INLINE void v_curves_begin(const int lanes, const unsigned tanhs, const vf *x, vf *d)
{
    const vf one = v_constant(1.0f);
    vf f[MATH_LANES], p[MATH_LANES], scale[MATH_LANES];
#ifdef BLAS_SIMD_SCALE
    vf t[MATH_LANES];
    UNROLL_FOR (int i = 0; i < lanes; i++)
        t[i] = v_min(v_set(62.0f), v_mul(x[i], v_set(tanhs >> i & 1 ? 2.88539008f : -1.44269504f)));
    UNROLL_FOR (int i = 0; i < lanes; i++)
        f[i] = tanhs >> i & 1 ? v_fraction(t[i]) : v_floor_rest(t[i]);
    UNROLL_FOR (int i = 0; i < lanes; i++)
        p[i] = tanhs >> i & 1 ? v_set(exp_p[0]) : v_fma(v_set(exp_whole[0]), f[i], v_set(exp_whole[1]));
    UNROLL_FOR (int k = 1; k < EXP_P; k++) {
        UNROLL_FOR (int i = 0; i < lanes; i++)
            p[i] = v_fma(p[i], f[i], v_set(tanhs >> i & 1 ? exp_p[k] : exp_whole[k + 1]));
    }
    UNROLL_FOR (int i = 0; i < lanes; i++)
        scale[i] = tanhs >> i & 1 ? v_scale(one, v_sub(t[i], f[i])) : v_scale(p[i], t[i]);
    UNROLL_FOR (int i = 0; i < lanes; i++)
        d[i] = tanhs >> i & 1 ? v_fma(v_mul(scale[i], f[i]), p[i], v_sub(scale[i], one)) : v_add(scale[i], one);
#else
    vf pushed[MATH_LANES];
    v_exp_reduce(lanes, ~tanhs, 43.0f, -1.44269504f, x, f, pushed);
    v_exp_reduce(lanes, tanhs, 21.5f, 2.88539008f, x, f, pushed);
    v_exp_polynomial(lanes, f, p);
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        scale[i] = v_pow2_pushed(pushed[i]);
        f[i] = v_mul(scale[i], f[i]);
    }
    UNROLL_FOR (int i = 0; i < lanes; i++)
        d[i] = v_fma(f[i], p[i], tanhs >> i & 1 ? v_sub(scale[i], one) : v_add(scale[i], one));
#endif
}

/* Second part: y = sigmoid(x) = 1 / (e + 1), or tanh(x) = (e - 1) / (e + 1). Two denominators share one reciprocal. */
INLINE void v_curves_end(const int lanes, const unsigned tanhs, const vf *d, vf *y)
{
    vf below[MATH_LANES];
    UNROLL_FOR (int i = 0; i < lanes; i++)
        below[i] = tanhs >> i & 1 ? v_add(d[i], v_set(2.0f)) : d[i];
    UNROLL_FOR (int i = 0; i + 1 < lanes; i += 2) {
        vf both = v_reciprocal(v_mul(below[i], below[i + 1]));
        y[i] = v_mul(below[i + 1], both);
        y[i + 1] = v_mul(below[i], both);
    }
    if (lanes & 1)
        y[lanes - 1] = v_reciprocal(below[lanes - 1]);
    UNROLL_FOR (int i = 0; i < lanes; i++)
        y[i] = tanhs >> i & 1 ? v_mul(d[i], y[i]) : y[i];
}

/* y = sigmoid(x), or tanh(x) where bit i of `tanhs` is set. */
INLINE void v_curves(const int lanes, const unsigned tanhs, const vf *x, vf *y)
{
    vf d[MATH_LANES];
    v_curves_begin(lanes, tanhs, x, d);
    v_curves_end(lanes, tanhs, d, y);
}

INLINE vf v_sigmoid(vf x)
{
    v_curves(1, 0, &x, &x);
    return x;
}

INLINE vf v_tanh(vf x)
{
    v_curves(1, 1, &x, &x);
    return x;
}

/* exp(x) - 1 = scale - 1 + scale q */
INLINE vf v_exp_parts(vf x, vf *out_scale)
{
    const vf log2_e = v_set(1.44269504f), push = v_set(EXP_PUSH);
    vf c = v_min(v_set(87.0f), v_max(v_set(-87.0f), x)), z = v_fma(c, log2_e, push), p;
    vf f = v_fma(c, v_set(1.92596299e-8f), v_fma(c, log2_e, v_sub(push, z)));
    v_exp_polynomial(1, &f, &p);
    *out_scale = v_pow2_pushed(z);
    return v_mul(p, f);
}

INLINE vf v_exp(vf x)
{
    vf scale, q = v_exp_parts(x, &scale);
    return v_fma(scale, q, scale);
}

INLINE vf v_exp_minus_1(vf x)
{
    vf scale, q = v_exp_parts(x, &scale);
    return v_fma(scale, q, v_sub(scale, v_set(1.0f)));
}

/* log(1 + exp(x)) = max(x, 0) + log1p(t), t = exp(-|x|); log1p(t) = 2 atanh(t / (2 + t)). */
static inline vf v_softplus(vf x)
{
    vf t = v_exp(v_sub(v_zero(), v_abs(x)));
    vf s = v_div(t, v_add(t, v_set(2.0f)));
    vf z = v_mul(s, s);
    vf p = v_fma(z, v_set(2.0f / 13.0f), v_set(2.0f / 11.0f));
    p = v_fma(p, z, v_set(2.0f / 9.0f));
    p = v_fma(p, z, v_set(2.0f / 7.0f));
    p = v_fma(p, z, v_set(2.0f / 5.0f));
    p = v_fma(p, z, v_set(2.0f / 3.0f));
    p = v_fma(p, z, v_set(2.0f));
    return v_fma(p, s, v_max(v_zero(), x));
}

NOINLINE vf v_activate_rare(const struct seqlstm_activation *act, vf x)
{
    const vf alpha = v_set(act->alpha), beta = v_set(act->beta), one = v_set(1.0f);
    switch (act->kind) {
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return v_select(v_gt(x, alpha), x, v_zero());
    case SEQLSTM_ACT_SCALED_TANH:
        return v_mul(alpha, v_tanh(v_mul(beta, x)));
    case SEQLSTM_ACT_ELU:
        return v_select(v_ge(x, v_zero()), x, v_mul(alpha, v_exp_minus_1(x)));
    case SEQLSTM_ACT_SOFTSIGN:
        return v_div(x, v_add(one, v_abs(x)));
    case SEQLSTM_ACT_SOFTPLUS:
        return v_softplus(x);
    case SEQLSTM_ACT_AFFINE:
        return v_add(v_mul(alpha, x), beta);
    default:
        return x;
    }
}

INLINE vf v_activate(const struct seqlstm_activation *act, vf x)
{
    uint32_t kind = act->kind;
    if (kind == SEQLSTM_ACT_SIGMOID)
        return v_sigmoid(x);
    if (kind == SEQLSTM_ACT_TANH)
        return v_tanh(x);
    if (kind == SEQLSTM_ACT_LEAKY_RELU)
        return v_select(v_ge(x, v_zero()), x, v_mul(v_set(act->alpha), x));
    if (kind == SEQLSTM_ACT_RELU)
        return v_max(v_zero(), x);
    if (kind == SEQLSTM_ACT_HARD_SIGMOID) {
        vf y = v_add(v_mul(v_set(act->alpha), x), v_set(act->beta));
        return v_min(v_set(1.0f), v_max(v_zero(), y));
    }
    return v_activate_rare(act, x);
}

NOINLINE vf v_derivative_rare(const struct seqlstm_activation *act, vf x, vf y)
{
    const vf alpha = v_set(act->alpha), beta = v_set(act->beta), one = v_set(1.0f);
    switch (act->kind) {
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return v_select(v_gt(x, alpha), one, v_zero());
    case SEQLSTM_ACT_SCALED_TANH: {
        vf t = v_tanh(v_mul(beta, x));
        return v_mul(v_mul(alpha, beta), v_fnma(t, t, one));
    }
    case SEQLSTM_ACT_ELU:
        return v_select(v_ge(x, v_zero()), one, v_add(y, alpha));
    case SEQLSTM_ACT_SOFTSIGN: {
        vf s = v_sub(one, v_abs(y));
        return v_mul(s, s);
    }
    case SEQLSTM_ACT_SOFTPLUS:
        return v_sigmoid(x);
    case SEQLSTM_ACT_AFFINE:
        return alpha;
    default:
        return one;
    }
}

/* y = activation(x) of `count` vectors. Where the chains of operations are long, the vectors are computed side by
 * side. */
INLINE void v_activate_all(const int count, const struct seqlstm_activation *act, const vf *x, vf *y)
{
    if (act->kind == SEQLSTM_ACT_SIGMOID)
        v_curves(count, 0, x, y);
    else if (act->kind == SEQLSTM_ACT_TANH)
        v_curves(count, ~0u, x, y);
    else
        UNROLL_FOR (int i = 0; i < count; i++)
            y[i] = v_activate(act, x[i]);
}

/* dy/dx at x, where y = activation(x). */
INLINE vf v_derivative(const struct seqlstm_activation *act, vf x, vf y)
{
    const vf one = v_set(1.0f);
    uint32_t kind = act->kind;
    if (kind == SEQLSTM_ACT_SIGMOID)
        return v_fnma(y, y, y);
    if (kind == SEQLSTM_ACT_TANH)
        return v_fnma(y, y, one);
    if (kind == SEQLSTM_ACT_LEAKY_RELU)
        return v_select(v_ge(x, v_zero()), one, v_set(act->alpha));
    if (kind == SEQLSTM_ACT_RELU)
        return v_select(v_gt(x, v_zero()), one, v_zero());
    if (kind == SEQLSTM_ACT_HARD_SIGMOID) {
        vm inside = v_both(v_gt(y, v_zero()), v_gt(one, y));
        return v_select(inside, v_set(act->alpha), v_zero());
    }
    return v_derivative_rare(act, x, y);
}

/* C(z), and dC/dz times d. Limit 0 means no clip. */
INLINE vf v_clip(float limit, vf z)
{
    if (limit > 0.0f)
        z = v_min(v_set(limit), v_max(v_set(-limit), z));
    return z;
}
INLINE vf v_clip_gradient(float limit, vf z, vf d)
{
    if (limit > 0.0f)
        d = v_select(v_le(v_abs(z), v_set(limit)), d, v_zero());
    return d;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Flat vectors of the reference: vector operations, reductions and optimizers, against numbers worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ref_harness.h"

enum { TRAIN = SEQLSTM_MODE_TRAINING };

static void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%.15g, expected %.15g", got, expected);
}

static void vectors(void **state)
{
    (void)state;
    static const double y0[3] = {-2, 0.5, 3}, x0[3] = {4, 0, -1}, a = 0.75;
    const double expected[7][3] = {{a, a, a},
                                   {-2 + a * 4, 0.5, 3 - a},
                                   {-2 * a, 0.5 * a, 3 * a},
                                   {-2 + a * 6, 0.5 - a * 0.5, 3 - a * 4},
                                   {-2 + a, 0.5, 3 - a},
                                   {-a, 0.5, a},
                                   {4, 0, -1}};
    for (uint32_t kind = SEQLSTM_KIND_VECTOR_FILL; kind <= SEQLSTM_KIND_VECTOR_COPY; kind++) {
        const union seqlstm_any_desc d = {.vector = {.head = rh_head(SEQLSTM_OP_VECTOR, TRAIN), .kind = kind}};
        struct rh rh;
        rh_open_rows(&rh, &d, 3, 3, 1);
        memcpy(rh.values[0], y0, sizeof y0);
        if (rh.values[1])
            memcpy(rh.values[1], x0, sizeof x0);
        rh_forward(&rh);
        for (int k = 0; k < 3; k++)
            assert_near(rh_value(&rh, 0)[k], expected[kind - 1][k]);
        rh_check_float32(&rh, "vector");
        rh_close(&rh);
    }
}

static void reductions(void **state)
{
    (void)state;
    union seqlstm_any_desc d = {.reduce = {.head = rh_head(SEQLSTM_OP_SQUARED_NORM, TRAIN)}};
    struct rh rh;
    rh_open_rows(&rh, &d, 3, 3, 1);
    memcpy(rh_value(&rh, 0), (const double[3]){1, -2, 3}, 3 * sizeof(double));
    rh_value(&rh, 1)[0] = 100;
    rh_forward(&rh);
    assert_near(rh_value(&rh, 1)[0], 114);
    rh_close(&rh);
    d.head.op = SEQLSTM_OP_FINITE_CHECK;
    const double bad[3] = {1, NAN, -INFINITY};
    for (int k = 0; k < 3; k++) {
        rh_open_rows(&rh, &d, 3, 3, 1);
        rh_value(&rh, 0)[2] = bad[k];
        *(int32_t *)rh.values[1] = 4; /* only bit 0 is ours */
        rh_forward(&rh);
        assert_int_equal(*(int32_t *)rh.values[1], k ? 5 : 4);
        rh_close(&rh);
    }
}

/* A limit must not hide an overflow. */
static void clamp_marks_what_is_not_finite(void **state)
{
    (void)state;
    static const double y[3] = {INFINITY, -INFINITY, NAN};
    const union seqlstm_any_desc d = {
        .vector = {.head = rh_head(SEQLSTM_OP_VECTOR, TRAIN), .kind = SEQLSTM_KIND_VECTOR_CLAMP}};
    struct rh rh;
    rh_open_rows(&rh, &d, 3, 3, 1);
    memcpy(rh.values[0], y, sizeof y);
    rh_forward(&rh);
    for (int k = 0; k < 3; k++)
        assert_true(isnan(rh_value(&rh, 0)[k]));
    rh_close(&rh);
}

/* Nor may the sign of a value hide that it is none. */
static void the_sign_of_nan_is_nan(void **state)
{
    (void)state;
    static const double x[4] = {INFINITY, -INFINITY, 0, NAN}, want[3] = {1.25, 0.75, 1};
    const union seqlstm_any_desc d = {
        .vector = {.head = rh_head(SEQLSTM_OP_VECTOR, TRAIN), .kind = SEQLSTM_KIND_VECTOR_SIGN_AXPY}};
    struct rh rh;
    rh_open_rows(&rh, &d, 4, 4, 1);
    rh.step.alpha = 0.25f;
    for (int k = 0; k < 4; k++)
        rh_value(&rh, 0)[k] = 1;
    memcpy(rh.values[1], x, sizeof x);
    rh_forward(&rh);
    for (int k = 0; k < 3; k++)
        assert_true(rh_value(&rh, 0)[k] == want[k]);
    assert_true(isnan(rh_value(&rh, 0)[3]));
    rh_close(&rh);
}

/* However many values are not finite, and however often they are looked at. */
static void the_flag_of_a_check_is_one_bit(void **state)
{
    (void)state;
    const union seqlstm_any_desc d = {.reduce = {.head = rh_head(SEQLSTM_OP_FINITE_CHECK, TRAIN)}};
    struct rh rh;
    rh_open_rows(&rh, &d, 3, 3, 1);
    rh_value(&rh, 0)[0] = NAN;
    rh_value(&rh, 0)[1] = INFINITY;
    *(int32_t *)rh.values[1] = 0;
    for (int k = 0; k < 3; k++) {
        rh_forward(&rh);
        assert_int_equal(*(int32_t *)rh.values[1], 1);
    }
    rh_close(&rh);
}

/* Two updates of each rule, worked out with the formulas of ops.h in another order of operations. */
static void optimizers(void **state)
{
    (void)state;
    const double lr = 0.125, decay = 0.0625, b1 = 0.5, b2 = 0.75, rho = 0.75, mu = 0.5, eps = 0.25;
    for (uint32_t kind = SEQLSTM_KIND_OPTIMIZER_SGD; kind <= SEQLSTM_KIND_OPTIMIZER_ADADELTA; kind++)
        for (int variant = 0; variant < 4; variant++) {
            const bool rms = kind == SEQLSTM_KIND_OPTIMIZER_RMSPROP, adam = kind == SEQLSTM_KIND_OPTIMIZER_ADAM;
            const uint32_t options = variant & 1 ? (adam  ? SEQLSTM_BIT_OPTIMIZER_AMSGRAD
                                                    : rms ? SEQLSTM_BIT_OPTIMIZER_CENTERED
                                                          : 0)
                                                 : 0;
            const bool momentum = !rms || variant & 2;
            const union seqlstm_any_desc d = {.optimizer = {.head = rh_head(SEQLSTM_OP_OPTIMIZER, TRAIN),
                                                            .kind = kind,
                                                            .beta_1 = 0.5f,
                                                            .beta_2 = 0.75f,
                                                            .rho = 0.75f,
                                                            .momentum = momentum ? 0.5f : 0,
                                                            .epsilon = 0.25f,
                                                            .weight_decay = 0.0625f,
                                                            .options = options,
                                                            .clip_norm = 1}};
            struct rh rh;
            rh_open_rows(&rh, &d, 1, 1, 1);
            for (int k = 0; k < rh.count; k++)
                if (rh.values[k])
                    rh_value(&rh, k)[0] = k == 0 ? 2 : 0;
            double p = 2, m = 0, v = 0, u = 0, most = 0, mean = 0;
            for (int t = 1; t <= 2; t++) {
                const double raw = t == 1 ? 3 : -1, g = t == 1 ? 0.5 : -0.5; /* norms 3 and 1, limited to 1 */
                rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_GRAD)[0] = raw;
                rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_SQUARES)[0] = 4 * raw * raw;
                rh.step.update = (uint64_t)t;
                rh_forward(&rh);
                p *= 1 - lr * decay;
                if (kind == SEQLSTM_KIND_OPTIMIZER_SGD) {
                    p -= lr * g;
                } else if (kind <= SEQLSTM_KIND_OPTIMIZER_NESTEROV) {
                    m = mu * m + g;
                    p -= lr * (kind == SEQLSTM_KIND_OPTIMIZER_NESTEROV ? g + mu * m : m);
                } else if (adam) {
                    m += (1 - b1) * (g - m);
                    v += (1 - b2) * (g * g - v);
                    most = options ? fmax(most, v) : v;
                    p -= lr * m / (1 - pow(b1, t)) / (sqrt(most / (1 - pow(b2, t))) + eps);
                } else if (rms) {
                    v += (1 - rho) * (g * g - v);
                    mean += (1 - rho) * (g - mean);
                    const double q = g / (sqrt(options ? v - mean * mean : v) + eps);
                    m = (momentum ? mu * m : 0) + lr * q;
                    p -= m;
                } else if (kind == SEQLSTM_KIND_OPTIMIZER_ADAGRAD) {
                    v += g * g;
                    p -= lr * g / (sqrt(v) + eps);
                } else {
                    v += (1 - rho) * (g * g - v);
                    const double step = g * sqrt((u + eps) / (v + eps));
                    u += (1 - rho) * (step * step - u);
                    p -= lr * step;
                }
                assert_near(rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_PARAM)[0], p);
            }
            const double before = rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_PARAM)[0];
            for (int k = 0; k < 3; k++) { /* what changes nothing */
                rh.step.flags = k == 0 ? SEQLSTM_BIT_STEP_SKIP : 0;
                rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_SUMS)[0] = k == 1 ? (double)INFINITY : 1;
                rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_SQUARES)[0] = k == 2 ? (double)NAN : 1;
                rh_forward(&rh);
                assert_true(rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_PARAM)[0] == before);
            }
            rh_close(&rh);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(reductions),
        cmocka_unit_test(clamp_marks_what_is_not_finite),
        cmocka_unit_test(the_sign_of_nan_is_nan),
        cmocka_unit_test(the_flag_of_a_check_is_one_bit),
        cmocka_unit_test(optimizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

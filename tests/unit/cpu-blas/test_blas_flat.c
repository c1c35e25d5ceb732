/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: optimizers, vector operations, squared norm and finite check. */
#include "blas_fixture.h"

enum { N = 100003 };

static void run_flat(struct blas_fixture *f, struct sl_queue *queue, const struct seqlstm_desc *desc, int64_t n,
                     void *const *slots, uint32_t count, struct seqlstm_step step)
{
    struct fixture_run run = {.desc = desc, .rows = n, .slot_count = count, .step = step};
    memcpy(run.slots, slots, count * sizeof *slots);
    fixture_run(f, queue, &run);
}

/* One update of one parameter in double. */
static void update_reference(const struct seqlstm_optimizer_desc *d, const struct seqlstm_step *s, double *p,
                             double grad, double *s1, double *s2, double *s3)
{
    const double lr = (double)s->learning_rate, g = (double)s->grad_scale * grad, mu = (double)d->momentum;
    const double b1 = (double)d->beta_1, b2 = (double)d->beta_2, rho = (double)d->rho, eps = (double)d->epsilon;
    const double t = (double)s->update;
    *p -= lr * (double)d->weight_decay * *p;
    switch (d->kind) {
    case SEQLSTM_KIND_OPTIMIZER_SGD:
        *p -= lr * g;
        break;
    case SEQLSTM_KIND_OPTIMIZER_MOMENTUM:
        *s1 = mu * *s1 + g;
        *p -= lr * *s1;
        break;
    case SEQLSTM_KIND_OPTIMIZER_NESTEROV:
        *s1 = mu * *s1 + g;
        *p -= lr * (g + mu * *s1);
        break;
    case SEQLSTM_KIND_OPTIMIZER_ADAM: {
        *s1 = b1 * *s1 + (1 - b1) * g;
        *s2 = b2 * *s2 + (1 - b2) * g * g;
        double v = *s2;
        if ((d->options & SEQLSTM_BIT_OPTIMIZER_AMSGRAD) != 0)
            v = *s3 = fmax(*s3, *s2);
        *p -= lr * (*s1 / (1 - pow(b1, t))) / (sqrt(v / (1 - pow(b2, t))) + eps);
        break;
    }
    case SEQLSTM_KIND_OPTIMIZER_RMSPROP: {
        *s1 = rho * *s1 + (1 - rho) * g * g;
        double v = *s1;
        if ((d->options & SEQLSTM_BIT_OPTIMIZER_CENTERED) != 0) {
            *s3 = rho * *s3 + (1 - rho) * g;
            v = fmax(v - *s3 * *s3, 0.0);
        }
        double q = g / (sqrt(v) + eps);
        if (mu > 0) {
            *s2 = mu * *s2 + lr * q;
            *p -= *s2;
        } else {
            *p -= lr * q;
        }
        break;
    }
    case SEQLSTM_KIND_OPTIMIZER_ADAGRAD:
        *s1 += g * g;
        *p -= lr * g / (sqrt(*s1) + eps);
        break;
    default: {
        *s1 = rho * *s1 + (1 - rho) * g * g;
        double move = sqrt(*s2 + eps) / sqrt(*s1 + eps) * g;
        *s2 = rho * *s2 + (1 - rho) * move * move;
        *p -= lr * move;
        break;
    }
    }
}

static void test_optimizers(void **state)
{
    struct blas_fixture *f = *state;
    for (int k = 0; k < 56; k++) {
        const uint32_t kind = (uint32_t)(k % 7) + SEQLSTM_KIND_OPTIMIZER_SGD;
        const bool extra = k / 7 & 1, other = k / 14 & 1, wide = k / 28 & 1;
        struct seqlstm_optimizer_desc d = {.head = fixture_head(SEQLSTM_OP_OPTIMIZER, sizeof d, N),
                                           .kind = kind,
                                           .beta_1 = 0.9f,
                                           .beta_2 = 0.999f,
                                           .rho = 0.9f,
                                           .momentum = kind == SEQLSTM_KIND_OPTIMIZER_RMSPROP && !other ? 0.0f : 0.8f,
                                           .epsilon = 1e-3f,
                                           .weight_decay = other ? 0.01f : 0.0f,
                                           .clip_norm = !extra ? 0.0f
                                                        : wide ? 2.0f
                                                               : 1.0f};
        if (extra && kind == SEQLSTM_KIND_OPTIMIZER_ADAM)
            d.options = SEQLSTM_BIT_OPTIMIZER_AMSGRAD;
        if (extra && kind == SEQLSTM_KIND_OPTIMIZER_RMSPROP)
            d.options = SEQLSTM_BIT_OPTIMIZER_CENTERED;
        const int64_t n = other ? N : 33;
        float *p = fixture_floats(n, 1), *s[3];
        double *want[4];
        for (int i = 0; i < 4; i++)
            want[i] = calloc((size_t)n, sizeof(double));
        for (int64_t i = 0; i < n; i++)
            want[0][i] = (double)p[i];
        for (int i = 0; i < 3; i++) { /* the third, squared, is beyond the first here and there */
            s[i] = fixture_floats(n, 7 + (uint64_t)i);
            for (int64_t j = 0; j < n; j++) {
                s[i][j] = i < 2 ? fabsf(s[i][j]) * 0.5f : j % 5 == 0 ? 10.0f : 0.0f;
                want[i + 1][j] = (double)s[i][j];
            }
        }
        for (uint64_t update = 1; update <= 5; update++) {
            float *g = fixture_floats(n, update + 10);
            struct seqlstm_step step = {.update = update, .learning_rate = 0.05f, .grad_scale = 0.5f};
            double sums[2] = {0, 1}, squares = 0;
            for (int64_t i = 0; i < n; i++)
                squares += (double)g[i] * (double)g[i];
            void *slots[] = {p, g, s[0], s[1], s[2], sums, &squares};
            run_flat(f, k & 1 ? &f->queue : &f->alone, &d.head, n, slots, SEQLSTM_SLOT_OPTIMIZER_COUNT, step);
            if (extra && 0.5 * sqrt(squares) > (double)d.clip_norm)
                step.grad_scale = (float)((double)d.clip_norm / sqrt(squares));
            for (int64_t i = 0; i < n; i++)
                update_reference(&d, &step, &want[0][i], (double)g[i], &want[1][i], &want[2][i], &want[3][i]);
            /* a skipped update changes nothing */
            float *before = malloc((size_t)n * sizeof *before);
            memcpy(before, p, (size_t)n * sizeof *before);
            for (int why = 0; why < 3; why++) {
                step.flags = why == 0 ? SEQLSTM_BIT_STEP_SKIP : 0;
                sums[0] = why == 1 ? (double)NAN : 0;
                squares = why == 2 ? (double)INFINITY : 1;
                run_flat(f, &f->queue, &d.head, n, slots, SEQLSTM_SLOT_OPTIMIZER_COUNT, step);
                assert_memory_equal(before, p, (size_t)n * sizeof *before);
            }
            free(before), free(g);
        }
        fixture_compare(p, want[0], n, 1e-5, "param");
        for (int i = 0; i < 3; i++)
            fixture_compare(s[i], want[i + 1], n, 1e-5, "state");
        free(p);
        for (int i = 0; i < 3; i++)
            free(s[i]);
        for (int i = 0; i < 4; i++)
            free(want[i]);
    }
}

static void test_vector(void **state)
{
    struct blas_fixture *f = *state;
    for (uint32_t kind = SEQLSTM_KIND_VECTOR_FILL; kind <= SEQLSTM_KIND_VECTOR_COPY; kind++)
        for (int members = 0; members < 2; members++) {
            struct seqlstm_vector_desc d = {.head = fixture_head(SEQLSTM_OP_VECTOR, sizeof d, N), .kind = kind};
            float *x = fixture_floats(N, 1), *y = fixture_floats(N, 2), *old = fixture_floats(N, 2);
            x[5] = 0.0f;
            void *slots[] = {y, x};
            run_flat(f, members ? &f->queue : &f->alone, &d.head, N, slots, 2, (struct seqlstm_step){.alpha = 0.3f});
            for (int64_t i = 0; i < N; i++) {
                const double a = (double)0.3f, u = (double)x[i], v = (double)old[i];
                const double want[] = {
                    0, a, v + a * u, v * a, v + a * (u - v), v + a * (u > 0 ? 1 : u < 0 ? -1 : 0), fmin(fmax(v, -a), a),
                    u};
                fixture_close_to((double)y[i], want[kind], 2e-7, "y", i);
            }
            free(x), free(y), free(old);
        }
}

/* Where all gradients have been the same, v is the square of a but for rounding: the root is that of nothing, and the
 * parameter moves by the whole of the step. */
static void test_centered_without_spread(void **state)
{
    enum { COUNT = 37 };
    struct blas_fixture *f = *state;
    struct seqlstm_optimizer_desc d = {.head = fixture_head(SEQLSTM_OP_OPTIMIZER, sizeof d, COUNT),
                                       .kind = SEQLSTM_KIND_OPTIMIZER_RMSPROP,
                                       .options = SEQLSTM_BIT_OPTIMIZER_CENTERED,
                                       .rho = 0.9f,
                                       .epsilon = 0.5f};
    float param[COUNT], grad[COUNT], square[COUNT], mean[COUNT];
    double sums[2] = {1, 1}, squares = 1;
    for (int i = 0; i < COUNT; i++) {
        param[i] = 0;
        grad[i] = mean[i] = 0.1f + 0.037f * (float)i;
        square[i] = nextafterf(grad[i] * grad[i], 0.0f); /* rounded down */
    }
    void *slots[SEQLSTM_SLOT_OPTIMIZER_COUNT] = {
        [SEQLSTM_SLOT_OPTIMIZER_PARAM] = param,    [SEQLSTM_SLOT_OPTIMIZER_GRAD] = grad,
        [SEQLSTM_SLOT_OPTIMIZER_STATE_1] = square, [SEQLSTM_SLOT_OPTIMIZER_STATE_3] = mean,
        [SEQLSTM_SLOT_OPTIMIZER_SUMS] = sums,      [SEQLSTM_SLOT_OPTIMIZER_SQUARES] = &squares};
    run_flat(f, &f->alone, &d.head, COUNT, slots, SEQLSTM_SLOT_OPTIMIZER_COUNT,
             (struct seqlstm_step){.learning_rate = 0.5f, .grad_scale = 1.0f, .update = 1});
    for (int i = 0; i < COUNT; i++)
        if (!(fabsf(param[i] + grad[i]) <= 2e-3f * grad[i]))
            fail_msg("element %d: %g, expected %g", i, (double)param[i], (double)-grad[i]);
}

/* A limit hides nothing that is no number. */
static void test_clamp_keeps_what_is_no_number(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_vector_desc d = {.head = fixture_head(SEQLSTM_OP_VECTOR, sizeof d, 21),
                                    .kind = SEQLSTM_KIND_VECTOR_CLAMP};
    float *y = fixture_floats(21, 3);
    void *slots[] = {y, NULL};
    y[2] = NAN, y[11] = INFINITY, y[20] = -INFINITY;
    run_flat(f, &f->alone, &d.head, 21, slots, 2, (struct seqlstm_step){.alpha = 0.25f});
    for (int i = 0; i < 21; i++)
        assert_true(i == 2 || i == 11 || i == 20 ? isnan(y[i]) : fabsf(y[i]) <= 0.25f);
    free(y);
}

/* The sign of NaN is NaN, that of an infinite value is not. */
static void test_sign_keeps_nan(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_vector_desc d = {.head = fixture_head(SEQLSTM_OP_VECTOR, sizeof d, 21),
                                    .kind = SEQLSTM_KIND_VECTOR_SIGN_AXPY};
    float *x = fixture_floats(21, 3), y[21];
    void *slots[] = {y, x};
    x[2] = NAN, x[11] = INFINITY, x[12] = 0.0f, x[19] = -INFINITY, x[20] = -NAN;
    for (int i = 0; i < 21; i++)
        y[i] = 1.0f;
    run_flat(f, &f->alone, &d.head, 21, slots, 2, (struct seqlstm_step){.alpha = 0.25f});
    for (int i = 0; i < 21; i++)
        assert_true(i == 2 || i == 20 ? isnan(y[i]) : y[i] == (x[i] > 0.0f ? 1.25f : x[i] < 0.0f ? 0.75f : 1.0f));
    free(x);
}

/* The same bits for one and for three members, and far beyond what float could add. */
static void test_squared_norm(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_reduce_desc d = {.head = fixture_head(SEQLSTM_OP_SQUARED_NORM, sizeof d, 4 * N)};
    float *x = fixture_floats(4 * N, 1);
    x[17] = 1e18f;
    double want = 0.0, got[2] = {1.0, 1.0};
    for (int64_t i = 0; i < 4 * N; i++)
        want += (double)x[i] * (double)x[i];
    for (int members = 0; members < 2; members++) {
        void *slots[] = {x, &got[members]};
        run_flat(f, members ? &f->queue : &f->alone, &d.head, 4 * N, slots, 2, (struct seqlstm_step){0});
    }
    assert_true(got[0] == got[1]);
    fixture_close_to(got[0], want + 1.0, 1e-13, "norm", 0);
    double small = 0.5; /* it is added to */
    void *slots[] = {x + 20, &small};
    run_flat(f, &f->alone, &d.head, 1, slots, 2, (struct seqlstm_step){0});
    assert_true(small == 0.5 + (double)x[20] * (double)x[20]);
    free(x);
}

static void test_finite_check(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_reduce_desc d = {.head = fixture_head(SEQLSTM_OP_FINITE_CHECK, sizeof d, N)};
    float *x = fixture_floats(N, 1);
    static const float bad[] = {1.0f, INFINITY, -INFINITY, NAN, 3e38f};
    static const int64_t places[] = {0, 1, 4095, 4096, 5000, N - 1};
    for (size_t b = 0; b < 5; b++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++)
            for (int members = 0; members < 2; members++) {
                float old = x[places[p]];
                x[places[p]] = bad[b];
                int32_t flag = 0, already = 2;
                void *slots[] = {x, &flag}, *more[] = {x, &already};
                run_flat(f, members ? &f->queue : &f->alone, &d.head, N, slots, 2, (struct seqlstm_step){0});
                run_flat(f, members ? &f->queue : &f->alone, &d.head, N, more, 2, (struct seqlstm_step){0});
                assert_int_equal(flag, !isfinite(bad[b]));
                assert_int_equal(already, 2 | !isfinite(bad[b]));
                x[places[p]] = old;
            }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_vector),
        cmocka_unit_test(test_clamp_keeps_what_is_no_number),
        cmocka_unit_test(test_sign_keeps_nan),
        cmocka_unit_test(test_centered_without_spread),
        cmocka_unit_test(test_squared_norm),
        cmocka_unit_test(test_finite_check),
    };
    return FIXTURE_RUN(tests);
}

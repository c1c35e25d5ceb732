/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: ACTIVATION, LAYER_NORM, CAST, POOL, MERGE, GATHER, SCATTER. */
#include "blas_fixture.h"

static struct sl_queue *queue_of(struct blas_fixture *f, int i)
{
    return i & 1 ? &f->queue : &f->alone;
}

/* ---- activation: accuracy over the whole range, NaN and infinities ------------------------------ */

static double act(uint32_t kind, double alpha, double beta, double x)
{
    switch (kind) {
    case SEQLSTM_ACT_TANH:
        return tanh(x);
    case SEQLSTM_ACT_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? x : alpha * expm1(x);
    case SEQLSTM_ACT_SOFTPLUS:
        return log1p(exp(-fabs(x))) + fmax(x, 0);
    case SEQLSTM_ACT_SCALED_TANH:
        return alpha * tanh(beta * x);
    default:
        return x;
    }
}

static void test_activation_accuracy(void **state)
{
    struct blas_fixture *f = *state;
    static const uint32_t kinds[] = {SEQLSTM_ACT_TANH, SEQLSTM_ACT_SIGMOID, SEQLSTM_ACT_ELU, SEQLSTM_ACT_SOFTPLUS,
                                     SEQLSTM_ACT_SCALED_TANH};
    enum { N = 40001 };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    for (int i = 0; i < N; i++) {
        float magnitude = powf(10.0f, (float)(i % 20000) / 20000.0f * 9.0f - 7.0f); /* 1e-7 to 100 */
        x[i] = i < 20000 ? magnitude : -magnitude;
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct seqlstm_activation_desc d = {.head = fixture_head(SEQLSTM_OP_ACTIVATION, sizeof d, 1),
                                            .features = N,
                                            .activation = {.kind = kinds[k], .alpha = 1.7f, .beta = 0.6f}};
        struct fixture_run run = {.desc = &d.head, .rows = 1, .slots = {x, y}, .slot_count = 2};
        fixture_run(f, &f->alone, &run);
        for (int i = 0; i < N; i++) {
            double want = act(kinds[k], (double)1.7f, (double)0.6f, (double)x[i]);
            if (!(fabs((double)y[i] - want) <= 4e-7 * fabs(want) + 4e-38)) { /* near the smallest normal number */
                print_message("kind %u at %g: %.9g instead of %.9g\n", kinds[k], (double)x[i], (double)y[i], want);
                fail();
            }
        }
    }
    free(x), free(y);
}

static void test_activation_special(void **state)
{
    struct blas_fixture *f = *state;
    float x[19];
    for (uint32_t kind = 0; kind <= SEQLSTM_ACT_AFFINE; kind++) {
        struct seqlstm_activation_desc d = {.head = fixture_head(SEQLSTM_OP_ACTIVATION, sizeof d, 1),
                                            .features = 19,
                                            .activation = {.kind = kind, .alpha = 0.5f, .beta = 0.5f}};
        float y[19];
        for (int i = 0; i < 19; i++)
            x[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
        struct fixture_run run = {.desc = &d.head, .rows = 1, .slots = {x, y}, .slot_count = 2};
        fixture_run(f, &f->alone, &run);
        for (int i = 0; i < 19; i += 3)
            assert_true(isnan(y[i]));
        if (kind == SEQLSTM_ACT_TANH)
            assert_true(y[1] == 1.0f && y[2] == -1.0f);
        if (kind == SEQLSTM_ACT_SIGMOID)
            assert_true(y[1] == 1.0f && y[2] == 0.0f);
        if (kind == SEQLSTM_ACT_RELU || kind == SEQLSTM_ACT_SOFTPLUS)
            assert_true(y[1] == INFINITY && y[2] == 0.0f);
    }
}

/* Values and gradients at and around the kinks: those of ops.h. */
static void test_activation_kinks(void **state)
{
    struct blas_fixture *f = *state;
    static const struct {
        uint32_t kind;
        float x, y, want;
    } cases[] = {{SEQLSTM_ACT_RELU, 0.0f, 0.0f, 0.0f},
                 {SEQLSTM_ACT_LEAKY_RELU, 0.0f, 0.0f, 2.0f},
                 {SEQLSTM_ACT_LEAKY_RELU, -1.0f, -0.5f, 1.0f},
                 {SEQLSTM_ACT_THRESHOLDED_RELU, 0.5f, 0.0f, 0.0f},
                 {SEQLSTM_ACT_THRESHOLDED_RELU, 0.6f, 0.6f, 2.0f},
                 {SEQLSTM_ACT_ELU, 0.0f, 0.0f, 2.0f},
                 {SEQLSTM_ACT_HARD_SIGMOID, -0.5f, 0.0f, 0.0f},
                 {SEQLSTM_ACT_HARD_SIGMOID, 1.5f, 1.0f, 0.0f},
                 {SEQLSTM_ACT_HARD_SIGMOID, 0.1f, 0.3f, 1.0f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seqlstm_activation_desc d = {.head = fixture_head(SEQLSTM_OP_ACTIVATION, sizeof d, 1),
                                            .features = 1,
                                            .activation = {.kind = cases[i].kind, .alpha = 0.5f, .beta = 0.25f}};
        float x = cases[i].x, y, dy = 2.0f, dx;
        struct fixture_run run = {.desc = &d.head,
                                  .rows = 1,
                                  .slots = {&x, &y},
                                  .grads = {&dx, &dy},
                                  .slot_count = 2,
                                  .parts = SEQLSTM_BIT_BACKWARD_INPUTS};
        fixture_run(f, &f->alone, &run);
        fixture_close_to((double)y, (double)cases[i].y, 1e-7, "value at kink", (int64_t)i);
        fixture_close_to((double)dx, (double)cases[i].want, 1e-7, "kink", (int64_t)i);
    }
}

/* ---- layer norm ------------------------------------------------------------------------------------ */

static void test_layer_norm(void **state)
{
    struct blas_fixture *f = *state;
    for (int k = 0; k < 32; k++) {
        const int64_t n = k & 8 ? 167 : 5, rows = k & 16 ? 1301 : 3;
        const bool accumulate = k & 1;
        struct seqlstm_layer_norm_desc d = {.head = fixture_head(SEQLSTM_OP_LAYER_NORM, sizeof d, rows),
                                            .features = n,
                                            .epsilon = 1e-3f,
                                            .options = (uint32_t)(k >> 1) & 3u};
        float *x = fixture_floats(rows * n, 1), *y = fixture_floats(rows * n, 2), *gain = fixture_floats(n, 3);
        float *bias = fixture_floats(n, 4), *dy = fixture_floats(rows * n, 5), *dx = fixture_floats(rows * n, 6);
        float *dg = fixture_floats(n, 7), *db = fixture_floats(n, 8);
        double *wy = calloc((size_t)(rows * n), 8), *wx = calloc((size_t)(rows * n), 8);
        double *wg = calloc((size_t)n, 8), *wb = calloc((size_t)n, 8);
        const bool has_gain = d.options & SEQLSTM_BIT_LAYER_NORM_GAIN,
                   has_bias = d.options & SEQLSTM_BIT_LAYER_NORM_BIAS;
        for (int64_t j = 0; j < n; j++) {
            wg[j] = accumulate ? (double)dg[j] : 0.0;
            wb[j] = accumulate ? (double)db[j] : 0.0;
        }
        for (int64_t r = 0; r < rows; r++) {
            x[r * n] += 30.0f; /* a mean far from zero */
            double mean = 0, var = 0, sum_q = 0, sum_qh = 0;
            for (int64_t j = 0; j < n; j++)
                mean += (double)x[r * n + j] / (double)n;
            for (int64_t j = 0; j < n; j++)
                var += ((double)x[r * n + j] - mean) * ((double)x[r * n + j] - mean) / (double)n;
            const double rstd = 1.0 / sqrt(var + (double)d.epsilon);
            for (int64_t j = 0; j < n; j++) {
                double h = ((double)x[r * n + j] - mean) * rstd, g = has_gain ? (double)gain[j] : 1.0;
                double q = (double)dy[r * n + j] * g;
                wy[r * n + j] = h * g + (has_bias ? (double)bias[j] : 0.0);
                wg[j] += (double)dy[r * n + j] * h;
                wb[j] += (double)dy[r * n + j];
                sum_q += q / (double)n;
                sum_qh += q * h / (double)n;
            }
            for (int64_t j = 0; j < n; j++) {
                double h = ((double)x[r * n + j] - mean) * rstd;
                double q = (double)dy[r * n + j] * (has_gain ? (double)gain[j] : 1.0);
                wx[r * n + j] = rstd * (q - sum_q - h * sum_qh);
            }
        }
        struct fixture_run run = {.desc = &d.head,
                                  .rows = rows,
                                  .slots = {x, y, has_gain ? gain : NULL, has_bias ? bias : NULL},
                                  .grads = {dx, dy, has_gain ? dg : NULL, has_bias ? db : NULL},
                                  .slot_count = SEQLSTM_SLOT_LAYER_NORM_COUNT,
                                  .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS |
                                           (accumulate ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0u)};
        fixture_run(f, queue_of(f, k), &run);
        fixture_compare(y, wy, rows * n, 2e-5, "y");
        fixture_compare(dx, wx, rows * n, 2e-5, "dx");
        if (has_gain)
            fixture_compare(dg, wg, n, 3e-5, "dgain");
        if (has_bias)
            fixture_compare(db, wb, n, 1e-5, "dbias");
        free(x), free(y), free(gain), free(bias), free(dy), free(dx), free(dg), free(db);
        free(wy), free(wx), free(wg), free(wb);
    }
}

/* ---- cast ------------------------------------------------------------------------------------------ */

static void cast_one(struct blas_fixture *f, uint32_t from, uint32_t to, int64_t n, void *x, void *y)
{
    struct seqlstm_cast_desc d = {
        .head = fixture_head(SEQLSTM_OP_CAST, sizeof d, n), .features = 1, .from = from, .to = to};
    struct fixture_run run = {.desc = &d.head, .rows = n, .slots = {x, y}, .slot_count = 2};
    fixture_run(f, &f->queue, &run);
}

/* All 65536 halves: to float32 and back unchanged; midpoints go to the even neighbour. */
static void test_cast_halves(void **state)
{
    struct blas_fixture *f = *state;
    static const uint32_t types[] = {SEQLSTM_DTYPE_FLOAT16, SEQLSTM_DTYPE_BFLOAT16};
    enum { N = 65536 };
    uint16_t *h = malloc(N * sizeof *h), *back = malloc(N * sizeof *back), *rounded = malloc(N * sizeof *rounded);
    float *x = malloc(N * sizeof *x);
    double *middle = malloc(N * sizeof *middle);
    for (int type = 0; type < 2; type++) {
        for (int i = 0; i < N; i++)
            h[i] = (uint16_t)i;
        cast_one(f, types[type], SEQLSTM_DTYPE_FLOAT32, N, h, x);
        cast_one(f, SEQLSTM_DTYPE_FLOAT32, types[type], N, x, back);
        const int infinity = type == 0 ? 0x7C00 : 0x7F80;
        for (int i = 0; i < N; i++) {
            const int magnitude = i & 0x7FFF;
            if (magnitude > infinity)
                assert_true(isnan(x[i]) && (back[i] & 0x7FFF) > infinity);
            else
                assert_int_equal(back[i], i);
            middle[i] = 0.0;
            if (magnitude < infinity - 1)
                middle[i] = ((double)x[i] + (double)x[i + 1]) / 2;
        }
        assert_true(x[type == 0 ? 0x3C00 : 0x3F80] == 1.0f && x[infinity] == INFINITY);
        assert_true((double)x[1] == (type == 0 ? ldexp(1.0, -24) : ldexp(1.0, -133)));
        cast_one(f, SEQLSTM_DTYPE_FLOAT64, types[type], N, middle, rounded);
        for (int i = 0; i < N; i++)
            if ((i & 0x7FFF) < infinity - 1)
                assert_int_equal(rounded[i], i & 1 ? i + 1 : i);
        /* a hair above or below the middle, lost in float32: up or down all the same */
        for (int above = 0; above < 2; above++) {
            double *beside = malloc(N * sizeof *beside);
            for (int i = 0; i < N; i++)
                beside[i] = middle[i] * (above ? 1.0 + 1e-15 : 1.0 - 1e-15);
            cast_one(f, SEQLSTM_DTYPE_FLOAT64, types[type], N, beside, rounded);
            for (int i = 1; i < N; i++)
                if ((i & 0x7FFF) < infinity - 1 && (i & 0x7FFF) > (type == 0 ? 0 : 0x80))
                    assert_int_equal(rounded[i], i + above);
            free(beside);
        }
    }
    free(h), free(back), free(rounded), free(x), free(middle);
}

/* What is no number stays none, whichever of its bits the narrower type has. */
static void test_cast_no_number(void **state)
{
    struct blas_fixture *f = *state;
    static const uint32_t types[] = {SEQLSTM_DTYPE_FLOAT16, SEQLSTM_DTYPE_BFLOAT16};
    uint32_t bits[] = {0x7F800001u, 0xFF800001u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0x7F801000u, 0x7FC00000u};
    enum { N = sizeof bits / sizeof *bits };
    float x[N];
    uint16_t y[N];
    memcpy(x, bits, sizeof x);
    for (int type = 0; type < 2; type++) {
        cast_one(f, SEQLSTM_DTYPE_FLOAT32, types[type], N, x, y);
        for (int i = 0; i < N; i++) {
            assert_true((y[i] & 0x7FFF) > (type == 0 ? 0x7C00 : 0x7F80));
            assert_int_equal(y[i] >> 15, bits[i] >> 31);
        }
    }
}

static void test_cast_wide(void **state)
{
    struct blas_fixture *f = *state;
    double x[5] = {1.0 + ldexp(1.0, -24), 1.0 + 3 * ldexp(1.0, -24), 1e300, -0.1, NAN}, again[5];
    float y[5];
    cast_one(f, SEQLSTM_DTYPE_FLOAT64, SEQLSTM_DTYPE_FLOAT32, 5, x, y);
    for (int i = 0; i < 4; i++)
        assert_true(y[i] == (float)x[i]);
    assert_true(isnan(y[4]));
    cast_one(f, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT64, 5, y, again);
    for (int i = 0; i < 4; i++)
        assert_true(again[i] == (double)y[i]);
}

/* Elements are converted in blocks; each becomes what it becomes alone. */
static void test_cast_blocks(void **state)
{
    struct blas_fixture *f = *state;
    static const uint32_t types[] = {SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT64, SEQLSTM_DTYPE_FLOAT16,
                                     SEQLSTM_DTYPE_BFLOAT16};
    static const size_t bytes[] = {4, 8, 2, 2};
    enum { N = 2 * 512 + 37 };
    float *x = fixture_floats(N, 1);
    double from[N], together[N], alone[N];
    for (int k = 0; k < 16; k++) {
        const int a = k / 4, b = k % 4;
        cast_one(f, SEQLSTM_DTYPE_FLOAT32, types[a], N, x, from);
        cast_one(f, types[a], types[b], N, from, together);
        for (size_t i = 0; i < N; i += 40)
            cast_one(f, types[a], types[b], N - i < 40 ? (int64_t)(N - i) : 40, (char *)from + i * bytes[a],
                     (char *)alone + i * bytes[b]);
        assert_memory_equal(together, alone, N * bytes[b]);
    }
    free(x);
}

/* ---- pool -------------------------------------------------------------------------------------------- */

static void test_pool(void **state)
{
    struct blas_fixture *f = *state;
    static const int32_t lengths[] = {40, 40, 31, 7, 1, 1};
    struct fixture_axis a;
    fixture_axis(&a, 6, lengths);
    const int64_t rows = a.axis.rows, n = 2100;
    for (uint32_t kind = SEQLSTM_KIND_POOL_LAST; kind <= SEQLSTM_KIND_POOL_FIRST; kind++)
        for (int members = 0; members < 2; members++) {
            struct seqlstm_pool_desc d = {
                .head = fixture_head(SEQLSTM_OP_POOL, sizeof d, rows), .features = n, .kind = kind};
            float *x = fixture_floats(rows * n, 1), *y = fixture_floats(6 * n, 2), *dy = fixture_floats(6 * n, 3);
            float *dx = fixture_floats(rows * n, 4);
            double *wy = calloc((size_t)(6 * n), 8), *wx = calloc((size_t)(rows * n), 8);
            for (int64_t i = 0; i < rows * n; i++)
                x[i] = (float)(int)(x[i] * 4); /* many ties */
            for (int64_t b = 0; b < 6; b++)
                for (int64_t j = 0; j < n; j++) {
                    int64_t best = 0;
                    double sum = 0;
                    for (int64_t t = 0; t < lengths[b]; t++) {
                        sum += (double)x[(a.row_offsets[t] + b) * n + j];
                        if (x[(a.row_offsets[t] + b) * n + j] > x[(a.row_offsets[best] + b) * n + j])
                            best = t;
                    }
                    const int64_t chosen = kind == SEQLSTM_KIND_POOL_LAST  ? lengths[b] - 1
                                           : kind == SEQLSTM_KIND_POOL_MAX ? best
                                                                           : 0;
                    const bool all = kind == SEQLSTM_KIND_POOL_MEAN || kind == SEQLSTM_KIND_POOL_SUM;
                    const double part = kind == SEQLSTM_KIND_POOL_MEAN ? 1.0 / lengths[b] : 1.0;
                    wy[b * n + j] = all ? sum * part : (double)x[(a.row_offsets[chosen] + b) * n + j];
                    for (int64_t t = 0; t < lengths[b]; t++)
                        wx[(a.row_offsets[t] + b) * n + j] =
                            all || t == chosen ? (double)dy[b * n + j] * (all ? part : 1.0) : 0.0;
                }
            struct fixture_run run = {.desc = &d.head,
                                      .rows = rows,
                                      .axis = &a.axis,
                                      .t1 = a.axis.steps,
                                      .slots = {x, y},
                                      .grads = {dx, dy},
                                      .slot_count = 2,
                                      .parts = SEQLSTM_BIT_BACKWARD_INPUTS};
            fixture_run(f, queue_of(f, members), &run);
            fixture_compare(y, wy, 6 * n, 1e-6, "y");
            fixture_compare(dx, wx, rows * n, 1e-6, "dx");
            free(x), free(y), free(dy), free(dx), free(wy), free(wx);
        }
}

/* Column j has NaN at step j, and the last column at two steps. It is the maximum, and its first step gets the
 * gradient. */
static void test_nan_is_the_maximum(void **state)
{
    enum { STEPS = 37, N = STEPS + 1 };
    static const int32_t lengths[] = {STEPS};
    struct blas_fixture *f = *state;
    struct fixture_axis a;
    fixture_axis(&a, 1, lengths);
    struct seqlstm_pool_desc d = {
        .head = fixture_head(SEQLSTM_OP_POOL, sizeof d, STEPS), .features = N, .kind = SEQLSTM_KIND_POOL_MAX};
    float *x = fixture_floats(STEPS * N, 1), *y = fixture_floats(N, 2), *dy = fixture_floats(N, 3);
    float *dx = fixture_floats(STEPS * N, 4);
    for (int64_t t = 0; t < STEPS; t++)
        x[t * N + t] = NAN;
    x[3 * N + STEPS] = x[20 * N + STEPS] = NAN;
    struct fixture_run run = {.desc = &d.head,
                              .rows = STEPS,
                              .axis = &a.axis,
                              .t1 = STEPS,
                              .slots = {x, y},
                              .grads = {dx, dy},
                              .slot_count = 2,
                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS};
    fixture_run(f, queue_of(f, 0), &run);
    for (int64_t j = 0; j < N; j++) {
        assert_true(isnan(y[j]));
        for (int64_t t = 0; t < STEPS; t++)
            assert_true(dx[t * N + j] == (t == (j < STEPS ? j : 3) ? dy[j] : 0));
    }
    free(x), free(y), free(dy), free(dx);
}

/* ---- merge -------------------------------------------------------------------------------------------- */

static void test_merge(void **state)
{
    struct blas_fixture *f = *state;
    enum { ROWS = 23000, INPUTS = 3 };
    for (uint32_t kind = SEQLSTM_KIND_MERGE_CONCAT; kind <= SEQLSTM_KIND_MERGE_AVE; kind++)
        for (int k = 0; k < 4; k++) {
            const bool no_dy = k & 2;
            struct seqlstm_merge_desc d = {.head = fixture_head(SEQLSTM_OP_MERGE, sizeof d, ROWS),
                                           .kind = kind,
                                           .inputs = INPUTS,
                                           .widths = {9, 9, 9}};
            if (kind == SEQLSTM_KIND_MERGE_CONCAT)
                d.widths[1] = 32;
            const int64_t width = kind == SEQLSTM_KIND_MERGE_CONCAT ? 50 : 9;
            float *y = fixture_floats(ROWS * width, 1), *dy = fixture_floats(ROWS * width, 2), *x[INPUTS], *dx[INPUTS];
            struct fixture_run run = {.desc = &d.head,
                                      .rows = ROWS,
                                      .slot_count = SEQLSTM_SLOT_MERGE_COUNT,
                                      .parts = SEQLSTM_BIT_BACKWARD_INPUTS};
            run.slots[0] = y;
            run.grads[0] = no_dy ? NULL : dy;
            for (int i = 0; i < INPUTS; i++) {
                run.slots[1 + i] = x[i] = fixture_floats(ROWS * d.widths[i], 3 + (uint64_t)i);
                run.grads[1 + i] = dx[i] = fixture_floats(ROWS * d.widths[i], 6 + (uint64_t)i);
            }
            const int unwanted = k & 1 ? 2 : 1;
            run.grads[1 + unwanted] = NULL;
            fixture_run(f, queue_of(f, k), &run);
            for (int64_t r = 0; r < ROWS; r++) {
                int64_t offset = 0;
                for (int i = 0; i < INPUTS; i++) {
                    for (int64_t j = 0; j < d.widths[i]; j++) {
                        const int64_t at = r * d.widths[i] + j;
                        double want_y, want_dx;
                        if (kind == SEQLSTM_KIND_MERGE_CONCAT) {
                            want_y = (double)x[i][at];
                            want_dx = (double)dy[r * width + offset + j];
                        } else {
                            double a = (double)x[0][at], b = (double)x[1][at], c = (double)x[2][at];
                            double g = (double)dy[at], all = a * b * c;
                            want_y = kind == SEQLSTM_KIND_MERGE_MUL
                                         ? all
                                         : (a + b + c) / (kind == SEQLSTM_KIND_MERGE_AVE ? 3 : 1);
                            want_dx = kind == SEQLSTM_KIND_MERGE_MUL   ? g * all / (double)x[i][at]
                                      : kind == SEQLSTM_KIND_MERGE_AVE ? g / 3
                                                                       : g;
                        }
                        fixture_close_to((double)y[r * width + offset + j], want_y, 1e-6, "y", at);
                        if (i != unwanted)
                            fixture_close_to((double)dx[i][at], no_dy ? 0.0 : want_dx, 1e-6, "dx", at);
                    }
                    offset += kind == SEQLSTM_KIND_MERGE_CONCAT ? d.widths[i] : 0;
                }
            }
            for (int i = 0; i < INPUTS; i++)
                free(x[i]), free(dx[i]);
            free(y), free(dy);
        }
}

/* ---- gather and scatter ---------------------------------------------------------------------------- */

static void test_gather_scatter(void **state)
{
    struct blas_fixture *f = *state;
    enum { FEW = 90, MANY = 400 };
    for (int k = 0; k < 16; k++) {
        const int64_t n = k & 2 ? 400 : 3;
        const bool gather = k & 4, shrinks = k & 8;
        struct seqlstm_gather_desc d = {
            .head = fixture_head(gather ? SEQLSTM_OP_GATHER : SEQLSTM_OP_SCATTER, sizeof d, MANY), .features = n};
        const int64_t rows_in = shrinks ? MANY : FEW, rows = shrinks ? FEW : MANY;
        int32_t index[MANY];
        for (int i = 0; i < MANY; i++) /* gather: repeats; scatter: distinct */
            index[i] =
                i % 13 == 4 || (!gather && i >= rows) ? -1 : (i * (gather ? 31 : 7)) % (int)(gather ? rows_in : rows);
        float *x = fixture_floats(rows_in * n, 1), *y = fixture_floats(rows * n, 2), *dy = fixture_floats(rows * n, 3);
        float *dx = fixture_floats(rows_in * n, 4);
        double *wy = calloc((size_t)(rows * n), 8), *wx = calloc((size_t)(rows_in * n), 8);
        for (int64_t i = 0; i < (gather ? rows : rows_in); i++)
            for (int64_t j = 0; j < n && index[i] >= 0; j++) {
                const int64_t in = gather ? index[i] : i, out = gather ? i : index[i];
                wy[out * n + j] = (double)x[in * n + j];
                wx[in * n + j] += (double)dy[out * n + j];
            }
        struct fixture_run run = {.desc = &d.head,
                                  .rows = rows,
                                  .rows_in = rows_in,
                                  .slots = {x, y, index},
                                  .grads = {dx, dy},
                                  .slot_count = SEQLSTM_SLOT_GATHER_COUNT,
                                  .parts = SEQLSTM_BIT_BACKWARD_INPUTS};
        fixture_run(f, queue_of(f, k), &run);
        fixture_compare(y, wy, rows * n, 0.0, "y");
        fixture_compare(dx, wx, rows_in * n, 1e-6, "dx");
        free(x), free(y), free(dx), free(dy), free(wy), free(wx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activation_accuracy),
        cmocka_unit_test(test_activation_special),
        cmocka_unit_test(test_activation_kinks),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_cast_halves),
        cmocka_unit_test(test_cast_no_number),
        cmocka_unit_test(test_cast_wide),
        cmocka_unit_test(test_cast_blocks),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_nan_is_the_maximum),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_gather_scatter),
    };
    return FIXTURE_RUN(tests);
}

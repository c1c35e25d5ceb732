/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: DENSE, EMBEDDING and DROPOUT against straight loops in double. */
#include "blas_fixture.h"

/* ---- activations in double ------------------------------------------------------------------- */

static double act(const struct seqlstm_activation *a, double x)
{
    double alpha = (double)a->alpha, beta = (double)a->beta;
    switch (a->kind) {
    case SEQLSTM_ACT_TANH:
        return tanh(x);
    case SEQLSTM_ACT_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case SEQLSTM_ACT_RELU:
        return x > 0 ? x : 0;
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? x : alpha * x;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > alpha ? x : 0;
    case SEQLSTM_ACT_SCALED_TANH:
        return alpha * tanh(beta * x);
    case SEQLSTM_ACT_HARD_SIGMOID:
        return fmin(fmax(alpha * x + beta, 0), 1);
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? x : alpha * expm1(x);
    case SEQLSTM_ACT_SOFTSIGN:
        return x / (1 + fabs(x));
    case SEQLSTM_ACT_SOFTPLUS:
        return log1p(exp(-fabs(x))) + fmax(x, 0);
    case SEQLSTM_ACT_AFFINE:
        return alpha * x + beta;
    default:
        return x;
    }
}

/* Row of outputs and, for upstream dy, the gradient of the row of sums. */
static void act_row(const struct seqlstm_activation *a, int64_t n, const double *z, double *y, const double *dy,
                    double *dz)
{
    if (a->kind == SEQLSTM_ACT_SOFTMAX || a->kind == SEQLSTM_ACT_LOG_SOFTMAX) {
        double largest = -INFINITY, sum = 0, dot = 0;
        for (int64_t i = 0; i < n; i++)
            largest = fmax(largest, z[i]);
        for (int64_t i = 0; i < n; i++)
            sum += exp(z[i] - largest);
        for (int64_t i = 0; i < n; i++) {
            double p = exp(z[i] - largest) / sum;
            y[i] = a->kind == SEQLSTM_ACT_SOFTMAX ? p : z[i] - largest - log(sum);
            dot += a->kind == SEQLSTM_ACT_SOFTMAX ? p * dy[i] : dy[i];
        }
        for (int64_t i = 0; i < n; i++) {
            double p = exp(z[i] - largest) / sum;
            dz[i] = a->kind == SEQLSTM_ACT_SOFTMAX ? p * (dy[i] - dot) : dy[i] - p * dot;
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double h = 1e-6;
        y[i] = act(a, z[i]);
        dz[i] = dy[i] * (act(a, z[i] + h) - act(a, z[i] - h)) / (2 * h);
    }
}

struct shape {
    int64_t rows, in, out;
};

static void check_dense(struct blas_fixture *f, struct sl_queue *queue, struct shape s, uint32_t kind, bool bias,
                        bool accumulate)
{
    struct seqlstm_dense_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, s.rows),
                                   .input = s.in,
                                   .output = s.out,
                                   .options = bias ? SEQLSTM_BIT_DENSE_USE_BIAS : 0,
                                   .activation = {.kind = kind, .alpha = 0.3f, .beta = 0.7f}};
    float *x = fixture_floats(s.rows * s.in, 1), *w = fixture_floats(s.out * s.in, 2), *b = fixture_floats(s.out, 3);
    float *dy = fixture_floats(s.rows * s.out, 4), *y = fixture_floats(s.rows * s.out, 5);
    float *dx = fixture_floats(s.rows * s.in, 6), *dw = fixture_floats(s.out * s.in, 7), *db = fixture_floats(s.out, 8);
    double *wy = calloc((size_t)(s.rows * s.out), 8), *wz = calloc((size_t)(s.rows * s.out), 8);
    double *wdx = calloc((size_t)(s.rows * s.in), 8), *wdw = calloc((size_t)(s.out * s.in), 8);
    double *wdb = calloc((size_t)s.out, 8), *z = calloc((size_t)s.out, 8), *up = calloc((size_t)s.out, 8);
    if (accumulate) {
        for (int64_t i = 0; i < s.out * s.in; i++)
            wdw[i] = (double)dw[i];
        for (int64_t i = 0; i < s.out; i++)
            wdb[i] = (double)db[i];
    } else {
        memset(dw, 0xFF, (size_t)(s.out * s.in) * 4); /* must be overwritten, not read */
        memset(db, 0xFF, (size_t)s.out * 4);
    }
    memset(y, 0xFF, (size_t)(s.rows * s.out) * 4);
    memset(dx, 0xFF, (size_t)(s.rows * s.in) * 4);
    for (int64_t r = 0; r < s.rows; r++) {
        for (int64_t o = 0; o < s.out; o++) {
            z[o] = bias ? (double)b[o] : 0.0;
            for (int64_t i = 0; i < s.in; i++)
                z[o] += (double)x[r * s.in + i] * (double)w[o * s.in + i];
            up[o] = (double)dy[r * s.out + o];
        }
        act_row(&d.activation, s.out, z, wy + r * s.out, up, wz + r * s.out);
        for (int64_t o = 0; o < s.out; o++) {
            double g = wz[r * s.out + o];
            wdb[o] += g;
            for (int64_t i = 0; i < s.in; i++) {
                wdx[r * s.in + i] += g * (double)w[o * s.in + i];
                wdw[o * s.in + i] += g * (double)x[r * s.in + i];
            }
        }
    }
    struct fixture_run run = {.desc = &d.head,
                              .rows = s.rows,
                              .slots = {x, y, w, bias ? b : NULL},
                              .grads = {dx, dy, dw, bias ? db : NULL},
                              .slot_count = SEQLSTM_SLOT_DENSE_COUNT,
                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS |
                                       (accumulate ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0u)};
    fixture_run(f, queue, &run);
    const double tolerance = 2e-6 * sqrt((double)(s.in > s.rows ? s.in : s.rows)) + 2e-6;
    fixture_compare(y, wy, s.rows * s.out, tolerance, "y");
    fixture_compare(dx, wdx, s.rows * s.in, tolerance * 3, "dx");
    fixture_compare(dw, wdw, s.out * s.in, tolerance * 3, "dw");
    if (bias)
        fixture_compare(db, wdb, s.out, tolerance * 3, "db");
    free(x), free(w), free(b), free(dy), free(y), free(dx), free(dw), free(db);
    free(wy), free(wz), free(wdx), free(wdw), free(wdb), free(z), free(up);
}

static void test_dense_activations(void **state)
{
    struct blas_fixture *f = *state;
    for (uint32_t kind = 0; kind < SEQLSTM_ACT_COUNT; kind++)
        for (int members = 0; members < 2; members++)
            check_dense(f, members ? &f->queue : &f->alone, (struct shape){9, 7, 37}, kind, kind % 2 == 0,
                        kind % 3 == 0);
}

static void test_dense_shapes(void **state)
{
    struct blas_fixture *f = *state;
    static const struct shape shapes[] = {{1, 1, 1},      {1, 300, 700},  {1, 700, 3},    {2, 1024, 64}, {130, 64, 1},
                                          {257, 1, 5},    {64, 200, 96},  {300, 33, 129}, {3, 5, 2048},  {7, 1030, 300},
                                          {13, 777, 301}, {500, 40, 200}, {730, 36, 260}, {7, 1601, 100}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 4; k++)
            check_dense(f, k % 2 ? &f->queue : &f->alone, shapes[i], k < 2 ? SEQLSTM_ACT_TANH : SEQLSTM_ACT_SOFTMAX,
                        true, k == 3);
}

/* Members share the columns of what has few rows: y in the first shape, dw in the second, dx in the third. */
static void test_dense_columns(void **state)
{
    struct blas_fixture *f = *state;
    static const struct shape shapes[] = {{3, 401, 1501}, {101, 3001, 5}, {4, 2003, 251}};
    static const uint32_t kinds[] = {SEQLSTM_ACT_SOFTPLUS, SEQLSTM_ACT_ELU, SEQLSTM_ACT_LOG_SOFTMAX};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            check_dense(f, &f->queue, shapes[i], kinds[k], k != 1, k != 2);
}

/* dy absent: gradients are zero, or left as they were when accumulating. */
static void test_dense_absent(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_dense_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, 4),
                                   .input = 3,
                                   .output = 2,
                                   .options = SEQLSTM_BIT_DENSE_USE_BIAS,
                                   .activation = {.kind = SEQLSTM_ACT_TANH}};
    float x[12] = {1}, y[8], w[6] = {1}, bias[2] = {1, 2}, dx[12], dw[6], db[2];
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        memset(dx, 0xFF, sizeof dx);
        for (int i = 0; i < 6; i++)
            dw[i] = db[i % 2] = 5.0f;
        struct fixture_run run = {.desc = &d.head,
                                  .rows = 4,
                                  .slots = {x, y, w, bias},
                                  .grads = {dx, NULL, dw, db},
                                  .slot_count = SEQLSTM_SLOT_DENSE_COUNT,
                                  .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS |
                                           (accumulate ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0u)};
        fixture_run(f, &f->queue, &run);
        for (int i = 0; i < 12; i++)
            assert_true(dx[i] == 0.0f);
        for (int i = 0; i < 6; i++)
            assert_true(dw[i] == (accumulate ? 5.0f : 0.0f) && db[i % 2] == dw[i]);
    }
}

static void test_dense_bits(void **state)
{
    /* the same queue twice: the same bits */
    struct blas_fixture *f = *state;
    struct seqlstm_dense_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, 100),
                                   .input = 50,
                                   .output = 70,
                                   .activation = {.kind = SEQLSTM_ACT_ELU, .alpha = 1.0f}};
    float *x = fixture_floats(5000, 1), *w = fixture_floats(3500, 2), *dy = fixture_floats(7000, 3);
    float *out[2][3];
    for (int i = 0; i < 2; i++) {
        out[i][0] = fixture_floats(7000, 9), out[i][1] = fixture_floats(5000, 9), out[i][2] = fixture_floats(3500, 9);
        struct fixture_run run = {.desc = &d.head,
                                  .rows = 100,
                                  .slots = {x, out[i][0], w, NULL},
                                  .grads = {out[i][1], dy, out[i][2], NULL},
                                  .slot_count = SEQLSTM_SLOT_DENSE_COUNT,
                                  .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS};
        fixture_run(f, &f->queue, &run);
    }
    assert_memory_equal(out[0][0], out[1][0], 7000 * 4);
    assert_memory_equal(out[0][1], out[1][1], 5000 * 4);
    assert_memory_equal(out[0][2], out[1][2], 3500 * 4);
    for (int i = 0; i < 6; i++)
        free(out[i / 3][i % 3]);
    free(x), free(w), free(dy);
}

/* In bfloat16 all three products are of rounded numbers. */
static void test_dense_bfloat16(void **state)
{
    struct blas_fixture *f = *state;
    enum { ROWS = 37, IN = 20, OUT = 50 };
    struct seqlstm_dense_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, ROWS), .input = IN, .output = OUT};
    d.head.dtype_compute = SEQLSTM_DTYPE_BFLOAT16;
    if (fixture_lacks_precision(f, &d.head))
        return;
    float *x = fixture_above_one(ROWS * IN), *w = fixture_above_one(OUT * IN), *dy = fixture_above_one(ROWS * OUT);
    float *y = fixture_floats(ROWS * OUT, 1), *dx = fixture_floats(ROWS * IN, 1), *dw = fixture_floats(OUT * IN, 1);
    struct fixture_run run = {.desc = &d.head,
                              .rows = ROWS,
                              .slots = {x, y, w, NULL},
                              .grads = {dx, dy, dw, NULL},
                              .slot_count = SEQLSTM_SLOT_DENSE_COUNT,
                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS};
    fixture_run(f, &f->queue, &run);
    for (int i = 0; i < ROWS * OUT; i++)
        assert_true(y[i] == IN);
    for (int i = 0; i < ROWS * IN; i++)
        assert_true(dx[i] == OUT);
    for (int i = 0; i < OUT * IN; i++)
        assert_true(dw[i] == ROWS);
    free(x), free(w), free(dy), free(y), free(dx), free(dw);
}

/* ---- embedding -------------------------------------------------------------------------------- */

static void test_embedding(void **state)
{
    struct blas_fixture *f = *state;
    enum { ROWS = 1501, WORDS = 1021 };
    static const int64_t features[] = {1, 3, 16, 200};
    for (int k = 0; k < 32; k++) {
        const int64_t e = features[k % 4];
        const bool accumulate = k & 4, no_dy = k & 16;
        struct seqlstm_embedding_desc d = {
            .head = fixture_head(SEQLSTM_OP_EMBEDDING, sizeof d, ROWS), .vocabulary = WORDS, .features = e};
        int32_t ids[ROWS];
        for (int r = 0; r < ROWS; r++)
            ids[r] = r % 11 == 3 ? -1 : (r * 7) % (WORDS - 1); /* the last word is never used */
        float *w = fixture_floats(WORDS * e, 1), *dw = fixture_floats(WORDS * e, 2);
        float *y = fixture_floats(ROWS * e, 3), *dy = fixture_floats(ROWS * e, 4);
        double *want = calloc((size_t)(WORDS * e), sizeof *want);
        for (int64_t i = 0; i < WORDS * e; i++)
            want[i] = accumulate ? (double)dw[i] : 0.0;
        if (!accumulate)
            memset(dw, 0xFF, (size_t)(WORDS * e) * sizeof *dw);
        struct fixture_run run = {.desc = &d.head,
                                  .rows = ROWS,
                                  .slots = {ids, y, w},
                                  .grads = {NULL, no_dy ? NULL : dy, dw},
                                  .slot_count = SEQLSTM_SLOT_EMBEDDING_COUNT,
                                  .parts = SEQLSTM_BIT_BACKWARD_WEIGHTS |
                                           (accumulate ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0u)};
        fixture_run(f, k & 8 ? &f->queue : &f->alone, &run);
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t i = 0; i < e; i++) {
                assert_true(y[r * e + i] == (ids[r] < 0 ? 0.0f : w[ids[r] * e + i]));
                if (ids[r] >= 0 && !no_dy)
                    want[ids[r] * e + i] += (double)dy[r * e + i];
            }
        fixture_compare(dw, want, WORDS * e, 1e-5, "dw");
        free(w), free(dw), free(y), free(dy), free(want);
    }
}

/* ---- dropout ----------------------------------------------------------------------------------- */

static void test_dropout(void **state)
{
    struct blas_fixture *f = *state;
    static const int32_t lengths[] = {9, 9, 6, 5, 1};
    static const float rates[] = {0.0f, 0.25f, 0.5f, 0.999f};
    struct fixture_axis a;
    fixture_axis(&a, 5, lengths);
    for (int k = 0; k < 128; k++) {
        const int64_t n = !(k & 1) ? 5 : k & 16 ? 20011 : 401; /* with members: several parts */
        const bool stream = k & 4, sequences = k & 8, whole = k & 2;
        struct seqlstm_dropout_desc d = {.head = fixture_head(SEQLSTM_OP_DROPOUT, sizeof d, a.axis.rows),
                                         .features = n,
                                         .stream = 77,
                                         .rate = rates[k >> 5],
                                         .mask = whole ? SEQLSTM_KIND_DROPOUT_SEQUENCE : SEQLSTM_KIND_DROPOUT_STEP};
        a.axis.flags = stream ? SEQLSTM_BIT_AXIS_STREAM : 0;
        const int64_t t0 = sequences ? 0 : 2, t1 = sequences ? a.axis.steps : 8;
        const int64_t rows = sequences ? 5 : a.row_offsets[t1] - a.row_offsets[t0];
        float *x = fixture_floats(rows * n, 1), *y = fixture_floats(rows * n, 2);
        float *dy = fixture_floats(rows * n, 3), *dx = fixture_floats(rows * n, 4);
        struct fixture_run run = {.desc = &d.head,
                                  .rows = rows,
                                  .axis = &a.axis,
                                  .t0 = t0,
                                  .t1 = t1,
                                  .bind_flags = sequences ? SEQLSTM_BIT_BIND_ON_SEQUENCES : 0,
                                  .slots = {x, y},
                                  .grads = {dx, dy},
                                  .slot_count = SEQLSTM_SLOT_UNARY_COUNT,
                                  .parts = SEQLSTM_BIT_BACKWARD_INPUTS,
                                  .step = {.seed = 42, .epoch = 3}};
        fixture_run(f, k & 16 ? &f->queue : &f->alone, &run);
        const uint64_t key = seqlstm_mix64(42, 77, 3);
        int64_t r = 0;
        for (int64_t t = t0; t < (sequences ? 1 : t1); t++)
            for (int64_t b = 0; b < (sequences ? 5 : a.batch_sizes[t]); b++, r++)
                for (int64_t i = 0; i < n; i++) {
                    uint32_t step = sequences ? 0
                                    : whole   ? (stream ? a.positions[b] : 0)
                                              : a.positions[b] + (uint32_t)t;
                    float m = d.rate == 0.0f ? 1.0f : seqlstm_mask(key, (uint64_t)i, step, a.ids[b], d.rate);
                    assert_true(y[r * n + i] == x[r * n + i] * m);
                    assert_true(dx[r * n + i] == dy[r * n + i] * m);
                }
        assert_int_equal(r, rows);
        free(x), free(y), free(dx), free(dy);
    }
}

/* Inference has no mask, in place or from one buffer into another; nor has a rate of 0. */
static void without_a_mask_rows_are_copied(void **state)
{
    struct blas_fixture *f = *state;
    static const int32_t lengths[] = {3, 2};
    struct fixture_axis a;
    fixture_axis(&a, 2, lengths);
    for (int k = 0; k < 8; k++) {
        const bool in_place = k & 1, trains = k & 2;
        struct seqlstm_dropout_desc d = {.head = fixture_head(SEQLSTM_OP_DROPOUT, sizeof d, 5),
                                         .features = 7,
                                         .rate = trains ? 0.0f : 0.5f,
                                         .mask = k & 4 ? SEQLSTM_KIND_DROPOUT_SEQUENCE : SEQLSTM_KIND_DROPOUT_STEP};
        d.head.mode = trains ? SEQLSTM_MODE_TRAINING : SEQLSTM_MODE_INFERENCE;
        float *x = fixture_floats(35, 1), *y = fixture_floats(35, 2), *was = fixture_floats(35, 1);
        struct fixture_run run = {
            .desc = &d.head, .rows = 5, .axis = &a.axis, .t1 = 3, .slots = {x, in_place ? x : y}, .slot_count = 2};
        fixture_run(f, &f->alone, &run);
        assert_memory_equal(in_place ? x : y, was, 35 * sizeof *was);
        free(x), free(y), free(was);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_activations),
        cmocka_unit_test(test_dense_shapes),
        cmocka_unit_test(test_dense_columns),
        cmocka_unit_test(test_dense_absent),
        cmocka_unit_test(test_dense_bits),
        cmocka_unit_test(test_dense_bfloat16),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(without_a_mask_rows_are_copied),
    };
    return FIXTURE_RUN(tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: LOSS and DENSE_LOSS, every kind, weight and variant, against straight loops in double. */
#include "blas_fixture.h"

struct loss_case {
    int64_t rows, inputs, classes; /* inputs 0: LOSS alone */
    uint32_t kind, options;
    float smoothing;
    bool accumulate;
    const char *variant;
};

static double softplus(double x)
{
    return log1p(exp(-fabs(x))) + fmax(x, 0.0);
}

/* Loss of one row and, times `scale`, its gradient. */
static double row_reference(const struct loss_case *k, const double *z, const float *target, int32_t label,
                            double scale, double *dz)
{
    const int64_t n = k->classes;
    double loss = 0.0;
    if (k->kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
        double largest = -INFINITY, sum = 0.0, s = (double)k->smoothing;
        for (int64_t i = 0; i < n; i++)
            largest = fmax(largest, z[i]);
        for (int64_t i = 0; i < n; i++)
            sum += exp(z[i] - largest);
        for (int64_t i = 0; i < n; i++) {
            double want = (i == label ? 1.0 - s : 0.0) + s / (double)n;
            double p = exp(z[i] - largest) / sum;
            loss -= want * (z[i] - largest - log(sum));
            dz[i] = scale * (p - want);
        }
        return loss;
    }
    for (int64_t i = 0; i < n; i++) {
        double d = z[i] - (double)target[i], a = fabs(d), g;
        switch (k->kind) {
        case SEQLSTM_KIND_LOSS_MSE:
            loss += d * d, g = 2.0 * d;
            break;
        case SEQLSTM_KIND_LOSS_MAE:
            loss += a, g = d > 0 ? 1.0 : d < 0 ? -1.0 : 0.0;
            break;
        case SEQLSTM_KIND_LOSS_HUBER:
            loss += a <= 0.5 ? d * d / 2 : 0.5 * (a - 0.25), g = fmax(-0.5, fmin(0.5, d));
            break;
        default:
            loss += softplus(z[i]) - (double)target[i] * z[i], g = 1.0 / (1.0 + exp(-z[i])) - (double)target[i];
            break;
        }
        dz[i] = scale * g / (double)n;
    }
    return loss / (double)n;
}

struct loss_data {
    float *x, *w, *b, *target, *weight, *class_weight, *row_loss, *dx, *dw, *db;
    int32_t *labels;
    double sums[2], *want_dx, *want_dw, *want_db, want_loss, want_weight, *want_rows;
};

static void make_data(const struct loss_case *k, struct loss_data *d)
{
    const int64_t in = k->inputs > 0 ? k->inputs : k->classes;
    d->x = fixture_floats(k->rows * in, 1);
    d->w = fixture_floats(k->classes * in, 2);
    d->b = fixture_floats(k->classes, 3);
    d->target = fixture_floats(k->rows * k->classes, 4);
    d->weight = fixture_floats(k->rows, 5);
    d->class_weight = fixture_floats(k->classes, 6);
    d->row_loss = fixture_floats(k->rows, 7);
    d->dx = fixture_floats(k->rows * in, 8);
    d->dw = fixture_floats(k->classes * in, 9);
    d->db = fixture_floats(k->classes, 10);
    d->labels = malloc((size_t)k->rows * sizeof *d->labels);
    for (int64_t r = 0; r < k->rows; r++) {
        d->labels[r] = r % 7 == 5 ? -1 : (int32_t)((r * 7919) % k->classes);
        d->weight[r] = r % 4 == 3 ? 0.0f : d->weight[r] + 1.5f;
    }
    for (int64_t c = 0; c < k->classes; c++)
        d->class_weight[c] += 2.0f;
    d->sums[0] = 10.0, d->sums[1] = 20.0;
    d->want_dx = calloc((size_t)(k->rows * in), sizeof(double));
    d->want_dw = calloc((size_t)(k->classes * in), sizeof(double));
    d->want_db = calloc((size_t)k->classes, sizeof(double));
    d->want_rows = calloc((size_t)k->rows, sizeof(double));
    for (int64_t i = 0; i < k->classes * in; i++)
        d->want_dw[i] = k->accumulate ? (double)d->dw[i] : 0.0;
    for (int64_t i = 0; i < k->classes; i++)
        d->want_db[i] = k->accumulate ? (double)d->db[i] : 0.0;
    if (!k->accumulate) {
        memset(d->dw, 0xFF, (size_t)(k->classes * in) * sizeof(float));
        memset(d->db, 0xFF, (size_t)k->classes * sizeof(float));
    }
    memset(d->dx, 0xFF, (size_t)(k->rows * in) * sizeof(float));
    d->want_loss = 10.0, d->want_weight = 20.0;
}

static void compute_wanted(const struct loss_case *k, struct loss_data *d, double factor)
{
    const int64_t n = k->classes;
    double *z = calloc((size_t)n, sizeof *z), *dz = calloc((size_t)n, sizeof *dz);
    for (int64_t r = 0; r < k->rows; r++) {
        const bool labelled = k->kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
        double w = (k->options & SEQLSTM_BIT_LOSS_ROW_WEIGHT) != 0 ? (double)d->weight[r] : 1.0;
        if (labelled && d->labels[r] < 0)
            w = 0.0;
        else if ((k->options & SEQLSTM_BIT_LOSS_CLASS_WEIGHT) != 0)
            w *= (double)d->class_weight[d->labels[r]];
        for (int64_t i = 0; i < n; i++) {
            z[i] = k->inputs > 0 ? (double)d->b[i] : (double)d->x[r * n + i];
            for (int64_t j = 0; j < k->inputs; j++)
                z[i] += (double)d->x[r * k->inputs + j] * (double)d->w[i * k->inputs + j];
        }
        double loss = row_reference(k, z, d->target + r * n, d->labels[r], factor * w, dz);
        if (labelled && d->labels[r] < 0)
            loss = 0.0;
        d->want_rows[r] = loss;
        d->want_loss += w * loss;
        d->want_weight += w;
        for (int64_t i = 0; i < n; i++) {
            if (k->inputs == 0)
                d->want_dx[r * n + i] = dz[i];
            d->want_db[i] += dz[i];
            for (int64_t j = 0; j < k->inputs; j++) {
                d->want_dx[r * k->inputs + j] += dz[i] * (double)d->w[i * k->inputs + j];
                d->want_dw[i * k->inputs + j] += dz[i] * (double)d->x[r * k->inputs + j];
            }
        }
    }
    free(z), free(dz);
}

static void check(struct blas_fixture *f, struct sl_queue *queue, struct loss_case k)
{
    struct loss_data d;
    make_data(&k, &d);
    compute_wanted(&k, &d, 0.125 * 2.0);
    const bool labelled = k.kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
    struct seqlstm_loss_desc loss = {.head = fixture_head(SEQLSTM_OP_LOSS, sizeof loss, k.rows + 3),
                                     .features = k.classes,
                                     .kind = k.kind,
                                     .options = k.options,
                                     .label_smoothing = k.smoothing,
                                     .delta = 0.5f};
    struct seqlstm_dense_loss_desc dense = {.head = fixture_head(SEQLSTM_OP_DENSE_LOSS, sizeof dense, k.rows + 3),
                                            .input = k.inputs,
                                            .output = k.classes,
                                            .dense_options = SEQLSTM_BIT_DENSE_USE_BIAS,
                                            .kind = k.kind,
                                            .options = k.options,
                                            .label_smoothing = k.smoothing,
                                            .delta = 0.5f};
    struct fixture_run run = {
        .desc = k.inputs > 0 ? &dense.head : &loss.head,
        .rows = k.rows,
        .slots = {d.x, labelled ? (void *)d.labels : d.target, d.weight, d.class_weight, d.sums, d.row_loss, d.w, d.b},
        .grads = {d.dx, NULL, NULL, NULL, NULL, NULL, d.dw, d.db},
        .slot_count = k.inputs > 0 ? SEQLSTM_SLOT_DENSE_LOSS_COUNT : SEQLSTM_SLOT_LOSS_COUNT,
        .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS |
                 (k.accumulate ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0u),
        .step = {.normaliser = 0.125f, .loss_scale = 2.0f},
        .variant = k.variant,
    };
    fixture_run(f, queue, &run);
    const int64_t in = k.inputs > 0 ? k.inputs : k.classes;
    fixture_close_to(d.sums[0], d.want_loss, 2e-6, "sum of losses", 0);
    fixture_close_to(d.sums[1], d.want_weight, 1e-12, "sum of weights", 0);
    if ((k.options & SEQLSTM_BIT_LOSS_ROW_LOSS) != 0)
        fixture_compare(d.row_loss, d.want_rows, k.rows, 4e-6, "row loss");
    fixture_compare(d.dx, d.want_dx, k.rows * in, 2e-5, "dx");
    if (k.inputs > 0) {
        fixture_compare(d.dw, d.want_dw, k.classes * in, 2e-5, "dw");
        fixture_compare(d.db, d.want_db, k.classes, 2e-5, "db");
    }
    free(d.x), free(d.w), free(d.b), free(d.target), free(d.weight), free(d.class_weight), free(d.row_loss);
    free(d.dx), free(d.dw), free(d.db), free(d.labels), free(d.want_dx), free(d.want_dw), free(d.want_db);
    free(d.want_rows);
}

static void test_loss(void **state)
{
    struct blas_fixture *f = *state;
    for (uint32_t kind = SEQLSTM_KIND_LOSS_MSE; kind <= SEQLSTM_KIND_LOSS_CROSS_ENTROPY; kind++)
        for (int i = 0; i < 16; i++) {
            const bool labelled = kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
            uint32_t options = (i & 1 ? SEQLSTM_BIT_LOSS_ROW_WEIGHT : 0u) | (i & 2 ? SEQLSTM_BIT_LOSS_ROW_LOSS : 0u) |
                               (labelled && (i & 4) ? SEQLSTM_BIT_LOSS_CLASS_WEIGHT : 0u);
            check(f, i & 1 ? &f->queue : &f->alone,
                  (struct loss_case){.rows = i & 8 ? 3000 : 3,
                                     .classes = i & 4 ? 37 : 16,
                                     .kind = kind,
                                     .options = options,
                                     .smoothing = labelled && (i & 8) ? 0.1f : 0.0f});
        }
}

/* Sums over so many elements are moved on several times. */
static void test_long_rows(void **state)
{
    struct blas_fixture *f = *state;
    for (uint32_t kind = SEQLSTM_KIND_LOSS_MSE; kind <= SEQLSTM_KIND_LOSS_CROSS_ENTROPY; kind++)
        check(f, &f->alone,
              (struct loss_case){.rows = 5, .classes = 4111, .kind = kind, .options = SEQLSTM_BIT_LOSS_ROW_LOSS});
}

/* A class that cannot be, of which no row is: neither loss nor gradient is infinite. */
static void impossible_classes_cost_nothing(void **state)
{
    struct blas_fixture *f = *state;
    enum { ROWS = 2, N = 5 };
    const struct seqlstm_loss_desc d = {
        .head = fixture_head(SEQLSTM_OP_LOSS, sizeof d, ROWS), .features = N, .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY};
    float x[ROWS * N] = {0}, dx[ROWS * N];
    int32_t labels[ROWS] = {1, 4};
    double sums[2] = {0};
    x[3] = x[N] = x[N + 2] = -INFINITY;
    struct fixture_run run = {.desc = &d.head,
                              .rows = ROWS,
                              .slots = {x, labels, NULL, NULL, sums},
                              .grads = {dx},
                              .slot_count = SEQLSTM_SLOT_LOSS_COUNT,
                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS,
                              .step = {.normaliser = 1.0f, .loss_scale = 1.0f}};
    fixture_run(f, &f->alone, &run);
    fixture_close_to(sums[0], log(4.0) + log(3.0), 1e-6, "loss", 0);
    for (int i = 0; i < ROWS * N; i++) {
        const int r = i / N, c = i % N;
        const double p = x[i] == 0.0f ? 1.0 / (r == 0 ? 4 : 3) : 0.0;
        fixture_close_to((double)dx[i], p - (c == labels[r] ? 1.0 : 0.0), 1e-6, "dx", i);
    }
}

static void test_dense_loss(void **state)
{
    struct blas_fixture *f = *state;
    for (uint32_t kind = SEQLSTM_KIND_LOSS_MSE; kind <= SEQLSTM_KIND_LOSS_CROSS_ENTROPY; kind++)
        for (int i = 0; i < 8; i++) {
            const bool labelled = kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
            check(f, i & 1 ? &f->queue : &f->alone,
                  (struct loss_case){.rows = i & 2 ? 2000 : 1,
                                     .inputs = i & 4 ? 41 : 3,
                                     .classes = i & 4 ? 30 : 50,
                                     .kind = kind,
                                     .smoothing = labelled && (i & 2) ? 0.2f : 0.0f,
                                     .options = SEQLSTM_BIT_LOSS_ROW_LOSS | (i & 1 ? SEQLSTM_BIT_LOSS_ROW_WEIGHT : 0u),
                                     .accumulate = i & 2});
        }
}

/* 1024 classes and more; rows in one block of 512, in two and in three; both variants. */
static void test_dense_loss_many_classes(void **state)
{
    struct blas_fixture *f = *state;
    static const char *const variants[] = {"stored", "recomputed"};
    for (int i = 0; i < 16; i++)
        check(f, i & 1 ? &f->queue : &f->alone,
              (struct loss_case){.rows = !(i & 2) ? 9
                                         : i & 8  ? 1100
                                                  : 530,
                                 .inputs = 6,
                                 .classes = i & 4 ? 1024 : 2057,
                                 .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY,
                                 .smoothing = i & 2 ? 0.0f : 0.1f,
                                 .options = SEQLSTM_BIT_LOSS_ROW_LOSS | SEQLSTM_BIT_LOSS_ROW_WEIGHT |
                                            (i & 4 ? SEQLSTM_BIT_LOSS_CLASS_WEIGHT : 0u),
                                 .accumulate = i & 1,
                                 .variant = variants[i / 8]});
}

/* Inference needs no reserve and gives the sums of training. */
static void test_dense_loss_inference(void **state)
{
    struct blas_fixture *f = *state;
    static const int64_t classes[] = {10, 300, 1500}; /* 300: in parts, each of which has its rows of sums */
    for (int i = 0; i < 3; i++) {
        enum { ROWS = 700, IN = 40 };
        float *x = fixture_floats(ROWS * IN, 1), *w = fixture_floats(classes[i] * IN, 2);
        int32_t *labels = calloc(ROWS, sizeof *labels);
        double sums[2][2] = {{0}};
        for (int r = 0; r < ROWS; r++)
            labels[r] = r % (int)classes[i];
        for (int mode = 0; mode < 2; mode++) {
            struct seqlstm_dense_loss_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE_LOSS, sizeof d, ROWS),
                                                .input = IN,
                                                .output = classes[i],
                                                .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY};
            d.head.mode = mode == 0 ? SEQLSTM_MODE_INFERENCE : SEQLSTM_MODE_TRAINING;
            struct fixture_run run = {.desc = &d.head,
                                      .rows = ROWS,
                                      .slots = {x, labels, NULL, NULL, sums[mode], NULL, w, NULL},
                                      .slot_count = SEQLSTM_SLOT_DENSE_LOSS_COUNT};
            fixture_run(f, &f->queue, &run);
        }
        assert_true(sums[0][1] == ROWS && sums[0][0] > 0.0);
        fixture_close_to(sums[0][0], sums[1][0], 1e-6, "sum", 0);
        free(x), free(w), free(labels);
    }
}

/* In bfloat16 sums are those of rounded numbers: by rows, where the targets are what they are then, and by columns, of
 * which the first alone has weights that are 1 but for rounding. */
static void test_dense_loss_bfloat16(void **state)
{
    struct blas_fixture *f = *state;
    enum { ROWS = 19, IN = 24 };
    static const int64_t classes[] = {5, 1030};
    for (int i = 0; i < 2; i++) {
        const int64_t n = classes[i];
        struct seqlstm_dense_loss_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE_LOSS, sizeof d, ROWS),
                                            .input = IN,
                                            .output = n,
                                            .kind = i == 0 ? SEQLSTM_KIND_LOSS_MSE : SEQLSTM_KIND_LOSS_CROSS_ENTROPY};
        d.head.dtype_compute = SEQLSTM_DTYPE_BFLOAT16;
        if (fixture_lacks_precision(f, &d.head))
            return;
        float *x = fixture_above_one(ROWS * IN), *w = fixture_above_one(n * IN), *target = fixture_floats(ROWS * n, 1);
        float *dx = fixture_floats(ROWS * IN, 1), *dw = fixture_floats(n * IN, 1);
        int32_t labels[ROWS] = {0};
        double sums[2];
        for (int64_t k = 0; k < ROWS * n; k++)
            target[k] = IN;
        for (int64_t k = IN; i == 1 && k < n * IN; k++)
            w[k] = 1.0f;
        struct fixture_run run = {.desc = &d.head,
                                  .rows = ROWS,
                                  .slots = {x, i == 0 ? (void *)target : labels, NULL, NULL, sums, NULL, w, NULL},
                                  .grads = {dx, NULL, NULL, NULL, NULL, NULL, dw, NULL},
                                  .slot_count = SEQLSTM_SLOT_DENSE_LOSS_COUNT,
                                  .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                  .step = {.normaliser = 1.0f, .loss_scale = 1.0f}};
        fixture_run(f, &f->queue, &run);
        fixture_close_to(sums[0], i == 0 ? 0.0 : ROWS * log((double)n), 1e-6, "loss", i);
        for (int64_t k = 0; i == 0 && k < ROWS * IN; k++)
            assert_true(dx[k] == 0.0f);
        for (int64_t k = 0; i == 0 && k < n * IN; k++)
            assert_true(dw[k] == 0.0f);
        /* Of the first class, the target: p - 1 of each row, rounded, times 1. */
        for (int64_t k = 0; i == 1 && k < IN; k++)
            assert_true(dw[k] == -(float)ROWS);
        free(x), free(w), free(target), free(dx), free(dw);
    }
}

/* Rows of weight 0 and without a class may hold anything: here sums that overflow. */
static void rows_without_weight_leave_no_trace(void **state)
{
    struct blas_fixture *f = *state;
    static const int64_t classes[] = {10, 1500};
    enum { ROWS = 12, IN = 8, EMPTY = 5, UNKNOWN = 7 };
    for (int i = 0; i < 4; i++) {
        const int64_t n = classes[i % 2];
        const bool alone = i > 1; /* LOSS, whose input are the sums */
        const int64_t width = alone ? n : IN;
        float *x = fixture_floats(ROWS * width, 1), *w = fixture_floats(n * IN, 2), weight[ROWS], *grads[2][2];
        int32_t labels[ROWS];
        double sums[2][2] = {{0}};
        for (int r = 0; r < ROWS; r++) {
            labels[r] = r == UNKNOWN ? -1 : r % (int)n;
            weight[r] = r == EMPTY ? 0.0f : 1.0f;
        }
        for (int wild = 0; wild < 2; wild++) {
            for (int64_t j = 0; j < width; j++)
                x[EMPTY * width + j] = x[UNKNOWN * width + j] = wild ? j % 2 ? -3e38f : 3e38f : 0.0f;
            grads[wild][0] = fixture_floats(ROWS * width, 3);
            grads[wild][1] = fixture_floats(n * IN, 4);
            struct seqlstm_dense_loss_desc dense = {.head = fixture_head(SEQLSTM_OP_DENSE_LOSS, sizeof dense, ROWS),
                                                    .input = IN,
                                                    .output = n,
                                                    .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY,
                                                    .options = SEQLSTM_BIT_LOSS_ROW_WEIGHT};
            struct seqlstm_loss_desc loss = {.head = fixture_head(SEQLSTM_OP_LOSS, sizeof loss, ROWS),
                                             .features = n,
                                             .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY,
                                             .options = SEQLSTM_BIT_LOSS_ROW_WEIGHT};
            struct fixture_run run = {
                .desc = alone ? &loss.head : &dense.head,
                .rows = ROWS,
                .slots = {x, labels, weight, NULL, sums[wild], NULL, w, NULL},
                .grads = {grads[wild][0], NULL, NULL, NULL, NULL, NULL, grads[wild][1], NULL},
                .slot_count = alone ? SEQLSTM_SLOT_LOSS_COUNT : SEQLSTM_SLOT_DENSE_LOSS_COUNT,
                .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS,
                .step = {.normaliser = 0.125f, .loss_scale = 2.0f},
            };
            fixture_run(f, &f->alone, &run);
        }
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
        for (int64_t j = 0; j < ROWS * width; j++)
            assert_true(grads[0][0][j] == grads[1][0][j]);
        for (int64_t j = 0; j < n * IN; j++)
            assert_true(grads[0][1][j] == grads[1][1][j]);
        for (int64_t j = 0; j < width; j++)
            assert_true(grads[1][0][EMPTY * width + j] == 0.0f && grads[1][0][UNKNOWN * width + j] == 0.0f);
        free(x), free(w), free(grads[0][0]), free(grads[0][1]), free(grads[1][0]), free(grads[1][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(impossible_classes_cost_nothing),
        cmocka_unit_test(test_dense_loss),
        cmocka_unit_test(test_dense_loss_many_classes),
        cmocka_unit_test(test_dense_loss_inference),
        cmocka_unit_test(rows_without_weight_leave_no_trace),
        cmocka_unit_test(test_dense_loss_bfloat16),
    };
    return FIXTURE_RUN(tests);
}

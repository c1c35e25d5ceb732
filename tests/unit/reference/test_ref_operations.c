/* SPDX-License-Identifier: Apache-2.0 */
/* Every other operation of the reference: gradients against central differences (the bound of
 * test_ref_recurrent.c), values against numbers worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "ref_harness.h"

static const double tolerance = 1e-7;
static const int32_t mixed[3] = {3, 2, 1};
enum { TRAIN = SEQLSTM_MODE_TRAINING };

static void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%.15g, expected %.15g", got, expected);
}

static void check_rows(const union seqlstm_any_desc *d, int64_t rows, const char *name)
{
    struct rh rh;
    rh_open_rows(&rh, d, rows, rows, 7);
    rh_check_gradients(&rh, name, tolerance);
    rh_check_float32(&rh, name);
    rh_close(&rh);
}

static const struct seqlstm_activation kinds[] = {{SEQLSTM_ACT_NONE, 0, 0, 0},
                                                  {SEQLSTM_ACT_TANH, 0, 0, 0},
                                                  {SEQLSTM_ACT_SIGMOID, 0, 0, 0},
                                                  {SEQLSTM_ACT_RELU, 0, 0, 0},
                                                  {SEQLSTM_ACT_LEAKY_RELU, 0.05f, 0, 0},
                                                  {SEQLSTM_ACT_THRESHOLDED_RELU, 0.3f, 0, 0},
                                                  {SEQLSTM_ACT_SCALED_TANH, 1.7f, 0.6f, 0},
                                                  {SEQLSTM_ACT_HARD_SIGMOID, 0.7f, 0.5f, 0},
                                                  {SEQLSTM_ACT_ELU, 0.8f, 0, 0},
                                                  {SEQLSTM_ACT_SOFTSIGN, 0, 0, 0},
                                                  {SEQLSTM_ACT_SOFTPLUS, 0, 0, 0},
                                                  {SEQLSTM_ACT_AFFINE, 0.5f, 0.25f, 0},
                                                  {SEQLSTM_ACT_SOFTMAX, 0, 0, 0},
                                                  {SEQLSTM_ACT_LOG_SOFTMAX, 0, 0, 0}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void dense_and_activation(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        char name[64];
        union seqlstm_any_desc d = {
            .activation = {.head = rh_head(SEQLSTM_OP_ACTIVATION, TRAIN), .features = 4, .activation = kinds[k]}};
        snprintf(name, sizeof name, "activation %d", k);
        check_rows(&d, 6, name);
        d = (union seqlstm_any_desc){.dense = {.head = rh_head(SEQLSTM_OP_DENSE, TRAIN),
                                               .input = 3,
                                               .output = 4,
                                               .options = k % 3 ? SEQLSTM_BIT_DENSE_USE_BIAS : 0,
                                               .activation = kinds[k]}};
        snprintf(name, sizeof name, "dense, activation %d", k);
        check_rows(&d, 3, name);
    }
}

/* Values of every activation at points around its kinks, worked out from the formulas of ops.h. */
static void activation_values(void **state)
{
    (void)state;
    static const double x[3] = {-1.5, 0, 2};
    static const double expected[KINDS][3] = {{-1.5, 0, 2},
                                              {-0.905148253644866, 0, 0.964027580075817},
                                              {0.182425523806356, 0.5, 0.880797077977882},
                                              {0, 0, 2},
                                              {-0.075, 0, 2},
                                              {0, 0, 2},
                                              {-1.7 * 0.716297870199025, 0, 1.7 * 0.833654607012155},
                                              {0, 0.5, 1},
                                              {-0.8 * 0.776869839851570, 0, 2},
                                              {-0.6, 0, 2.0 / 3},
                                              {0.201413277982752, 0.693147180559945, 2.126928011042972},
                                              {-0.5, 0.25, 1.25}};
    for (int k = 0; k < KINDS - 2; k++) {
        const union seqlstm_any_desc d = {
            .activation = {.head = rh_head(SEQLSTM_OP_ACTIVATION, TRAIN), .features = 3, .activation = kinds[k]}};
        struct rh rh;
        rh_open_rows(&rh, &d, 1, 1, 1);
        memcpy(rh_value(&rh, 0), x, sizeof x);
        rh_forward(&rh);
        for (int j = 0; j < 3; j++) /* alpha and beta are floats: 0.05f is not 0.05 */
            if (!(fabs(rh_value(&rh, 1)[j] - expected[k][j]) <= 1e-7))
                fail_msg("activation %d at %g: %.15g, expected %.15g", k, x[j], rh_value(&rh, 1)[j], expected[k][j]);
        rh_close(&rh);
    }
    /* at a kink the branch that ops.h selects */
    static const struct {
        struct seqlstm_activation a;
        double x, slope;
    } kinks[] = {{{SEQLSTM_ACT_RELU, 0, 0, 0}, 0, 0},
                 {{SEQLSTM_ACT_LEAKY_RELU, 0.25f, 0, 0}, 0, 1},
                 {{SEQLSTM_ACT_THRESHOLDED_RELU, 0.5f, 0, 0}, 0.5, 0},
                 {{SEQLSTM_ACT_ELU, 0.5f, 0, 0}, 0, 1},
                 {{SEQLSTM_ACT_HARD_SIGMOID, 0.5f, 0.5f, 0}, 1, 0},
                 {{SEQLSTM_ACT_HARD_SIGMOID, 0.5f, 0.5f, 0}, -1, 0},
                 {{SEQLSTM_ACT_HARD_SIGMOID, 0.5f, 0.5f, 0}, 0.999, 0.5}};
    for (size_t k = 0; k < sizeof kinks / sizeof *kinks; k++) {
        const union seqlstm_any_desc d = {
            .activation = {.head = rh_head(SEQLSTM_OP_ACTIVATION, TRAIN), .features = 1, .activation = kinks[k].a}};
        struct rh rh;
        rh_open_rows(&rh, &d, 1, 1, 1);
        rh_value(&rh, 0)[0] = kinks[k].x;
        rh.grads[1][0] = 1;
        rh_forward(&rh);
        rh_backward(&rh, RH_ALL);
        assert_near(rh.grads[0][0], kinks[k].slope);
        rh_close(&rh);
    }
}

/* Large arguments: no overflow, no NaN. */
static void extreme_arguments(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        const union seqlstm_any_desc d = {
            .activation = {.head = rh_head(SEQLSTM_OP_ACTIVATION, TRAIN), .features = 3, .activation = kinds[k]}};
        struct rh rh;
        rh_open_rows(&rh, &d, 1, 1, 1);
        memcpy(rh_value(&rh, 0), (const double[3]){-1000, 1000, 999}, 3 * sizeof(double));
        rh_forward(&rh);
        rh_backward(&rh, RH_ALL);
        for (int j = 0; j < 3; j++)
            if (!isfinite(rh_value(&rh, 1)[j]) || !isfinite(rh.grads[0][j]))
                fail_msg("activation %d, element %d is not finite", k, j);
        rh_close(&rh);
    }
}

static void embedding(void **state)
{
    (void)state;
    const union seqlstm_any_desc d = {
        .embedding = {.head = rh_head(SEQLSTM_OP_EMBEDDING, TRAIN), .vocabulary = 4, .features = 3}};
    struct rh rh;
    rh_open_rows(&rh, &d, 5, 5, 3);
    memcpy(rh.values[SEQLSTM_SLOT_EMBEDDING_IDS], (const int32_t[5]){2, 0, -1, 2, 3}, 5 * sizeof(int32_t));
    rh_check_gradients(&rh, "embedding", tolerance);
    const double *y = rh_value(&rh, SEQLSTM_SLOT_EMBEDDING_Y), *w = rh_value(&rh, SEQLSTM_SLOT_EMBEDDING_W);
    assert_memory_equal(y, w + 6, 3 * sizeof *y);
    assert_true(y[6] == 0 && y[7] == 0 && y[8] == 0);
    for (int k = 0; k < 3; k++) {
        const double *dy = rh.grads[SEQLSTM_SLOT_EMBEDDING_Y], *dw = rh.grads[SEQLSTM_SLOT_EMBEDDING_W];
        assert_near(dw[6 + k], dy[k] + dy[9 + k]);
        assert_true(dw[3 + k] == 0);
    }
    rh_check_float32(&rh, "embedding");
    rh_close(&rh);
}

static void layer_norm_and_merge(void **state)
{
    (void)state;
    for (uint32_t options = 0; options < 4; options++) {
        const union seqlstm_any_desc d = {
            .layer_norm = {
                .head = rh_head(SEQLSTM_OP_LAYER_NORM, TRAIN), .features = 5, .epsilon = 1e-3f, .options = options}};
        check_rows(&d, 3, "layer norm");
    }
    for (uint32_t kind = 0; kind <= SEQLSTM_KIND_MERGE_AVE; kind++) {
        union seqlstm_any_desc d = {
            .merge = {.head = rh_head(SEQLSTM_OP_MERGE, TRAIN), .kind = kind, .inputs = 3, .widths = {2, 2, 2}}};
        if (kind == SEQLSTM_KIND_MERGE_CONCAT)
            d.merge.widths[1] = 3;
        check_rows(&d, 3, "merge");
    }
}

static void pool(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind <= SEQLSTM_KIND_POOL_FIRST; kind++) {
        const union seqlstm_any_desc d = {
            .pool = {.head = rh_head(SEQLSTM_OP_POOL, TRAIN), .features = 2, .kind = kind}};
        struct rh rh;
        rh_open(&rh, &d, mixed, 3, 0, 3, 5);
        rh_check_gradients(&rh, "pool", tolerance);
        rh_check_float32(&rh, "pool");
        /* rows of sequence 1: 1 and 4 (batch sizes 3 2 1) */
        const double *x = rh_value(&rh, 0), *y = rh_value(&rh, 1);
        const double a = x[2], b = x[8];
        const double expected[5] = {b, (a + b) / 2, fmax(a, b), a + b, a};
        rh_forward(&rh);
        assert_near(y[2], expected[kind]);
        rh_close(&rh);
    }
    /* MAX: the first step that attains it gets the gradient */
    const union seqlstm_any_desc d = {
        .pool = {.head = rh_head(SEQLSTM_OP_POOL, TRAIN), .features = 1, .kind = SEQLSTM_KIND_POOL_MAX}};
    struct rh rh;
    rh_open(&rh, &d, (const int32_t[1]){3}, 1, 0, 3, 5);
    memcpy(rh_value(&rh, 0), (const double[3]){1, 4, 4}, 3 * sizeof(double));
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    assert_true(rh.grads[0][0] == 0 && rh.grads[0][1] == rh.grads[1][0] && rh.grads[0][2] == 0);
    for (int at = 0; at < 3; at++) { /* NaN is not hidden, wherever it is; nor is a second one its place */
        double x[3] = {INFINITY, 4, INFINITY};
        x[at] = x[2] = NAN;
        memcpy(rh_value(&rh, 0), x, sizeof x);
        rh_forward(&rh);
        rh_backward(&rh, RH_ALL);
        assert_true(isnan(rh_value(&rh, 1)[0]));
        for (int t = 0; t < 3; t++)
            assert_true(rh.grads[0][t] == (t == at ? rh.grads[1][0] : 0));
    }
    rh_close(&rh);
}

static void gather_and_scatter(void **state)
{
    (void)state;
    union seqlstm_any_desc d = {.gather = {.head = rh_head(SEQLSTM_OP_GATHER, TRAIN), .features = 2}};
    struct rh rh;
    rh_open_rows(&rh, &d, 4, 3, 5);
    memcpy(rh.values[SEQLSTM_SLOT_GATHER_INDEX], (const int32_t[4]){2, -1, 0, 2}, 4 * sizeof(int32_t));
    rh_check_gradients(&rh, "gather", tolerance);
    rh_check_float32(&rh, "gather");
    assert_true(rh_value(&rh, 1)[0] == rh_value(&rh, 0)[4] && rh_value(&rh, 1)[2] == 0);
    rh_close(&rh);
    d.head.op = SEQLSTM_OP_SCATTER;
    rh_open_rows(&rh, &d, 4, 3, 6);
    memcpy(rh.values[SEQLSTM_SLOT_GATHER_INDEX], (const int32_t[3]){3, -1, 0}, 3 * sizeof(int32_t));
    rh_check_gradients(&rh, "scatter", tolerance);
    rh_check_float32(&rh, "scatter");
    assert_true(rh_value(&rh, 1)[6] == rh_value(&rh, 0)[0] && rh_value(&rh, 1)[2] == 0 && rh_value(&rh, 1)[0] != 0);
    rh_close(&rh);
}

static void dropout(void **state)
{
    (void)state;
    for (uint32_t mask = 0; mask < 2; mask++)
        for (int stream = 0; stream < 2; stream++) {
            union seqlstm_any_desc d = {.dropout = {.head = rh_head(SEQLSTM_OP_DROPOUT, TRAIN),
                                                    .features = 4,
                                                    .stream = 9,
                                                    .rate = 0.5f,
                                                    .mask = mask}};
            struct rh rh;
            rh_open(&rh, &d, mixed, 3, 1, 3, 5); /* a range: rows 3 4 of step 1 and 5 of step 2 */
            rh.axis.flags = stream ? SEQLSTM_BIT_AXIS_STREAM : 0;
            rh_check_gradients(&rh, "dropout", tolerance);
            rh_check_float32(&rh, "dropout");
            rh_forward(&rh);
            const uint64_t key = seqlstm_mix64(rh.step.seed, 9, rh.step.epoch);
            for (int64_t row = 0, t = 1; t < 3; t++)
                for (int64_t b = 0; b < rh.axis.batch_sizes[t]; b++, row++)
                    for (int64_t k = 0; k < 4; k++) {
                        const uint32_t first = rh.axis.position0[b];
                        const uint32_t at = mask == SEQLSTM_KIND_DROPOUT_STEP ? first + (uint32_t)t
                                            : stream                          ? first
                                                                              : 0;
                        const float m = seqlstm_mask(key, (uint64_t)k, at, rh.axis.sequence_id[b], 0.5f);
                        assert_true(rh_value(&rh, 1)[row * 4 + k] == rh_value(&rh, 0)[row * 4 + k] * (double)m);
                    }
            rh_close(&rh);
        }
    const union seqlstm_any_desc inference = {
        .dropout = {.head = rh_head(SEQLSTM_OP_DROPOUT, SEQLSTM_MODE_INFERENCE), .features = 4, .rate = 0.5f}};
    struct rh rh;
    rh_open_rows(&rh, &inference, 3, 3, 5);
    rh_forward(&rh);
    assert_memory_equal(rh_value(&rh, 0), rh_value(&rh, 1), 12 * sizeof(double));
    rh_close(&rh);
}

static void losses(void **state)
{
    (void)state;
    for (uint32_t compound = 0; compound < 2; compound++)
        for (uint32_t kind = SEQLSTM_KIND_LOSS_MSE; kind <= SEQLSTM_KIND_LOSS_CROSS_ENTROPY; kind++)
            for (uint32_t options = 0; options < 8; options++) {
                const bool classes = kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
                if ((options & SEQLSTM_BIT_LOSS_CLASS_WEIGHT) && !classes)
                    continue;
                const float smoothing = classes && options % 2 ? 0.125f : 0, delta = 0.5f;
                union seqlstm_any_desc d = {.loss = {.head = rh_head(SEQLSTM_OP_LOSS, TRAIN),
                                                     .features = 3,
                                                     .kind = kind,
                                                     .options = options,
                                                     .label_smoothing = smoothing,
                                                     .delta = delta}};
                if (compound)
                    d = (union seqlstm_any_desc){.dense_loss = {.head = rh_head(SEQLSTM_OP_DENSE_LOSS, TRAIN),
                                                                .input = 2,
                                                                .output = 3,
                                                                .dense_options = options & 1,
                                                                .kind = kind,
                                                                .options = options,
                                                                .label_smoothing = smoothing,
                                                                .delta = delta}};
                struct rh rh;
                rh_open_rows(&rh, &d, 5, 5, kind);
                if (classes)
                    memcpy(rh.values[SEQLSTM_SLOT_LOSS_TARGET], (const int32_t[5]){-1, 2, 0, -1, 1},
                           5 * sizeof(int32_t));
                rh_check_gradients(&rh, "loss", tolerance);
                rh_check_float32(&rh, "loss");
                rh_close(&rh);
            }
}

static double one_loss(uint32_t kind, const double *x, const double *target, int32_t class_target, float smoothing,
                       float delta, double *out_weight)
{
    const union seqlstm_any_desc d = {.loss = {.head = rh_head(SEQLSTM_OP_LOSS, TRAIN),
                                               .features = 2,
                                               .kind = kind,
                                               .options = SEQLSTM_BIT_LOSS_ROW_LOSS,
                                               .label_smoothing = smoothing,
                                               .delta = delta}};
    struct rh rh;
    rh_open_rows(&rh, &d, 1, 1, 1);
    memcpy(rh_value(&rh, SEQLSTM_SLOT_LOSS_X), x, 2 * sizeof *x);
    if (target)
        memcpy(rh_value(&rh, SEQLSTM_SLOT_LOSS_TARGET), target, 2 * sizeof *x);
    else
        *(int32_t *)rh.values[SEQLSTM_SLOT_LOSS_TARGET] = class_target;
    rh_value(&rh, SEQLSTM_SLOT_LOSS_SUMS)[0] = 10; /* added to */
    rh_forward(&rh);
    const double loss = rh_value(&rh, SEQLSTM_SLOT_LOSS_SUMS)[0] - 10;
    *out_weight = rh_value(&rh, SEQLSTM_SLOT_LOSS_SUMS)[1];
    assert_near(rh_value(&rh, SEQLSTM_SLOT_LOSS_ROW_LOSS)[0], loss);
    rh_close(&rh);
    return loss;
}

static void loss_values(void **state)
{
    (void)state;
    const double x[2] = {1, -2}, target[2] = {0.5, 1};
    double weight;
    assert_near(one_loss(SEQLSTM_KIND_LOSS_MSE, x, target, 0, 0, 0, &weight), (0.25 + 9) / 2);
    assert_near(weight, 1);
    assert_near(one_loss(SEQLSTM_KIND_LOSS_MAE, x, target, 0, 0, 0, &weight), (0.5 + 3) / 2);
    assert_near(one_loss(SEQLSTM_KIND_LOSS_HUBER, x, target, 0, 0, 1, &weight), (0.125 + 2.5) / 2);
    assert_near(one_loss(SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY, x, target, 0, 0, 0, &weight),
                (log1p(exp(1)) - 0.5 + log1p(exp(-2)) + 2) / 2);
    const double log_total = log(exp(1) + exp(-2));
    assert_near(one_loss(SEQLSTM_KIND_LOSS_CROSS_ENTROPY, x, NULL, 1, 0, 0, &weight), log_total + 2);
    assert_near(one_loss(SEQLSTM_KIND_LOSS_CROSS_ENTROPY, x, NULL, 0, 0.5f, 0, &weight),
                0.75 * (log_total - 1) + 0.25 * (log_total + 2));
    assert_near(one_loss(SEQLSTM_KIND_LOSS_CROSS_ENTROPY, x, NULL, -1, 0, 0, &weight), 0);
    assert_near(weight, 0);
}

static void casts(void **state)
{
    (void)state;
    /* value, bfloat16 bits, float16 bits: exact, ties to even both ways, subnormal, overflow, special */
    static const struct {
        double x;
        uint16_t bfloat16, float16;
    } known[] = {{1, 0x3F80, 0x3C00},
                 {-2, 0xC000, 0xC000},
                 {1.00390625, 0x3F80, 0x3C04},      /* 1 + 2^-8: tie, down to even */
                 {1.01171875, 0x3F82, 0x3C0C},      /* 1 + 3 2^-8: tie, up to even */
                 {1 + 0x1p-11, 0x3F80, 0x3C00},     /* float16 tie, down */
                 {1 + 3 * 0x1p-11, 0x3F80, 0x3C02}, /* float16 tie, up */
                 {65504, 0x4780, 0x7BFF},
                 {65519, 0x4780, 0x7BFF},
                 {65520, 0x4780, 0x7C00},
                 {0x1p-24, 0x3380, 0x0001},
                 {0x1p-25, 0x3300, 0x0000}, /* tie between 0 and the smallest subnormal */
                 {3 * 0x1p-26, 0x3340, 0x0001},
                 {0x1p-14, 0x3880, 0x0400},
                 {1e39, 0x7F80, 0x7C00},
                 {0.0, 0x0000, 0x0000},
                 {-0.0, 0x8000, 0x8000},
                 {INFINITY, 0x7F80, 0x7C00}};
    enum { N = sizeof known / sizeof *known };
    for (int half = 0; half < 2; half++) {
        const uint32_t dtype = half ? SEQLSTM_DTYPE_FLOAT16 : SEQLSTM_DTYPE_BFLOAT16;
        union seqlstm_any_desc d = {.cast = {.head = rh_head(SEQLSTM_OP_CAST, TRAIN), .features = N, .to = dtype}};
        struct rh down, up;
        rh_open_rows(&down, &d, 1, 1, 1);
        for (int k = 0; k < N; k++)
            rh_value(&down, 0)[k] = known[k].x;
        rh_forward(&down);
        for (int k = 0; k < N; k++) {
            const uint16_t got = ((uint16_t *)down.values[1])[k];
            const uint16_t expected = half ? known[k].float16 : known[k].bfloat16;
            if (got != expected)
                fail_msg("%a as dtype %u is 0x%04x, expected 0x%04x", known[k].x, dtype, got, expected);
        }
        /* every bit pattern survives the way up and down */
        d.cast.from = dtype;
        d.cast.to = SEQLSTM_DTYPE_FLOAT32;
        d.cast.features = 65536;
        d.head.max_rows = 1;
        rh_open_rows(&up, &d, 1, 1, 1);
        for (uint32_t k = 0; k < 65536; k++)
            ((uint16_t *)up.values[0])[k] = (uint16_t)k;
        rh_forward(&up);
        rh_close(&down);
        d.cast.from = SEQLSTM_DTYPE_FLOAT32;
        d.cast.to = dtype;
        rh_open_rows(&down, &d, 1, 1, 1);
        memcpy(down.values[0], up.values[1], 65536 * sizeof(double));
        rh_forward(&down);
        for (uint32_t k = 0; k < 65536; k++) {
            const bool is_nan = isnan(rh_value(&up, 1)[k]);
            if (!is_nan && ((uint16_t *)down.values[1])[k] != k)
                fail_msg("0x%04x comes back as 0x%04x", k, ((uint16_t *)down.values[1])[k]);
            if (is_nan && (((uint16_t *)down.values[1])[k] & (half ? 0x7E00 : 0x7FC0)) != (half ? 0x7E00 : 0x7FC0))
                fail_msg("NaN 0x%04x is no longer one", k);
        }
        rh_close(&down);
        rh_close(&up);
    }
}

/* Sums whose exponential overflows, and classes that are out of the question. */
static void losses_of_extreme_sums(void **state)
{
    (void)state;
    static const double x[2] = {800, -800}, right[2] = {1, 0}, wrong[2] = {0, 1}, never[2] = {1000, -INFINITY};
    double weight;
    assert_near(one_loss(SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY, x, right, 0, 0, 0, &weight), 0);
    assert_near(one_loss(SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY, x, wrong, 0, 0, 0, &weight), 800);
    assert_near(one_loss(SEQLSTM_KIND_LOSS_CROSS_ENTROPY, x, NULL, 0, 0, 0, &weight), 0);
    assert_near(one_loss(SEQLSTM_KIND_LOSS_CROSS_ENTROPY, x, NULL, 1, 0, 0, &weight), 1600);
    assert_near(one_loss(SEQLSTM_KIND_LOSS_CROSS_ENTROPY, never, NULL, 0, 0, 0, &weight), 0);
}

static void top_k(void **state)
{
    (void)state;
    union seqlstm_any_desc d = {
        .top_k = {.head = rh_head(SEQLSTM_OP_TOP_K, SEQLSTM_MODE_INFERENCE), .features = 4, .k = 3}};
    struct rh rh;
    rh_open_rows(&rh, &d, 1, 1, 1);
    memcpy(rh_value(&rh, 0), (const double[4]){1, 3, -2, 3}, 4 * sizeof(double));
    rh_forward(&rh);
    assert_memory_equal(rh.values[1], ((const int32_t[3]){1, 3, 0}), 3 * sizeof(int32_t));
    assert_true(rh_value(&rh, 2)[0] == 3 && rh_value(&rh, 2)[2] == 1);
    rh_close(&rh);
}

/* Draws follow softmax(x / temperature) within five standard deviations; top_k and top_p cut the tail. */
static void top_k_draws(void **state)
{
    (void)state;
    enum { N = 2000 };
    static const double x[4] = {0.5, 2, -1, 1};
    for (int variant = 0; variant < 3; variant++) {
        const union seqlstm_any_desc d = {.top_k = {.head = rh_head(SEQLSTM_OP_TOP_K, SEQLSTM_MODE_INFERENCE),
                                                    .features = 4,
                                                    .k = 1,
                                                    .stream = 3,
                                                    .kind = SEQLSTM_KIND_TOP_K_SAMPLE,
                                                    .top_k = variant == 1 ? 2 : 0,
                                                    .temperature = 2,
                                                    .top_p = variant == 2 ? 0.69f : 1}};
        double p[4], total = 0;
        /* softmax(x / 2): 0.205 0.434 0.097 0.263; the two best hold 0.698 */
        const int kept = variant ? 2 : 4;
        for (int k = 0; k < 4; k++) {
            p[k] = kept == 4 || x[k] >= 1 ? exp(x[k] / 2) : 0;
            total += p[k];
        }
        int counts[4] = {0};
        for (uint32_t trial = 0; trial < N; trial++) {
            struct rh rh;
            rh_open(&rh, &d, (const int32_t[1]){1}, 1, 0, 1, 1);
            ((uint32_t *)(uintptr_t)rh.axis.position0)[0] = trial;
            memcpy(rh_value(&rh, 0), x, sizeof x);
            rh_forward(&rh);
            const int32_t drawn = *(int32_t *)rh.values[1];
            assert_in_range(drawn, 0, 3);
            counts[drawn]++;
            assert_near(rh_value(&rh, 2)[0], log(p[drawn] / total));
            rh_close(&rh);
        }
        for (int k = 0; k < 4; k++) {
            const double q = p[k] / total;
            if (!(fabs(counts[k] - N * q) <= 5 * sqrt(N * q * (1 - q))))
                fail_msg("variant %d: element %d was drawn %d times, expected %.0f", variant, k, counts[k], N * q);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_and_activation),
        cmocka_unit_test(activation_values),
        cmocka_unit_test(extreme_arguments),
        cmocka_unit_test(embedding),
        cmocka_unit_test(layer_norm_and_merge),
        cmocka_unit_test(pool),
        cmocka_unit_test(gather_and_scatter),
        cmocka_unit_test(dropout),
        cmocka_unit_test(losses),
        cmocka_unit_test(loss_values),
        cmocka_unit_test(casts),
        cmocka_unit_test(losses_of_extreme_sums),
        cmocka_unit_test(top_k),
        cmocka_unit_test(top_k_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the reference which differences do not see: extreme sums, kinks, states that an optimizer begins with,
 * single draws, and what belongs to the second direction. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "ref_harness.h"

enum { TRAIN = SEQLSTM_MODE_TRAINING, INFER = SEQLSTM_MODE_INFERENCE };

static void expect_near(double got, double wanted, const char *what, int index)
{
    if (!(fabs(got - wanted) <= 1e-12 * (1 + fabs(wanted))))
        fail_msg("%s %d is %.15g, expected %.15g", what, index, got, wanted);
}

/* Whichever place the largest has. */
static void softmax_of_large_sums(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++) {
        const bool logs = k & 1;
        const int largest = k / 2 % 4;
        const union seqlstm_any_desc d = {
            .activation = {.head = rh_head(SEQLSTM_OP_ACTIVATION, TRAIN),
                           .features = 4,
                           .activation = {.kind = logs ? SEQLSTM_ACT_LOG_SOFTMAX : SEQLSTM_ACT_SOFTMAX}}};
        struct rh rh;
        rh_open_rows(&rh, &d, 1, 1, 1);
        for (int i = 0; i < 4; i++)
            rh_value(&rh, SEQLSTM_SLOT_UNARY_X)[i] = i == largest ? 1000 : -1000 + i;
        rh_forward(&rh);
        for (int i = 0; i < 4; i++)
            expect_near(rh_value(&rh, SEQLSTM_SLOT_UNARY_Y)[i],
                        logs ? (i == largest ? 0 : -2000 + i) : (i == largest ? 1 : 0), "softmax", i);
        rh_close(&rh);
    }
}

static void activations_at_their_kinks(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        float alpha, beta;
        double x, y, slope;
    } rows[] = {
        {SEQLSTM_ACT_RELU, 0, 0, 0, 0, 0},
        {SEQLSTM_ACT_LEAKY_RELU, 0.25f, 0, 0, 0, 1},
        {SEQLSTM_ACT_LEAKY_RELU, 0.25f, 0, -1, -0.25, 0.25},
        {SEQLSTM_ACT_THRESHOLDED_RELU, 1, 0, 1, 0, 0}, /* the threshold itself is not above it */
        {SEQLSTM_ACT_THRESHOLDED_RELU, 1, 0, 0.5, 0, 0},
        {SEQLSTM_ACT_THRESHOLDED_RELU, 1, 0, 1.5, 1.5, 1},
        {SEQLSTM_ACT_HARD_SIGMOID, 0.25f, 0.5f, 2, 1, 0},
        {SEQLSTM_ACT_HARD_SIGMOID, 0.25f, 0.5f, -2, 0, 0},
        {SEQLSTM_ACT_HARD_SIGMOID, 0.25f, 0.5f, 1, 0.75, 0.25},
        {SEQLSTM_ACT_ELU, 2, 0, 0, 0, 1},
        {SEQLSTM_ACT_SOFTSIGN, 0, 0, 0, 0, 1},
        {SEQLSTM_ACT_SOFTPLUS, 0, 0, 0, 0.69314718055994531, 0.5},
    };
    for (int k = 0; k < (int)(sizeof rows / sizeof *rows); k++) {
        const union seqlstm_any_desc d = {
            .activation = {.head = rh_head(SEQLSTM_OP_ACTIVATION, TRAIN),
                           .features = 1,
                           .activation = {.kind = rows[k].kind, .alpha = rows[k].alpha, .beta = rows[k].beta}}};
        struct rh rh;
        rh_open_rows(&rh, &d, 1, 1, 1);
        rh_value(&rh, SEQLSTM_SLOT_UNARY_X)[0] = rows[k].x;
        rh_forward(&rh);
        rh.grads[SEQLSTM_SLOT_UNARY_Y][0] = 1;
        rh_backward(&rh, RH_ALL);
        expect_near(rh_value(&rh, SEQLSTM_SLOT_UNARY_Y)[0], rows[k].y, "activation", k);
        expect_near(rh.grads[SEQLSTM_SLOT_UNARY_X][0], rows[k].slope, "slope of activation", k);
        rh_close(&rh);
    }
}

static void run_loss(struct rh *rh, uint32_t kind, float delta, uint32_t options, int64_t rows, int64_t classes)
{
    const union seqlstm_any_desc d = {.loss = {.head = rh_head(SEQLSTM_OP_LOSS, TRAIN),
                                               .features = classes,
                                               .kind = kind,
                                               .delta = delta,
                                               .options = options}};
    rh_open_rows(rh, &d, rows, rows, 1);
    rh->step.normaliser = rh->step.loss_scale = 1;
    memset(rh->values[SEQLSTM_SLOT_LOSS_SUMS], 0, 2 * sizeof(double));
}

static void pointwise_losses_at_their_kinks(void **state)
{
    (void)state;
    static const double x[5] = {2, -1, 0.5, 0.25, 0}; /* targets are 0 */
    static const struct {
        uint32_t kind;
        double loss, slope[5];
    } rows[] = {{SEQLSTM_KIND_LOSS_MAE, 3.75, {1, -1, 1, 1, 0}},
                {SEQLSTM_KIND_LOSS_HUBER, 0.46875 + 0.21875 + 0.09375 + 0.03125, {0.25, -0.25, 0.25, 0.25, 0}}};
    for (int k = 0; k < 2; k++) {
        struct rh rh;
        run_loss(&rh, rows[k].kind, k == 0 ? 0 : 0.25f, 0, 1, 5);
        memcpy(rh_value(&rh, SEQLSTM_SLOT_LOSS_X), x, sizeof x);
        memset(rh.values[SEQLSTM_SLOT_LOSS_TARGET], 0, sizeof x);
        rh_forward(&rh);
        rh_backward(&rh, RH_ALL);
        expect_near(rh_value(&rh, SEQLSTM_SLOT_LOSS_SUMS)[0], rows[k].loss / 5, "loss", k);
        for (int i = 0; i < 5; i++)
            expect_near(rh.grads[SEQLSTM_SLOT_LOSS_X][i], rows[k].slope[i] / 5, "slope", i);
        rh_close(&rh);
    }
}

/* Rows weigh as much as their classes; one without a class has no gradient, though the row before had one. */
static void classes_have_weights_of_their_own(void **state)
{
    (void)state;
    static const double weights[3] = {2, 0.5, 8};
    static const int32_t targets[4] = {1, -1, 2, 0};
    struct rh rh;
    run_loss(&rh, SEQLSTM_KIND_LOSS_CROSS_ENTROPY, 0, SEQLSTM_BIT_LOSS_CLASS_WEIGHT | SEQLSTM_BIT_LOSS_ROW_LOSS, 4, 3);
    memset(rh_value(&rh, SEQLSTM_SLOT_LOSS_X), 0, 12 * sizeof(double));
    memcpy(rh.values[SEQLSTM_SLOT_LOSS_TARGET], targets, sizeof targets);
    memcpy(rh.values[SEQLSTM_SLOT_LOSS_CLASS_WEIGHT], weights, sizeof weights);
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    const double *sums = rh_value(&rh, SEQLSTM_SLOT_LOSS_SUMS), *row = rh_value(&rh, SEQLSTM_SLOT_LOSS_ROW_LOSS);
    expect_near(sums[0], (0.5 + 8 + 2) * log(3.0), "sum of losses", 0);
    expect_near(sums[1], 0.5 + 8 + 2, "sum of weights", 0);
    for (int i = 0; i < 12; i++) {
        const int32_t target = targets[i / 3];
        const double weight = target < 0 ? 0 : weights[target];
        expect_near(rh.grads[SEQLSTM_SLOT_LOSS_X][i], weight * (1.0 / 3 - (i % 3 == target)), "gradient", i);
        expect_near(row[i / 3], target < 0 ? 0 : log(3.0), "loss of row", i / 3); /* without its weight */
    }
    rh_close(&rh);
}

/* A third state that is already large: it stays the largest, or leaves no spread. */
static void third_states_are_begun_with(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const bool adam = k == 0;
        const union seqlstm_any_desc d = {
            .optimizer = {.head = rh_head(SEQLSTM_OP_OPTIMIZER, TRAIN),
                          .kind = adam ? SEQLSTM_KIND_OPTIMIZER_ADAM : SEQLSTM_KIND_OPTIMIZER_RMSPROP,
                          .beta_1 = 0.5f,
                          .beta_2 = 0.5f,
                          .rho = 0.5f,
                          .epsilon = 0.25f,
                          .options = adam ? SEQLSTM_BIT_OPTIMIZER_AMSGRAD : SEQLSTM_BIT_OPTIMIZER_CENTERED}};
        struct rh rh;
        rh_open_rows(&rh, &d, 1, 1, 1);
        const double begin[] = {1, 2, 0, 0, 8}; /* param, grad, states */
        for (int i = 0; i < 5; i++)
            if (rh.values[i])
                rh_value(&rh, i)[0] = begin[i];
        rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_SUMS)[0] = rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_SQUARES)[0] = 1;
        rh.step.update = 1;
        rh.step.learning_rate = 0.5f;
        rh.step.grad_scale = 1;
        rh_forward(&rh);
        expect_near(rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_STATE_3)[0], adam ? 8 : 5, "third state", k);
        expect_near(rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_STATE_1)[0], adam ? 1 : 2, "first state", k);
        expect_near(rh_value(&rh, SEQLSTM_SLOT_OPTIMIZER_PARAM)[0],
                    adam ? 1 - 0.5 * 2 / (sqrt(8 / 0.5) + 0.25) : 1 - 0.5 * 2 / 0.25, "param", k);
        rh_close(&rh);
    }
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

enum { CLASSES = 5 };
static const double logits[CLASSES] = {1, 3, 2, 0, -1};
static const int32_t best[CLASSES] = {1, 2, 0, 3, 4};

/* Each row is drawn at its place on the axis, here from its second step on; few of the best may be left. */
static void each_row_is_drawn_at_its_place(void **state)
{
    (void)state;
    static const int32_t lengths[3] = {4, 4, 2};
    for (uint32_t limit = 0; limit <= CLASSES + 1; limit++) {
        const union seqlstm_any_desc d = {.top_k = {.head = rh_head(SEQLSTM_OP_TOP_K, INFER),
                                                    .features = CLASSES,
                                                    .k = 1,
                                                    .kind = SEQLSTM_KIND_TOP_K_SAMPLE,
                                                    .top_k = limit,
                                                    .stream = 9,
                                                    .top_p = 1,
                                                    .temperature = 2}};
        const int count = limit == 0 || limit > CLASSES ? CLASSES : (int)limit;
        struct rh rh;
        double total = 0;
        rh_open(&rh, &d, lengths, 3, 1, 4, 1);
        for (int64_t i = 0; i < rh.bind.rows * CLASSES; i++)
            rh_value(&rh, SEQLSTM_SLOT_TOP_K_X)[i] = logits[i % CLASSES];
        for (int k = 0; k < count; k++)
            total += exp(logits[best[k]] / 2);
        rh_forward(&rh);
        const uint64_t key = seqlstm_mix64(rh.step.seed, 9, rh.step.epoch);
        int64_t row = 0;
        for (int32_t t = 1; t < 4; t++)
            for (int32_t b = 0; b < rh.axis.batch_sizes[t]; b++, row++) {
                const uint32_t step = rh.axis.position0[b] + (uint32_t)t;
                const double u = (double)seqlstm_uniform(key, 0, step, rh.axis.sequence_id[b]);
                int rank = 0;
                for (double passed = exp(logits[best[0]] / 2); rank + 1 < count && passed <= u * total; rank++)
                    passed += exp(logits[best[rank + 1]] / 2);
                assert_int_equal(((int32_t *)rh.values[SEQLSTM_SLOT_TOP_K_INDEX])[row], best[rank]);
                expect_near(rh_value(&rh, SEQLSTM_SLOT_TOP_K_VALUE)[row], logits[best[rank]] / 2 - log(total),
                            "log-probability", (int)row);
            }
        assert_int_equal(row, rh.bind.rows);
        rh_close(&rh);
    }
}

/* ---- directions -------------------------------------------------------------------------------------------------- */

static union seqlstm_any_desc layer(uint32_t direction, int place, uint32_t kind)
{
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    struct seqlstm_recurrent_desc *d = &any.recurrent;
    d->head = rh_head(SEQLSTM_OP_RECURRENT, INFER);
    d->cell = SEQLSTM_CELL_LSTM;
    d->options = SEQLSTM_BIT_RECURRENT_OUTPUT;
    d->direction = direction;
    d->layers = 1;
    d->input = 2;
    d->hidden = 3;
    for (int i = 0; i < 2; i++) {
        d->activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d->activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d->activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    d->activations[place][direction == SEQLSTM_DIRECTION_BIDIRECTIONAL].kind = kind;
    return any;
}

/* The second of two directions gives what it gives alone, with the activations of its own. */
static void the_second_direction_has_its_own_activations(void **state)
{
    (void)state;
    static const int32_t lengths[2] = {4, 2};
    for (int place = SEQLSTM_PLACE_GATE; place <= SEQLSTM_PLACE_OUTPUT; place++) {
        const uint32_t kind = place == SEQLSTM_PLACE_GATE ? SEQLSTM_ACT_SOFTSIGN : SEQLSTM_ACT_RELU;
        const union seqlstm_any_desc both = layer(SEQLSTM_DIRECTION_BIDIRECTIONAL, place, kind),
                                     back = layer(SEQLSTM_DIRECTION_BACKWARD, place, kind);
        struct rh two, one;
        rh_open(&two, &both, lengths, 2, 0, 4, 1);
        rh_open(&one, &back, lengths, 2, 0, 4, 2);
        memcpy(one.values[SEQLSTM_SLOT_RECURRENT_X], two.values[SEQLSTM_SLOT_RECURRENT_X],
               (size_t)one.elems[SEQLSTM_SLOT_RECURRENT_X] * sizeof(double));
        for (int p = SEQLSTM_PARAM_W_X; p <= SEQLSTM_PARAM_W_H; p++) {
            const int32_t from = SEQLSTM_SLOT_RECURRENT_PARAM(2, 1, p), to = SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, p);
            assert_int_equal(two.elems[from], one.elems[to]);
            memcpy(one.values[to], two.values[from], (size_t)one.elems[to] * sizeof(double));
        }
        rh_forward(&two);
        rh_forward(&one);
        for (int64_t i = 0; i < one.elems[SEQLSTM_SLOT_RECURRENT_Y]; i++)
            expect_near(rh_value(&two, SEQLSTM_SLOT_RECURRENT_Y)[i / 3 * 6 + 3 + i % 3],
                        rh_value(&one, SEQLSTM_SLOT_RECURRENT_Y)[i], "output", (int)i);
        rh_close(&two);
        rh_close(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_of_large_sums),
        cmocka_unit_test(activations_at_their_kinks),
        cmocka_unit_test(pointwise_losses_at_their_kinks),
        cmocka_unit_test(classes_have_weights_of_their_own),
        cmocka_unit_test(third_states_are_begun_with),
        cmocka_unit_test(each_row_is_drawn_at_its_place),
        cmocka_unit_test(the_second_direction_has_its_own_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

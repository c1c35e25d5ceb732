/* SPDX-License-Identifier: Apache-2.0 */
/* Random answers against plain formulas over all of them, however they are cut into batches, and however the sums of
 * batches are put together.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "train/metrics/metric.h"
#include "oom.h"

enum { CASES = 60, BATCHES = 5, ROWS = 7, FEATURES = 3, ALL = BATCHES * ROWS };

/* All rows of the batches, one after the other. */
struct answers {
    uint64_t seed, draws;
    int rows;
    bool weighted, on_steps;
    float output[ALL][FEATURES], wanted[ALL][FEATURES]; /* values: wanted; classes: ids */
    int32_t ids[ALL];
    double weight[ALL];
    double loss, loss_weight;
    int lengths[BATCHES]; /* rows of each batch */
};

static double draw(struct answers *a)
{
    return (double)seqlstm_uniform(a->seed, a->draws++, 7, 0);
}

static void draw_answers(struct answers *a, uint64_t seed)
{
    *a = (struct answers){.seed = seed};
    a->weighted = draw(a) < 0.5;
    a->on_steps = draw(a) < 0.5;
    for (int b = 0; b < BATCHES; b++) {
        a->lengths[b] = 1 + (int)(draw(a) * ROWS);
        a->rows += a->lengths[b];
    }
    for (int r = 0; r < a->rows; r++) {
        a->weight[r] = a->weighted ? floor(draw(a) * 4) / 2 : 1;
        a->ids[r] = (int32_t)(draw(a) * (FEATURES + 1)) - 1; /* -1: no target */
        for (int k = 0; k < FEATURES; k++) {
            a->output[r][k] = (float)(4 * draw(a) - 1); /* logits of classes */
            a->wanted[r][k] = (float)draw(a);
        }
    }
}

/* Batch b, whose rows are sequences, or the steps of one sequence. */
static struct sl_batch *make_batch(const struct answers *a, int b, int first, bool classes)
{
    int32_t lengths[ROWS];
    for (int k = 0; k < ROWS; k++)
        lengths[k] = a->on_steps ? a->lengths[b] : 1;
    struct sl_batch_shape shape = {.sequences = a->on_steps ? 1 : a->lengths[b],
                                   .lengths = lengths,
                                   .input_kind = SL_FIELD_VALUES,
                                   .input_features = 1,
                                   .input_on_steps = true,
                                   .target_kind = classes ? SL_FIELD_IDS : SL_FIELD_VALUES,
                                   .target_features = classes ? 1 : FEATURES,
                                   .target_on_steps = a->on_steps,
                                   .has_weight = a->weighted};
    struct sl_batch *batch = NULL;
    assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
    for (int r = 0; r < a->lengths[b]; r++) {
        if (classes)
            ((int32_t *)batch->target.ids)[r] = a->ids[first + r];
        else
            memcpy((float *)batch->target.values + r * FEATURES, a->wanted[first + r], sizeof a->wanted[0]);
        if (a->weighted)
            ((float *)batch->weight.values)[r] = (float)a->weight[first + r];
    }
    return batch;
}

/* Adds the batches to `sums` and `other` in turn. */
static void add_all(const struct answers *a, const struct sl_metric_rule *rule, bool classes,
                    struct sl_metric_sums *sums, struct sl_metric_sums *other)
{
    for (int b = 0, first = 0; b < BATCHES; first += a->lengths[b++]) {
        struct sl_batch *batch = make_batch(a, b, first, classes);
        const struct sl_field output = {
            .kind = SL_FIELD_VALUES, .on_steps = a->on_steps, .features = FEATURES, .values = a->output[first]};
        const struct sl_exec_result result = {.loss_sum = 1 + b, .weight_sum = 0.5 * (b + 1), .rows = batch->axis.rows};
        sl_metric_add(rule, b % 2 ? other : sums, batch, &output, &result);
        sl_batch_destroy(batch);
    }
}

static double find(const struct sl_metric_values *values, const char *name)
{
    for (int32_t i = 0; i < values->count; i++)
        if (strcmp(values->items[i].name, name) == 0)
            return values->items[i].value;
    fail_msg("no metric `%s`", name);
    return NAN;
}

static void expect(const struct answers *a, const struct sl_metric_values *values, const char *name, double want)
{
    double got = find(values, name);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-6 * fmax(1, fabs(want))))
        fail_msg("case %d: %s: %.9g, expected %.9g", (int)a->seed, name, got, want);
}

/* ---- classes ---------------------------------------------------------------------------------------- */

static int find_answer(const float *row)
{
    return row[0] >= row[1] && row[0] >= row[2] ? 0 : row[1] >= row[2] ? 1 : 2;
}

static double find_entropy(const struct answers *a, int r)
{
    double sum = 0, own = (double)a->output[r][a->ids[r]];
    for (int k = 0; k < FEATURES; k++)
        sum += exp((double)a->output[r][k]);
    return log(sum) - own;
}

/* F1 of a class, or of all (class -1); NaN where it does not occur. */
static double find_f1(const struct answers *a, int class)
{
    double hits = 0, answered = 0, meant = 0;
    for (int r = 0; r < a->rows; r++) {
        int answer = find_answer(a->output[r]);
        for (int k = 0; k < FEATURES && a->ids[r] >= 0; k++) {
            if (class >= 0 && k != class)
                continue;
            hits += answer == k && a->ids[r] == k ? a->weight[r] : 0;
            answered += answer == k ? a->weight[r] : 0;
            meant += a->ids[r] == k ? a->weight[r] : 0;
        }
    }
    return answered + meant > 0 ? 2 * hits / (answered + meant) : NAN;
}

static void check_classes(const struct answers *a, const struct sl_metric_values *values)
{
    double weight = 0, correct = 0, entropy = 0, f1 = 0, classes = 0;
    for (int r = 0; r < a->rows; r++) {
        if (a->ids[r] < 0 || a->weight[r] == 0)
            continue;
        weight += a->weight[r];
        correct += find_answer(a->output[r]) == a->ids[r] ? a->weight[r] : 0;
        entropy += a->weight[r] * find_entropy(a, r);
    }
    for (int k = 0; k < FEATURES; k++) {
        double own = find_f1(a, k);
        f1 += isnan(own) ? 0 : own;
        classes += !isnan(own);
    }
    expect(a, values, "loss", 15 / 7.5);
    expect(a, values, "accuracy", weight > 0 ? correct / weight : NAN);
    expect(a, values, "perplexity", weight > 0 ? exp(entropy / weight) : NAN);
    expect(a, values, "bits_per_token", weight > 0 ? entropy / weight / log(2) : NAN);
    expect(a, values, "f1_macro", classes > 0 ? f1 / classes : NAN);
    expect(a, values, "f1_micro", find_f1(a, -1));
}

/* ---- values ----------------------------------------------------------------------------------------- */

static const double factors[FEATURES] = {2, 0.5, 10}, offsets[FEATURES] = {1, -3, 100};

static void check_values(const struct answers *a, const struct sl_metric_values *values)
{
    double count = 0, squared = 0, absolute = 0, squared_original = 0, absolute_original = 0;
    for (int r = 0; r < a->rows; r++)
        for (int k = 0; k < FEATURES; k++) {
            double error = (double)a->output[r][k] - (double)a->wanted[r][k];
            count += a->weight[r];
            squared += a->weight[r] * error * error;
            absolute += a->weight[r] * fabs(error);
            squared_original += a->weight[r] * error * error * factors[k] * factors[k];
            absolute_original += a->weight[r] * fabs(error) * factors[k];
        }
    count = count > 0 ? count : NAN;
    expect(a, values, "mse", squared / count);
    expect(a, values, "mae", absolute / count);
    expect(a, values, "rmse", sqrt(squared / count));
    expect(a, values, "mse_original", squared_original / count);
    expect(a, values, "mae_original", absolute_original / count);
    expect(a, values, "rmse_original", sqrt(squared_original / count));
}

/* ---- the tests -------------------------------------------------------------------------------------- */

/* The sums of all batches, and those of every second one put together. */
static void check(const struct answers *a, const struct sl_metric_rule *rule, bool classes)
{
    static struct sl_metric_sums one, halves[2]; /* large */
    struct sl_metric_values values;
    memset(&one, 0, sizeof one);
    memset(halves, 0, sizeof halves);
    add_all(a, rule, classes, &one, &one);
    add_all(a, rule, classes, &halves[0], &halves[1]);
    sl_metric_sums_add(&halves[0], &halves[1]);
    assert_true(one.rows == halves[0].rows && one.rows == a->rows);
    for (int k = 0; k < 2; k++) {
        sl_metric_finish(rule, k ? &halves[0] : &one, &values);
        classes ? check_classes(a, &values) : check_values(a, &values);
    }
}

static void classes_are_counted(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_ACCURACY, SL_METRIC_PERPLEXITY, SL_METRIC_BITS_PER_TOKEN,
                                            SL_METRIC_F1_MACRO, SL_METRIC_F1_MICRO};
    const struct sl_metric_list list = {wanted, 5};
    const struct sl_train_config config = {.loss = {.kind = SL_LOSS_CROSS_ENTROPY, .label_smoothing = 0.1}};
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct answers a;
        struct sl_metric_rule rule;
        draw_answers(&a, seed);
        sl_metric_rule_init(&rule, &config, &list, true, false, NULL);
        check(&a, &rule, true);
    }
}

static void values_are_measured(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_MSE, SL_METRIC_MAE, SL_METRIC_RMSE};
    const struct sl_metric_list list = {wanted, 3};
    const struct sl_train_config config = {.loss = {.kind = SL_LOSS_MSE}};
    const struct sl_scaling scaling = {.columns = FEATURES, .offset = (double *)offsets, .factor = (double *)factors};
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct answers a;
        struct sl_metric_rule rule;
        draw_answers(&a, seed);
        sl_metric_rule_init(&rule, &config, &list, false, false, NULL);
        rule.scaling = &scaling;
        check(&a, &rule, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_counted),
        cmocka_unit_test(values_are_measured),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

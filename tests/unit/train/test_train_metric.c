/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/metrics/metric.h"
#include "oom.h"

#define ASSERT_NEAR(got, want)                                                                                         \
    do {                                                                                                               \
        double got_ = (got), want_ = (want);                                                                           \
        if (!(fabs(got_ - want_) <= 1e-12 * fmax(1, fabs(want_))))                                                     \
            fail_msg("line %d: %.17g, expected %.17g", __LINE__, got_, want_);                                         \
    } while (0)

static double find(const struct sl_metric_values *values, const char *name)
{
    for (int32_t i = 0; i < values->count; i++)
        if (strcmp(values->items[i].name, name) == 0)
            return values->items[i].value;
    fail_msg("no metric `%s`", name);
    return NAN;
}

/* Lengths 2 1: rows (0,0) (1,0) (0,1). */
static struct sl_batch *make_batch(enum sl_field_kind kind, bool on_steps, int64_t features, bool weight)
{
    static const int32_t lengths[] = {2, 1};
    struct sl_batch_shape shape = {
        .sequences = 2,
        .lengths = lengths,
        .input_kind = SL_FIELD_VALUES,
        .input_features = 1,
        .input_on_steps = true,
        .target_kind = kind,
        .target_features = features,
        .target_on_steps = on_steps,
        .has_weight = weight,
    };
    struct sl_batch *batch = NULL;
    assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
    return batch;
}

static void classes_with_weights_and_ignored_rows(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_ACCURACY, SL_METRIC_PERPLEXITY, SL_METRIC_BITS_PER_TOKEN};
    struct sl_metric_list list = {wanted, 3};
    struct sl_train_config config = {.loss = {.kind = SL_LOSS_CROSS_ENTROPY, .label_smoothing = 0.1}};
    struct sl_metric_rule rule;
    sl_metric_rule_init(&rule, &config, &list, true, false, NULL);
    assert_true(sl_metric_rule_reads_output(&rule));
    assert_true(sl_metric_needs_output(&config, &list, false));

    struct sl_batch *batch = make_batch(SL_FIELD_IDS, true, 1, true);
    int32_t *ids = (int32_t *)batch->target.ids;
    float *weights = (float *)batch->weight.values;
    ids[0] = 1, ids[1] = -1, ids[2] = 0;
    weights[0] = 1, weights[1] = 5, weights[2] = 3;
    /* Row 0: p(1) = 3/4. Row 1 is ignored. Row 2: equal logits, p(0) = 1/2, the first of equals is right. */
    const float logits[] = {0, logf(3), NAN, NAN, 1000, 1000};
    struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 2, .values = logits};
    struct sl_exec_result result = {.loss_sum = 6, .weight_sum = 4, .rows = 3};
    struct sl_metric_sums sums = {0};
    struct sl_metric_values values;
    sl_metric_add(&rule, &sums, batch, &output, &result);
    sl_metric_finish(&rule, &sums, &values);
    double entropy = (log(exp((double)logf(3)) + 1) - (double)logf(3) + 3 * log(2)) / 4;
    ASSERT_NEAR(find(&values, "loss"), 1.5);
    ASSERT_NEAR(find(&values, "accuracy"), 1);
    ASSERT_NEAR(find(&values, "perplexity"), exp(entropy));
    ASSERT_NEAR(find(&values, "bits_per_token"), entropy / log(2));
    ASSERT_NEAR(sums.rows, 3);
    assert_string_equal(values.items[0].name, "loss");
    /* A wrong one of weight 1 more. */
    ids[1] = 1, weights[1] = 4;
    const float wrong[] = {0, 1, 1, 0, 1, 0};
    output.values = wrong;
    memset(&sums, 0, sizeof sums);
    sl_metric_add(&rule, &sums, batch, &output, &result);
    sl_metric_finish(&rule, &sums, &values);
    ASSERT_NEAR(find(&values, "accuracy"), 0.5);
    ASSERT_NEAR(sl_metric_values_get(&values, SL_METRIC_ACCURACY), 0.5);
    assert_true(isnan(sl_metric_values_get(&values, SL_METRIC_MSE)));
    sl_batch_destroy(batch);
}

/* Without smoothing and class weights nothing but the loss is read. */
static void perplexity_from_the_loss(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_PERPLEXITY};
    struct sl_metric_list list = {wanted, 1};
    struct sl_train_config config = {.loss = {.kind = SL_LOSS_CROSS_ENTROPY}};
    struct sl_metric_rule rule;
    assert_false(sl_metric_needs_output(&config, &list, false));
    assert_true(sl_metric_needs_output(&config, &list, true));
    sl_metric_rule_init(&rule, &config, &list, true, false, NULL);
    assert_false(sl_metric_rule_reads_output(&rule));
    struct sl_metric_rule weighted; /* a loss with class weights is another number */
    sl_metric_rule_init(&weighted, &config, &list, true, true, NULL);
    assert_true(sl_metric_rule_reads_output(&weighted));
    struct sl_batch *batch = make_batch(SL_FIELD_IDS, true, 1, false);
    struct sl_metric_sums sums = {0}, total = {0};
    struct sl_metric_values values;
    sl_metric_finish(&rule, &sums, &values);
    assert_true(isnan(find(&values, "loss")) && isnan(find(&values, "perplexity")));
    sl_metric_add(&rule, &sums, batch, NULL, &(struct sl_exec_result){10, 4, 3, 0});
    sl_metric_sums_add(&total, &sums);
    sl_metric_sums_add(&total, &sums);
    sl_metric_finish(&rule, &total, &values);
    ASSERT_NEAR(find(&values, "loss"), 2.5);
    ASSERT_NEAR(find(&values, "perplexity"), exp(2.5));
    ASSERT_NEAR(total.rows, 6);
    batch->padded_rows = 2; /* rows that were computed for nothing do not count */
    sl_metric_add(&rule, &total, batch, NULL, &(struct sl_exec_result){10, 4, 3, 0});
    ASSERT_NEAR(total.rows, 7);
    batch->padded_rows = 0;
    sl_batch_destroy(batch);
}

static void values_in_both_units(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_RMSE, SL_METRIC_MAE, SL_METRIC_MSE};
    static const double factor[] = {10, 2}, offset[] = {1, 2};
    struct sl_scaling scaling = {.columns = 2, .offset = offset, .factor = factor};
    struct sl_metric_list list = {wanted, 3};
    struct sl_train_config config = {.loss = {.kind = SL_LOSS_MSE}};
    struct sl_metric_rule rule;
    sl_metric_rule_init(&rule, &config, &list, false, false, NULL);
    rule.scaling = &scaling;
    /* Two sequences, four features: the two columns at two horizons. */
    struct sl_batch *batch = make_batch(SL_FIELD_VALUES, false, 4, true);
    float *targets = (float *)batch->target.values, *weights = (float *)batch->weight.values;
    for (int i = 0; i < 8; i++)
        targets[i] = 1;
    weights[0] = 1, weights[1] = 0;
    const float y[] = {2, 1, 1, 0, NAN, NAN, NAN, NAN};
    struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = false, .features = 4, .values = y};
    struct sl_metric_sums sums = {0};
    struct sl_metric_values values;
    sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 1, 3, 0});
    sl_metric_finish(&rule, &sums, &values);
    ASSERT_NEAR(find(&values, "mse"), 2.0 / 4);
    ASSERT_NEAR(find(&values, "mae"), 2.0 / 4);
    ASSERT_NEAR(find(&values, "rmse"), sqrt(0.5));
    ASSERT_NEAR(find(&values, "mse_original"), (100 + 4) / 4.0);
    ASSERT_NEAR(find(&values, "mae_original"), (10 + 2) / 4.0);
    ASSERT_NEAR(find(&values, "rmse_original"), sqrt(26));
    assert_int_equal(values.count, 7);
    sl_batch_destroy(batch);
}

static void binary_classes_from_logits(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_ACCURACY, SL_METRIC_MAE};
    struct sl_metric_list list = {wanted, 2};
    struct sl_train_config config = {.loss = {.kind = SL_LOSS_BINARY_CROSS_ENTROPY}};
    struct sl_metric_rule rule;
    sl_metric_rule_init(&rule, &config, &list, true, false, NULL);
    struct sl_batch *batch = make_batch(SL_FIELD_VALUES, false, 1, false);
    float *targets = (float *)batch->target.values;
    targets[0] = 1, targets[1] = 0;
    const float logits[] = {0.25f, logf(3)}; /* right though under one half; wrong */
    struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = false, .features = 1, .values = logits};
    struct sl_metric_sums sums = {0};
    struct sl_metric_values values;
    sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 2, 2, 0});
    sl_metric_finish(&rule, &sums, &values);
    ASSERT_NEAR(find(&values, "accuracy"), 0.5);
    double p = 1 / (1 + exp(-(double)logf(3)));
    ASSERT_NEAR(find(&values, "mae"), (1 - 1 / (1 + exp(-0.25)) + p) / 2);
    /* the same numbers as probabilities, of which one half is the border; and of another loss */
    struct sl_metric_rule plain;
    for (int k = 0; k < 2; k++) {
        sl_metric_rule_init(&plain, &config, &list, k == 1, false, NULL);
        plain.loss = k == 1 ? SL_LOSS_MSE : SL_LOSS_BINARY_CROSS_ENTROPY;
        sums = (struct sl_metric_sums){0};
        sl_metric_add(&plain, &sums, batch, &output, &(struct sl_exec_result){1, 2, 2, 0});
        sl_metric_finish(&plain, &sums, &values);
        ASSERT_NEAR(find(&values, "accuracy"), 0);
        ASSERT_NEAR(find(&values, "mae"), (0.75 + (double)logf(3)) / 2);
    }
    sl_batch_destroy(batch);
}

static struct sl_metric_rule make_f1_rule(enum sl_loss_kind loss)
{
    static const enum sl_metric wanted[] = {SL_METRIC_F1_MACRO, SL_METRIC_F1_MICRO, SL_METRIC_ACCURACY};
    const struct sl_metric_list list = {wanted, 3};
    const struct sl_train_config config = {.loss = {.kind = loss}};
    struct sl_metric_rule rule;
    sl_metric_rule_init(&rule, &config, &list, true, false, NULL);
    return rule;
}

/* Three of four classes occur; the other one does not count, whichever it is. */
static void f1_leaves_out_what_does_not_occur(void **state)
{
    (void)state;
    struct sl_metric_rule rule = make_f1_rule(SL_LOSS_CROSS_ENTROPY);
    struct sl_batch *batch = make_batch(SL_FIELD_IDS, true, 4, false);
    for (int shift = 0; shift < 4; shift++) {
        float y[12] = {0};
        struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 4, .values = y};
        struct sl_metric_sums sums = {0};
        struct sl_metric_values values;
        for (int r = 0; r < 3; r++) { /* targets 0 1 1, answers 0 1 2, and the classes turned by `shift` */
            ((int32_t *)batch->target.ids)[r] = ((r > 0) + shift) % 4;
            y[4 * r + (r + shift) % 4] = 5;
        }
        sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 3, 3, 0});
        sl_metric_finish(&rule, &sums, &values);
        ASSERT_NEAR(find(&values, "f1_macro"), (1 + 2.0 / 3 + 0) / 3);
        ASSERT_NEAR(find(&values, "f1_micro"), 2.0 / 3);
    }
    sl_batch_destroy(batch);
}

/* As many classes as F1 counts, one less and one more: up to there each has a place, labels that training lacks share
 * the last where there is no other; beyond it nothing is counted or overwritten. */
static void f1_of_the_most_classes(void **state)
{
    (void)state;
    struct sl_metric_rule rule = make_f1_rule(SL_LOSS_CROSS_ENTROPY);
    for (int classes = SL_METRIC_CLASSES - 1; classes <= SL_METRIC_CLASSES + 1; classes++) {
        struct sl_batch *batch = make_batch(SL_FIELD_IDS, true, classes, false);
        float *y = calloc(3 * (size_t)classes, sizeof *y);
        struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = classes, .values = y};
        struct sl_metric_sums sums = {0};
        struct sl_metric_values values;
        const int32_t targets[3] = {classes - 1, classes - 2, SL_CLASS_UNKNOWN};
        for (int r = 0; r < 3; r++) { /* the last class: right once, then given in place of its neighbour and of none */
            ((int32_t *)batch->target.ids)[r] = targets[r];
            y[classes * r + classes - 1] = 1;
        }
        sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 3, 3, 0});
        sl_metric_finish(&rule, &sums, &values);
        ASSERT_NEAR(find(&values, "accuracy"), 1.0 / 3);
        const bool fits = classes <= SL_METRIC_CLASSES, shares = classes == SL_METRIC_CLASSES;
        double counted = 0;
        for (int k = 0; k < SL_METRIC_CLASSES; k++)
            counted += sums.hits[k] + sums.missed[k] + sums.alarms[k];
        assert_true(counted == (fits ? 5 : 0));
        if (fits) {
            assert_true(sums.hits[classes - 1] == 1 && sums.alarms[classes - 1] == 2 && sums.missed[classes - 2] == 1);
            assert_true(sums.missed[SL_METRIC_CLASSES - 1] == 1);
            ASSERT_NEAR(find(&values, "f1_micro"), 2.0 / 6);
            ASSERT_NEAR(find(&values, "f1_macro"), shares ? 2.0 / 5 / 2 : 2.0 / 4 / 3);
        }
        free(y);
        sl_batch_destroy(batch);
    }
}

/* Every member of the sums is a float64 that is added: none is forgotten. */
static void sums_add_every_member(void **state)
{
    (void)state;
    static struct sl_metric_sums one, twice;
    double *members = (double *)&one, *added = (double *)&twice;
    const size_t count = sizeof one / sizeof *members;
    for (size_t k = 0; k < count; k++)
        members[k] = (double)k + 1;
    sl_metric_sums_add(&twice, &one);
    sl_metric_sums_add(&twice, &one);
    for (size_t k = 0; k < count; k++)
        if (added[k] != 2 * ((double)k + 1))
            fail_msg("member %zu of %zu is not added", k, count);
}

/* A loss must be finite, another metric must not be infinite, and no NaN has a sign. */
static void unsound_values_are_found(void **state)
{
    (void)state;
    struct sl_metric_values values = {.count = 3,
                                      .items = {{"loss", 1, NULL}, {"f1_macro", NAN, NULL}, {"perplexity", 3, NULL}}};
    assert_null(sl_metric_values_find_unsound(&values));
    values.items[2].value = INFINITY;
    assert_ptr_equal(sl_metric_values_find_unsound(&values), &values.items[2]);
    values.items[0].value = NAN;
    assert_ptr_equal(sl_metric_values_find_unsound(&values), &values.items[0]);
    values.items[0].value = -INFINITY;
    assert_ptr_equal(sl_metric_values_find_unsound(&values), &values.items[0]);
    struct sl_train_config config = {.loss = {.kind = SL_LOSS_MSE}};
    struct sl_metric_list list = {NULL, 0};
    struct sl_metric_rule rule;
    struct sl_metric_sums sums = {.loss = copysign(NAN, -1), .loss_weight = 1};
    sl_metric_rule_init(&rule, &config, &list, false, false, NULL);
    sl_metric_finish(&rule, &sums, &values);
    assert_true(isnan(values.items[0].value) && !signbit(values.items[0].value));
}

/* Three classes; the fourth occurs nowhere and does not count. */
static void f1_of_classes_and_of_values(void **state)
{
    (void)state;
    struct sl_metric_rule rule = make_f1_rule(SL_LOSS_CROSS_ENTROPY);
    struct sl_batch *batch = make_batch(SL_FIELD_IDS, true, 4, false);
    int32_t *ids = (int32_t *)batch->target.ids;
    ids[0] = 0, ids[1] = 1, ids[2] = 1;
    const float y[] = {5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0}; /* answers 0 1 2 */
    struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 4, .values = y};
    struct sl_metric_sums sums = {0}, twice = {0};
    struct sl_metric_values values;
    sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 3, 3, 0});
    sl_metric_sums_add(&twice, &sums);
    sl_metric_sums_add(&twice, &sums);
    sl_metric_finish(&rule, &twice, &values);
    ASSERT_NEAR(find(&values, "f1_macro"), (1 + 2.0 / 3 + 0) / 3);
    ASSERT_NEAR(find(&values, "f1_micro"), 2.0 / 3);
    ASSERT_NEAR(find(&values, "accuracy"), find(&values, "f1_micro"));
    memset(&sums, 0, sizeof sums);
    sl_metric_finish(&rule, &sums, &values);
    assert_true(isnan(find(&values, "f1_macro")) && isnan(find(&values, "f1_micro")));
    sl_batch_destroy(batch);

    rule = make_f1_rule(SL_LOSS_BINARY_CROSS_ENTROPY);
    batch = make_batch(SL_FIELD_VALUES, false, 2, false);
    float *targets = (float *)batch->target.values;
    targets[0] = 1, targets[1] = 1, targets[2] = 0, targets[3] = 1;
    const float logits[] = {1, -1, 2, 3}; /* feature 0: hit, alarm; feature 1: missed, hit */
    output = (struct sl_field){.kind = SL_FIELD_VALUES, .features = 2, .values = logits};
    sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 2, 2, 0});
    sl_metric_finish(&rule, &sums, &values);
    ASSERT_NEAR(find(&values, "f1_macro"), 2.0 / 3);
    ASSERT_NEAR(find(&values, "f1_micro"), 2.0 * 2 / (2 * 2 + 1 + 1));
    sl_batch_destroy(batch);
}

/* Tags of two sequences: steps 0 0 1 (rows of lengths 2 1), with logits of five classes. */
static void spans_of_sequences(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_F1_SPAN, SL_METRIC_F1_SPAN_STRICT};
    struct sl_metric_list list = {wanted, 2};
    struct sl_train_config config = {.loss = {.kind = SL_LOSS_CROSS_ENTROPY}};
    struct sl_metric_rule rule;
    sl_metric_rule_init(&rule, &config, &list, true, false, NULL);
    const char *const names[3] = {"O", "B-X", "I-X"};
    for (int32_t i = 0; i < 3; i++)
        assert_true(sl_span_tag_parse(names, i, &rule.tags[i]));
    struct sl_batch *batch = make_batch(SL_FIELD_IDS, true, 1, false);
    int32_t *ids = (int32_t *)batch->target.ids;
    ids[0] = 1, ids[1] = 1, ids[2] = 2; /* B-X I-X and B-X */
    /* said: B-X I-X, a whole span; and I-X, which is one for conlleval alone */
    const float logits[] = {0, 1, 0, 0, 0, 1, 0, 0, 1};
    struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3, .values = logits};
    struct sl_metric_sums sums = {0}, twice = {0};
    struct sl_metric_values values;
    sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 3, 3, 0});
    sl_metric_finish(&rule, &sums, &values);
    ASSERT_NEAR(find(&values, "f1_span"), 1);
    ASSERT_NEAR(find(&values, "f1_span_strict"), 2.0 / 3);
    sl_metric_sums_add(&twice, &sums);
    sl_metric_sums_add(&twice, &sums);
    assert_true(twice.spans[SL_SPAN_STRICT].meant == 4 && twice.spans[SL_SPAN_STRICT].said == 2);
    ids[1] = -1; /* no target: as if the step did not stand there */
    memset(&sums, 0, sizeof sums);
    sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 2, 2, 0});
    assert_true(sums.spans[SL_SPAN_CONLLEVAL].meant == 1 && sums.spans[SL_SPAN_CONLLEVAL].found == 1);
    sl_batch_destroy(batch);
}

/* Errors over those of the naive forecast, column by column, in the units of the file. */
static void scaled_by_the_naive_forecast(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_MASE};
    struct sl_metric_list list = {wanted, 1};
    struct sl_train_config config = {.loss = {.kind = SL_LOSS_MSE}};
    const double offset[] = {5, 0}, factor[] = {10, 1}, naive[] = {20, 0.5};
    const struct sl_scaling scaling = {2, offset, factor};
    struct sl_metric_rule rule;
    sl_metric_rule_init(&rule, &config, &list, false, false, NULL);
    rule.scaling = &scaling;
    rule.naive = naive;
    rule.columns = 2;
    struct sl_batch *batch = make_batch(SL_FIELD_VALUES, false, 2, false);
    const float said[] = {1, 1, -2, 0}; /* targets are 0 */
    struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 2, .values = said};
    struct sl_metric_sums sums = {0};
    struct sl_metric_values values;
    sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){1, 2, 2, 0});
    sl_metric_finish(&rule, &sums, &values);
    ASSERT_NEAR(find(&values, "mase"), (10 / 20.0 + 1 / 0.5 + 20 / 20.0 + 0) / 4);
    sl_batch_destroy(batch);
}

/* What compares texts reads no output, is left out of training, and adds up like the rest. */
static void scores_of_texts(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_EXACT_MATCH, SL_METRIC_BLEU, SL_METRIC_CHRF};
    static const char *const pairs[][2] = {{"a b c d e f", "a b c d e g"}, {"one two 1,000.", "one two 1,000."}};
    struct sl_metric_list list = {wanted, 3}, bleu = {wanted + 1, 1};
    struct sl_train_config config = {.loss = {.kind = SL_LOSS_CROSS_ENTROPY}};
    struct sl_metric_rule rule, train;
    sl_metric_rule_init(&rule, &config, &list, true, false, NULL);
    assert_true(sl_metric_rule_reads_texts(&rule) && !sl_metric_rule_reads_output(&rule));
    assert_true(sl_metric_needs_texts(&bleu) && !sl_metric_needs_output(&config, &list, false));
    train = rule;
    sl_metric_rule_drop_texts(&train);
    assert_false(sl_metric_rule_reads_texts(&train));

    struct sl_metric_sums parts[2] = {{0}}, sums = {0};
    struct sl_text_sums whole = {0};
    struct sl_metric_values values;
    sl_metric_finish(&rule, &sums, &values);
    for (size_t m = 0; m < 3; m++)
        assert_true(isnan(sl_metric_values_get(&values, wanted[m])));
    for (size_t i = 0; i < 2; i++) {
        const char *said = pairs[i][0], *meant = pairs[i][1];
        assert_int_equal(sl_text_sums_add(&parts[i].text, SL_BLEU_13A, said, strlen(said), meant, strlen(meant), NULL),
                         SEQLSTM_OK);
        assert_int_equal(sl_text_sums_add(&whole, SL_BLEU_13A, said, strlen(said), meant, strlen(meant), NULL),
                         SEQLSTM_OK);
        sl_metric_sums_add(&sums, &parts[i]);
    }
    assert_memory_equal(&sums.text, &whole, sizeof whole);
    sl_metric_finish(&rule, &sums, &values);
    assert_int_equal(values.count, 4);
    ASSERT_NEAR(find(&values, "exact_match"), 0.5);
    /* 13a parts the point: 10 words of which 9 are right, then 7 of 8, 5 of 6, 3 of 4. */
    ASSERT_NEAR(find(&values, "bleu"), 100 * pow(9.0 / 10 * 7 / 8 * 5 / 6 * 3 / 4, 0.25));
    ASSERT_NEAR(find(&values, "chrf"), sl_chrf_compute(&whole.chrf));
    assert_true(find(&values, "chrf") > 50 && find(&values, "chrf") < 100);
    sl_metric_finish(&train, &sums, &values);
    assert_int_equal(values.count, 1);
}

/* ---- where there is little to count ------------------------------------------------------------------------------ */

/* Four sequences: the target, the answer, and the weight of each. NaN: nothing counts. */
static const struct counted {
    const char *name;
    int classes;
    int32_t targets[4], answers[4];
    float weights[4];
    double accuracy, entropy, macro, micro; /* the entropy is in units of log(classes) */
} counted[] = {
    {"none has a target", 3, {-1, -1, -1, -1}, {0, 1, 2, 0}, {1, 1, 1, 1}, NAN, NAN, NAN, NAN},
    {"none has a weight", 3, {0, 1, 2, -2}, {0, 1, 2, 0}, {0, 0, 0, 0}, NAN, NAN, NAN, NAN},
    {"one counts", 3, {-1, 2, -1, 0}, {0, 2, 2, 1}, {1, 1, 1, 0}, 1, 1, 1, 1},
    {"one class", 1, {0, 0, -1, 0}, {0, 0, 0, 0}, {1, 2, 3, 0}, 1, 0, 1, 1},
    {"no answer is right", 2, {0, 1, 0, 1}, {1, 0, 1, 0}, {1, 1, 1, 1}, 0, 1, 0, 0},
    {"labels that training lacks", 2, {-2, -2, -3, -1}, {0, 0, 1, 1}, {1, 1, 1, 1}, 0, NAN, 0, 0},
    {"one of them beside a class", 2, {0, -2, -1, -1}, {0, 0, 0, 0}, {1, 1, 1, 1}, 0.5, 1, (2.0 / 3 + 0) / 2, 0.5},
    {"weights", 2, {0, 1, 1, -2}, {0, 0, 1, 1}, {4, 1, 2, 1}, 6.0 / 8, 1, (8.0 / 9 + 4.0 / 6 + 0) / 3, 12.0 / 16},
};

static void expect_metric(const char *name, const struct sl_metric_values *values, const char *metric, double want)
{
    const double got = find(values, metric);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= 1e-6))
        fail_msg("%s: %s is %.9g, expected %.9g", name, metric, got, want);
}

/* Blanks, labels that are ignored or unknown, and one class, for each metric of classes. */
static void classes_where_little_counts(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_ACCURACY, SL_METRIC_PERPLEXITY, SL_METRIC_BITS_PER_TOKEN,
                                            SL_METRIC_F1_MACRO, SL_METRIC_F1_MICRO};
    const struct sl_metric_list list = {wanted, 5};
    const struct sl_train_config config = {.loss = {.kind = SL_LOSS_CROSS_ENTROPY, .label_smoothing = 0.1}};
    struct sl_metric_rule rule;
    sl_metric_rule_init(&rule, &config, &list, true, false, NULL);
    const struct sl_batch_shape shape = {.sequences = 4,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = 1,
                                         .target_kind = SL_FIELD_IDS,
                                         .target_features = 1,
                                         .has_weight = true};
    struct sl_batch *batch = NULL;
    assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
    for (size_t c = 0; c < sizeof counted / sizeof *counted; c++) {
        const struct counted *t = &counted[c];
        float logits[12] = {0};
        const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = t->classes, .values = logits};
        struct sl_metric_sums sums = {0};
        struct sl_metric_values values;
        for (int k = 0; k < 4; k++) { /* so close that the entropy is that of equals */
            ((int32_t *)batch->target.ids)[k] = t->targets[k];
            ((float *)batch->weight.values)[k] = t->weights[k];
            logits[k * t->classes + t->answers[k]] = 1e-7f;
        }
        sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){.rows = 4});
        sl_metric_finish(&rule, &sums, &values);
        expect_metric(t->name, &values, "loss", NAN);
        expect_metric(t->name, &values, "accuracy", t->accuracy);
        expect_metric(t->name, &values, "perplexity", pow(t->classes, t->entropy));
        expect_metric(t->name, &values, "bits_per_token", t->entropy * log2(t->classes));
        expect_metric(t->name, &values, "f1_macro", t->macro);
        expect_metric(t->name, &values, "f1_micro", t->micro);
        ASSERT_NEAR(sums.rows, 4);
    }
    sl_batch_destroy(batch);
}

/* An answer on the border is no; rows of weight 0 count nowhere, and no row leaves nothing to divide by. */
static void values_where_little_counts(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_ACCURACY, SL_METRIC_MSE,      SL_METRIC_MAE, SL_METRIC_RMSE,
                                            SL_METRIC_F1_MACRO, SL_METRIC_F1_MICRO, SL_METRIC_MASE};
    static const char *const all[] = {"accuracy", "mse", "mae", "rmse", "f1_macro", "f1_micro", "mase"};
    const struct sl_metric_list list = {wanted, 7};
    const struct sl_train_config config = {.loss = {.kind = SL_LOSS_BINARY_CROSS_ENTROPY}};
    const double naive[] = {2};
    struct sl_batch *batch = make_batch(SL_FIELD_VALUES, false, 1, true);
    float *targets = (float *)batch->target.values, *weights = (float *)batch->weight.values;
    for (int logits = 0; logits < 2; logits++)
        for (int counts = 0; counts < 2; counts++) {
            const float said[] = {logits ? 0 : 0.5f, logits ? 1 : 0.75f};
            const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 1, .values = said};
            struct sl_metric_rule rule;
            struct sl_metric_sums sums = {0};
            struct sl_metric_values values;
            targets[0] = targets[1] = 1;
            weights[0] = (float)counts, weights[1] = 0;
            sl_metric_rule_init(&rule, &config, &list, logits == 1, false, NULL);
            rule.naive = naive, rule.columns = 1;
            sl_metric_add(&rule, &sums, batch, &output, &(struct sl_exec_result){.rows = 2});
            sl_metric_finish(&rule, &sums, &values);
            const double expected[] = {0, 0.25, 0.5, 0.5, 0, 0, 0.25};
            for (int m = 0; m < 7; m++)
                expect_metric(logits ? "logits" : "probabilities", &values, all[m], counts ? expected[m] : NAN);
        }
    sl_batch_destroy(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_of_texts),
        cmocka_unit_test(spans_of_sequences),
        cmocka_unit_test(scaled_by_the_naive_forecast),
        cmocka_unit_test(classes_with_weights_and_ignored_rows),
        cmocka_unit_test(perplexity_from_the_loss),
        cmocka_unit_test(values_in_both_units),
        cmocka_unit_test(binary_classes_from_logits),
        cmocka_unit_test(f1_of_classes_and_of_values),
        cmocka_unit_test(f1_leaves_out_what_does_not_occur),
        cmocka_unit_test(f1_of_the_most_classes),
        cmocka_unit_test(unsound_values_are_found),
        cmocka_unit_test(sums_add_every_member),
        cmocka_unit_test(classes_where_little_counts),
        cmocka_unit_test(values_where_little_counts),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

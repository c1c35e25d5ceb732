/* SPDX-License-Identifier: Apache-2.0 */
/* F1 of spans over the batches of a file, against a plain walk over its lines: steps in the order of the sequences,
 * targets that the training split lacks, and sums of several batches. */
#include <math.h>

#include "data_fixture.h"
#include "ok.h"
#include "oom.h"

#include "train/metrics/metric.h"

enum { CLASSES = 5, RECORDS = 9, STEPS_MOST = 9, SPANS_MOST = 16, PERIOD = 11 };

static const char *const classes[CLASSES] = {"O", "B-a", "I-a", "B-b", "I-b"};
/* Of the validation split: three are not in the training split, of which the last is no tag. */
static const char *const labels[PERIOD] = {"B-a", "I-a", "O", "I-b", "B-b", "I-b", "B-c", "I-c", "odd", "I-a", "B-a"};

static int get_length(int record)
{
    return 1 + record * 5 % STEPS_MOST;
}

static const char *get_label(int record, int step)
{
    return labels[(record * 7 + step * (1 + record % 3)) % PERIOD];
}

/* What the model says: mostly the label, where it is a class. */
static const char *get_answer(int record, int step)
{
    const char *label = get_label(record, step);
    for (int c = 0; c < CLASSES; c++)
        if (strcmp(classes[c], label) == 0 && (record + step) % 4 != 0)
            return label;
    return classes[(record * 3 + step) % CLASSES];
}

/* ---- a plain walk -------------------------------------------------------------------------------------------------
 */

struct plain_span {
    int begin, end;
    const char *type;
};

/* Spans of a tagging; `strict`: an I- that continues none is outside. */
static int list_spans(int record, const char *(*get)(int record, int step), bool strict, struct plain_span *out)
{
    int count = 0;
    bool open = false;
    for (int t = 0; t < get_length(record); t++) {
        const char *tag = get(record, t);
        const char *type = strcmp(tag, "odd") == 0 ? tag : strlen(tag) > 2 ? tag + 2 : NULL;
        const bool continues = open && tag[0] == 'I' && strcmp(out[count - 1].type, type) == 0;
        const bool begins = type && !continues && (tag[0] != 'I' || !strict);
        if (continues)
            out[count - 1].end = t;
        if (begins)
            out[count++] = (struct plain_span){t, t, type};
        open = continues || begins;
    }
    return count;
}

static double walk_all(bool strict)
{
    double found = 0, all = 0;
    for (int r = 0; r < RECORDS; r++) {
        struct plain_span meant[SPANS_MOST], said[SPANS_MOST];
        const int of_meant = list_spans(r, get_label, strict, meant), of_said = list_spans(r, get_answer, strict, said);
        all += of_meant + of_said;
        for (int m = 0; m < of_meant; m++)
            for (int s = 0; s < of_said; s++)
                found += meant[m].begin == said[s].begin && meant[m].end == said[s].end &&
                         strcmp(meant[m].type, said[s].type) == 0;
    }
    return 2 * found / all;
}

/* ---- the metric ----------------------------------------------------------------------------------------------------
 */

static void write_files(void)
{
    struct sl_buf text = {0};
    for (int c = 0; c < CLASSES; c++)
        sl_buf_printf(&text, "w\t%s\n", classes[c]);
    data_write("train.txt", sl_buf_text(&text));
    sl_buf_truncate(&text, 0);
    for (int r = 0; r < RECORDS; r++) {
        for (int t = 0; t < get_length(r); t++)
            sl_buf_printf(&text, "w\t%s\n", get_label(r, t));
        sl_buf_append_text(&text, "\n");
    }
    data_write("valid.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
}

/* Adds the batches; the model's output is 1 at its answer. */
static int add_batches(const struct sl_metric_rule *rule, const struct data_open *o, const struct sl_dataset *valid,
                       struct sl_metric_sums *sums)
{
    enum { MOST_ROWS = RECORDS * STEPS_MOST };
    static float output[MOST_ROWS][CLASSES];
    struct sl_batcher *batcher = data_batcher(valid, SL_BATCHING_EVALUATE, 1, 4, 0);
    int batches = 0;
    for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; batches++) {
        memset(output, 0, sizeof output);
        for (int64_t k = 0; k < batch->sequences; k++)
            for (int64_t t = 0; t < batch->axis.lengths[k]; t++) {
                const char *answer = get_answer((int)batch->sample[k], (int)t);
                const int32_t id = sl_vocabulary_find(sl_data_state_find_classes(o->state), answer, strlen(answer));
                output[sl_batch_row(batch, k, t)][id] = 1;
            }
        const struct sl_field field = {
            .kind = SL_FIELD_VALUES, .on_steps = true, .features = CLASSES, .values = output[0]};
        const struct sl_exec_result result = {.loss_sum = 1, .weight_sum = 1, .rows = batch->axis.rows};
        sl_metric_add(rule, sums, batch, &field, &result);
        sl_batch_destroy(batch);
    }
    sl_batcher_close(batcher);
    return batches;
}

static void spans_are_those_of_a_plain_walk(void **state)
{
    (void)state;
    static const enum sl_metric wanted[] = {SL_METRIC_F1_SPAN, SL_METRIC_F1_SPAN_STRICT};
    const struct sl_metric_list list = {wanted, 2};
    struct sl_metric_rule rule;
    struct sl_metric_sums sums = {0};
    struct sl_metric_values values;
    write_files();
    struct data_open o = data_open_train("type: conll, train: {file: train.txt}, valid: {file: valid.txt}, label: 2, "
                                         "batch_size: 4",
                                         MODEL_TAG, "loss: cross_entropy");
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    assert_int_equal(sl_dataset_count_unknown_labels(valid), 3);
    sl_metric_rule_init(&rule, &o.model->train, &list, true, false, o.state);
    sl_metric_rule_add_labels(&rule, valid);
    assert_true(add_batches(&rule, &o, valid, &sums) > 1);
    sl_metric_finish(&rule, &sums, &values);
    for (int strict = 0; strict < 2; strict++) {
        const double got = sl_metric_values_get(&values, wanted[strict]), expected = walk_all(strict);
        if (!(fabs(got - expected) <= 1e-12) || !(expected > 0.1 && expected < 0.9))
            fail_msg("%s: %.6f, expected %.6f", sl_metric_get_name(wanted[strict]), got, expected);
    }
    assert_true(walk_all(true) != walk_all(false));
    sl_dataset_close(valid);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spans_are_those_of_a_plain_walk, data_setup, data_teardown),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

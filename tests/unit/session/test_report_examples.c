/* SPDX-License-Identifier: Apache-2.0 */
/* What a report shows of a split, against a plain computation: the points of its plot for several lengths, and the
 * words around each step that was tagged wrongly. */
#include "data_fixture.h"

#include <math.h>

#include "session/report/examples.h"

/* ---- points ------------------------------------------------------------------------------------------------- */

/* Value i is 2 i of the file, and is predicted as -i: each point tells its place, and the last ones are the worst. Of
 * the others, one in `holes` is no number, and one has no weight. */
static void add_values(struct sl_examples *examples, const struct sl_dataset *dataset, int64_t values, int64_t holes)
{
    enum { MOST = 613 };
    static const int64_t zeros[MOST];
    float actual[MOST], predicted[MOST], weight[MOST];
    struct sl_metric_rule rule = {0};
    int64_t rows = 0;
    for (int64_t i = 0, n = 0; i < values; n++) {
        const bool is_hole = holes && n % holes == 1, is_nan = is_hole && n % (2 * holes) == 1;
        actual[rows] = 2 * (float)i;
        predicted[rows] = is_nan ? NAN : -(float)i;
        weight[rows++] = is_hole && !is_nan ? 0 : 1;
        i += !is_hole;
        if (rows < MOST && i < values)
            continue;
        const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 1, .values = predicted};
        const struct sl_batch batch = {.sequences = rows,
                                       .target = {.kind = SL_FIELD_VALUES, .features = 1, .values = actual},
                                       .weight = {.kind = SL_FIELD_VALUES, .features = 1, .values = weight},
                                       .sample = zeros,
                                       .sample_step = zeros};
        sl_examples_add(examples, &rule, dataset, &batch, &output);
        rows = 0;
    }
}

static void check_points(const struct sl_examples *examples, int64_t values)
{
    int64_t stride = 1;
    while ((values + stride - 1) / stride > SL_EXAMPLE_POINTS)
        stride *= 2;
    assert_int_equal(examples->values, values);
    assert_int_equal(examples->point_count, (values + stride - 1) / stride);
    for (int64_t k = 0; k < examples->point_count; k++)
        if (examples->points[k][0] != 2 * (float)(k * stride) || examples->points[k][1] != -(float)(k * stride))
            fail_msg("%lld values: point %lld is (%g, %g), not that of value %lld", (long long)values, (long long)k,
                     examples->points[k][0], examples->points[k][1], (long long)(k * stride));
    assert_int_equal(examples->worst_count, values < SL_EXAMPLE_WORST ? values : SL_EXAMPLE_WORST);
    for (int64_t k = 0; k < examples->worst_count; k++)
        assert_true(examples->worst[k].error == 3 * (double)(values - 1 - k));
}

static void points_are_spread_over_the_split(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 9, 799, 800, 801, 802, 1599, 1600, 1601, 2400, 3199, 3200, 3201, 10000};
    data_write("train.csv", "a,y\n1,2\n3,4\n");
    struct data_open o = data_open_train(
        "type: csv, train: {file: train.csv}, inputs: [a], targets: [y], batch_size: 4", MODEL_DENSE, "loss: mse");
    struct sl_examples *examples = malloc(sizeof *examples);
    assert_non_null(examples);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int64_t holes = 0; holes <= 5; holes += 5) {
            sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
            assert_int_equal(examples->kind, SL_EXAMPLES_VALUES);
            add_values(examples, o.train, lengths[i], holes);
            check_points(examples, lengths[i]);
        }
    free(examples);
    data_close(&o);
}

/* Rows of two columns, each of its own scale, are shown as the file has them. */
static void values_are_those_of_the_file(void **state)
{
    (void)state;
    static const double file[4][2] = {{0.25, 5000}, {0.5, 3000}, {1, 9000}, {0.125, 2000}};
    data_write("train.csv", "a,y,z\n1,0.25,5000\n2,0.5,3000\n3,1,9000\n4,0.125,2000\n");
    struct data_open o =
        data_open_train("type: csv, train: {file: train.csv}, inputs: [a], targets: [y, z], scale: standard, "
                        "batch_size: 4",
                        MODEL_DENSE, "loss: mse");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    struct sl_examples *examples = malloc(sizeof *examples);
    const struct sl_metric_rule rule = {0};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 2, .values = batch->target.values};
    assert_non_null(examples);
    sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
    sl_examples_add(examples, &rule, o.train, batch, &output);
    assert_int_equal(examples->point_count, 8);
    for (int k = 0; k < 8; k++) {
        const double expected = file[batch->sample[k / 2]][k % 2];
        assert_true(fabs(examples->points[k][0] - expected) <= 1e-5 * expected);
        assert_true(examples->points[k][1] == examples->points[k][0]);
    }
    free(examples);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

/* Of equal errors the earlier row comes first; a step is counted from the begin of its record, which the batch may have
 * from a later step on. */
static void the_worst_rows_are_told_where_they_are(void **state)
{
    (void)state;
    static const int64_t samples[] = {1, 0, 1, 0}, steps[] = {40, 3, 0, 7};
    static const float actual[] = {1, 1, 1, 1}, predicted[] = {2, 5, 0, 5};
    static const int order[] = {1, 3, 0, 2};
    data_write("train.csv", "a,y\n1,2\n3,4\n");
    struct data_open o = data_open_train(
        "type: csv, train: {file: train.csv}, inputs: [a], targets: [y], batch_size: 4", MODEL_DENSE, "loss: mse");
    struct sl_examples *examples = malloc(sizeof *examples);
    const struct sl_metric_rule rule = {0};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 1, .values = predicted};
    const struct sl_batch batch = {.sequences = 4,
                                   .target = {.kind = SL_FIELD_VALUES, .features = 1, .values = actual},
                                   .sample = samples,
                                   .sample_step = steps};
    assert_non_null(examples);
    sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
    sl_examples_add(examples, &rule, o.train, &batch, &output);
    assert_int_equal(examples->worst_count, 4);
    for (int k = 0; k < 4; k++) {
        assert_int_equal(examples->worst[k].record, samples[order[k]]);
        assert_int_equal(examples->worst[k].step, steps[order[k]]);
    }
    free(examples);
    data_close(&o);
}

/* A label that the training lacks has a row of its own, whatever is answered. A part of the training file is read as
 * that file is. */
static void labels_that_are_not_known_have_a_row(void **state)
{
    (void)state;
    static const int64_t zeros[6];
    static const int32_t targets[] = {0, SL_CLASS_UNKNOWN, 2, SL_CLASS_UNKNOWN - 1, 1, -1};
    static const int answers[] = {0, 2, 1, 0, 1, 0};
    data_write("train.txt", "a\tA\nb\tB\nc\tC\n\nd\tB\n\ne\tC\n\nf\tA\n\n");
    struct data_open o = data_open_train(
        "type: conll, train: {file: train.txt}, valid: {split: 0.25}, label: 2, tokenizer: {type: whitespace}, "
        "batch_size: 8",
        MODEL_TAG, "task: tag");
    float values[6][3] = {{0}};
    struct sl_examples *examples = malloc(sizeof *examples);
    const struct sl_metric_rule rule = {.is_logits = true};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 3, .values = values[0]};
    const struct sl_batch batch = {.sequences = 6,
                                   .target = {.kind = SL_FIELD_IDS, .features = 1, .ids = targets},
                                   .sample = zeros,
                                   .sample_step = zeros};
    int64_t expected[4][3] = {{1, 0, 0}, {0, 1, 0}, {0, 1, 0}, {1, 0, 1}};
    assert_non_null(examples);
    for (int k = 0; k < 6; k++)
        values[k][answers[k]] = 4;
    sl_examples_init(examples, o.model, o.state, SL_SPLIT_VALID);
    assert_int_equal(examples->kind, SL_EXAMPLES_CLASSES);
    assert_int_equal(examples->classes, 3);
    assert_true(examples->has_words); /* of the file that it is a part of */
    sl_examples_add(examples, &rule, o.train, &batch, &output);
    assert_int_equal(examples->rows, 5); /* one has no label */
    for (int t = 0; t < 4; t++)
        for (int c = 0; c < 3; c++)
            assert_int_equal(examples->counts[t][c], expected[t][c]);
    free(examples);
    data_close(&o);
}

/* What is kept of a row whose answer is wrong. */
static const struct sl_example *answer(struct sl_examples *examples, const struct data_open *o, bool is_logits,
                                       int32_t target, int64_t features, const float *values)
{
    static const int64_t zeros[1];
    const struct sl_metric_rule rule = {.is_logits = is_logits};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = features, .values = values};
    const struct sl_batch batch = {.sequences = 1,
                                   .target = {.kind = SL_FIELD_IDS, .features = 1, .ids = &target},
                                   .sample = zeros,
                                   .sample_step = zeros};
    examples->worst_count = 0;
    sl_examples_add(examples, &rule, o->train, &batch, &output);
    assert_int_equal(examples->worst_count, 1);
    return &examples->worst[0];
}

static void expect_answer(const struct sl_example *example, int32_t class, double probability, double error)
{
    assert_int_equal(example->answer, class);
    assert_true(fabs(example->predicted - probability) <= 1e-6);
    assert_true(fabs(example->error - error) <= 1e-6);
}

/* The answer is the likeliest class, of equal ones the first; it is wrong by -log of the probability of the right one,
 * and for a label that is not known by its own probability. */
static void answers_are_wrong_by_their_probabilities(void **state)
{
    (void)state;
    static const float logits[] = {1, 3, 2}, shares[] = {0.2f, 0.5f, 0.3f}, equal[] = {0.25f, 0.375f, 0.375f},
                       one[] = {-2}, share[] = {0.75f};
    const double sum = exp(1) + exp(3) + exp(2);
    data_write("train.txt", "a\tA\nb\tB\nc\tC\n\nd\tB\n\n");
    struct data_open o =
        data_open_train("type: conll, train: {file: train.txt}, label: 2, tokenizer: {type: whitespace}, batch_size: 8",
                        MODEL_TAG, "task: tag");
    struct sl_examples *examples = malloc(sizeof *examples);
    assert_non_null(examples);
    sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
    expect_answer(answer(examples, &o, true, 2, 3, logits), 1, exp(3) / sum, -log(exp(2) / sum));
    expect_answer(answer(examples, &o, false, 2, 3, shares), 1, 0.5, -log(0.3));
    expect_answer(answer(examples, &o, false, 0, 3, equal), 1, 0.375, -log(0.25));
    expect_answer(answer(examples, &o, false, SL_CLASS_UNKNOWN, 3, shares), 1, 0.5, 0.5);
    examples->classes = 2; /* an output of one value is the probability of the second class */
    expect_answer(answer(examples, &o, true, 1, 1, one), 0, 1 / (1 + exp(-2)), log(1 + exp(2)));
    expect_answer(answer(examples, &o, false, 0, 1, share), 1, 0.75, -log(0.25));
    free(examples);
    data_close(&o);
}

/* Probabilities stay numbers however far apart the logits are, and so do errors where the right class has none. */
static void extreme_outputs_have_errors(void **state)
{
    (void)state;
    static const float far[] = {-2000, 1500, 1490}, none[] = {0, 1, 0}, nan[] = {NAN, NAN, NAN};
    data_write("train.txt", "a\tA\nb\tB\nc\tC\n\nd\tB\n\n");
    struct data_open o =
        data_open_train("type: conll, train: {file: train.txt}, label: 2, tokenizer: {type: whitespace}, batch_size: 8",
                        MODEL_TAG, "task: tag");
    struct sl_examples *examples = malloc(sizeof *examples);
    assert_non_null(examples);
    sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
    expect_answer(answer(examples, &o, true, 2, 3, far), 1, 1 / (1 + exp(-10)), 10 + log(1 + exp(-10)));
    assert_true(isfinite(answer(examples, &o, true, 0, 3, far)->error));
    assert_true(isfinite(answer(examples, &o, false, 2, 3, none)->error));
    const int32_t target = 1;
    const int64_t zero = 0;
    const struct sl_metric_rule rule = {.is_logits = true};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 3, .values = nan};
    const struct sl_batch batch = {.sequences = 1,
                                   .target = {.kind = SL_FIELD_IDS, .features = 1, .ids = &target},
                                   .sample = &zero,
                                   .sample_step = &zero};
    examples->worst_count = 0;
    sl_examples_add(examples, &rule, o.train, &batch, &output);
    assert_int_equal(examples->worst_count, 0); /* no number can be the worst */
    free(examples);
    data_close(&o);
}

/* The worst are kept in whichever order they come. */
static void as_many_as_there_is_room_for_are_kept(void **state)
{
    (void)state;
    enum { ROWS = SL_EXAMPLE_WORST + 2 };
    static const int64_t zeros[ROWS];
    float actual[ROWS] = {0}, predicted[ROWS];
    data_write("train.csv", "a,y\n1,2\n3,4\n");
    struct data_open o = data_open_train(
        "type: csv, train: {file: train.csv}, inputs: [a], targets: [y], batch_size: 4", MODEL_DENSE, "loss: mse");
    struct sl_examples *examples = malloc(sizeof *examples);
    const struct sl_metric_rule rule = {0};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 1, .values = predicted};
    const struct sl_batch batch = {.sequences = ROWS,
                                   .target = {.kind = SL_FIELD_VALUES, .features = 1, .values = actual},
                                   .sample = zeros,
                                   .sample_step = zeros};
    assert_non_null(examples);
    for (int step = 1; step < ROWS; step++) { /* in each of these orders, errors are 1 to ROWS */
        for (int k = 0; k < ROWS; k++)
            predicted[k] = (float)(step == 1 ? ROWS - k : step == 2 ? k + 1 : (k + step) % ROWS + 1);
        sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
        sl_examples_add(examples, &rule, o.train, &batch, &output);
        assert_int_equal(examples->worst_count, SL_EXAMPLE_WORST);
        for (int k = 0; k < SL_EXAMPLE_WORST; k++)
            assert_true(examples->worst[k].error == ROWS - k);
    }
    free(examples);
    data_close(&o);
}

/* Sequences without a step have no row, whatever the others have. */
static void empty_sequences_have_no_row(void **state)
{
    (void)state;
    static const int64_t samples[] = {2, 0, 1}, steps[3];
    static const int32_t lengths[] = {2, 1, 1};
    static const int64_t offsets[] = {0, 2, 3};
    static const float actual[] = {1, 2, 3}, predicted[] = {2, 4, 6};
    data_write("train.csv", "a,y\n1,2\n3,4\n");
    struct data_open o = data_open_train(
        "type: csv, train: {file: train.csv}, inputs: [a], targets: [y], batch_size: 4", MODEL_DENSE, "loss: mse");
    struct sl_examples *examples = malloc(sizeof *examples);
    const struct sl_metric_rule rule = {0};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 1, .values = predicted};
    const struct sl_batch batch = {
        .sequences = 3, /* of which the axis has two */
        .axis = {.sequences = 2, .steps = 2, .rows = 3, .lengths = lengths, .row_offsets = offsets},
        .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 1, .values = actual},
        .sample = samples,
        .sample_step = steps};
    assert_non_null(examples);
    sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
    sl_examples_add(examples, &rule, o.train, &batch, &output);
    assert_int_equal(examples->values, 3);
    free(examples);
    data_close(&o);
}

/* ---- what is shown ------------------------------------------------------------------------------------------- */

#define TABLE  "type: csv, train: {file: train.csv}, inputs: [a], batch_size: 4, "
#define BINARY "[{type: dense, units: 3}, {type: output, activation: sigmoid}]"

/* Tags of a file with so many. */
static void write_tags(int classes)
{
    struct sl_buf text = {0};
    for (int c = 0; c < classes; c++)
        sl_buf_printf(&text, "w\tT%d\n", c);
    data_write("train.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
}

static void what_is_shown_is_what_the_task_has(void **state)
{
    (void)state;
    static const char tags[] =
        "type: conll, train: {file: train.txt}, label: 2, tokenizer: {type: whitespace}, batch_size: 8";
    static const struct {
        const char *data, *layers, *train;
        int tags; /* of train.txt */
        int kind, classes;
    } rows[] = {
        {tags, MODEL_TAG, "task: tag", 2, SL_EXAMPLES_CLASSES, 2},
        {tags, MODEL_TAG, "task: tag", SL_EXAMPLE_CLASSES, SL_EXAMPLES_CLASSES, SL_EXAMPLE_CLASSES},
        {tags, MODEL_TAG, "task: tag", SL_EXAMPLE_CLASSES + 1, SL_EXAMPLES_NONE, 0},
        {"type: text, train: {file: train.txt}, tokenizer: {type: whitespace, specials: [unk]}, batch_size: 2, "
         "batching: {unit: stream, bptt: 3}",
         MODEL_LM, "task: language_model", 9, SL_EXAMPLES_NONE, 0},
        {"train: {type: generator, name: addition, digits: 1, size: 8}, batch_size: 4", MODEL_PAIRS, PAIRS, 2,
         SL_EXAMPLES_NONE, 0},
        {TABLE "label: b", BINARY, "loss: binary_cross_entropy", 2, SL_EXAMPLES_CLASSES, 2},
        {TABLE "label: b", "[{type: dense, units: 3}, {type: output, activation: softmax}]", "loss: cross_entropy", 2,
         SL_EXAMPLES_CLASSES, 2},
        {TABLE "targets: [y]", BINARY, "task: classify, loss: binary_cross_entropy", 2, SL_EXAMPLES_NONE, 0},
        {TABLE "targets: [y, z]", BINARY, "task: classify, loss: binary_cross_entropy", 2, SL_EXAMPLES_NONE, 0},
        {TABLE "targets: [y, z]", MODEL_DENSE, "loss: mse", 2, SL_EXAMPLES_VALUES, 0},
    };
    struct sl_examples *examples = malloc(sizeof *examples);
    assert_non_null(examples);
    data_write("train.csv", "a,b,y,z\n1,no,0,1\n2,yes,1,1\n3,no,0,0\n");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        write_tags(rows[k].tags);
        struct data_open o = data_open_train(rows[k].data, rows[k].layers, rows[k].train);
        sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
        if ((int)examples->kind != rows[k].kind || examples->classes != rows[k].classes)
            fail_msg("row %d: kind %d, %d classes", (int)k, (int)examples->kind, (int)examples->classes);
        data_close(&o);
    }
    free(examples);
}

/* Of two classes the output is the probability of the second. A row without a label is none of the first. */
static void rows_of_two_classes_are_counted(void **state)
{
    (void)state;
    static const float shares[] = {0.75f, 0.125f, 0.875f, 0.25f, 0.875f};
    static const int64_t expected[2][2] = {{1, 1}, {1, 1}};
    data_write("train.csv", "a,b\n1,yes\n2,no\n3,\n4,yes\n5,no\n");
    struct data_open o =
        data_open_train("type: csv, train: {file: train.csv}, inputs: [a], label: b, missing: {targets: ignore}, "
                        "batch_size: 5",
                        BINARY, "loss: binary_cross_entropy");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    struct sl_examples *examples = malloc(sizeof *examples);
    const struct sl_metric_rule rule = {0};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .features = 1, .values = shares};
    assert_non_null(examples);
    sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
    sl_examples_add(examples, &rule, o.train, batch, &output);
    assert_int_equal(examples->rows, 4);
    assert_memory_equal(examples->counts[0], expected[0], sizeof expected[0]);
    assert_memory_equal(examples->counts[1], expected[1], sizeof expected[1]);
    assert_int_equal(examples->worst_count, 2);
    assert_int_equal(examples->worst[0].record, 4);
    assert_int_equal(examples->worst[1].record, 3);
    free(examples);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

/* ---- words --------------------------------------------------------------------------------------------------- */

enum { LONG = 20, AROUND = 6 };

/* The words around that of the step, which is in brackets. */
static void write_words(int64_t record, int64_t words, int64_t step, struct sl_buf *out)
{
    for (int64_t w = step > AROUND ? step - AROUND : 0; w < words && w <= step + AROUND; w++)
        sl_buf_printf(out, "%s%sr%dw%d%s", out->length_bytes ? " " : "", w == step ? "[" : "", (int)record, (int)w,
                      w == step ? "]" : "");
}

/* All steps are tagged rightly but this one. */
static void check_words(const struct data_open *o, const struct sl_batch *batch, int64_t k, int64_t step,
                        struct sl_examples *examples)
{
    const int64_t classes = sl_vocabulary_get_size(sl_data_state_find_classes(o->state));
    float *values = calloc((size_t)(batch->axis.rows * classes), sizeof *values);
    const struct sl_metric_rule rule = {.is_logits = true};
    const struct sl_field output = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = classes, .values = values};
    struct sl_buf expected = {0};
    assert_non_null(values);
    for (int64_t row = 0; row < batch->axis.rows; row++) {
        const int32_t target = batch->target.ids[row];
        const bool is_wrong = row == sl_batch_row(batch, k, step);
        values[row * classes + (is_wrong ? (target + 1) % classes : target)] = 5;
    }
    sl_examples_init(examples, o->model, o->state, SL_SPLIT_TRAIN);
    sl_examples_add(examples, &rule, o->train, batch, &output);
    write_words(batch->sample[k], batch->axis.lengths[k], step, &expected);
    assert_int_equal(examples->rows, batch->axis.rows);
    assert_int_equal(examples->worst_count, 1);
    assert_int_equal(examples->worst[0].record, batch->sample[k]);
    assert_int_equal(examples->worst[0].step, step);
    assert_string_equal(examples->worst[0].text, sl_buf_text(&expected));
    sl_buf_deinit(&expected);
    free(values);
}

/* The words of a file with `delimiter` between the columns and `before` before the first, which may be lines; `option`
 * says so in the model. */
static void check_file_of_words(const char *before, const char *delimiter, const char *option)
{
    static const int words[] = {3, LONG, 7, 8, 1};
    char data[200];
    struct sl_buf text = {0};
    for (int r = 0; r < 5; r++) {
        for (int w = 0; w < words[r]; w++)
            sl_buf_printf(&text, "%sr%dw%d%s%s\n", before, r, w, delimiter, w % 3 == r % 3 ? "A" : "B");
        sl_buf_append_char(&text, '\n');
    }
    data_write("train.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
    snprintf(data, sizeof data,
             "type: conll, train: {file: train.txt}, tokenizer: {type: whitespace}, batch_size: 8, %s", option);
    struct data_open o = data_open_train(data, MODEL_TAG, "task: tag");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    struct sl_examples *examples = malloc(sizeof *examples);
    assert_non_null(examples);
    assert_int_equal(batch->axis.sequences, 5);
    assert_int_equal(batch->axis.lengths[0], LONG);
    for (int64_t k = 0; k < batch->axis.sequences; k++)
        for (int64_t step = 0; step < batch->axis.lengths[k]; step++)
            check_words(&o, batch, k, step, examples);
    free(examples);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void words_on_both_sides_of_a_wrong_tag_are_shown(void **state)
{
    (void)state;
    check_file_of_words("", "\t", "label: 2");
    check_file_of_words("", "\t", "label: 2, text: first");
    check_file_of_words("", "|", "label: 2, delimiter: \"|\"");
    check_file_of_words("", "\u00b7", "label: 2, delimiter: \u00b7"); /* of two bytes */
    check_file_of_words("", " ", "label: 2, delimiter: \" \"");
    check_file_of_words(" \t", "\t ", "label: 2, delimiter: \" \"");
    check_file_of_words("#\n# comment\tB\n", "\t", "label: 2, comment: \"#\"");
    check_file_of_words("% a b\n ", " ", "label: 2, delimiter: \" \", comment: \"%\"");
    check_file_of_words("1\t", "\t", "label: last, text: 2");
    check_file_of_words("# 1\tx\n\t", "\t", "label: 3, text: 2, comment: \"#\"");
    check_file_of_words("1  -\t", " ", "label: 4, text: 3, delimiter: \" \"");
}

/* The lines of other files have no words of steps: their begin is shown as it is. */
static void other_files_show_their_records(void **state)
{
    (void)state;
    data_write("train.txt", "A a b\nB c d\nA b a\n");
    struct data_open o = data_open_train("type: lines, train: {file: train.txt, label: {column: first}}, "
                                         "tokenizer: {type: whitespace}, batch_size: 8",
                                         MODEL_CLASSIFY, "task: classify");
    struct sl_examples *examples = malloc(sizeof *examples);
    assert_non_null(examples);
    sl_examples_init(examples, o.model, o.state, SL_SPLIT_TRAIN);
    assert_string_equal(answer(examples, &o, false, 1, 2, (const float[]){1, 0})->text, "a b");
    free(examples);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_spread_over_the_split),
        cmocka_unit_test(values_are_those_of_the_file),
        cmocka_unit_test(the_worst_rows_are_told_where_they_are),
        cmocka_unit_test(labels_that_are_not_known_have_a_row),
        cmocka_unit_test(answers_are_wrong_by_their_probabilities),
        cmocka_unit_test(extreme_outputs_have_errors),
        cmocka_unit_test(as_many_as_there_is_room_for_are_kept),
        cmocka_unit_test(empty_sequences_have_no_row),
        cmocka_unit_test(what_is_shown_is_what_the_task_has),
        cmocka_unit_test(rows_of_two_classes_are_counted),
        cmocka_unit_test(words_on_both_sides_of_a_wrong_tag_are_shown),
        cmocka_unit_test(other_files_show_their_records),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

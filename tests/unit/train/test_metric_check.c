/* SPDX-License-Identifier: Apache-2.0 */
/* Which metrics the data allow: the number of classes that are counted separately, tags of spans, series that change.
 */
#include "data_fixture.h"
#include "npy_fixture.h"
#include "ok.h"
#include "oom.h"

#include "train/metrics/metric.h"

enum { LIMIT = SL_METRIC_CLASSES };

static bool counts_classes(enum sl_metric metric)
{
    return metric == SL_METRIC_F1_SPAN || metric == SL_METRIC_F1_SPAN_STRICT || metric == SL_METRIC_F1_MACRO ||
           metric == SL_METRIC_F1_MICRO;
}

static bool reads_tags(enum sl_metric metric)
{
    return metric == SL_METRIC_F1_SPAN || metric == SL_METRIC_F1_SPAN_STRICT;
}

/* The metric is accepted where `message` is NULL, alone and as the last of several. */
static void expect(const struct data_open *o, enum sl_metric metric, const char *message)
{
    const enum sl_metric several[] = {SL_METRIC_ACCURACY, SL_METRIC_PERPLEXITY, metric};
    const struct sl_metric_list lists[] = {{&several[2], 1}, {several, 3}};
    for (int l = 0; l < 2; l++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = sl_metric_check(&lists[l], o->state, &err);
        if (status != (message ? SEQLSTM_INVALID_CONFIG : SEQLSTM_OK) || (message && !strstr(err.message, message)))
            fail_msg("%s: status %d, `%s`; expected `%s`", sl_metric_get_name(metric), (int)status, err.message,
                     message ? message : "");
    }
}

/* Labels of texts, `classes` of them; each is a tag of a span. */
static struct data_open open_labels(int classes)
{
    struct sl_buf text = {0};
    for (int c = 0; c < classes; c++)
        sl_buf_printf(&text, "B-%d\ta b\n", c);
    data_write("a.tsv", sl_buf_text(&text));
    sl_buf_deinit(&text);
    return data_open_train(
        "type: lines, delimiter: \"\\t\", label: {column: first, type: class}, train: {file: a.tsv}, "
        "tokenizer: whitespace, batch_size: 2",
        MODEL_CLASSIFY, "loss: cross_entropy");
}

/* Rows with `columns` targets that are 0 or 1: several labels each. */
static struct data_open open_columns(int columns)
{
    enum { ROWS = 3 };
    static const float zeros[ROWS * (LIMIT + 1)];
    static char file[NPY_HEADER + sizeof zeros];
    char shape[64];
    snprintf(shape, sizeof shape, "(%d, 2, 1)", ROWS);
    npy_write_header(file, "<f4", shape);
    memcpy(file + NPY_HEADER, zeros, ROWS * 2 * sizeof *zeros);
    data_write_bytes("x.npy", file, NPY_HEADER + ROWS * 2 * sizeof *zeros);
    snprintf(shape, sizeof shape, "(%d, %d)", ROWS, columns);
    npy_write_header(file, "<f4", shape);
    memcpy(file + NPY_HEADER, zeros, sizeof zeros);
    data_write_bytes("y.npy", file, NPY_HEADER + (size_t)(ROWS * columns) * sizeof *zeros);
    return data_open_train("type: npy, train: {x: x.npy, y: y.npy}, batch_size: 2",
                           "[{type: lstm, units: 3}, {type: output, activation: sigmoid}]",
                           "loss: binary_cross_entropy");
}

/* Labels of texts and columns of targets: at the limit all are counted, one beyond none is; other metrics do not mind.
 */
static void classes_up_to_the_limit(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++)
        for (int columns = 0; columns < 2; columns++) {
            struct data_open o = columns ? open_columns(LIMIT + more) : open_labels(LIMIT + more);
            for (int metric = 0; metric < SL_METRIC_COUNT; metric++) {
                const bool counts = counts_classes((enum sl_metric)metric);
                char message[128];
                snprintf(message, sizeof message, "%s counts at most 256 classes separately, the data have 257",
                         sl_metric_get_name((enum sl_metric)metric));
                if (metric != SL_METRIC_MASE && !(columns && reads_tags((enum sl_metric)metric)))
                    expect(&o, (enum sl_metric)metric, counts && more ? message : NULL);
            }
            data_close(&o);
        }
}

/* Spans want tags; the message names the first label that is none. */
static void spans_want_tags(void **state)
{
    (void)state;
    static const struct {
        const char *labels[4], *wrong;
    } cases[] = {{{"O", "B-a", "I-a", "B-b"}, NULL},      {{"O", "B-a", "I-a", "verb"}, "`verb`"},
                 {{"noun", "B-a", "I-a", "O"}, "`noun`"}, {{"B", "O", "B-a", "I-a"}, "`B`"},
                 {{"O", "B-a", "S-a", "I-a"}, "`S-a`"},   {{"O", "I-a", "B_a", "B-a"}, "`B_a`"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct sl_buf text = {0};
        for (int k = 0; k < 4; k++)
            sl_buf_printf(&text, "w\t%s\n", cases[c].labels[k]);
        data_write("train.txt", sl_buf_text(&text));
        struct data_open o = data_open_train("type: conll, train: {file: train.txt}, label: 2, batch_size: 4",
                                             MODEL_TAG, "loss: cross_entropy");
        for (int metric = 0; metric < SL_METRIC_COUNT; metric++)
            if (metric != SL_METRIC_MASE)
                expect(&o, (enum sl_metric)metric, reads_tags((enum sl_metric)metric) ? cases[c].wrong : NULL);
        data_close(&o);
        sl_buf_deinit(&text);
    }
}

/* A scaled error wants targets that are a series, each of which changes. */
static void scaled_errors_want_a_series(void **state)
{
    (void)state;
    static const struct {
        const char *rows, *wrong;
    } cases[] = {{"1,5,0\n2,6,1\n4,5,1\n3,9,0\n5,5,1\n", NULL},
                 {"1,5,0\n2,5,1\n4,5,1\n3,5,0\n5,5,1\n", "column 1 never does"},
                 {"1,5,2\n2,6,2\n4,5,2\n3,9,2\n5,5,2\n", "column 2 never does"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct sl_buf text = {0};
        sl_buf_printf(&text, "a,b,c\n%s", cases[c].rows);
        data_write("a.csv", sl_buf_text(&text));
        struct data_open o = data_open_train(
            "type: csv, train: {file: a.csv}, batch_size: 4, inputs: [a], targets: [b, c], window: {length: 2}",
            MODEL_REGRESS, "loss: mse");
        expect(&o, SL_METRIC_MASE, cases[c].wrong);
        expect(&o, SL_METRIC_MAE, NULL);
        data_close(&o);
        sl_buf_deinit(&text);
    }
    struct data_open o = open_columns(2);
    expect(&o, SL_METRIC_MASE, "mase needs targets that are a series");
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(classes_up_to_the_limit, data_setup, data_teardown),
        cmocka_unit_test_setup_teardown(spans_want_tags, data_setup, data_teardown),
        cmocka_unit_test_setup_teardown(scaled_errors_want_a_series, data_setup, data_teardown),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a file as the steps of streams and as texts: against predictions for the same values in memory, and what is
 * said of lines that are neither. */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "base/value/buf.h"
#include "data/text/vocabulary.h"
#include "oom.h"
#include "served_fixture.h"
#include "session/record/session_record.h"

enum { MOST = 400, SHOWN = 64, FEATURES = 3, OUTPUTS = 2 };

struct seen {
    int64_t count, rows[MOST], features;
    char inputs[MOST][SHOWN];
    float values[MOST][8];
    bool classes;
    struct sl_interrupt *stops; /* at the first answer */
};

static seqlstm_status see(void *context, const struct sl_prediction *p, struct seqlstm_error *err)
{
    struct seen *seen = context;
    (void)err;
    assert_int_equal(p->record, seen->count);
    assert_true(p->rows * p->features <= 8 && p->input_bytes < SHOWN);
    memcpy(seen->inputs[seen->count], p->input ? p->input : "", p->input_bytes);
    seen->inputs[seen->count][p->input_bytes] = '\0';
    memcpy(seen->values[seen->count], p->values, (size_t)(p->rows * p->features) * sizeof *p->values);
    seen->rows[seen->count++] = p->rows;
    seen->features = p->features;
    seen->classes = p->classes != NULL;
    if (seen->stops)
        atomic_store(&seen->stops->stop, 2);
    return SEQLSTM_OK;
}

struct opened {
    struct sl_diagnostics *diagnostics;
    struct sl_session *session;
};

static struct opened open_trained(const char *data, const char *model)
{
    struct opened o = {NULL, NULL};
    FILE *file = fopen(scratch_path("train.txt"), "w");
    assert_non_null(file);
    fputs(data, file);
    fclose(file);
    train_session(model, NULL, &o.diagnostics, &o.session);
    return o;
}

static void close_trained(struct opened *o)
{
    sl_session_close(o->session);
    sl_diagnostics_destroy(o->diagnostics);
    assert_int_equal(scratch_remove(NULL), 0);
    assert_int_equal(mkdir(scratch_folder, 0700), 0); /* room for another run */
}

static seqlstm_status predict(struct sl_session *session, const char *text, size_t bytes, struct seen *seen,
                              struct seqlstm_error *err)
{
    char path[256];
    snprintf(path, sizeof path, "%s", scratch_path("in.txt"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
    *err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    memset(seen, 0, offsetof(struct seen, stops));
    return sl_session_predict_lines(session, path, see, seen, err);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------
 */

#define TRAIN "train: {epochs: 1, loss: mse}\nbackends: [reference]\ndispatch: {policy: order}\n"
#define TABLE                                                                                                          \
    "seqlstm: 1\nseed: 1\ndata:\n  type: tsv\n  group: id\n  inputs: [a, b, c]\n  targets: [y, z]\n"                   \
    "  scale: standard\n  train: {file: train.txt}\n  batch_size: 2\nmodel:\n"                                         \
    "  - {type: lstm, units: 5, return_sequences: true}\n  - {type: dense, units: from_target}\n" TRAIN

static struct opened open_table(void)
{
    return open_trained("id\ta\tb\tc\ty\tz\n1\t1\t20\t0.5\t3\t-1\n1\t2\t24\t0.25\t5\t-9\n2\t3\t22\t0.125\t4\t-4\n"
                        "2\t5\t28\t0.75\t1\t-2\n2\t4\t21\t1\t2\t-3\n",
                        TABLE);
}

static float get_value(int64_t step, int feature)
{
    static const float scale[FEATURES] = {2, 4, 0.5f}, least[FEATURES] = {1, 20, 0};
    return least[feature] + scale[feature] * (float)((step * 7 + 5 * feature) % 16) / 16;
}

struct expected {
    float values[MOST][OUTPUTS];
    int64_t rows;
};

static seqlstm_status keep(void *context, const struct sl_prediction *p, struct seqlstm_error *err)
{
    struct expected *expected = context;
    (void)err;
    assert_int_equal(p->features, OUTPUTS);
    memcpy(expected->values[expected->rows], p->values, (size_t)p->rows * OUTPUTS * sizeof *p->values);
    expected->rows += p->rows;
    return SEQLSTM_OK;
}

static void assert_near(const float *now, const float *expected, int64_t count, const char *where)
{
    for (int64_t k = 0; k < count; k++)
        if (!(fabsf(now[k] - expected[k]) <= 1e-4f))
            fail_msg("%s: value %lld is %.7g, expected %.7g", where, (long long)k, (double)now[k], (double)expected[k]);
}

/* Steps of three sequences, the last of which ends with the file. */
static const int64_t lengths[] = {7, 150, 143};
enum { STEPS = 300 };

static void expect_steps(const struct seen *seen, const struct expected *expected)
{
    assert_int_equal(seen->count, STEPS);
    assert_int_equal(seen->features, OUTPUTS);
    assert_false(seen->classes);
    for (int64_t k = 0; k < STEPS; k++) {
        assert_int_equal(seen->rows[k], 1);
        assert_near(seen->values[k], expected->values[k], OUTPUTS, seen->inputs[k]);
    }
}

/* Without names the fields are the inputs in their order. With names they are anywhere, whatever stands beside them,
 * and an empty line changes nothing of that. Lines end as those of other systems do, and the last one need not end. */
static void fields_are_inputs_by_order_or_by_name(void **state)
{
    (void)state;
    struct opened o = open_table();
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf plain = {0}, named = {0};
    static struct seen seen;
    static struct expected expected;
    float values[STEPS][FEATURES];
    int64_t step = 0;
    memset(&expected, 0, sizeof expected);
    sl_buf_append_text(&named, "\nc\tab\tb\ta\tbc\r\n");
    for (size_t s = 0; s < sizeof lengths / sizeof *lengths; s++) {
        sl_buf_append_text(&plain, s > 0 ? "\n\n" : "\n");
        sl_buf_append_text(&named, s > 0 ? "\r\n" : "");
        for (int64_t k = 0; k < lengths[s]; k++, step++) {
            for (int f = 0; f < FEATURES; f++)
                values[step][f] = get_value(step, f);
            const float *v = values[step];
            const bool last = step == STEPS - 1;
            sl_buf_printf(&plain, "%g\t%g\t%g%s", (double)v[0], (double)v[1], (double)v[2], last ? "\r" : "\n");
            sl_buf_printf(&named, "%g\t-3\t%g\t%g\tnone\r%s", (double)v[2], (double)v[1], (double)v[0],
                          last ? "" : "\n");
        }
    }
    assert_true(plain.length_bytes > 4096 && named.length_bytes > 4096);
    ok(sl_session_predict_values(o.session, values[0], lengths, 3, keep, &expected, &err), &err);
    assert_int_equal(expected.rows, STEPS);
    ok(predict(o.session, plain.data, plain.length_bytes, &seen, &err), &err);
    expect_steps(&seen, &expected);
    assert_string_equal(seen.inputs[1], "1.875\t23\t0.03125");
    ok(predict(o.session, named.data, named.length_bytes, &seen, &err), &err);
    expect_steps(&seen, &expected);
    assert_string_equal(seen.inputs[1], "0.03125\t-3\t23\t1.875\tnone");
    sl_buf_deinit(&plain);
    sl_buf_deinit(&named);
    close_trained(&o);
}

struct wrong {
    const char *text, *message; /* after the path */
    int64_t answered;
};

static void expect_wrong(struct sl_session *session, const struct wrong *rows, size_t count)
{
    static struct seen seen;
    struct seqlstm_error err;
    char expected[512];
    for (size_t k = 0; k < count; k++) {
        assert_int_equal(predict(session, rows[k].text, strlen(rows[k].text), &seen, &err), SEQLSTM_CORRUPT_DATA);
        snprintf(expected, sizeof expected, "%s%s", scratch_path("in.txt"), rows[k].message);
        assert_string_equal(err.message, expected);
        assert_int_equal(seen.count, rows[k].answered);
    }
}

static void a_wrong_line_is_named(void **state)
{
    (void)state;
    static const struct wrong rows[] = {
        {"1\t2\n", ":1: the line has 2 fields, expected 3", 0},
        {"1\t2\t3\t4\n", ":1: the line has 4 fields, expected 3; use a first line that names them", 0},
        {"1\t2\t3\n4\t5\t6\n\n1\n", ":4: the line has 1 field, expected 3", 2},
        {"a\tb\tn\tc\n1\t2\tx\t3\n1\t2\t3\n", ":3: the line has 3 fields, expected 4", 1},
        {"a\tb\tn\tc\n1\t2\t3\t4\t5\n", ":2: the line has 5 fields, expected 4", 0},
        {"c\tb\ta\n1\t2\t3\t4\n", ":2: the line has 4 fields, expected 3; use a first line that names them", 0},
        {"n\tb\ta\tc\n1\t2\tx\t3\n", ":2: field 3, \"x\", is no number", 0},
        {"b\ta\tcc\n", ":1: the line is no row of numbers, and names no input `c`", 0},
        {"a\tc\tq\n", ":1: the line is no row of numbers, and names no input `b`", 0},
        {"\tb\tc\n", ":1: the line is no row of numbers, and names no input `a`", 0},
        {"bb\tc\ta\n", ":1: the line is no row of numbers, and names no input `b`", 0},
        {"1\t2\t3\na\tb\tc\n", ":2: field 1, \"a\", is no number", 1},
        {"\n\na\tc\tb\n1\t2\n", ":4: the line has 2 fields, expected 3", 0},
        {"1\t2\t0123456789012345678901234567890123456789z\n",
         ":1: field 3, \"0123456789012345678901234567890123456789\", is no number", 0},
    };
    struct opened o = open_table();
    static struct seen seen;
    struct seqlstm_error err;
    char expected[512];
    expect_wrong(o.session, rows, sizeof rows / sizeof *rows);
    /* as long as a line may be, and one byte more; alone, at the end of the file and with lines behind it */
    for (int longer = 0; longer <= 1; longer++)
        for (int behind = 0; behind < 3; behind++) {
            struct sl_buf lines = {0};
            sl_buf_append_text(&lines, "1\t2\t3\n");
            for (int k = 0; k < (1 << 20) + longer; k++)
                sl_buf_append_char(&lines, '7');
            for (int k = 0; k < 1000 * behind; k++)
                sl_buf_append_text(&lines, k % 2 ? "\t2\t3\n" : "\n1");
            assert_int_equal(predict(o.session, lines.data, lines.length_bytes, &seen, &err), SEQLSTM_CORRUPT_DATA);
            snprintf(expected, sizeof expected, "%s:2: the line %s", scratch_path("in.txt"),
                     longer ? "is longer than 1048576 bytes" : "has 1 field, expected 3");
            assert_string_equal(err.message, expected);
            assert_int_equal(seen.count, 1);
            sl_buf_deinit(&lines);
        }
    close_trained(&o);
}

/* What cannot be opened or read, by the reason; and a caller that has enough. */
static void a_file_that_is_not_read_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int code;
        seqlstm_status status;
    } rows[] = {{"nowhere", ENOENT, SEQLSTM_NOT_FOUND}, {"in.txt/x", ENOTDIR, SEQLSTM_IO}, {"run", EISDIR, SEQLSTM_IO}};
    struct opened o = open_table();
    static struct seen seen;
    struct seqlstm_error err;
    struct sl_interrupt interrupt = {0};
    char path[256], expected[512];
    seen.stops = &interrupt;
    o.session->options.interrupt = &interrupt;
    assert_int_equal(predict(o.session, "1\t2\t3\n4\t5\t6\n", 12, &seen, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "stopped");
    o.session->options.interrupt = NULL;
    seen.stops = NULL;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        snprintf(path, sizeof path, "%s", scratch_path(rows[k].name));
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_session_predict_lines(o.session, path, see, &seen, &err), rows[k].status);
        snprintf(expected, sizeof expected, "%s: %s", path, strerror(rows[k].code));
        assert_string_equal(err.message, expected);
    }
    close_trained(&o);
}

/* ---- texts --------------------------------------------------------------------------------------------------------
 */

static void expect_texts(const char *data, const char *model, const char *text, const int64_t *rows, int64_t count,
                         struct seen *seen)
{
    struct opened o = open_trained(data, model);
    static const struct wrong blank[] = {
        {"a b\n\nb\n", ":2: the line is blank, or has more than 1024 tokens", 1},
    };
    struct seqlstm_error err;
    expect_wrong(o.session, blank, 1);
    ok(predict(o.session, text, strlen(text), seen, &err), &err);
    assert_int_equal(seen->count, count);
    assert_true(seen->classes);
    for (int64_t k = 0; k < count; k++)
        assert_int_equal(seen->rows[k], rows[k]);
    close_trained(&o);
}

/* Of CoNLL, words stand between blanks, however many there are; of other texts, the whole line is the text. A text may
 * be longer than those of the training data. */
static void a_line_is_a_text(void **state)
{
    (void)state;
    static const int64_t tags[] = {3, 3, 1, 4, 2}, whole[] = {1, 1, 1};
    static struct seen seen;
    expect_texts("a\tX\nb\tY\n\nb\tY\nc\tX\n\n",
                 "seqlstm: 1\nseed: 1\ndata:\n  type: conll\n  label: 2\n  train: {file: train.txt}\n"
                 "  tokenizer: {type: whitespace}\n  batch_size: 2\nmodel:\n  - {type: embedding, dim: 3}\n"
                 "  - {type: lstm, units: 4, return_sequences: true}\n  - {type: output, activation: softmax}\n"
                 "train: {task: tag, loss: cross_entropy, epochs: 1}\nbackends: [reference]\n"
                 "dispatch: {policy: order}\n",
                 "a b c\n  a  b   c \r\nb\na b c a\nb  a", tags, 5, &seen);
    assert_near(seen.values[1], seen.values[0], 6, "blanks");
    assert_near(seen.values[3], seen.values[0], 6, "the same beginning");
    expect_texts("X a b\nY b c\nX a\n",
                 "seqlstm: 1\nseed: 1\ndata:\n  type: lines\n  label: first\n  train: {file: train.txt}\n"
                 "  tokenizer: {type: whitespace}\n  batch_size: 2\nmodel:\n  - {type: embedding, dim: 3}\n"
                 "  - {type: lstm, units: 4}\n  - {type: output, activation: softmax}\n"
                 "train: {loss: cross_entropy, epochs: 1}\nbackends: [reference]\ndispatch: {policy: order}\n",
                 "a b c a b c\nb\na b c a b c", whole, 3, &seen);
    assert_near(seen.values[2], seen.values[0], 2, "the same text");
    assert_true(fabsf(seen.values[1][0] - seen.values[0][0]) > 1e-6f);
}

int main(void)
{
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(fields_are_inputs_by_order_or_by_name),
        IN_SCRATCH(a_wrong_line_is_named),
        IN_SCRATCH(a_file_that_is_not_read_is_named),
        IN_SCRATCH(a_line_is_a_text),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions of every kind in every format, as a whole, with columns, probabilities and the page of attention
 * weights; and which flags of `predict` go together. */
#include "captured.h"
#include "golden.h"

#include <math.h>

#include "cli/output/attention_page.h"
#include "cli/output/fields.h"
#include "cli/output/prediction_writer.h"
#include "data/text/vocabulary.h"
#include "oom.h"
#include "predict/prediction.h"

static struct sl_vocabulary *classes;

static int make_classes(void **state)
{
    static const struct sl_vocabulary_entry entries[] = {{"no", 2, 1}, {"a,b \"c\"", 7, 1}, {"ye\ns", 4, 1}};
    (void)state;
    return sl_vocabulary_create(entries, 3, NULL, &classes, NULL) == SEQLSTM_OK ? 0 : -1;
}

static int destroy_classes(void **state)
{
    (void)state;
    sl_vocabulary_destroy(classes);
    return 0;
}

#define TEXT(literal) literal, sizeof literal - 1

static const char *const source[] = {"<s>", "b&b", "c"}, *const target[] = {"x", "\"y\""};
static const char *const layers[] = {"first", "sec<ond>"};
static const float weights[] = {0.25f, 0.5f, 0.25f, 0.004f, 0.005f, 0.991f, 1, 0.125f, 0, 0.75f, 0.0625f, 0.1875f};
static const struct sl_prediction_text texts[] = {
    {TEXT("one, two"), -0.25, {source, 3, target, 2, layers, 2, weights}},
    {TEXT("three \"four\""), -1.5, {source, 2, target, 1, layers, 1, weights}},
    {TEXT(""), -INFINITY, {0}},
};
static const float values[] = {0.25f, 0.5f, 0.25f, 0.625f, 0.125f, 0.25f, 0.0625f, 0.4375f, 0.5f};
static const float odd[] = {1, -INFINITY, NAN, 2.5f, INFINITY, 1e-7f};
static const float nothing[] = {NAN, NAN};
static const float one_and_none[] = {0.5f, NAN};
static const float equal[] = {0.25f, 0.375f, 0.375f};
static const bool second_is_none[] = {false, true}, first_is_none[] = {true, false};

/* Predictions of one kind. */
struct kind {
    const char *title;
    struct sl_prediction items[2];
    int count;
};

/* `end`: how it ended. With `fails` > 0 the allocation of that number fails; returns whether there was one. */
static bool write_failing(const struct kind *kind, struct cli_prediction_writer *w, int fails, struct sl_buf *out,
                          struct sl_buf *end)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = SEQLSTM_OK;
    capture_stream(stdout);
    if (fails > 0)
        oom_fail_at(fails);
    for (int k = 0; k < kind->count && status == SEQLSTM_OK; k++) {
        struct sl_prediction p = kind->items[k];
        if (p.classes)
            p.classes = classes;
        status = cli_prediction_writer_add(w, &p, &err);
    }
    if (status == SEQLSTM_OK)
        status = cli_prediction_writer_end(w, &err);
    const bool failed = fails > 0 && oom_disarm();
    capture_end(out);
    sl_buf_printf(end, "status %d, %lld written, %lld unsound%s%s\n", (int)status, (long long)w->written,
                  (long long)w->unsound, err.message[0] ? ": " : "", err.message);
    if (failed) {
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_int_equal(strncmp(err.message, "no memory", 9), 0);
    }
    return failed;
}

static void write_kind(const struct kind *kind, struct cli_prediction_writer *w, struct sl_buf *out, struct sl_buf *end)
{
    write_failing(kind, w, 0, out, end);
}

/* An array of npy as text: its header, and then its values. */
static void print_npy(const struct sl_buf *array, struct sl_buf *out)
{
    const unsigned char *bytes = (const unsigned char *)sl_buf_text(array);
    const size_t header = 10 + bytes[8] + 256u * bytes[9];
    size_t at = header;
    assert_memory_equal(bytes, "\x93NUMPY\1\0", 8);
    assert_int_equal(header % 64, 0);
    sl_buf_append(out, (const char *)bytes + 10, strcspn((const char *)bytes + 10, "\n"));
    for (float value; array->length_bytes - at >= sizeof value; at += sizeof value) {
        memcpy(&value, bytes + at, sizeof value);
        sl_buf_printf(out, " %g", (double)value);
    }
    sl_buf_append_char(out, '\n');
}

#define CLASSES ((const struct sl_vocabulary *)&classes) /* stands for the vocabulary, which is made later */

static const struct kind kinds[] = {
    {"a class for each record",
     {{.record = 0, .input = TEXT("so it \"is\""), .rows = 1, .features = 3, .values = values, .classes = CLASSES},
      {.record = 7, .input = TEXT(""), .rows = 1, .features = 3, .values = values + 3, .classes = CLASSES}},
     2},
    {"a class for each step",
     {{.record = 2,
       .input = TEXT("  one\ttwo three "),
       .on_steps = true,
       .rows = 3,
       .features = 3,
       .values = values,
       .classes = CLASSES},
      {.record = 3,
       .input = TEXT("one, two"),
       .on_steps = true,
       .rows = 2,
       .features = 3,
       .values = values + 3,
       .classes = CLASSES}},
     2},
    {"two classes that are equal", {{.record = 4, .rows = 1, .features = 3, .values = equal, .classes = CLASSES}}, 1},
    {"no numbers where only the first row has none",
     {{.record = 6, .rows = 2, .features = 1, .values = nothing, .none = first_is_none}},
     1},
    {"steps that are not the words",
     {{.record = 2,
       .input = TEXT("one two three"),
       .on_steps = true,
       .rows = 2,
       .features = 3,
       .values = values,
       .classes = CLASSES}},
     1},
    {"values for each record",
     {{.record = 0, .rows = 1, .features = 2, .values = values},
      {.record = 1, .rows = 1, .features = 2, .values = values + 2}},
     2},
    {"values for each step",
     {{.record = 0, .on_steps = true, .rows = 2, .features = 2, .values = values},
      {.record = 1, .on_steps = true, .rows = 2, .features = 2, .values = values + 4}},
     2},
    {"values that are not finite",
     {{.record = 4, .rows = 2, .features = 3, .values = odd},
      {.record = 5, .rows = 2, .features = 3, .values = values}},
     2},
    {"rows without a prediction",
     {{.record = 4,
       .input = TEXT("x"),
       .rows = 2,
       .features = 1,
       .values = nothing,
       .none = (const bool[]){true, true},
       .classes = CLASSES},
      {.record = 5, .rows = 2, .features = 1, .values = odd + 1, .none = second_is_none}},
     2},
    {"some rows without a prediction, and one that should have one",
     {{.record = 6, .rows = 2, .features = 1, .values = one_and_none, .none = second_is_none},
      {.record = 7, .rows = 2, .features = 1, .values = nothing, .none = first_is_none}},
     2},
    {"no value that is finite",
     {{.record = 8, .rows = 1, .features = 2, .values = nothing},
      {.record = 9, .rows = 1, .features = 2, .values = odd + 1}},
     2},
    {"a text", {{.record = 1, .input = TEXT("read, this"), .texts = texts, .text_count = 1}}, 1},
    {"several texts",
     {{.record = 3, .input = TEXT("read"), .texts = texts, .text_count = 3},
      {.record = 4, .input = TEXT(""), .texts = texts + 1, .text_count = 2}},
     2},
    {"no text", {{.record = 9, .input = TEXT("read"), .texts = texts}}, 1},
    {"nothing", {{0}}, 0},
};

static void test_every_kind_in_every_format(void **state)
{
    static const char *const formats[] = {"text", "csv", "jsonl", "npy"};
    struct sl_buf out = {0};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int format = CLI_PREDICTION_TEXT; format <= CLI_PREDICTION_NPY; format++)
            for (int more = 0; more < 3; more++) { /* nothing else; the input; columns and probabilities */
                struct cli_prediction_writer w = {.format = (enum cli_prediction_format)format,
                                                  .with_input = more == 1};
                struct sl_buf written = {0}, end = {0};
                if (more > 0 && (format == CLI_PREDICTION_NPY || (more == 2 && format == CLI_PREDICTION_TEXT)))
                    continue;
                if (more == 2)
                    w.extras =
                        (struct cli_prediction_extras){.probabilities = true, .names = {"token", "step"}, .count = 2};
                sl_buf_printf(&out, "== %s, %s%s\n", kinds[k].title, formats[format],
                              more == 1   ? ", with the input"
                              : more == 2 ? ", with columns"
                                          : "");
                write_kind(&kinds[k], &w, &written, &end);
                if (format == CLI_PREDICTION_NPY && strncmp(sl_buf_text(&written), "\x93NUMPY", 6) == 0)
                    print_npy(&written, &out);
                else
                    sl_buf_append(&out, sl_buf_text(&written), written.length_bytes);
                sl_buf_append_text(&out, sl_buf_text(&end));
                sl_buf_deinit(&written);
                sl_buf_deinit(&end);
                cli_prediction_writer_deinit(&w);
            }
    golden_expect("reports/predictions.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* What is written before memory is missing is the begin of the whole. */
static void test_without_memory(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int format = CLI_PREDICTION_TEXT; format <= CLI_PREDICTION_NPY; format++) {
            struct sl_buf whole = {0}, end = {0};
            bool failed = true;
            for (int n = 0; n < 2 || failed; n++) {
                struct cli_prediction_writer w = {.format = (enum cli_prediction_format)format};
                struct sl_buf now = {0}, ignored = {0};
                if (format != CLI_PREDICTION_TEXT && format != CLI_PREDICTION_NPY)
                    w.extras =
                        (struct cli_prediction_extras){.probabilities = true, .names = {"token", "step"}, .count = 2};
                failed = write_failing(&kinds[k], &w, n, n ? &now : &whole, n ? &ignored : &end);
                assert_true(now.length_bytes <= whole.length_bytes);
                assert_memory_equal(sl_buf_text(&now), sl_buf_text(&whole), now.length_bytes);
                if (n > 0 && !failed)
                    assert_string_equal(sl_buf_text(&ignored), sl_buf_text(&end));
                sl_buf_deinit(&now);
                sl_buf_deinit(&ignored);
                cli_prediction_writer_deinit(&w);
            }
            sl_buf_deinit(&whole);
            sl_buf_deinit(&end);
        }
}

static void test_the_page_of_attention(void **state)
{
    struct sl_buf out = {0};
    (void)state;
    cli_attention_page_begin(&out, "m & n.yaml");
    cli_attention_page_add(
        &out, &(struct sl_prediction){.record = 3, .input = TEXT("a <b>"), .texts = texts, .text_count = 3});
    cli_attention_page_add(&out, &(struct sl_prediction){.record = 4, .texts = texts + 1, .text_count = 1});
    cli_attention_page_end(&out);
    golden_expect("reports/attention_page.txt", "<h2>", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* ---- names and numbers ------------------------------------------------------------------------------------------ */

static void test_no_two_columns_have_one_name(void **state)
{
    static const struct {
        const char *before, *name, *after;
    } rows[] = {{"record", "id", "record,id"},
                {"record", "record", "record,record_input"},
                {"record,id,id_input", "id", "record,id,id_input,id_input_input"},
                {"record,idx", "id", "record,idx,id"},
                {"record,xid", "id", "record,xid,id"},
                {"record,\"a,b\"", "a,b", "record,\"a,b\",\"a,b_input\""},
                {"record", "", "record,"}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct cli_prediction_extras extras = {.names = {rows[k].name}, .count = 1};
        struct sl_buf out = {0};
        sl_buf_append_text(&out, rows[k].before);
        cli_extras_write_header(&extras, classes, &out);
        assert_string_equal(sl_buf_text(&out), rows[k].after);
        sl_buf_deinit(&out);
    }
    const struct cli_prediction_extras extras = {.probabilities = true, .names = {"step"}, .count = 1};
    struct sl_buf out = {0};
    cli_extras_write_header(&extras, classes, &out);
    assert_string_equal(sl_buf_text(&out), ",p_no,p_\"a,b \"\"c\"\"\",p_\"ye\ns\",step");
    sl_buf_deinit(&out);
}

static void test_numbers_as_fields(void **state)
{
    static const struct {
        float value;
        const char *csv, *json;
    } rows[] = {{0.5f, "0.5", "0.5"},        {-3, "-3", "-3"},     {0, "0", "0"},
                {0.1f, "0.1", "0.1"},        {NAN, "nan", "null"}, {INFINITY, "inf", "null"},
                {-INFINITY, "-inf", "null"}, {-NAN, "nan", "null"}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_buf csv = {0}, json = {0};
        cli_write_number(&csv, rows[k].value);
        cli_write_json_number(&json, rows[k].value);
        assert_string_equal(sl_buf_text(&csv), rows[k].csv);
        assert_string_equal(sl_buf_text(&json), rows[k].json);
        sl_buf_deinit(&csv);
        sl_buf_deinit(&json);
    }
}

static void test_texts_are_quoted_only_if_necessary(void **state)
{
    static const char *const rows[][2] = {{"", ""},           {"a b", "a b"},     {"a,b", "\"a,b\""},
                                          {"\"", "\"\"\"\""}, {"a\n", "\"a\n\""}, {"\ra", "\"\ra\""},
                                          {"a;b'", "a;b'"}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_buf out = {0};
        cli_write_csv_text(&out, rows[k][0], strlen(rows[k][0]));
        assert_string_equal(sl_buf_text(&out), rows[k][1]);
        sl_buf_deinit(&out);
    }
}

/* ---- flags ------------------------------------------------------------------------------------------------------ */

enum { NAMES_MOST = 64 };

/* LIST has so many names: "c,c,c". */
static void make_list(char *list, int count)
{
    strcpy(list, "--columns=");
    for (int k = 0; k < count; k++)
        strcat(list, k ? ",c" : "c");
}

static void test_flags_that_go_together(void **state)
{
    static char most[32 + 2 * NAMES_MOST], beyond[32 + 2 * NAMES_MOST];
    static const struct {
        const char *flags[3];
        int format;          /* -1: refused */
        const char *message; /* or what the columns are */
    } rows[] = {
        {{"-q"}, CLI_PREDICTION_TEXT, ""},
        {{"--json"}, CLI_PREDICTION_JSONL, ""},
        {{"--format=text", "--json"}, CLI_PREDICTION_TEXT, ""},
        {{"--format=csv"}, CLI_PREDICTION_CSV, ""},
        {{"--format=jsonl"}, CLI_PREDICTION_JSONL, ""},
        {{"--format=npy"}, CLI_PREDICTION_NPY, ""},
        {{"--format=xml"}, -1, "`--format xml`: expected text, csv, jsonl or npy"},
        {{"--format=npy", "--with-input"}, -1, "`--with-input` cannot be combined with `--format npy`"},
        {{"--columns=id,step,b c"}, CLI_PREDICTION_CSV, "id b c "},
        {{"--columns=token,step"}, CLI_PREDICTION_CSV, ""},
        {{"--columns=id", "--json"}, CLI_PREDICTION_JSONL, "id "},
        {{"--columns=id", "--format=text"}, -1, "`--columns` writes csv or jsonl, not `--format text`"},
        {{"--columns=id", "--format=npy"}, -1, "`--columns` writes csv or jsonl, not `--format npy`"},
        {{"--columns=a,,b"}, -1, "`--columns a,,b`: expected up to 64 names separated by commas"},
        {{"--columns=a,"}, -1, "`--columns a,`: expected up to 64 names"},
        {{"--columns="}, -1, "`--columns `: expected up to 64 names"},
        {{most}, CLI_PREDICTION_CSV, NULL},
        {{beyond}, -1, "expected up to 64 names"},
        {{"--probabilities"}, CLI_PREDICTION_CSV, ""},
        {{"--probabilities", "--format=npy"}, CLI_PREDICTION_NPY, ""},
        {{"--probabilities", "--format=text"}, -1, "`--probabilities` writes csv or jsonl, not `--format text`"}};
    (void)state;
    make_list(most, NAMES_MOST);
    make_list(beyond, NAMES_MOST + 1);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char run[] = "run", words[3][sizeof most], *arguments[4] = {run};
        int count = 1;
        struct cli_context cli = {.command = &cli_command_predict};
        struct cli_prediction_writer w = {0};
        struct sl_buf said = {0}, columns = {0};
        for (; count < 4 && rows[k].flags[count - 1]; count++)
            arguments[count] = strcpy(words[count - 1], rows[k].flags[count - 1]);
        capture_begin();
        assert_int_equal(cli_parse(&cli, count, arguments), CLI_OK);
        cli.json = cli_has(&cli, "json");
        const int code = cli_prediction_writer_init(&w, &cli, CLI_PREDICTION_TEXT);
        capture_end(&said);
        assert_int_equal(code, rows[k].format < 0 ? CLI_USAGE : CLI_OK);
        for (size_t c = 0; c < w.extras.columns.count; c++)
            sl_buf_printf(&columns, "%s ", w.extras.columns.items ? w.extras.columns.items[c] : "?");
        if (rows[k].format < 0) {
            assert_non_null(strstr(sl_buf_text(&said), rows[k].message));
        } else {
            assert_int_equal(w.format, rows[k].format);
            assert_string_equal(sl_buf_text(&said), "");
            if (rows[k].message)
                assert_string_equal(sl_buf_text(&columns), rows[k].message);
            else
                assert_int_equal(w.extras.columns.count, NAMES_MOST);
        }
        cli_prediction_writer_deinit(&w);
        sl_buf_deinit(&said);
        sl_buf_deinit(&columns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_memory),         cmocka_unit_test(test_every_kind_in_every_format),
        cmocka_unit_test(test_the_page_of_attention),  cmocka_unit_test(test_no_two_columns_have_one_name),
        cmocka_unit_test(test_numbers_as_fields),      cmocka_unit_test(test_texts_are_quoted_only_if_necessary),
        cmocka_unit_test(test_flags_that_go_together),
    };
    return cmocka_run_group_tests(tests, make_classes, destroy_classes);
}

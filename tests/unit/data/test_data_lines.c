/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of lines as other systems write them, data of which the loss would be 0 whatever is learned, and labels that the
 * training split lacks. */
#include "data_dump.h"

#include <fcntl.h>

#define LINES "type: lines, train: {file: train.txt}, batch_size: 4, label: first, tokenizer: {type: whitespace}"
#define CONLL "type: conll, train: {file: train.txt}, label: 2, batch_size: 4"
#define CHARS                                                                                                          \
    "type: text, train: {file: train.txt}, tokenizer: {type: char, specials: []}, batch_size: 1, batching: {unit: "    \
    "stream, bptt: 4}"
#define TABLE "type: csv, train: {file: train.txt}, inputs: [a], targets: [b]"

/* How many records and tokens or features of the same data with each end of lines. */
static void expect_same(const char *const text[3], const char *data, const char *layers, const char *train,
                        int64_t records)
{
    for (int end = 0; end < 3; end++) {
        data_write("train.txt", text[end]);
        struct data_open o = data_open_train(data, layers, train);
        const struct sl_vocabulary *tokens = sl_data_state_find_vocabulary(o.state);
        assert_int_equal(sl_dataset_get_records(o.train), records);
        for (int32_t id = 0; tokens && id < sl_vocabulary_get_size(tokens); id++)
            assert_null(strchr(sl_vocabulary_get_text(tokens, id, NULL), '\r'));
        data_close(&o);
    }
}

#define ENDS(a, b, c, d)                                                                                               \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        a "\n" b "\n" c "\n" d "\n", a "\r\n" b "\r\n" c "\r\n" d, a "\r" b "\r" c "\r" d "\r"                         \
    }

static void test_ends_of_lines(void **state)
{
    (void)state;
    expect_same(ENDS("x good film", "y bad film", "x fine", "y dull"), LINES, MODEL_CLASSIFY, "task: classify", 4);
    expect_same(ENDS("the\tD", "dog\tN", "", "a\tD"), CONLL, MODEL_TAG, "task: tag", 2);
    expect_same(ENDS("ab", "cd", "ef", "gh"), CHARS, MODEL_LM, "task: language_model", 1);
    expect_same(ENDS("a,b", "1,2", "3,4", "5,6"), TABLE, MODEL_DENSE, "loss: mse", 3);
    expect_same(ENDS("1 2", "3 4", "5 1", "2 2"), "type: tokens, train: {file: train.txt}, batch_size: 4", MODEL_LM,
                "task: language_model", 4);
    /* the stream has one character for the end of each line */
    data_write("train.txt", "ab\r\ncd\ref\n");
    struct data_open o = data_open_train(CHARS, MODEL_LM, "task: language_model");
    assert_int_equal(sl_dataset_get_length(o.train, 0), 8);
    data_close(&o);
    data_write("train.txt", "x good\ry b\xff"
                            "d\r");
    data_expect_failure(LINES, MODEL_CLASSIFY, "task: classify", SEQLSTM_CORRUPT_DATA, "train.txt:2: byte 0xff");
    data_write("train.txt", "a,b\r\"1\r2\",3\r4\r"); /* a line end in quotes is the cell's own, but counts */
    data_expect_failure(TABLE, MODEL_DENSE, "loss: mse", SEQLSTM_CORRUPT_DATA, "train.txt:4: the row has 1 field");
}

/* `-` is the standard input, and messages call it so. */
static void test_standard_input(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {{"c d\n\na b", NULL}, {"c d\na b\na \xff\n", "standard input:3: byte 0xff at offset 10"}};
    data_write("train.txt", "a b\nc d\n");
    struct data_open o = data_open_train("type: lines, train: {file: train.txt}", MODEL_LM, "task: language_model");
    const int kept = dup(STDIN_FILENO);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[160];
        struct sl_dataset *input = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        data_write("input.txt", cases[i].text);
        snprintf(path, sizeof path, "%s/input.txt", data_folder);
        assert_int_equal(close(STDIN_FILENO), 0);
        assert_int_equal(open(path, O_RDONLY), STDIN_FILENO);
        seqlstm_status status =
            sl_dataset_open_input(o.model, o.state, &(struct sl_input_request){.path = "-"}, &input, &err);
        assert_int_equal(status == SEQLSTM_OK, cases[i].message == NULL);
        if (cases[i].message && strncmp(err.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s", err.message);
        if (!cases[i].message)
            assert_int_equal(sl_dataset_get_records(input), 3);
        sl_dataset_close(input);
    }
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    close(kept);
    data_close(&o);
}

static void expect_classes(const char *data, const char *layers, const char *train, const char *const classes[3])
{
    struct data_open o = data_open_train(data, layers, train);
    const struct sl_vocabulary *found = sl_data_state_find_classes(o.state);
    assert_int_equal(sl_vocabulary_get_size(found), 3);
    for (int32_t k = 0; k < 3; k++)
        assert_true(sl_vocabulary_find(found, classes[k], strlen(classes[k])) >= 0);
    data_close(&o);
}

/* Delimiters of several bytes, at both ends of a line too, and characters that begin with the same byte. */
static void test_wide_delimiters(void **state)
{
    (void)state;
    data_write("train.txt", "dog§N\nr©n§V\nx§y§\n");
    expect_classes(CONLL ", delimiter: \"§\"", MODEL_TAG, "task: tag", (const char *const[]){"N", "V", "y"});
#define WIDE "type: lines, train: {file: train.txt}, delimiter: \"§\", tokenizer: {type: whitespace}, label: "
    data_write("train.txt", "pos§good§film\na©b§ x\nneg§\n");
    expect_classes(WIDE "first", MODEL_CLASSIFY, "task: classify", (const char *const[]){"pos", "a©b", "neg"});
    data_write("train.txt", "good§film§pos\nx §a©b\n§neg\n");
    expect_classes(WIDE "last", MODEL_CLASSIFY, "task: classify", (const char *const[]){"pos", "a©b", "neg"});
}

static void test_one_class_teaches_nothing(void **state)
{
    (void)state;
    data_write("train.txt", "pos good film\npos fine\n");
    data_expect_failure(LINES, MODEL_CLASSIFY, "task: classify", SEQLSTM_CORRUPT_DATA,
                        "every label of the training split is \"pos\"");
    data_write("train.txt", "pos good film\nskip fine\n");
    data_expect_failure(LINES, MODEL_CLASSIFY, "task: classify, loss: {type: cross_entropy, ignore: skip}",
                        SEQLSTM_CORRUPT_DATA, "every label of the training split is \"pos\"");
    data_write("train.txt", "the\tD\ndog\tD\n\na\tD\n");
    data_expect_failure(CONLL, MODEL_TAG, "task: tag", SEQLSTM_CORRUPT_DATA,
                        "every label of the training split is \"D\"");
    data_write("train.txt", "aaaaaaaaaaaaaaaa");
    data_expect_failure(CHARS, MODEL_LM, "task: language_model", SEQLSTM_CORRUPT_DATA,
                        "every token of the training split is \"a\"");
    data_write("train.txt", "abcdefghijkl");
    data_expect_failure("type: text, train: {file: train.txt}, tokenizer: {type: char, min_count: 2, specials: [unk]}, "
                        "batch_size: 1, batching: {unit: stream, bptt: 4}",
                        MODEL_LM, "task: language_model", SEQLSTM_CORRUPT_DATA, "every one is read as <unk>");
    data_write("train.txt", "a\t\nb c\t\n"); /* nothing is written but the end */
    data_expect_failure("type: tsv, train: {file: train.txt}, header: false, source: \"1\", target: \"2\"", MODEL_PAIRS,
                        PAIRS, SEQLSTM_CORRUPT_DATA, "every token of the training split is \"<eos>\"");
    data_write("train.txt", "7 7 7\n7 7\n");
    data_expect_failure("type: tokens, train: {file: train.txt}", MODEL_LM, "task: language_model",
                        SEQLSTM_CORRUPT_DATA, "every token of the training split is 7");
}

/* They are allowed where nothing is learned, are in no loss, and have numbers that no class has. */
static void test_labels_that_train_lacks(void **state)
{
    (void)state;
    data_write("train.txt", "the\tD\ndog\tN\n\na\tD\n");
    data_write("test.txt", "the\tX\ndog\tN\ndog\tY\nthe\tX\n");
    struct data_open o = data_open_train(CONLL ", test: {file: test.txt}", MODEL_TAG, "task: tag");
    struct sl_dataset *test = data_open_split(&o, SL_SPLIT_TEST);
    struct sl_batcher *batcher = data_batcher(test, SL_BATCHING_EVALUATE, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    const int32_t x = SL_CLASS_UNKNOWN, y = SL_CLASS_UNKNOWN - 1, expected[] = {x, 1, y, x};
    assert_memory_equal(batch->target.ids, expected, sizeof expected);
    assert_int_equal(sl_dataset_get_counts(test)->unknown_labels, 3);
    assert_int_equal(sl_dataset_count_unknown_labels(test), 2);
    assert_string_equal(sl_dataset_get_unknown_label(test, 1), "Y");
    assert_int_equal(sl_dataset_get_unknown_line(test), 1);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_dataset_close(test);
    /* in the training split of a run they are an error: its file has changed */
    data_write("train.txt", "the\tD\ndog\tZ\n");
    struct sl_dataset *again = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_TRAIN, o.state, &again, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "train.txt:2: the label \"Z\""));
    data_close(&o);
}

static void test_answers_name_the_fix(void **state)
{
    (void)state;
    data_write("train.txt", "the D\ndog N\n");
    data_expect_failure(CONLL, MODEL_TAG, "task: tag", SEQLSTM_CORRUPT_DATA,
                        "train.txt:1: the line has no tag: expected column 2 after \"the D\" (`delimiter: \" \"`");
    data_write("train.txt", "g,a,b\n1,1,1\n1,2,2\n2,3,3\n2,4,4\n");
#define GROUPS "type: csv, train: {file: train.txt}, group: g, inputs: [a], targets: [b], window: {length: 1}, "
    data_expect_failure(GROUPS "valid: {split: 0.3}, test: {split: 0.3}", MODEL_REGRESS, "loss: mse",
                        SEQLSTM_CORRUPT_DATA, "`split` takes whole groups of column `g`");
    struct data_open o = data_open_train(GROUPS "valid: {split: 0.3}", MODEL_REGRESS, "loss: mse");
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    assert_int_equal(sl_dataset_get_counts(valid)->whole_groups, 1);
    assert_int_equal(sl_dataset_get_counts(o.train)->whole_groups, 0);
    sl_dataset_close(valid);
    data_close(&o);
    data_write("train.txt", "a,b\nred,1\n");
    data_expect_failure(TABLE, MODEL_DENSE, "loss: mse", SEQLSTM_CORRUPT_DATA, "a column of text is not for `inputs`");
}

/* ---- each line in turn ------------------------------------------------------------------------------------------- */

enum { GOOD = 6 };

static const struct fault {
    const char *data, *layers, *train, *head; /* head: the line before the others; NULL: none */
    const char *good[GOOD];
    int field; /* which part of a good line `bad` replaces, from 0; -1: the whole line */
    const char *bad, *says;
    int later[GOOD]; /* by how many lines the message comes later */
} faults[] = {
#define NUMBERS                                                                                                        \
    TABLE, MODEL_DENSE, "loss: mse", "a,b",                                                                            \
    {                                                                                                                  \
        "1,2", "3,4", "5,6", "7,8", "9,10", "11,12"                                                                    \
    }
    {NUMBERS, 0, "x", "column `a` holds \"x\", expected a number", {0}},
    {NUMBERS, 1, "1.5.2", "column `b` holds \"1.5.2\", expected a number", {0}},
    {NUMBERS, 0, "", "column `a` has no value (`missing:` chooses what to do)", {0}},
    {NUMBERS, 1, " ", "column `b` has no value (`missing:` chooses what to do)", {0}},
    {NUMBERS, -1, "1", "the row has 1 field, expected 2", {0}},
    {NUMBERS, -1, "1,2,", "the row has 3 fields, expected 2", {0}},
    {NUMBERS, 1, "\"2\"x", "text after the closing quote of a field", {0}},
    {NUMBERS, 1, "\"2", "the quoted field that begins here never ends", {0}},
    {NUMBERS, 0, "\"1\n\"\"2\"", "column `a` holds \"1\n\"2\", expected a number", {0}},
#define MEMBERS(data) "type: csv, train: {file: train.txt}, group: g, inputs: [a], " data
#define OF_GROUPS                                                                                                      \
    "g,a,c",                                                                                                           \
    {                                                                                                                  \
        "1,1,u", "1,2,u", "2,3,v", "2,4,v", "3,5,u", "3,6,u"                                                           \
    }
    {MEMBERS("label: c"),
     MODEL_CLASSIFY_VALUES,
     "task: classify",
     OF_GROUPS,
     2,
     "w",
     "the label changes from",
     {1, 0, 1, 0, 1, 0}},
    {MEMBERS("label: c"), MODEL_CLASSIFY_VALUES, "task: classify", OF_GROUPS, 2, "", "column `c` has no label", {0}},
    {MEMBERS("label: c"), MODEL_CLASSIFY_VALUES, "task: classify", OF_GROUPS, 0, "", "column `g` is empty", {0}},
    {MEMBERS("label: c"), MODEL_CLASSIFY_VALUES, "task: classify", OF_GROUPS, 1, "?", "column `a` has no value", {0}},
    {MEMBERS("targets: [b], time: t"),
     MODEL_REGRESS_STEPS,
     "loss: mse",
     "b,t,a,g",
     {"1,2024-01-01,1,x", "1,2024-01-01,2,y", "1,2024-01-02,3,x", "1,2024-01-02,4,y", "1,2024-01-03,5,x",
      "2,2024-01-03,6,y"},
     1,
     "2024-13-01",
     "column `t` holds \"2024-13-01\", expected an ISO 8601 date",
     {0}},
#define TOKENS                                                                                                         \
    "type: tokens, train: {file: train.txt}, batch_size: 4", MODEL_LM, "task: language_model", NULL,                   \
    {                                                                                                                  \
        "1 2", "3 4", "5 1", "2 2", "1", "4 5"                                                                         \
    }
    {TOKENS, -1, "1 x", "\"x\" is not a token id", {0}},
    {TOKENS, -1, "1 -2", "\"-2\" is not a token id", {0}},
    {TOKENS, -1, "5 16777216", "\"16777216\" is not a token id", {0}},
#define LABELLED                                                                                                       \
    LINES, MODEL_CLASSIFY, "task: classify", NULL,                                                                     \
    {                                                                                                                  \
        "x good", "y bad", "x fine", "y dull", "x very good", "y so bad"                                               \
    }
    {LABELLED, -1, "x \xff", "byte 0xff at offset", {0}},
    {LABELLED, -1, "x ~", "a NUL byte at offset", {0}},
    {LABELLED, -1, "film", "no label: the line has no delimiter", {0}},
    {LABELLED, -1, " film", "the label (column `first`) is empty", {0}},
#define TAGGED                                                                                                         \
    CONLL, MODEL_TAG, "task: tag", NULL,                                                                               \
    {                                                                                                                  \
        "the\tD", "dog\tN", "", "a\tD", "cat\tN", "a\tD"                                                               \
    }
    {TAGGED, -1, "cow", "the line has no tag: expected column 2 after \"cow\"", {0}},
    {TAGGED, -1, "\tN", "the line has no token in column 1", {0}},
#define TAGGED_BEFORE                                                                                                  \
    "type: conll, train: {file: train.txt}, text: last, label: 1, batch_size: 4", MODEL_TAG, "task: tag", NULL,        \
    {                                                                                                                  \
        "D\tthe", "N\tdog", "", "D\ta", "N\tcat", "D\ta"                                                               \
    }
    {TAGGED_BEFORE, -1, "N\t", "the line has no token in its last column", {0}},
};

/* A line of `fault` with its bad part; `~` stands for a NUL. */
static void append_bad(struct sl_buf *out, const struct fault *fault, const char *good)
{
    for (int field = 0; fault->field >= 0 && field < fault->field; field++) {
        const size_t bytes = strcspn(good, ",") + 1;
        sl_buf_append(out, good, bytes);
        good += bytes;
    }
    const size_t before = out->length_bytes;
    sl_buf_append_text(out, fault->bad);
    for (size_t at = before; at < out->length_bytes; at++)
        if (out->data[at] == '~')
            out->data[at] = '\0';
    if (fault->field >= 0)
        sl_buf_append_text(out, good + strcspn(good, ","));
}

/* Whichever line is wrong, the message names it: the first one, the last one with or without an end, and with each way
 * to end lines. */
static void test_messages_name_the_line(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        for (int way = 0; way < GOOD * 3 * 2; way++) {
            const struct fault *fault = &faults[k];
            const int bad = way / 6, end = way / 2 % 3, ended = way % 2;
            char expected[200];
            struct sl_buf text = {0};
            if (fault->head)
                sl_buf_printf(&text, "%s%s", fault->head, ends[end]);
            for (int line = 0; line < GOOD; line++) {
                if (line == bad)
                    append_bad(&text, fault, fault->good[line]);
                else
                    sl_buf_append_text(&text, fault->good[line]);
                sl_buf_append_text(&text, line + 1 < GOOD || ended ? ends[end] : "");
            }
            data_write_bytes("train.txt", text.data, text.length_bytes);
            sl_buf_deinit(&text);
            snprintf(expected, sizeof expected, "train.txt:%d: %s", bad + 1 + (fault->head != NULL) + fault->later[bad],
                     fault->says);
            data_expect_failure(fault->data, fault->layers, fault->train, SEQLSTM_CORRUPT_DATA, expected);
        }
}

/* All that comes of the first `lines` lines of data that are right, or why it is refused. */
static void describe_lines(struct sl_buf *out, const struct fault *of, int lines, const char *end, bool ended)
{
    struct data_open o = {.model = data_model(of->data, of->layers, of->train)};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf text = {0};
    sl_buf_printf(&text, "%s%s", of->head ? of->head : "", of->head && (lines > 0 || ended) ? end : "");
    for (int line = 0; line < lines; line++)
        sl_buf_printf(&text, "%s%s", of->good[line], line + 1 < lines || ended ? end : "");
    data_write_bytes("train.txt", sl_buf_text(&text), text.length_bytes);
    sl_buf_deinit(&text);
    if (sl_dataset_open_train(o.model, &o.train, &o.state, &err) == SEQLSTM_OK) {
        add_state(out, o.state);
        add_split(out, o.train, SL_SPLIT_TRAIN, true);
    } else {
        sl_buf_printf(out, "%d %s\n", (int)err.code, err.message);
    }
    data_close(&o);
}

/* From no line to all of them: neither how lines end nor whether the last one does makes a difference. */
static void test_the_last_line(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        for (int lines = 0; lines <= GOOD && (k == 0 || faults[k].data != faults[k - 1].data); lines++) {
            struct sl_buf first = {0};
            describe_lines(&first, &faults[k], lines, "\n", true);
            if (lines == GOOD && strncmp(sl_buf_text(&first), "8 ", 2) == 0)
                fail_msg("%s: %s", faults[k].data, sl_buf_text(&first));
            for (int way = 1; way < 6; way++) {
                struct sl_buf other = {0};
                describe_lines(&other, &faults[k], lines, ends[way / 2], way % 2 == 0);
                assert_string_equal(sl_buf_text(&other), sl_buf_text(&first));
                sl_buf_deinit(&other);
            }
            sl_buf_deinit(&first);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_of_lines),           cmocka_unit_test(test_standard_input),
        cmocka_unit_test(test_wide_delimiters),         cmocka_unit_test(test_one_class_teaches_nothing),
        cmocka_unit_test(test_labels_that_train_lacks), cmocka_unit_test(test_answers_name_the_fix),
        cmocka_unit_test(test_messages_name_the_line),  cmocka_unit_test(test_the_last_line),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

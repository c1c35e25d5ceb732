/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences that are too long become several: pairs of one text, steps with targets, and what is refused. Which
 * lines of the file a part has. */
#include "data_pairs_fixture.h"

#define SPLIT(more) "type: lines, train: {file: a}, batch_size: 2, batching: {max_length: 3, on_overflow: split}" more

static void expect_target_text(const struct sl_dataset *d, int64_t record, const char *expected)
{
    size_t bytes = 0;
    const char *text = sl_dataset_find_target_text(d, record, &bytes);
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(text, expected, bytes);
    text = sl_dataset_find_text(d, record, &bytes);
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(text, expected, bytes);
}

/* Two words and the end are three steps. What is compared with the decoder's text is that of the part, as it was
 * written. */
static void test_pairs(void **state)
{
    (void)state;
    data_write("a", "u V w  x y\n\nu v\nu v w x\n");
    struct data_open o = data_open_train(SPLIT(", tokenizer: {type: whitespace, lowercase: true}"), MODEL_PAIRS, PAIRS);
    const char *const parts[] = {
        "u v |<bos> u v |u v <eos> ", "w x |<bos> w x |w x <eos> ", "y |<bos> y |y <eos> ",      "|<bos> |<eos> ",
        "u v |<bos> u v |u v <eos> ", "u v |<bos> u v |u v <eos> ", "w x |<bos> w x |w x <eos> "};
    const char *const texts[] = {"u V", "w  x", "y", "", "u v", "u v", "w x"};
    expect_records(o.state, o.train, parts, 7);
    for (int64_t r = 0; r < 7; r++)
        expect_target_text(o.train, r, texts[r]);
    const struct sl_data_counts *counts = sl_dataset_get_counts(o.train);
    assert_true(counts->split_records == 2 && counts->parts == 5 && counts->truncated_records == 0);
    assert_true(sl_dataset_get_facts(o.train)->longest == 3 && sl_dataset_get_facts(o.train)->source_longest == 2);
    assert_int_equal(sl_dataset_get_facts(o.train)->source_rows, 11);
    /* counted in the text as it stands, twice: it is source and target */
    assert_int_equal(sl_vocabulary_get_count(sl_data_state_find_vocabulary(o.state), 3), 6);
    data_close(&o);

    o = data_open_train(SPLIT(", tokenizer: char"), MODEL_PAIRS, PAIRS);
    assert_int_equal(sl_dataset_get_counts(o.train)->parts, 5 + 2 + 4);
    expect_target_text(o.train, 1, "V "); /* the blanks are tokens */
    data_close(&o);
}

/* A line that is cut is of one split of the data. */
static void test_shares(void **state)
{
    (void)state;
    data_write("a", "x y z x\nx\ny z y\nz\n");
    struct data_open o = data_open_train(SPLIT(", valid: {split: 0.5}"), MODEL_PAIRS, PAIRS);
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    const char *const train_expected[] = {"x y |<bos> x y |x y <eos> ", "z x |<bos> z x |z x <eos> ",
                                          "x |<bos> x |x <eos> "};
    const char *const valid_expected[] = {"y z |<bos> y z |y z <eos> ", "y |<bos> y |y <eos> ", "z |<bos> z |z <eos> "};
    expect_records(o.state, o.train, train_expected, 3);
    expect_records(o.state, valid, valid_expected, 3);
    assert_true(sl_dataset_get_counts(valid)->split_records == 1 && sl_dataset_get_counts(valid)->parts == 2);
    expect_target_text(valid, 1, "y");
    sl_dataset_close(valid);

    /* what is read to predict or embed stays whole */
    struct sl_input_request request = {.data = "x y z x y\nz\n", .data_bytes = 12};
    struct sl_dataset *input;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, NULL), SEQLSTM_OK);
    assert_int_equal(sl_dataset_get_records(input), 2);
    assert_int_equal(sl_dataset_get_source_length(input, 0), 5);
    sl_dataset_close(input);
    data_close(&o);
}

/* No target is lost: a part's last one is the next part's first token. */
static void test_steps(void **state)
{
    (void)state;
    data_write("train.txt", "a b c d e f\na b\na b c d\n");
    struct data_open o = data_open_train("type: text, train: {file: train.txt}, batch_size: 2, tokenizer: {type: "
                                         "whitespace, specials: []}, batching: {max_length: 2, on_overflow: split}",
                                         MODEL_LM, "task: language_model");
    static const char *const inputs[] = {"ab", "cd", "e", "a", "ab", "c"};
    static const char *const targets[] = {"bc", "de", "f", "b", "bc", "d"};
    assert_int_equal(sl_dataset_get_records(o.train), 6);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 6, 0);
    struct sl_batch *batch = data_next(batcher);
    for (int64_t k = 0; k < batch->sequences; k++)
        for (int64_t t = 0; t < batch->axis.lengths[k]; t++) {
            int64_t row = sl_batch_row(batch, k, t);
            assert_int_equal(data_token(o.state, batch->input.ids[row])[0], inputs[batch->sample[k]][t]);
            assert_int_equal(data_token(o.state, batch->target.ids[row])[0], targets[batch->sample[k]][t]);
        }
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    assert_int_equal(sl_dataset_get_facts(o.train)->rows, 5 + 1 + 3);
    assert_true(sl_dataset_get_counts(o.train)->split_records == 2 && sl_dataset_get_counts(o.train)->parts == 5);
    data_close(&o);

    o = data_open_train("type: text, train: {file: train.txt}, batch_size: 2, tokenizer: {type: whitespace, specials: "
                        "[]}, batching: {bucketing: [1, 3], on_overflow: split}",
                        MODEL_LM, "task: language_model");
    assert_int_equal(sl_dataset_get_records(o.train), 4); /* the last edge is the longest */
    data_close(&o);

    data_write("train.txt", "a\tX\nb\tY\nc\tX\n\nd\tY\n\n");
    o = data_open_train("type: conll, train: {file: train.txt, label: 2}, batch_size: 2, batching: {max_length: 2, "
                        "on_overflow: split}",
                        MODEL_TAG, "task: tag");
    assert_int_equal(sl_dataset_get_records(o.train), 3);
    assert_int_equal(sl_dataset_get_length(o.train, 1), 1);
    data_close(&o);

    data_write("train.txt", "X\ta b c\nY\ta b c d\n");
    data_expect_failure("type: lines, train: {file: train.txt, label: first}, batch_size: 2, batching: {max_length: "
                        "2, on_overflow: split}",
                        MODEL_CLASSIFY, "task: classify", SEQLSTM_INVALID_CONFIG,
                        "`on_overflow: split` needs a target for every step");
}

/* What a share of one text or sentence lacks is told with its line in the file, wherever the share begins. */
static void test_lines_of_a_share(void **state)
{
    (void)state;
    for (int cut = 8; cut <= 13; cut++) {
        char yaml[200];
        struct sl_dataset *valid = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        data_write("train.txt", "ab\nba\nab\r\naa\nbza\n");
        snprintf(yaml, sizeof yaml,
                 "type: text, train: {file: train.txt}, batch_size: 2, valid: {split: %g}, tokenizer: {type: char, "
                 "specials: []}, batching: {unit: stream}",
                 1 - cut / 15.0);
        struct data_open o = data_open_train(yaml, MODEL_LM, "task: language_model");
        assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err), SEQLSTM_CORRUPT_DATA);
        if (strstr(err.message, "train.txt:5: the token \"z\"") == NULL)
            fail_msg("from %d on: %s", cut, err.message);
        data_close(&o);

        static const char *const tags[] = {
            "\na\tX\nb\tY\na\tX\nb\tY\nb\tX\na\tX\na\tY\na\tX\nb\tZ\na\tX\n",
            "# 1\na\tX\nb\tY\n# 4\na\tX\nb\tY\n#\n# 8\nb\tX\na\tX\na\tY\n# 12\na\tX\n# 14\nb\tZ\n# 16\na\tX\n"};
        for (int comments = 0; comments < 2; comments++) {
            data_write("train.txt", tags[comments]);
            snprintf(yaml, sizeof yaml,
                     "type: conll, train: {file: train.txt, label: 2, comment: '#'}, valid: {split: %g}, batch_size: 2",
                     1 - (cut - 5) / 10.0);
            o = data_open_train(yaml, MODEL_TAG, "task: tag");
            valid = data_open_split(&o, SL_SPLIT_VALID);
            assert_int_equal(sl_dataset_get_facts(valid)->rows, 15 - cut);
            assert_int_equal(sl_dataset_get_unknown_line(valid), comments ? 15 : 10);
            sl_dataset_close(valid);
            data_close(&o);
        }
    }
}

/* Writes `lines` with one of the ends that lines may have. */
static void write_lines(const char *name, const char *lines, const char *end)
{
    struct sl_buf text = {0};
    for (; *lines; lines++)
        if (*lines == '\n')
            sl_buf_append_text(&text, end);
        else
            sl_buf_append_char(&text, *lines);
    data_write(name, sl_buf_text(&text));
    sl_buf_deinit(&text);
}

/* What is wrong with a word or its tag is told with the line of the file, whatever other lines are before it: comments,
 * blank ones, and the words without a number of their own in CoNLL-U. */
static void test_lines_of_words(void **state)
{
    (void)state;
#define WORDS                                                                                                          \
    "type: conll, train: {file: train.txt}, valid: {file: valid.txt}, text: 2, comment: '#', tokenizer: {type: "       \
    "whitespace, specials: []}, batch_size: 4, "
#define BEFORE          "# 1\n1-2\ta\t0\n# 3\n1\ta\t0\n#\n1.1\tb\t1\n \t\n\n# 9\n#\n1\ta\t0\n# 12\n#\n2\tb\t1\n# 15\n"
#define MODEL_OF_SHARES "[{type: embedding, dim: 2}, {type: output, activation: sigmoid}]"
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    for (int k = 0; k < 3; k++) {
        struct sl_dataset *valid = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        write_lines("train.txt", BEFORE, ends[k]);
        write_lines("valid.txt", BEFORE "3\tz\t1\n# 17\n4\ta\t0\n", ends[k]);
        struct data_open o = data_open_train(WORDS "label: 3", MODEL_TAG, "task: tag");
        assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err), SEQLSTM_CORRUPT_DATA);
        assert_non_null(strstr(err.message, "valid.txt:16: the token \"z\""));
        write_lines("valid.txt", BEFORE "3\ta\tT\n# 17\n4\ta\t0\n", ends[k]);
        valid = data_open_split(&o, SL_SPLIT_VALID);
        assert_int_equal(sl_dataset_get_unknown_line(valid), 16);
        sl_dataset_close(valid);
        data_close(&o);
        write_lines("train.txt", BEFORE "3\ta\t2\n# 17\n4\ta\t0\n", ends[k]);
        data_expect_failure(WORDS "label: {column: 3, type: value}", MODEL_OF_SHARES, "loss: binary_cross_entropy",
                            SEQLSTM_CORRUPT_DATA, "train.txt:16: the target 2");
    }
}

static void expect_text(const struct sl_dataset *d, int64_t record, const char *expected)
{
    size_t bytes;
    const char *text = sl_dataset_find_text(d, record, &bytes);
    if (bytes != strlen(expected) || memcmp(text, expected, bytes) != 0)
        fail_msg("record %d: \"%.*s\", expected \"%s\"", (int)record, (int)bytes, text, expected);
}

/* A share or a part of a sentence has the lines of its own words, comments not counted. */
static void test_text_of_a_part(void **state)
{
    (void)state;
    data_write("train.txt", "# a\nu\tX\n# b\nv\tY\nw\tX\n# c\nx\tY\ny\tX\n\nu\tX\n\nu\tX\nv\tY\nw\tX\n");
    struct data_open o =
        data_open_train("type: conll, train: {file: train.txt, label: 2, comment: '#'}, batch_size: 2, "
                        "batching: {max_length: 2, on_overflow: split}",
                        MODEL_TAG, "task: tag");
    static const char *const parts[] = {"u\tX\n# b\nv\tY", "w\tX\n# c\nx\tY", "y\tX", "u\tX", "u\tX\nv\tY", "w\tX"};
    assert_int_equal(sl_dataset_get_records(o.train), 6);
    for (int64_t r = 0; r < 6; r++)
        expect_text(o.train, r, parts[r]);
    data_close(&o);
    data_write("train.txt", "# a\nu\tX\n# b\nv\tY\nw\tX\n# c\nx\tY\ny\tX\n");
    o = data_open_train("type: conll, train: {file: train.txt, label: 2, comment: '#'}, valid: {split: 0.2}, "
                        "test: {split: 0.4}, batch_size: 2",
                        MODEL_TAG, "task: tag");
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID), *test = data_open_split(&o, SL_SPLIT_TEST);
    expect_text(o.train, 0, "u\tX\n# b\nv\tY");
    expect_text(valid, 0, "w\tX");
    expect_text(test, 0, "x\tY\ny\tX");
    sl_dataset_close(valid);
    sl_dataset_close(test);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),          cmocka_unit_test(test_shares),
        cmocka_unit_test(test_steps),          cmocka_unit_test(test_lines_of_a_share),
        cmocka_unit_test(test_text_of_a_part), cmocka_unit_test(test_lines_of_words),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

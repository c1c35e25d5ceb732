/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of text: tokenizers, vocabularies, lines, column files, token ids, and files that are broken. */
#include "data_fixture.h"

#include "base/value/text.h"
#include "data/text/tokenizer.h"

#define TEXT_DATA(more) "type: text, train: {file: train.txt}, batch_size: 2, " more

static struct sl_buf joined;

/* The tokens of a text, joined by '|'. */
static const char *cut(enum sl_tokenizer_type type, const char *text)
{
    struct sl_token_cursor cursor;
    const char *token;
    size_t bytes;
    sl_buf_truncate(&joined, 0);
    sl_token_cursor_init(&cursor, type, text, strlen(text));
    for (int i = 0; sl_token_cursor_next(&cursor, &token, &bytes); i++) {
        if (i > 0)
            sl_buf_append_char(&joined, '|');
        sl_buf_append(&joined, token, bytes);
    }
    return sl_buf_text(&joined);
}

static void test_tokenizers(void **state)
{
    (void)state;
    assert_string_equal(cut(SL_TOKENIZER_WHITESPACE, "  a  b\tc\n"), "a|b|c");
    assert_string_equal(cut(SL_TOKENIZER_WHITESPACE, " \n "), "");
    assert_string_equal(cut(SL_TOKENIZER_CHAR, "a \xC3\xA4\n"), "a| |\xC3\xA4|\n");
    assert_string_equal(cut(SL_TOKENIZER_WORD, "don't stop, 3.5!"), "don't|stop|,|3.5|!");
    assert_string_equal(cut(SL_TOKENIZER_WORD, "'well-known' end."), "'|well-known|'|end|.");
    assert_string_equal(cut(SL_TOKENIZER_WORD, "1,000 a,b \xC3\xA9t\xC3\xA9."), "1,000|a|,|b|\xC3\xA9t\xC3\xA9|.");
    assert_string_equal(cut(SL_TOKENIZER_WORD, "..."), ".|.|.");
    sl_buf_deinit(&joined);
}

static void test_lower(void **state)
{
    (void)state;
    char text[] = "AZaz \xC3\x84\xC3\x97 \xCE\x91\xCE\xA9 \xD0\x90\xD0\xAF\xD0\x81 \xC4\x80 \xE2\x82\xAC";
    sl_text_lower(text, strlen(text));
    assert_string_equal(text, "azaz \xC3\xA4\xC3\x97 \xCE\xB1\xCF\x89 \xD0\xB0\xD1\x8F\xD1\x91 \xC4\x81 \xE2\x82\xAC");
}

/* Each of these letters has its partner, and no other character of one or two bytes has one. */
static void test_lower_of_every_character(void **state)
{
    (void)state;
    static const char UPPER[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞ"
                                "ĀĂĄĆĈĊČĎĐĒĔĖĘĚĜĞĠĢĤĦĨĪĬĮĲĴĶĹĻĽĿŁ"
                                "ŃŅŇŊŌŎŐŒŔŖŘŚŜŞŠŢŤŦŨŪŬŮŰŲŴŶŸŹŻŽ"
                                "ΆΈΉΊΌΎΏΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΪΫ"
                                "ЀЁЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОП"
                                "РСТУФХЦЧШЩЪЫЬЭЮЯ";
    static const char LOWER[] = "abcdefghijklmnopqrstuvwxyz"
                                "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþ"
                                "āăąćĉċčďđēĕėęěĝğġģĥħĩīĭįĳĵķĺļľŀł"
                                "ńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷÿźżž"
                                "άέήίόύώαβγδεζηθικλμνξοπρστυφχψωϊϋ"
                                "ѐёђѓєѕіїјљњћќѝўџабвгдежзийклмноп"
                                "рстуфхцчшщъыьэюя";
    const char *upper = UPPER, *lower = LOWER;
    for (uint32_t c = 1; c < 0x800; c++) {
        char text[5] = {0}, expected[5] = {0};
        uint32_t next, partner = c;
        size_t upper_bytes = sl_text_utf8_decode(upper, strlen(upper), &next);
        if (upper_bytes > 0 && next == c) {
            upper += upper_bytes;
            lower += sl_text_utf8_decode(lower, strlen(lower), &partner);
        }
        sl_text_utf8_encode(text, c);
        sl_text_utf8_encode(expected, partner);
        sl_text_lower(text, strlen(text));
        assert_string_equal(text, expected);
    }
    assert_int_equal(*upper, 0);
    assert_int_equal(*lower, 0);
}

/* Specials first, then by count, ties by bytes. */
static void test_vocabulary_order(void **state)
{
    (void)state;
    data_write("train.txt", "b a b\nc <unk> c c\n");
    struct data_open o = data_open_train(TEXT_DATA("tokenizer: {type: whitespace, specials: [unk, eos]}"), MODEL_LM,
                                         "task: language_model");
    static const char *const expected[] = {"<unk>", "<eos>", "c", "b", "a"};
    static const int64_t counts[] = {1, 2, 3, 2, 1};
    const struct sl_vocabulary *v = sl_data_state_find_vocabulary(o.state);
    assert_int_equal(sl_vocabulary_get_size(v), 5);
    for (int32_t i = 0; i < 5; i++) {
        assert_string_equal(data_token(o.state, i), expected[i]);
        assert_int_equal(sl_vocabulary_get_count(v, i), counts[i]);
        assert_int_equal(sl_vocabulary_find(v, expected[i], strlen(expected[i])), i);
    }
    assert_int_equal(sl_vocabulary_find(v, "z", 1), -1);
    assert_int_equal(sl_vocabulary_get_special(v, SL_SPECIAL_EOS), 1);
    assert_int_equal(sl_vocabulary_get_special(v, SL_SPECIAL_BOS), -1);
    data_close(&o);
}

/* The last <eos> is a target only. */
static void test_next_lines(void **state)
{
    (void)state;
    data_write("train.txt", "b a b\nc a c c\nd\n");
    struct data_open o = data_open_train(
        TEXT_DATA("batching: {unit: stream, bptt: 3}, tokenizer: {type: whitespace, specials: [unk, eos]}"), MODEL_LM,
        "task: language_model");
    static const int64_t expected[] = {5, 5, 5, 5, 1, 1, 1, 1, 1, 4};
    assert_int_equal(sl_dataset_get_length(o.train, 0), 10);
    for (int64_t step = 0; step < 10; step++)
        assert_int_equal(sl_dataset_get_next_line(o.train, 0, step), expected[step]);
    data_close(&o);
    o = data_open_train(TEXT_DATA("batching: {unit: stream, bptt: 3}, tokenizer: {type: whitespace, specials: [unk]}"),
                        MODEL_LM, "task: language_model");
    assert_int_equal(sl_dataset_get_next_line(o.train, 0, 2), 0);
    data_close(&o);
}

static void test_vocabulary_limits(void **state)
{
    (void)state;
    data_write("train.txt", "a a a b b c c d\n");
    struct data_open o = data_open_train(TEXT_DATA("tokenizer: {type: whitespace, specials: [unk], min_count: 2}"),
                                         MODEL_LM, "task: language_model");
    assert_int_equal(sl_vocabulary_get_size(sl_data_state_find_vocabulary(o.state)), 4);
    assert_int_equal(sl_dataset_get_counts(o.train)->unknown_tokens, 1);
    data_close(&o);
    o = data_open_train(TEXT_DATA("tokenizer: {type: whitespace, specials: [unk], vocab_size: 3}"), MODEL_LM,
                        "task: language_model");
    assert_int_equal(sl_vocabulary_get_size(sl_data_state_find_vocabulary(o.state)), 3);
    assert_string_equal(data_token(o.state, 2), "b");
    assert_int_equal(sl_dataset_get_counts(o.train)->unknown_tokens, 3);
    data_close(&o);
    /* specials are there in any case */
    data_expect_failure(TEXT_DATA("tokenizer: {type: whitespace, specials: [unk, bos, eos], vocab_size: 2}"), MODEL_LM,
                        "task: language_model", SEQLSTM_CORRUPT_DATA,
                        "train.txt: no token of the training split is in the vocabulary");
}

static void test_vocabulary_file(void **state)
{
    (void)state;
    data_write("train.txt", "b a b\n");
    data_write("vocab.txt", "a\n<unk>\nb\nz\n");
    struct data_open o =
        data_open_train(TEXT_DATA("tokenizer: {type: whitespace, specials: [unk, eos], vocab: vocab.txt}"), MODEL_LM,
                        "task: language_model");
    static const char *const expected[] = {"<eos>", "a", "<unk>", "b", "z"};
    for (int32_t i = 0; i < 5; i++)
        assert_string_equal(data_token(o.state, i), expected[i]);
    assert_int_equal(sl_vocabulary_get_special(sl_data_state_find_vocabulary(o.state), SL_SPECIAL_UNK), 2);
    data_close(&o);
    /* its marks are marks where `specials` lists them, and tokens as others where not */
    data_write("vocab.txt", "<pad>\n<bos>\na\nb\n<unk>\n");
    o = data_open_train(TEXT_DATA("tokenizer: {type: whitespace, specials: [unk], vocab: vocab.txt}"), MODEL_LM,
                        "task: language_model");
    static const int32_t marks[SL_SPECIAL_COUNT] = {
        [SL_SPECIAL_PAD] = -1, [SL_SPECIAL_UNK] = 4, [SL_SPECIAL_BOS] = -1, [SL_SPECIAL_EOS] = -1};
    const struct sl_vocabulary *v = sl_data_state_find_vocabulary(o.state);
    assert_int_equal(sl_vocabulary_get_size(v), 5);
    assert_string_equal(data_token(o.state, 1), "<bos>");
    for (int s = 0; s < SL_SPECIAL_COUNT; s++)
        assert_int_equal(sl_vocabulary_get_special(v, (enum sl_special)s), marks[s]);
    assert_int_equal(sl_dataset_get_counts(o.train)->tokens, 3); /* none begins the line */
    data_close(&o);
    data_write("vocab.txt", "a\nb\na\n");
    data_expect_failure(TEXT_DATA("tokenizer: {type: whitespace, specials: [unk], vocab: vocab.txt}"), MODEL_LM,
                        "task: language_model", SEQLSTM_CORRUPT_DATA, "\"a\" twice");
    /* what only another split has teaches nothing */
    data_write("vocab.txt", "z\n");
    data_write("train.txt", "a b\nz z\n");
    data_expect_failure(
        TEXT_DATA("valid: {split: 0.5}, tokenizer: {type: whitespace, specials: [unk], vocab: vocab.txt}"), MODEL_LM,
        "task: language_model", SEQLSTM_CORRUPT_DATA, "no token of the training split is in the vocabulary");
}

/* Every line ends in <eos>, the last one too, and blank lines are one. */
static void test_stream_of_words(void **state)
{
    (void)state;
    data_write("train.txt", " a b \n\nc");
    struct data_open o = data_open_train(
        TEXT_DATA("tokenizer: {type: whitespace, specials: [unk, eos]}, batching: {unit: stream, bptt: 9}"), MODEL_LM,
        "task: language_model");
    assert_int_equal(sl_dataset_get_counts(o.train)->tokens, 6);
    assert_int_equal(sl_dataset_get_records(o.train), 1);
    assert_int_equal(sl_dataset_get_length(o.train, 0), 5);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 1, 0);
    struct sl_batch *batch = data_next(batcher);
    static const char *const in[] = {"a", "b", "<eos>", "<eos>", "c"};
    static const char *const out[] = {"b", "<eos>", "<eos>", "c", "<eos>"};
    assert_int_equal(batch->axis.rows, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(data_token(o.state, batch->input.ids[i]), in[i]);
        assert_string_equal(data_token(o.state, batch->target.ids[i]), out[i]);
    }
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_stream_of_characters(void **state)
{
    (void)state;
    data_write("train.txt", "\xEF\xBB\xBF"
                            "ab\nba\xC3\xA4\n");
    struct data_open o = data_open_train(TEXT_DATA("tokenizer: {type: char, specials: []}, batching: {unit: stream}"),
                                         MODEL_LM, "task: language_model");
    assert_int_equal(sl_dataset_get_counts(o.train)->tokens, 7);
    assert_int_equal(sl_vocabulary_get_size(sl_data_state_find_vocabulary(o.state)), 4);
    data_close(&o);
}

/* unit: sequence: lines, blank ones left out, the target is the next token; split counts lines. */
static void test_lines_of_text(void **state)
{
    (void)state;
    data_write("train.txt", "a b c\r\n\n  \na\nb c\na b\n");
    struct data_open o =
        data_open_train(TEXT_DATA("valid: {split: 0.5}, tokenizer: {type: whitespace, specials: [unk, eos]}"), MODEL_LM,
                        "task: language_model");
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    assert_int_equal(sl_dataset_get_records(o.train), 2);
    assert_int_equal(sl_dataset_get_length(o.train, 0), 3);
    assert_int_equal(sl_dataset_get_length(o.train, 1), 1);
    assert_int_equal(sl_dataset_get_records(valid), 2);
    size_t bytes;
    const char *text = sl_dataset_find_text(valid, 0, &bytes);
    assert_int_equal(bytes, 3);
    assert_memory_equal(text, "b c", 3);
    sl_dataset_close(valid);
    data_close(&o);
}

static void test_labels(void **state)
{
    (void)state;
    data_write("train.txt", "10 good film\n9 bad film\n10 fine\n");
    struct data_open o = data_open_train("type: lines, train: {file: train.txt}, label: first, tokenizer: {type: "
                                         "whitespace, specials: [unk]}, batch_size: 3",
                                         MODEL_CLASSIFY, "task: classify");
    const struct sl_vocabulary *classes = sl_data_state_find_classes(o.state);
    assert_int_equal(sl_vocabulary_get_size(classes), 2); /* numbers in the order of numbers */
    assert_string_equal(sl_vocabulary_get_text(classes, 0, NULL), "9");
    assert_string_equal(sl_vocabulary_get_text(classes, 1, NULL), "10");
    const struct sl_data_facts *facts = sl_data_state_get_facts(o.state);
    assert_int_equal(facts->target.kind, SL_FIELD_IDS);
    assert_false(facts->target.on_steps);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    for (int64_t k = 0; k < 3; k++)
        assert_int_equal(batch->target.ids[k], batch->sample[k] == 1 ? 0 : 1);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);

    /* Input for predict: no labels, every line counts, blank ones too. */
    struct sl_input_request request = {.data = "good\n\nunseen film\n", .data_bytes = 18, .name = "standard input"};
    struct sl_dataset *input;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, NULL), SEQLSTM_OK);
    assert_int_equal(sl_dataset_get_records(input), 3);
    assert_int_equal(sl_dataset_get_length(input, 1), 0);
    assert_int_equal(sl_dataset_get_counts(input)->unknown_tokens, 1);
    batcher = data_batcher(input, SL_BATCHING_PREDICT, 1, 0, 0);
    batch = data_next(batcher);
    assert_int_equal(batch->sequences, 3);
    assert_int_equal(batch->axis.sequences, 2);
    assert_int_equal(batch->target.kind, SL_FIELD_NONE);
    assert_int_equal(batch->sample[2], 1);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_dataset_close(input);
    data_close(&o);
}

static void test_label_values_last(void **state)
{
    (void)state;
    data_write("train.txt", "good film 1.5\nbad -2\n");
    struct data_open o =
        data_open_train("type: lines, train: {file: train.txt}, label: {column: last, type: value}, "
                        "tokenizer: {type: whitespace, specials: [unk]}, batch_size: 2",
                        "[{type: embedding, dim: 2}, {type: lstm, units: 3}, {type: output}]", "loss: mse");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_int_equal(batch->target.kind, SL_FIELD_VALUES);
    assert_true(batch->target.values[0] == 1.5f && batch->target.values[1] == -2.0f);
    assert_int_equal(batch->axis.lengths[0], 2);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_label_errors(void **state)
{
    (void)state;
#define LINES                                                                                                          \
    "type: lines, train: {file: train.txt}, valid: {file: valid.txt}, label: first, tokenizer: {type: whitespace}, "   \
    "batch_size: 3"
    data_write("valid.txt", "0 a\n");
    data_write("train.txt", "0 a\nword\n");
    data_expect_failure(LINES, MODEL_CLASSIFY, "task: classify", SEQLSTM_CORRUPT_DATA, "train.txt:2: no label");
    data_write("train.txt", "0 a\n\n");
    data_expect_failure(LINES, MODEL_CLASSIFY, "task: classify", SEQLSTM_CORRUPT_DATA, "train.txt:2: no label");
    data_write("train.txt", "0 a\n1 b\n");
    data_write("valid.txt", "0 a\nword\n");
    struct data_open o = data_open_train(LINES, MODEL_CLASSIFY, "task: classify");
    struct sl_dataset *valid = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "valid.txt:2: no label"));
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_TEST, o.state, &valid, &err), SEQLSTM_NOT_FOUND);
    assert_null(valid);
    data_close(&o);
}

static void test_unknown_without_unk(void **state)
{
    (void)state;
    data_write("train.txt", "a b\n");
    data_write("valid.txt", "a\nb a\nb zebra\n");
    struct data_open o =
        data_open_train(TEXT_DATA("valid: {file: valid.txt}, tokenizer: {type: whitespace, specials: []}"), MODEL_LM,
                        "task: language_model");
    struct sl_dataset *valid = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "valid.txt:3: the token \"zebra\""));
    data_close(&o);
    data_write("valid.txt", "ab\nb\nz");
    data_write("train.txt", "ab\n");
    o = data_open_train(
        TEXT_DATA("valid: {file: valid.txt}, tokenizer: {type: char, specials: []}, batching: {unit: stream}"),
        MODEL_LM, "task: language_model");
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "valid.txt:3: the token \"z\""));
    data_close(&o);
}

static void test_broken_files(void **state)
{
    (void)state;
#define PLAIN TEXT_DATA("tokenizer: {type: whitespace}")
#define LM    "task: language_model"
    data_write("train.txt", "");
    data_expect_failure(PLAIN, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "train.txt: the file is empty");
    data_write("train.txt", "\n \n");
    data_expect_failure(PLAIN, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "no records");
    data_write("train.txt", "a\nb \xC3(\n");
    data_expect_failure(PLAIN, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "train.txt:2: byte 0xc3 at offset 4");
    data_write_bytes("train.txt", "a\nb\0c", 5);
    data_expect_failure(PLAIN, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "train.txt:2: a NUL byte at offset 3:");
    data_write("train.txt", "\xEF\xBB\xBF" /* places are those in the file, its mark included */
                            "a\nb \xC3(\n");
    data_expect_failure(PLAIN, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "train.txt:2: byte 0xc3 at offset 7 ");
    data_write_bytes("train.txt",
                     "\xEF\xBB\xBF"
                     "a\nb\0c",
                     8);
    data_expect_failure(PLAIN, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "train.txt:2: a NUL byte at offset 6:");
    data_write_bytes("train.txt",
                     "\xFF\xFE"
                     "a\0",
                     4);
    data_expect_failure(PLAIN, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "UTF-16");
    data_expect_failure("type: text, train: {file: absent.txt}, tokenizer: {type: whitespace}", MODEL_LM, LM,
                        SEQLSTM_NOT_FOUND, "absent.txt");
    data_write("train.txt", "a b\n");
    data_expect_failure(TEXT_DATA("valid: {split: 0.4}, tokenizer: {type: whitespace}"), MODEL_LM, LM,
                        SEQLSTM_CORRUPT_DATA, "too few to split");
}

static void test_latin_1(void **state)
{
    (void)state;
    data_write("train.txt", "\xE9t\xE9 a\n");
    struct data_open o = data_open_train(
        "type: text, train: {file: train.txt}, encoding: latin-1, tokenizer: {type: whitespace, specials: []}",
        MODEL_LM, "task: language_model");
    const struct sl_vocabulary *v = sl_data_state_find_vocabulary(o.state);
    assert_true(sl_vocabulary_find(v, "\xC3\xA9t\xC3\xA9", 5) >= 0);
    data_close(&o);
    data_expect_failure("type: text, train: {file: train.txt}, tokenizer: whitespace", MODEL_LM, "task: language_model",
                        SEQLSTM_CORRUPT_DATA, "`encoding: latin-1` reads");
    data_write_bytes("train.txt", "\xE9t\xE9\n\xE9\0", 6); /* each letter is one byte of the file */
    data_expect_failure("type: text, train: {file: train.txt}, encoding: latin-1, tokenizer: whitespace", MODEL_LM,
                        "task: language_model", SEQLSTM_CORRUPT_DATA, "train.txt:2: a NUL byte at offset 5:");
}

static void test_conll(void **state)
{
    (void)state;
#define CONLL                                                                                                          \
    "type: conll, train: {file: train.txt}, label: 3, comment: \"#\", tokenizer: {type: whitespace, specials: "        \
    "[unk]}, batch_size: 4"
    data_write("train.txt", "# text\nthe\tx\tDET\ncat\tx\tNOUN\n\n\n# more\nruns\tx\tVERB\n");
    struct data_open o = data_open_train(CONLL, MODEL_TAG, "task: tag");
    assert_int_equal(sl_dataset_get_records(o.train), 2);
    assert_int_equal(sl_dataset_get_length(o.train, 0), 2);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    static const char *const words[] = {"the", "runs", "cat"}, *const tags[] = {"DET", "VERB", "NOUN"};
    const struct sl_vocabulary *classes = sl_data_state_find_classes(o.state);
    for (int row = 0; row < 3; row++) {
        assert_string_equal(data_token(o.state, batch->input.ids[row]), words[row]);
        assert_string_equal(sl_vocabulary_get_text(classes, batch->target.ids[row], NULL), tags[row]);
    }
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    size_t bytes;
    const char *text = sl_dataset_find_text(o.train, 0, &bytes);
    assert_memory_equal(text, "the\tx\tDET\ncat\tx\tNOUN", bytes);
    struct sl_input_request request = {.data = "cat\nruns\n", .data_bytes = 9};
    struct sl_dataset *input;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, NULL), SEQLSTM_OK);
    assert_int_equal(sl_dataset_get_length(input, 0), 2);
    sl_dataset_close(input);
    data_close(&o);
    data_write("train.txt", "the\tx\tDET\ncat\tx\n");
    data_expect_failure(CONLL, MODEL_TAG, "task: tag", SEQLSTM_CORRUPT_DATA, "train.txt:2: the line has no tag");
}

static void test_token_ids(void **state)
{
    (void)state;
#define TOKENS "type: tokens, train: {file: train.txt}, valid: {file: valid.txt}, batch_size: 2"
    data_write("train.txt", "1 2 3\n4 0\n");
    data_write("valid.txt", "1 9\n");
    struct data_open o = data_open_train(TOKENS, MODEL_LM, "task: language_model");
    struct sl_dataset *valid = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_data_state_get_facts(o.state)->input.classes, 5);
    assert_int_equal(sl_dataset_get_length(o.train, 0), 2);
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "valid.txt:1: the token id 9 is too large"));
    data_close(&o);
    data_write("train.txt", "1 2\n3 -4\n");
    data_expect_failure(TOKENS, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "train.txt:2: \"-4\" is not a token id");
    data_write("train.txt", "1 two\n");
    data_expect_failure(TOKENS, MODEL_LM, LM, SEQLSTM_CORRUPT_DATA, "train.txt:1: \"two\"");
}

static void test_overflow(void **state)
{
    (void)state;
    data_write("train.txt", "a b c d e\na b\na b c d\n");
    struct data_open o = data_open_train(
        TEXT_DATA("tokenizer: {type: whitespace, specials: []}, batching: {max_length: 2, on_overflow: drop}"),
        MODEL_LM, LM);
    assert_int_equal(sl_dataset_get_records(o.train), 1);
    assert_int_equal(sl_dataset_get_counts(o.train)->dropped_records, 2);
    assert_int_equal(sl_dataset_get_counts(o.train)->dropped_rows, 7);
    data_close(&o);
    o = data_open_train(
        TEXT_DATA("tokenizer: {type: whitespace, specials: []}, batching: {max_length: 2, on_overflow: truncate}"),
        MODEL_LM, LM);
    assert_int_equal(sl_dataset_get_records(o.train), 3);
    assert_int_equal(sl_dataset_get_facts(o.train)->longest, 2);
    assert_int_equal(sl_dataset_get_counts(o.train)->truncated_rows, 3);
    data_close(&o);
}

/* What `ignore` names is no target; what does not occur is a slip of the pen. */
static void test_ignore(void **state)
{
    (void)state;
    data_write("train.txt", "0 2 1 2\n1 2\n");
    struct data_open o = data_open_train("type: tokens, train: {file: train.txt}, batch_size: 2", MODEL_LM,
                                         "loss: {type: cross_entropy, ignore: 2}");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    static const int32_t targets[] = {-1, -1, 1, -1};
    assert_memory_equal(batch->target.ids, targets, sizeof targets);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
    data_expect_failure("type: tokens, train: {file: train.txt}", MODEL_LM, "loss: {type: cross_entropy, ignore: 3}",
                        SEQLSTM_INVALID_CONFIG, "no target of the training split is `3`");
    data_expect_failure("type: text, train: {file: train.txt}, tokenizer: whitespace", MODEL_LM,
                        "loss: {type: cross_entropy, ignore: <pad>}", SEQLSTM_INVALID_CONFIG,
                        "no target of the training split is `<pad>`");
    data_write("train.txt", "pos a b\nneg b\nnone c\n");
    o = data_open_train("type: lines, train: {file: train.txt}, label: first", MODEL_CLASSIFY,
                        "loss: {type: cross_entropy, ignore: none}");
    assert_int_equal(sl_dataset_get_facts(o.train)->target.classes, 2);
    data_close(&o);
    data_expect_failure("type: lines, train: {file: train.txt}, label: first", MODEL_CLASSIFY,
                        "loss: {type: cross_entropy, ignore: nome}", SEQLSTM_INVALID_CONFIG,
                        "no target of the training split is `nome`");
}

/* A token that training lacks becomes the special token for it, whatever its number is; an input has a record for each
 * line, also for an empty one, which training data leave out. */
static void test_unknown_tokens_and_empty_lines(void **state)
{
    (void)state;
    data_write("train.txt", "a b\n\nb a\n");
    data_write("valid.txt", "a zebra b\n");
    struct data_open o =
        data_open_train("type: text, train: {file: train.txt}, valid: {file: valid.txt}, batch_size: 4, "
                        "tokenizer: {type: whitespace, specials: [eos, unk]}, batching: {unit: sequence}",
                        MODEL_LM, "task: language_model");
    assert_int_equal(sl_dataset_get_records(o.train), 2);
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    struct sl_batcher *batcher = data_batcher(valid, SL_BATCHING_PREDICT, 1, 4, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_int_equal(batch->input.ids[1], 1); /* <unk> */
    assert_true(batch->input.ids[0] > 1 && batch->input.ids[2] > 1);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_dataset_close(valid);
    struct sl_input_request request = {.data = "a\n\nb \r\n", .data_bytes = 7};
    struct sl_dataset *input;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_dataset_open_input(o.model, o.state, &request, &input, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sl_dataset_get_records(input), 3);
    sl_dataset_close(input);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_tokens_and_empty_lines),
        cmocka_unit_test(test_tokenizers),
        cmocka_unit_test(test_lower),
        cmocka_unit_test(test_lower_of_every_character),
        cmocka_unit_test(test_vocabulary_order),
        cmocka_unit_test(test_next_lines),
        cmocka_unit_test(test_vocabulary_limits),
        cmocka_unit_test(test_vocabulary_file),
        cmocka_unit_test(test_stream_of_words),
        cmocka_unit_test(test_stream_of_characters),
        cmocka_unit_test(test_lines_of_text),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_label_values_last),
        cmocka_unit_test(test_label_errors),
        cmocka_unit_test(test_unknown_without_unk),
        cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_latin_1),
        cmocka_unit_test(test_conll),
        cmocka_unit_test(test_token_ids),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_ignore),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

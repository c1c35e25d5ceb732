/* SPDX-License-Identifier: Apache-2.0 */
/* The module `sentencepiece`: what is learned from lines, pieces of models and of texts, and models that are none.
 * Skipped where the module is not built. */
#include "data_fixture.h"

#include <malloc.h>

#include "data/text/pieces.h"
#include "oom.h"

#define BLANK "\xe2\x96\x81"
#define COUNTED                                                                                                        \
    "type: lines, train: {file: train.txt}, tokenizer: {type: sentencepiece, vocab_size: 16, method: bpe, specials: "  \
    "[unk, eos]}, batch_size: 2"

enum { SIZE = 24 };

struct lines {
    const char *const *texts; /* until NULL */
    int times, at;
};

/* Each line with its length, not its NUL. */
static const char *next(void *context, uint64_t *out_bytes)
{
    struct lines *lines = context;
    const char *text = lines->texts[lines->at];
    if (text == NULL && --lines->times > 0)
        text = lines->texts[lines->at = 0];
    lines->at += text != NULL;
    *out_bytes = text ? strcspn(text, "|") : 0;
    return text;
}

static const char *const texts[] = {"tap tap pat", "", "jog log gog|qqqq", "", "emu emu", NULL};

static seqlstm_status learn(int64_t size, enum sl_pieces_method method, struct sl_pieces **out,
                            struct seqlstm_error *err)
{
    static const char *const specials[] = {"unk", "eos"};
    const struct sl_tokenizer tokenizer = {
        .type = SL_TOKENIZER_SENTENCEPIECE, .vocab_size = size, .method = method, .specials = {specials, 2}};
    struct lines lines = {.texts = texts, .times = 8};
    return sl_pieces_train(&tokenizer, "some.txt", next, &lines, out, err);
}

static bool has_piece(const struct sl_pieces *pieces, const char *text)
{
    for (int64_t id = 0; id < sl_pieces_get_count(pieces); id++) {
        size_t bytes;
        const char *piece = sl_pieces_get(pieces, id, &bytes);
        if (bytes == strlen(text) && memcmp(piece, text, bytes) == 0)
            return true;
    }
    return false;
}

static void emit(void *out, const char *piece, uint64_t bytes)
{
    sl_buf_append(out, piece, bytes);
    sl_buf_append_char(out, ' ');
}

static bool is_absent(void)
{
    struct sl_pieces *pieces = NULL;
    const bool absent = sl_pieces_open("", 0, &pieces, NULL) == SEQLSTM_UNAVAILABLE;
    if (absent)
        print_message("# the module is not built\n");
    return absent;
}

/* Lines count to the last one, empty ones between them too, and each to its length. */
static void test_all_lines_are_learned_from(void **state)
{
    (void)state;
    if (is_absent())
        return;
    static const int64_t sizes[] = {[SL_PIECES_BPE] = SIZE, [SL_PIECES_UNIGRAM] = 14}; /* the text has no more */
    for (int method = SL_PIECES_BPE; method <= SL_PIECES_UNIGRAM; method++) {
        struct sl_pieces *pieces = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (learn(sizes[method], (enum sl_pieces_method)method, &pieces, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(sl_pieces_get_count(pieces),
                         sizes[method] - 1); /* two specials take the place of the unknown piece */
        for (const char *letter = "tapjoglemu"; *letter; letter++)
            assert_true(has_piece(pieces, (char[]){*letter, 0}));
        assert_false(has_piece(pieces, "q"));
        assert_false(has_piece(pieces, "<unk>")); /* it is there, and has no text */
        assert_true(has_piece(pieces, ""));
        sl_pieces_close(pieces);
    }
}

/* A line counts however long it is: the letters of its end are learned, too. */
static void test_long_lines_are_learned_from(void **state)
{
    (void)state;
    if (is_absent())
        return;
    enum { WORDS = 12000, LONG = 4 * WORDS };
    char *line = malloc(LONG + 1);
    for (int k = 0; k < WORDS; k++)
        memcpy(line + 4 * k, k < WORDS / 2 ? "tap " : "zig ", 4);
    line[LONG] = '\0';
    const char *const long_texts[] = {"tap tap pat", line, "pat", NULL};
    struct lines lines = {.texts = long_texts, .times = 1};
    const struct sl_tokenizer tokenizer = {
        .type = SL_TOKENIZER_SENTENCEPIECE, .vocab_size = 10, .method = SL_PIECES_BPE};
    struct sl_pieces *pieces = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_pieces_train(&tokenizer, "some.txt", next, &lines, &pieces, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    for (const char *letter = "tapzig"; *letter; letter++)
        assert_true(has_piece(pieces, (char[]){*letter, 0}));
    sl_pieces_close(pieces);
    free(line);
}

/* A model that comes from its bytes is the one that was learned; text that is unknown comes out as it is. */
static void test_texts_are_cut(void **state)
{
    (void)state;
    if (is_absent())
        return;
    static const char text[] = "tap qjog emu|tap";
    struct sl_pieces *learned = NULL, *opened = NULL;
    struct sl_buf out = {0}, again = {0};
    size_t bytes, opened_bytes;
    assert_int_equal(learn(SIZE, SL_PIECES_BPE, &learned, NULL), SEQLSTM_OK);
    const void *model = sl_pieces_get_model(learned, &bytes);
    assert_int_equal(sl_pieces_open(model, bytes, &opened, NULL), SEQLSTM_OK);
    const void *kept = sl_pieces_get_model(opened, &opened_bytes);
    assert_true(kept != model && opened_bytes == bytes && memcmp(kept, model, bytes) == 0);
    assert_int_equal(sl_pieces_cut(learned, text, strcspn(text, "|"), emit, &again, NULL), SEQLSTM_OK);
    sl_pieces_close(learned);
    assert_int_equal(sl_pieces_cut(opened, text, strcspn(text, "|"), emit, &out, NULL), SEQLSTM_OK);
    assert_string_equal(sl_buf_text(&out), sl_buf_text(&again));
    assert_string_equal(sl_buf_text(&out), BLANK "tap " BLANK " q j og " BLANK "emu ");
    sl_pieces_close(opened);
    sl_buf_deinit(&out);
    sl_buf_deinit(&again);
}

/* Changes one byte of the state, which is then refused; and changes it back. */
static void expect_refused(struct sl_buf *text, const char *after, size_t behind)
{
    struct sl_data_state *read = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *at = strstr(text->data, after);
    assert_non_null(at);
    at += behind;
    const char kept = *at;
    *at = kept == 'a' ? 'b' : 'a';
    assert_int_equal(sl_data_state_read("s", text->data, text->length_bytes, &read, &err), SEQLSTM_CORRUPT_DATA);
    assert_string_equal(err.message, "s: the key \"pieces\" is missing or does not hold what it must");
    *at = kept;
}

/* The model in the state of a run comes back, unless a byte of it, or of its checksum, is another one. */
static void test_pieces_in_a_state(void **state)
{
    (void)state;
    if (is_absent())
        return;
    struct sl_buf text = {0};
    struct sl_data_state *read = NULL;
    int32_t *ids[2];
    int64_t counts[2];
    data_write("train.txt", "tap tap pat\njog log gog\nemu emu\ntap pat\n");
    struct data_open o = data_open_train(COUNTED, MODEL_LM, "task: language_model");
    assert_int_equal(sl_data_state_write(o.state, &text, NULL), SEQLSTM_OK);
    expect_refused(&text, "\"crc64\":\"", 9);
    expect_refused(&text, "\"model\":\"", 9);
    expect_refused(&text, "\"model\":\"", 49);
    expect_refused(&text, "\"pieces\":", 1);
    assert_int_equal(sl_data_state_read("s", text.data, text.length_bytes, &read, NULL), SEQLSTM_OK);
    const struct sl_data_state *states[2] = {o.state, read};
    for (int k = 0; k < 2; k++)
        assert_int_equal(sl_data_state_encode(states[k], "tap emu", 7, true, &ids[k], &counts[k], NULL), SEQLSTM_OK);
    assert_int_equal(counts[0], counts[1]);
    assert_memory_equal(ids[0], ids[1], (size_t)counts[0] * sizeof *ids[0]);
    for (int k = 0; k < 2; k++)
        free(ids[k]);
    sl_data_state_destroy(read);
    sl_buf_deinit(&text);
    data_close(&o);
}

/* Each piece of the vocabulary has its count in the training split. */
static void test_pieces_are_counted(void **state)
{
    (void)state;
    if (is_absent())
        return;
    data_write("train.txt", "tap tap pat\njog log gog\nemu emu\ntap pat\n");
    struct data_open o = data_open_train(COUNTED, MODEL_LM, "task: language_model");
    const struct sl_vocabulary *v = sl_data_state_find_vocabulary(o.state);
    int64_t sum = 0, counted = 0;
    for (int32_t id = 0; id < sl_vocabulary_get_size(v); id++) {
        sum += sl_vocabulary_get_count(v, id);
        counted += sl_vocabulary_get_count(v, id) > 0;
    }
    assert_int_equal(sl_vocabulary_get_size(v), 16);
    assert_int_equal(sum, sl_dataset_get_counts(o.train)->tokens);
    assert_in_range(counted, 6, 15);
    assert_int_equal(sl_vocabulary_get_count(v, sl_vocabulary_get_special(v, SL_SPECIAL_EOS)), 4);
    data_close(&o);
}

/* Source and target may each have a model; a run tells both files, and where they are one, the one. */
static void test_files_of_both_sides(void **state)
{
    (void)state;
    if (is_absent())
        return;
    static const char *const names[] = {"a", "b", "target.model", "source.model"};
    for (int k = 0; k < 2; k++) {
        struct sl_pieces *pieces = NULL;
        size_t bytes;
        assert_int_equal(learn(SIZE - k, SL_PIECES_BPE, &pieces, NULL), SEQLSTM_OK);
        const void *model = sl_pieces_get_model(pieces, &bytes);
        data_write_bytes(names[2 + k], model, bytes);
        sl_pieces_close(pieces);
    }
    data_write("a", "tap pat\njog\n");
    data_write("b", "emu\ntap tap\n");
    struct data_open o = data_open_train("type: lines, train: {source: a, target: b}, batch_size: 2, tokenizer: {type: "
                                         "sentencepiece, model: target.model}, source_tokenizer: {type: sentencepiece, "
                                         "model: source.model}",
                                         MODEL_PAIRS, PAIRS);
    const struct sl_string_list files = sl_dataset_get_files(o.train);
    assert_int_equal(files.count, 4);
    for (size_t k = 0; k < files.count; k++)
        assert_string_equal(strrchr(files.items[k], '/') + 1, names[k]);
    /* three specials of the target, one of the source, and one unknown piece less */
    assert_int_equal(sl_vocabulary_get_size(sl_data_state_find_vocabulary(o.state)), SIZE - 1 + 3 - 1);
    assert_int_equal(sl_vocabulary_get_size(sl_data_state_find_source_vocabulary(o.state)), SIZE - 2 + 1 - 1);
    data_close(&o);
}

/* Each side has a tokenizer of its own, and its pieces come back with the state. */
static void test_states_of_both_sides(void **state)
{
    (void)state;
    static const char *const ways[] = {"{type: whitespace, specials: [unk, bos, eos]}",
                                       "{type: char, specials: [unk, bos, eos]}",
                                       "{type: sentencepiece, vocab_size: 14, method: bpe, specials: [unk, bos, eos]}"};
    if (is_absent())
        return;
    data_write("a", "tap pat\njog log\nemu\n");
    data_write("b", "emu\ntap tap\njog jog\n");
    for (int k = 0; k < 9; k++) {
        char data[400];
        struct sl_buf text = {0}, again = {0};
        struct sl_data_state *read = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        snprintf(data, sizeof data,
                 "type: lines, train: {source: a, target: b}, batch_size: 2, source_tokenizer: %s, tokenizer: %s",
                 ways[k / 3], ways[k % 3]);
        struct data_open o = data_open_train(data, MODEL_PAIRS, PAIRS);
        assert_int_equal(sl_data_state_write(o.state, &text, NULL), SEQLSTM_OK);
        if (sl_data_state_read("s", text.data, text.length_bytes, &read, &err) != SEQLSTM_OK)
            fail_msg("%s: %s", data, err.message);
        assert_int_equal(sl_data_state_write(read, &again, NULL), SEQLSTM_OK);
        assert_string_equal(sl_buf_text(&again), sl_buf_text(&text));
        sl_buf_deinit(&text);
        sl_buf_deinit(&again);
        sl_data_state_destroy(read);
        data_close(&o);
    }
}

/* The parts of a text that is too long are texts again: their pieces joined, all of them in order, with blanks only
 * within. */
static void test_parts_of_a_text(void **state)
{
    (void)state;
    static const char *const lines[] = {"tap pat tap jog", "emu tap", "jog jog pat emu tap"};
    if (is_absent())
        return;
    data_write("a", "tap pat tap jog\nemu tap\njog jog pat emu tap\n");
    struct data_open o = data_open_train("type: lines, train: {file: a}, batch_size: 2, batching: {max_length: 5, "
                                         "on_overflow: split}, tokenizer: {type: "
                                         "sentencepiece, vocab_size: 16, method: bpe, specials: [unk, bos, eos]}",
                                         MODEL_PAIRS, PAIRS);
    int64_t record = 0, blanks = 0;
    for (int k = 0; k < 3; k++) {
        const int64_t first = record;
        for (const char *at = lines[k]; *at; record++) {
            size_t bytes, target_bytes;
            const char *text = sl_dataset_find_text(o.train, record, &bytes);
            const char *target = sl_dataset_find_target_text(o.train, record, &target_bytes);
            assert_true(bytes > 0 && bytes == target_bytes && memcmp(text, target, bytes) == 0);
            at += *at == ' ';
            if (strncmp(at, text, bytes) != 0)
                fail_msg("record %d: \"%.*s\", expected the begin of \"%s\"", (int)record, (int)bytes, text, at);
            blanks += memchr(text, ' ', bytes) != NULL;
            at += bytes;
        }
        assert_true(record > first + (k != 1)); /* of four and five words */
    }
    assert_true(blanks > 0);
    assert_int_equal(sl_dataset_get_records(o.train), record);
    data_close(&o);
}

/* One model that is learned from both sides cuts both, of the training data and of an input. */
static void test_both_sides_share_a_model(void **state)
{
    (void)state;
    if (is_absent())
        return;
    data_write("a", "tap pat tap\njog jog\n");
    data_write("b", "emu emu tap\ntap jog\n");
    struct data_open o =
        data_open_train("type: lines, train: {source: a, target: b}, batch_size: 2, tokenizer: {type: sentencepiece, "
                        "vocab_size: 16, method: bpe, shared: true}",
                        MODEL_PAIRS, PAIRS);
    assert_ptr_equal(sl_data_state_find_source_vocabulary(o.state), sl_data_state_find_vocabulary(o.state));
    struct sl_input_request request = {.data = "tap pat tap\njog jog\n", .data_bytes = 20};
    struct sl_dataset *input = NULL;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, NULL), SEQLSTM_OK);
    const struct sl_dataset *both[] = {o.train, input};
    struct sl_batch *batch[2];
    for (int k = 0; k < 2; k++) {
        assert_int_equal(sl_dataset_get_counts(both[k])->unknown_tokens, 0);
        struct sl_batcher *batcher = data_batcher(both[k], SL_BATCHING_PREDICT, 1, 0, 0);
        batch[k] = data_next(batcher);
        sl_batcher_close(batcher);
    }
    const int64_t rows = batch[0]->source.axis.rows;
    assert_int_equal(rows, batch[1]->source.axis.rows);
    assert_memory_equal(batch[0]->source.input.ids, batch[1]->source.input.ids, (size_t)rows * 4);
    for (int k = 0; k < 2; k++)
        sl_batch_destroy(batch[k]);
    sl_dataset_close(input);
    data_close(&o);
}

static void test_what_is_no_model(void **state)
{
    (void)state;
    if (is_absent())
        return;
    struct sl_pieces *pieces = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char expected[400], path[160];
    assert_int_equal(sl_pieces_open("no model", 8, &pieces, &err), SEQLSTM_CORRUPT_DATA);
    assert_memory_equal(err.message, "sentencepiece: ", strlen("sentencepiece: "));
    data_write("x.model", "no model");
    snprintf(path, sizeof path, "%s/x.model", data_folder);
    assert_int_equal(sl_pieces_load(path, &pieces, &err), SEQLSTM_CORRUPT_DATA);
    snprintf(expected, sizeof expected, "%s: no model of sentencepiece: sentencepiece: ", path);
    assert_memory_equal(err.message, expected, strlen(expected));
    for (int n = 1;; n++) {
        oom_fail_at(n);
        const seqlstm_status status = sl_pieces_load(path, &pieces, &err);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_null(strstr(err.message, "no model"));
    }
    for (int n = 1;; n++) { /* nor is the text at fault */
        oom_fail_at(n);
        const seqlstm_status status = learn(SIZE, SL_PIECES_BPE, &pieces, &err);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_null(strstr(err.message, "cannot be learned"));
    }
    sl_pieces_close(pieces);
    pieces = NULL;
    assert_int_equal(learn(2, SL_PIECES_BPE, &pieces, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "`vocab_size: 2` has no room for pieces beside the specials");
    assert_int_equal(learn(500, SL_PIECES_BPE, &pieces, &err), SEQLSTM_CORRUPT_DATA);
    static const char many[] = "some.txt: `vocab_size: 500` cannot be learned from the training split: sentencepiece: ";
    assert_memory_equal(err.message, many, strlen(many));
    assert_null(pieces);
}

/* Models that are closed, and those that are none, take no memory of the module, which the count of blocks misses. */
static void test_models_leave_no_memory(void **state)
{
    enum { MODELS = 12, KEPT_BYTES = 2000 * MODELS }; /* far less than a model; threads keep a little */
    size_t used[2];
    (void)state;
    if (is_absent())
        return;
    for (int round = 0; round < 2; round++) { /* the first one fills what the library keeps for later */
        for (int k = 0; k < (round ? MODELS : 2); k++) {
            struct sl_pieces *pieces = NULL, *none = NULL;
            struct sl_buf text = {0};
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            if (learn(SIZE, SL_PIECES_BPE, &pieces, &err) != SEQLSTM_OK)
                fail_msg("%s", err.message);
            assert_int_equal(sl_pieces_cut(pieces, "tap jog", 7, emit, &text, NULL), SEQLSTM_OK);
            assert_int_equal(sl_pieces_open("no model", 8, &none, &err), SEQLSTM_CORRUPT_DATA);
            assert_int_equal(learn(500, SL_PIECES_BPE, &none, &err), SEQLSTM_CORRUPT_DATA);
            sl_buf_deinit(&text);
            sl_pieces_close(pieces);
        }
        used[round] = mallinfo2().uordblks;
    }
    if (used[1] > used[0] + KEPT_BYTES)
        fail_msg("%zu bytes are left", used[1] - used[0]);
}

static int begin(void **state)
{
    char folder[4096];
    const char *build = getenv("SEQLSTM_BUILD");
    snprintf(folder, sizeof folder, "%s/modules", build ? build : "build");
    setenv("SEQLSTM_MODULE_PATH", folder, 1);
    return data_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_lines_are_learned_from),
        cmocka_unit_test(test_texts_are_cut),
        cmocka_unit_test(test_long_lines_are_learned_from),
        cmocka_unit_test(test_pieces_are_counted),
        cmocka_unit_test(test_pieces_in_a_state),
        cmocka_unit_test(test_what_is_no_model),
        cmocka_unit_test(test_files_of_both_sides),
        cmocka_unit_test(test_both_sides_share_a_model),
        cmocka_unit_test(test_parts_of_a_text),
        cmocka_unit_test(test_models_leave_no_memory),
        cmocka_unit_test(test_states_of_both_sides),
    };
    return cmocka_run_group_tests(tests, begin, data_teardown);
}

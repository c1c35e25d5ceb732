/* SPDX-License-Identifier: Apache-2.0 */
/* The learned state: what JSON gives back, encoding and decoding, states that are broken, fingerprints. */
#include "data_fixture.h"
#include "golden.h"

#include "base/value/hash.h"
#include "data/dataset/fingerprint.h"

#define LM "task: language_model"

/* Writes, reads, writes again: equal bytes; and the read one works in place of the learned one. */
static struct sl_data_state *reread(const struct sl_data_state *state)
{
    struct sl_buf first = {0}, second = {0};
    struct sl_data_state *copy = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_data_state_write(state, &first, NULL), SEQLSTM_OK);
    if (sl_data_state_read("data.json", sl_buf_text(&first), first.length_bytes, &copy, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sl_data_state_write(copy, &second, NULL), SEQLSTM_OK);
    assert_string_equal(sl_buf_text(&first), sl_buf_text(&second));
    assert_int_equal(first.data[first.length_bytes - 1], '\n');
    sl_buf_deinit(&first);
    sl_buf_deinit(&second);
    return copy;
}

static void test_text_state(void **state)
{
    (void)state;
    data_write("train.txt", "0 the \xC3\xA9t\xC3\xA9 \"x\\y\"\n1 the end\n");
    struct data_open o = data_open_train("type: lines, train: {file: train.txt}, label: first, batch_size: 2, "
                                         "tokenizer: {type: whitespace, specials: [unk, bos, eos], lowercase: true}",
                                         MODEL_CLASSIFY, "task: classify");
    struct sl_data_state *copy = reread(o.state);
    const struct sl_vocabulary *v = sl_data_state_find_vocabulary(copy);
    assert_int_equal(sl_vocabulary_get_size(v), 7);
    assert_int_equal(sl_vocabulary_get_special(v, SL_SPECIAL_EOS), 2);
    assert_int_equal(sl_vocabulary_get_count(v, 3), 2);
    assert_true(sl_vocabulary_find(v, "\"x\\y\"", 5) > 0);
    assert_string_equal(sl_vocabulary_get_text(sl_data_state_find_classes(copy), 1, NULL), "1");
    struct sl_dataset *again;
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_TRAIN, copy, &again, NULL), SEQLSTM_OK);
    struct sl_batcher *a = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
    struct sl_batcher *b = data_batcher(again, SL_BATCHING_TRAIN, 1, 0, 0);
    struct sl_batch *x = data_next(a), *y = data_next(b);
    assert_memory_equal(x->input.ids, y->input.ids, (size_t)x->axis.rows * 4);
    assert_memory_equal(x->target.ids, y->target.ids, 8);
    sl_batch_destroy(x);
    sl_batch_destroy(y);
    sl_batcher_close(a);
    sl_batcher_close(b);
    sl_dataset_close(again);

    int32_t *ids;
    int64_t count;
    struct sl_buf text = {0};
    assert_int_equal(sl_data_state_encode(copy, "THE zebra end", 13, true, &ids, &count, NULL), SEQLSTM_OK);
    assert_int_equal(count, 5);
    assert_true(ids[0] == 1 && ids[1] == 3 && ids[2] == 0 && ids[4] == 2);
    sl_data_state_decode(copy, ids, count, &text);
    assert_string_equal(sl_buf_text(&text), "the <unk> end\n");
    free(ids);
    assert_int_equal(sl_data_state_encode(copy, "", 0, false, &ids, &count, NULL), SEQLSTM_OK);
    assert_int_equal(count, 1);
    free(ids);
    assert_int_equal(sl_data_state_encode(copy, "\xFF", 1, false, &ids, &count, NULL), SEQLSTM_CORRUPT_DATA);
    sl_buf_deinit(&text);
    sl_data_state_destroy(copy);
    data_close(&o);
}

static void test_characters(void **state)
{
    (void)state;
    data_write("train.txt", "ab ba\n");
    struct data_open o = data_open_train("type: text, train: {file: train.txt}, batch_size: 1, "
                                         "tokenizer: {type: char, specials: []}, batching: {unit: stream}",
                                         MODEL_LM, LM);
    int32_t *ids;
    int64_t count;
    struct sl_buf text = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_data_state_encode(o.state, "b a\n", 4, false, &ids, &count, NULL), SEQLSTM_OK);
    sl_data_state_decode(o.state, ids, count, &text);
    assert_string_equal(sl_buf_text(&text), "b a\n");
    free(ids);
    assert_int_equal(sl_data_state_encode(o.state, "bz", 2, false, &ids, &count, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "\"z\" is not in the vocabulary"));
    assert_ptr_equal(sl_data_state_find_classes(o.state), sl_data_state_find_vocabulary(o.state));
    sl_buf_deinit(&text);
    sl_data_state_destroy(reread(o.state));
    data_close(&o);
}

/* What the two sides do not share comes back on its own side. */
static void test_sides_of_a_state(void **state)
{
    (void)state;
    static const char *const sides[] = {"whitespace, lowercase: true", "whitespace", "char", "word, lowercase: true"};
    data_write("a.txt", "Tap pat\nJog, log\n");
    data_write("b.txt", "EMU tap emu\npat jog log\n");
    for (size_t t = 0; t < 4; t++)
        for (size_t s = 0; s < 4; s++) {
            char data[300];
            snprintf(data, sizeof data,
                     "type: lines, train: {source: a.txt, target: b.txt}, batch_size: 2, tokenizer: {type: %s}, "
                     "source_tokenizer: {type: %s}",
                     sides[t], sides[s]);
            struct data_open o = data_open_train(data, MODEL_PAIRS, PAIRS);
            struct sl_data_state *copy = reread(o.state);
            struct sl_input_request request = {.data = "Jog, TAP\n", .data_bytes = 9};
            const struct sl_data_state *both[2] = {o.state, copy};
            struct sl_batch *batch[2];
            for (int k = 0; k < 2; k++) {
                struct sl_dataset *input = NULL;
                assert_int_equal(sl_dataset_open_input(o.model, both[k], &request, &input, NULL), SEQLSTM_OK);
                struct sl_batcher *batcher = data_batcher(input, SL_BATCHING_PREDICT, 1, 0, 0);
                batch[k] = data_next(batcher);
                sl_batcher_close(batcher);
                sl_dataset_close(input);
            }
            assert_int_equal(batch[0]->source.axis.rows, batch[1]->source.axis.rows);
            assert_memory_equal(batch[0]->source.input.ids, batch[1]->source.input.ids,
                                (size_t)batch[0]->source.axis.rows * 4);
            for (int k = 0; k < 2; k++)
                sl_batch_destroy(batch[k]);
            sl_data_state_destroy(copy);
            data_close(&o);
        }
}

/* Doubles come back with the same bits. */
static void test_scaled_state(void **state)
{
    (void)state;
    data_write("train.csv", "a,b,c\n0.1,1e30,7\n0.3,,3\n,-1e-30,2\n");
    struct data_open o = data_open_train(
        "type: csv, train: {file: train.csv}, inputs: [a, b], targets: [c], scale: {type: standard}, missing: mean",
        MODEL_DENSE, "loss: mse");
    struct sl_data_state *copy = reread(o.state);
    const struct sl_scaling *a = sl_data_state_find_input_scaling(o.state), *b = sl_data_state_find_input_scaling(copy);
    assert_memory_equal(a->offset, b->offset, 16);
    assert_memory_equal(a->factor, b->factor, 16);
    assert_string_equal(sl_data_state_get_input_names(copy).items[1], "b");
    assert_string_equal(sl_data_state_get_target_names(copy).items[0], "c");
    float x[2] = {0.5f, -2}, y[2] = {0.5f, -2};
    sl_data_state_undo_targets(o.state, x, 2);
    sl_data_state_undo_targets(copy, y, 2);
    assert_memory_equal(x, y, sizeof x);
    assert_true(x[0] > 4 && x[1] < 0);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t *ids;
    int64_t count;
    assert_int_equal(sl_data_state_encode(copy, "a", 1, true, &ids, &count, &err), SEQLSTM_INVALID_ARGUMENT);
    /* Columns are found by name, whatever else the input has; a missing value is filled as in train. */
    struct sl_input_request request = {.data = "z,b,a\n9,1e30,\n", .data_bytes = 14};
    struct sl_dataset *input;
    assert_int_equal(sl_dataset_open_input(o.model, copy, &request, &input, NULL), SEQLSTM_OK);
    struct sl_batcher *batcher = data_batcher(input, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_true(batch->input.values[0] == 0 && batch->input.values[1] > 0);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_dataset_close(input);
    request = (struct sl_input_request){.data = "a,z\n1,2\n", .data_bytes = 8, .name = "upload"};
    assert_int_equal(sl_dataset_open_input(o.model, copy, &request, &input, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "upload:1: there is no column `b`"));
    sl_data_state_destroy(copy);
    data_close(&o);
}

/* Truncated anywhere, or with one byte changed, a state is refused or whole: never a crash. */
static void test_broken_states(void **state)
{
    (void)state;
    struct sl_buf text = {0};
    struct sl_data_state *read = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    data_write("train.csv", "a,b\n1,x\n2,y\n");
    struct data_open o =
        data_open_train("type: csv, train: {file: train.csv}, inputs: [a], label: b, scale: {type: minmax}",
                        "[{type: dense, units: 3}, {type: output, activation: softmax}]", "loss: cross_entropy");
    assert_int_equal(sl_data_state_write(o.state, &text, NULL), SEQLSTM_OK);
    for (size_t cut = 0; cut + 2 < text.length_bytes; cut++)
        assert_int_equal(sl_data_state_read("s", text.data, cut, &read, &err), SEQLSTM_CORRUPT_DATA);
    for (size_t at = 0; at < text.length_bytes; at++) {
        char was = text.data[at];
        text.data[at] = was == '1' ? '7' : was == ':' ? ',' : was == '"' ? ' ' : (char)(was ^ 1);
        if (sl_data_state_read("s", text.data, text.length_bytes, &read, &err) == SEQLSTM_OK)
            sl_data_state_destroy(read);
        text.data[at] = was;
    }
    static const char other[] = "{\"schema\": \"seqlstm.data/2\"}";
    assert_int_equal(sl_data_state_read("run/data.json", other, strlen(other), &read, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message,
                           "run/data.json: the schema is \"seqlstm.data/2\", expected \"seqlstm.data/1\"; use the "
                           "version of seqlstm that wrote it"));
    static const char bare[] = "{\"schema\": \"seqlstm.data/1\"}";
    assert_int_equal(sl_data_state_read("s", bare, strlen(bare), &read, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "\"source\" is missing"));
    sl_buf_deinit(&text);
    data_close(&o);
}

/* Writes `text` with another value of a key, which `path` leads to: "facts/input/kind". */
static void replace_value(const char *text, const char *path, const char *value, struct sl_buf *out)
{
    const char *at = text;
    while (*path) {
        char key[64];
        const int bytes = (int)strcspn(path, "/");
        snprintf(key, sizeof key, "\"%.*s\":", bytes, path);
        at = strstr(at, key);
        if (at == NULL)
            fail_msg("the state has no %s", key);
        at += strlen(key);
        path += path[bytes] ? bytes + 1 : bytes;
    }
    const char *end = at;
    for (int depth = 0; depth > 0 || !strchr(",}]", *end); end++)
        depth += (*end == '[' || *end == '{') - (*end == ']' || *end == '}');
    sl_buf_printf(out, "%.*s%s%s", (int)(at - text), text, value, end);
}

struct change {
    const char *path, *value;
};

/* The state is accepted as it is, and refused with any one of the changes. What is said is added to `said`. */
static void check_changes(struct data_open *o, const struct change *changes, size_t count, struct sl_buf *said)
{
    struct sl_buf text = {0};
    assert_int_equal(sl_data_state_write(o->state, &text, NULL), SEQLSTM_OK);
    for (size_t c = 0; c <= count; c++) {
        struct sl_buf changed = {0};
        struct sl_data_state *read = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (c < count)
            replace_value(sl_buf_text(&text), changes[c].path, changes[c].value, &changed);
        else
            sl_buf_append_text(&changed, sl_buf_text(&text));
        seqlstm_status status = sl_data_state_read("s", sl_buf_text(&changed), changed.length_bytes, &read, &err);
        if (status == SEQLSTM_OK) {
            status = sl_data_state_check(read, o->model, "s", &err);
            sl_data_state_destroy(read);
        }
        if (status != (c < count ? SEQLSTM_CORRUPT_DATA : SEQLSTM_OK))
            fail_msg("%s = %s: %s", c < count ? changes[c].path : "nothing", c < count ? changes[c].value : "",
                     err.message);
        if (c < count)
            sl_buf_printf(said, "%s = %s: %s\n", changes[c].path, changes[c].value, err.message);
        sl_buf_deinit(&changed);
    }
    sl_buf_deinit(&text);
    data_close(o);
}

/* What a state says must fit the model and itself: no later reader checks it again. */
static void test_changed_states(void **state)
{
    (void)state;
    struct sl_buf said = {0};
    static const struct change table[] = {
        {"source", "0"},
        {"tokenizer", "1"},
        {"lowercase", "true"},
        {"form", "0"},
        {"form", "1"},
        {"form", "5"},
        {"ahead", "3"},
        {"facts/input/kind", "0"},
        {"facts/input/kind", "1"},
        {"facts/input/on_steps", "true"},
        {"facts/input/features", "1"},
        {"facts/input/features", "0"},
        {"facts/input/classes", "4"},
        {"facts/target/kind", "0"},
        {"facts/target/kind", "1"},
        {"facts/target/on_steps", "true"},
        {"facts/target/features", "2"},
        {"facts/target/classes", "2"},
        {"facts/records", "0"},
        {"scale", "0"},
        {"input_columns", "0"},
        {"target_columns", "0"},
        {"target_columns", "2"},
        {"input_offset", "null"},
        {"input_factor", "null"},
        {"input_factor", "[1.0,0.0]"},
        {"input_factor", "[-1.0,1.0]"},
        {"input_factor", "[1.0,\"1\"]"},
        {"input_names", "[\"a\",1]"},
        {"input_names", "[\"a\"]"},
        {"target_offset", "null"},
        {"target_factor", "[0.0]"},
        {"target_factor", "[-2.0]"},
        {"ignore_id", "0"},
        {"ignore", "\"x\""},
        {"classes_are_tokens", "true"},
        {"binary_values", "true"},
        {"classes", "{\"texts\": [\"x\"], \"counts\": [1]}"},
    };
    data_write("train.csv", "a,b,c\n0.1,1e30,7\n0.3,,3\n,-1e-30,2\n");
    struct data_open o = data_open_train(
        "type: csv, train: {file: train.csv}, inputs: [a, b], targets: [c], scale: {type: standard}, missing: mean",
        MODEL_DENSE, "loss: mse");
    check_changes(&o, table, sizeof table / sizeof *table, &said);
    static const struct change text[] = {
        {"source", "0"},
        {"tokenizer", "0"},
        {"lowercase", "false"},
        {"form", "4"},
        {"facts/input/kind", "2"},
        {"facts/input/features", "2"},
        {"facts/input/classes", "7"},
        {"facts/input/on_steps", "false"},
        {"facts/target/classes", "3"},
        {"facts/target/features", "2"},
        {"ignore_id", "0"},
        {"tokens", "null"},
        {"tokens/counts", "[0,2,2,2,1,-1]"},
        {"tokens/counts", "[0,2,2,2,1,\"1\"]"},
        {"tokens/texts", "[\"<unk>\",\"<bos>\",\"<eos>\",\"the\",\"end\",7]"},
        {"tokens/texts", "[\"<unk>\",\"<eos>\",\"<bos>\",\"the\",\"end\",\"x\"]"},
        {"tokens/texts", "[\"<UNK>\",\"<bos>\",\"<eos>\",\"the\",\"end\",\"x\"]"},
        {"tokens/texts", "[\"<unk>\",\"bos\",\"<eos>\",\"the\",\"end\",\"x\"]"},
        {"tokens/texts", "[\"<unk>\",\"<bos>\",\"</s>\",\"the\",\"end\",\"x\"]"},
        {"tokens/texts", "[\"\",\"<bos>\",\"<eos>\",\"the\",\"end\",\"x\"]"},
        {"tokens/texts", "[\"<unk>\",\"<bos>\",\"<eos>\",\"the\",\"end\",\"\"]"},
        {"tokens/specials", "{\"unk\":0,\"bos\":1}"},
        {"tokens/specials", "{\"unk\":0,\"bos\":1,\"eos\":2,\"pad\":3}"},
        {"tokens/specials", "{\"unk\":0,\"bos\":1,\"eos\":6}"}, /* as many as there are texts */
        {"classes", "null"},
        {"classes_are_tokens", "true"},
        {"binary_values", "true"},
        {"input_columns", "2"},
        {"input_fill", "[1.0]"},
        {"target_fill", "[1.0]"},
        {"target_fill", "null,\"target_naive\":[1.0]"},
    };
    data_write("train.txt", "0 the \xC3\xA9t\xC3\xA9\n1 the end\n");
    o = data_open_train("type: lines, train: {file: train.txt}, label: first, batch_size: 2, "
                        "tokenizer: {type: whitespace, specials: [unk, bos, eos], lowercase: true}",
                        MODEL_CLASSIFY, "task: classify");
    check_changes(&o, text, sizeof text / sizeof *text, &said);
    static const struct change language[] = {
        {"facts/target/classes", "2"},   {"facts/target/on_steps", "false"},
        {"classes_are_tokens", "false"}, {"form", "2"},
        {"facts/target/kind", "2"},
    };
    data_write("train.txt", "ab ba\n");
    o = data_open_train("type: text, train: {file: train.txt}, batch_size: 1, "
                        "tokenizer: {type: char, specials: []}, batching: {unit: stream}",
                        MODEL_LM, LM);
    check_changes(&o, language, sizeof language / sizeof *language, &said);
    static const struct change numbers[] = {{"ignore_id", "4"}, {"ignore", "\"1\""}, {"ignore", "null"}};
    data_write("train.txt", "1 2\n3 0 1\n");
    o = data_open_train("type: tokens, train: {file: train.txt}, batch_size: 1", MODEL_LM,
                        LM ", loss: {type: cross_entropy, ignore: 0}");
    check_changes(&o, numbers, sizeof numbers / sizeof *numbers, &said);
    static const struct change tags[] = {{"ignore_id", "1"}, {"ignore_id", "2"}, {"ignore", "\"A\""}};
    data_write("train.txt", "a\tA\nb\tO\nc\tB\n");
    o = data_open_train("type: conll, train: {file: train.txt}, label: 2, batch_size: 1", MODEL_TAG,
                        "task: tag, loss: {type: cross_entropy, ignore: O}");
    check_changes(&o, tags, sizeof tags / sizeof *tags, &said);
    static const struct change pairs[] = {
        {"facts/source/classes", "9"},      {"facts/source/features", "2"}, {"facts/source/kind", "2"},
        {"facts/source/on_steps", "false"}, {"source_tokens", "null"},      {"source_tokenizer", "0"},
        {"source_lowercase", "true"},
    };
    data_write("train.txt", "a b\tx y z\nb\tx\n");
    o = data_open_train(
        "type: lines, train: {file: train.txt}, batch_size: 1, tokenizer: {type: whitespace, shared: false}",
        MODEL_PAIRS, PAIRS);
    check_changes(&o, pairs, sizeof pairs / sizeof *pairs, &said);
    golden_expect("dumps/changed_states.txt", "facts", sl_buf_text(&said));
    sl_buf_deinit(&said);
}

/* A class label under binary cross-entropy is the values 0 and 1 with two names. */
static void test_binary_label(void **state)
{
    (void)state;
    data_write("train.csv", "a,b\n1,yes\n2,no\n");
#define MODEL_BINARY "[{type: dense, units: 3}, {type: output, activation: sigmoid}]"
#define BINARY       "type: csv, train: {file: train.csv}, inputs: [a], label: b, batch_size: 2"
    struct data_open o = data_open_train(BINARY, MODEL_BINARY, "loss: binary_cross_entropy");
    const struct sl_data_facts *facts = sl_data_state_get_facts(o.state);
    assert_true(facts->target.kind == SL_FIELD_VALUES && facts->target.features == 1);
    assert_string_equal(sl_vocabulary_get_text(sl_data_state_find_classes(o.state), 0, NULL), "no");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_true(batch->target.values[0] == 1 && batch->target.values[1] == 0);
    for (int k = 0; k < 2; k++) /* both count */
        assert_true(batch->weight.kind == SL_FIELD_NONE || batch->weight.values[k] == 1);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_data_state_destroy(reread(o.state));
    data_close(&o);
    /* nor does a label that is missing take others with it */
    data_write("train.csv", "a,b\n1,yes\n2,no\n3,\n");
    o = data_open_train(BINARY ", missing: {targets: ignore}", MODEL_BINARY, "loss: binary_cross_entropy");
    batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 3, 0);
    batch = data_next(batcher);
    assert_int_equal(batch->weight.kind, SL_FIELD_VALUES);
    assert_true(batch->weight.values[0] == 1 && batch->weight.values[1] == 1 && batch->weight.values[2] == 0);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
    data_write("train.csv", "a,b\n1,yes\n2,no\n3,maybe\n");
    data_expect_failure(BINARY, MODEL_BINARY, "loss: binary_cross_entropy", SEQLSTM_INVALID_CONFIG,
                        "two classes, but the label has 3");
    /* there is no value for a third label of another split */
    struct sl_dataset *valid = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    data_write("train.csv", "a,b\n1,yes\n2,no\n");
    data_write("valid.csv", "a,b\n1,no\n2,yes\n3,maybe\n4,never\n");
    o = data_open_train(BINARY ", valid: {file: valid.csv}", MODEL_BINARY, "loss: binary_cross_entropy");
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "valid.csv:4: the label \"maybe\" does not occur in the training split"));
    data_close(&o);
}

/* Ids of a model without a vocabulary are their own text. */
static void test_text_of_ids(void **state)
{
    (void)state;
    static const int32_t ids[] = {3, 0, 12};
    struct sl_buf text = {0};
    data_write("train.txt", "1 2\n3 0 1\n");
    struct data_open o = data_open_train("type: tokens, train: {file: train.txt}, batch_size: 1", MODEL_LM, LM);
    sl_data_state_decode(o.state, ids, 3, &text);
    assert_string_equal(sl_buf_text(&text), "3 0 12");
    sl_buf_truncate(&text, 0);
    sl_data_state_decode(o.state, ids, 0, &text);
    assert_int_equal(text.length_bytes, 0);
    sl_buf_deinit(&text);
    data_close(&o);
}

static void test_fingerprints(void **state)
{
    (void)state;
    char path[160];
    struct sl_fingerprint a, b;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    data_write("f", "123456789");
    snprintf(path, sizeof path, "%s/f", data_folder);
    assert_int_equal(sl_fingerprint_compute(path, &a, NULL), SEQLSTM_OK);
    assert_int_equal(sl_fingerprint_peek(path, &b, NULL), SEQLSTM_OK);
    assert_true(b.size_bytes == 9 && b.mtime_ns == a.mtime_ns);
    assert_true(a.size_bytes == 9 && a.crc64 == UINT64_C(0x995DC9BBDF1939FA) && a.mtime_ns > 0);
    data_write("f", "123456780");
    assert_int_equal(sl_fingerprint_compute(path, &b, NULL), SEQLSTM_OK);
    assert_true(b.size_bytes == 9 && b.crc64 != a.crc64);
    enum { LARGE = (2 << 20) + 5 }; /* read in several goes, the last a short one */
    char *large = malloc(LARGE);
    for (int k = 0; k < LARGE; k++)
        large[k] = (char)(k >> 8 ^ k);
    data_write_bytes("f", large, LARGE);
    assert_int_equal(sl_fingerprint_compute(path, &b, NULL), SEQLSTM_OK);
    assert_true(b.size_bytes == LARGE && b.crc64 == sl_crc64(0, large, LARGE));
    free(large);
    assert_int_equal(sl_fingerprint_compute("/nonexistent/x", &a, &err), SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent/x"));
    assert_int_equal(sl_fingerprint_peek("/nonexistent/y", &a, &err), SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(err.message, "cannot examine `/nonexistent/y`: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_state),       cmocka_unit_test(test_characters),
        cmocka_unit_test(test_sides_of_a_state), cmocka_unit_test(test_scaled_state),
        cmocka_unit_test(test_broken_states),    cmocka_unit_test(test_changed_states),
        cmocka_unit_test(test_binary_label),     cmocka_unit_test(test_fingerprints),
        cmocka_unit_test(test_text_of_ids),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

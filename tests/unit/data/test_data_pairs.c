/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs for an encoder and a decoder: files, tables, generators; both sides of their batches; no padding. */
#include "data_pairs_fixture.h"

#include "data/batch/prefetch.h"
#include "data/batch/stats.h"

static void test_parallel_files(void **state)
{
    (void)state;
    data_write("train.de", "ein Hund\n\ndrei kleine Katzen\nein\n");
    data_write("train.en", "a dog\nnothing\nthree small cats\n\n");
    struct data_open o =
        data_open_train("type: lines, train: {source: train.de, target: train.en}, batch_size: 2", MODEL_PAIRS, PAIRS);
    const char *const expected[] = {
        "ein Hund |<bos> a dog |a dog <eos> ",
        "|<bos> nothing |nothing <eos> ",
        "drei kleine Katzen |<bos> three small cats |three small cats <eos> ",
        "ein |<bos> |<eos> ",
    };
    expect_records(o.state, o.train, expected, 4);
    const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
    assert_int_equal(facts->source.classes, 1 + 5); /* <unk> and the words */
    assert_int_equal(facts->input.classes, 3 + 6);  /* <unk> <bos> <eos> and the words */
    assert_int_equal(facts->target.classes, 9);
    assert_true(facts->source.on_steps && facts->target.on_steps);
    assert_int_equal(facts->rows, 3 + 2 + 4 + 1);
    assert_int_equal(facts->source_rows, 2 + 0 + 3 + 1);
    assert_true(facts->longest == 4 && facts->source_longest == 3);
    size_t bytes;
    const char *text = sl_dataset_find_text(o.train, 2, &bytes);
    assert_int_equal(bytes, 18);
    assert_memory_equal(text, "drei kleine Katzen", bytes);
    text = sl_dataset_find_target_text(o.train, 2, &bytes);
    assert_memory_equal(text, "three small cats", bytes);
    assert_int_equal(sl_dataset_get_files(o.train).count, 2);
    assert_int_equal(sl_dataset_get_source_length(o.train, 2), 3);
    data_close(&o);

    data_write("short.en", "a dog\n");
    data_expect_failure("type: lines, train: {source: train.de, target: short.en}, batch_size: 2", MODEL_PAIRS, PAIRS,
                        SEQLSTM_CORRUPT_DATA, "train.de has 4 lines, but ");
    data_expect_failure("type: lines, train: {source: train.de, target: short.en}, batch_size: 2", MODEL_PAIRS, PAIRS,
                        SEQLSTM_CORRUPT_DATA, "short.en has 1:");
}

/* valid knows the words of train alone; a split of train cuts both sides. */
static void test_other_splits(void **state)
{
    (void)state;
    data_write("a", "x y\nx\ny y\nx x\n");
    data_write("b", "1 2\n1\n2 2\n1 1\n");
    data_write("va", "x z\n");
    data_write("vb", "1 3\n");
    struct data_open o = data_open_train(
        "type: lines, train: {source: a, target: b}, valid: {source: va, target: vb}, test: {split: 0.5}, "
        "batch_size: 9",
        MODEL_PAIRS, PAIRS);
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID), *test = data_open_split(&o, SL_SPLIT_TEST);
    const char *const train_expected[] = {"x y |<bos> 1 2 |1 2 <eos> ", "x |<bos> 1 |1 <eos> "};
    const char *const valid_expected[] = {"x <unk> |<bos> 1 <unk> |1 <unk> <eos> "};
    const char *const test_expected[] = {"y y |<bos> 2 2 |2 2 <eos> ", "x x |<bos> 1 1 |1 1 <eos> "};
    expect_records(o.state, o.train, train_expected, 2);
    expect_records(o.state, valid, valid_expected, 1);
    expect_records(o.state, test, test_expected, 2);
    assert_int_equal(sl_dataset_get_counts(valid)->unknown_tokens, 2);
    sl_dataset_close(valid);
    sl_dataset_close(test);
    data_close(&o);
}

static void test_vocabularies(void **state)
{
    (void)state;
    data_write("a", "A b a\n");
    data_write("b", "b c\n");
    const char *const shared[] = {"A b a |<bos> b c |b c <eos> "};
    struct data_open o = data_open_train(
        "type: lines, train: {source: a, target: b}, tokenizer: {type: whitespace, shared: true}, batch_size: 1",
        MODEL_PAIRS, PAIRS);
    assert_ptr_equal(sl_data_state_find_source_vocabulary(o.state), sl_data_state_find_vocabulary(o.state));
    assert_int_equal(sl_dataset_get_facts(o.train)->source.classes, 3 + 4);
    assert_int_equal(sl_vocabulary_get_count(sl_data_state_find_vocabulary(o.state), 3), 2); /* b, of both */
    assert_string_equal(data_token(o.state, 3), "b");
    expect_records(o.state, o.train, shared, 1);
    data_close(&o);

    const char *const apart[] = {"a   b   a <eos> |<bos> b c |b c <eos> "};
    o = data_open_train("type: lines, train: {source: a, target: b}, tokenizer: whitespace, batch_size: 1, "
                        "source_tokenizer: {type: char, lowercase: true, specials: [eos]}",
                        MODEL_PAIRS, PAIRS);
    expect_records(o.state, o.train, apart, 1);
    data_close(&o);
}

static void test_tables(void **state)
{
    (void)state;
    data_write("train.tsv", "de\tnote\ten\nja\t-\tyes\n\t-\tno\n");
    const char *const expected[] = {"ja |<bos> yes |yes <eos> ", "|<bos> no |no <eos> "};
    struct data_open o = data_open_train("type: tsv, train: {file: train.tsv}, source: de, target: en, batch_size: 2",
                                         MODEL_PAIRS, PAIRS);
    expect_records(o.state, o.train, expected, 2);
    size_t bytes;
    assert_memory_equal(sl_dataset_find_text(o.train, 0, &bytes), "ja", 2);
    assert_memory_equal(sl_dataset_find_target_text(o.train, 1, &bytes), "no", 2);
    struct sl_dataset *input = NULL;
    const struct sl_input_request request = {.data = "de\nja\n", .data_bytes = 6};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_dataset_open_input(o.model, o.state, &request, &input, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const char *const asked[] = {"ja ||"};
    expect_records(o.state, input, asked, 1);
    sl_dataset_close(input);
    data_close(&o);
}

/* A model that rebuilds its input: one text is source and target. */
static void test_same_text(void **state)
{
    (void)state;
    data_write("a.txt", "x y\n\nz\n");
    data_write("a.csv", "n,t\n1,x y\n2,\"\"\n3,z\n");
    const char *const expected[] = {"x y |<bos> x y |x y <eos> ", "|<bos> |<eos> ", "z |<bos> z |z <eos> "};
    const char *const sources[] = {"type: lines, train: {file: a.txt}", "type: csv, text: t, train: {file: a.csv}",
                                   "type: text, train: {file: a.txt}"};
    for (int i = 0; i < 3; i++) {
        struct data_open o = data_open_train(sources[i], MODEL_PAIRS, PAIRS);
        const char *const without_blank[] = {expected[0], expected[2]};
        expect_records(o.state, o.train, i == 2 ? without_blank : expected, i == 2 ? 2 : 3);
        assert_ptr_equal(sl_data_state_find_source_vocabulary(o.state), sl_data_state_find_vocabulary(o.state));
        data_close(&o);
    }
}

/* Sources alone, longest first; the batch tells where each one came from. */
static void test_predict(void **state)
{
    (void)state;
    data_write("a", "x y\nx\n");
    data_write("b", "1 2\n1\n");
    struct data_open o =
        data_open_train("type: lines, train: {source: a, target: b}, batch_size: 3", MODEL_PAIRS, PAIRS);
    struct sl_dataset *input = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const char *lines = "x\n\ny y x\nx y\n";
    const struct sl_input_request request = {.data = lines, .data_bytes = strlen(lines)};
    if (sl_dataset_open_input(o.model, o.state, &request, &input, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const char *const expected[] = {"x ||", "||", "y y x ||", "x y ||"};
    expect_records(o.state, input, expected, 4);
    struct sl_batcher *batcher = data_batcher(input, SL_BATCHING_PREDICT, 1, 3, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_false(batch->has_steps);
    assert_int_equal(batch->input.kind, SL_FIELD_NONE);
    assert_int_equal(batch->target.kind, SL_FIELD_NONE);
    assert_int_equal(batch->source.axis.rows, 4);
    assert_int_equal(batch->sample[0], 2);
    const struct sl_envelope e = sl_batcher_envelope(batcher);
    assert_true(e.sequences == 3 && e.rows == 0 && e.source_steps == 3 && e.source_rows == 6);
    size_t bytes;
    assert_memory_equal(sl_dataset_find_text(input, 3, &bytes), "x y", 3);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_dataset_close(input);
    data_close(&o);
}

/* Files of random lengths, empty lines among them. Returns the steps of both sides. */
static int64_t write_random(const char *source, const char *target, int lines)
{
    struct sl_buf from = {0}, to = {0};
    uint32_t word = 99;
    int64_t rows = 0;
    for (int i = 0; i < lines; i++) {
        word = word * 1664525u + 1013904223u;
        int n = (int)(word >> 20) % 9, m = (int)(word >> 25) % 6;
        for (int t = 0; t < n; t++)
            sl_buf_printf(&from, "s%d ", t);
        for (int t = 0; t < m; t++)
            sl_buf_printf(&to, "t%d ", t);
        sl_buf_append_char(&from, '\n');
        sl_buf_append_char(&to, '\n');
        rows += n + m + 1;
    }
    data_write(source, sl_buf_text(&from));
    data_write(target, sl_buf_text(&to));
    sl_buf_deinit(&from);
    sl_buf_deinit(&to);
    return rows;
}

/* One epoch: every record once, no padded row on either side, nothing beyond the envelope. */
static void check_epoch(const struct sl_dataset *d, struct sl_batcher *batcher, int64_t most_tokens)
{
    struct sl_batch *batch;
    int64_t rows = 0, source_rows = 0;
    bool seen[500] = {false};
    const struct sl_envelope e = sl_batcher_envelope(batcher);
    while ((batch = data_next(batcher))) {
        assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_OK);
        assert_int_equal(batch->padded_rows, 0);
        rows += batch->axis.rows;
        source_rows += batch->source.axis.rows;
        assert_true(batch->axis.rows <= e.rows && batch->source.axis.rows <= e.source_rows);
        assert_true(batch->axis.steps <= e.steps && batch->source.axis.steps <= e.source_steps);
        assert_true(batch->sequences <= e.sequences);
        if (most_tokens > 0)
            assert_true(batch->axis.rows + batch->source.axis.rows <= most_tokens);
        for (int64_t k = 0; k < batch->sequences; k++) {
            int64_t record = batch->sample[k];
            assert_false(seen[record]);
            seen[record] = true;
            assert_int_equal(batch->axis.lengths[k], sl_dataset_get_length(d, record));
            assert_int_equal(batch->source.axis.lengths[batch->source.place[k]],
                             sl_dataset_get_source_length(d, record));
            if (k > 0 && batch->axis.lengths[k] == batch->axis.lengths[k - 1]) /* then by the source */
                assert_true(sl_dataset_get_source_length(d, batch->sample[k - 1]) >=
                            sl_dataset_get_source_length(d, record));
        }
        sl_batch_destroy(batch);
    }
    for (int64_t r = 0; r < sl_dataset_get_records(d); r++)
        assert_true(seen[r]);
    assert_int_equal(rows, sl_dataset_get_facts(d)->rows);
    assert_int_equal(source_rows, sl_dataset_get_facts(d)->source_rows);
}

static void test_rows_are_real_steps(void **state)
{
    (void)state;
    const int64_t rows = write_random("a", "b", 500);
    const char *const batchings[] = {"", "batching: {bucketing: off}", "batching: {bucketing: {count: 3}}",
                                     "batching: {max_tokens: 60}"};
    for (int i = 0; i < 4; i++) {
        char data[200];
        snprintf(data, sizeof data, "type: lines, train: {source: a, target: b}, %s%s", i < 3 ? "batch_size: 16, " : "",
                 batchings[i]);
        struct data_open o = data_open_train(data, MODEL_PAIRS, PAIRS);
        const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
        assert_int_equal(facts->rows + facts->source_rows, rows);
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
        for (int epoch = 0; epoch < 2; epoch++)
            check_epoch(o.train, batcher, i == 3 ? 60 : 0);
        sl_batcher_close(batcher);
        data_close(&o);
    }
}

static void expect_equal(const struct sl_batch *a, const struct sl_batch *b)
{
    assert_int_equal(a->sequences, b->sequences);
    assert_int_equal(a->source.axis.rows, b->source.axis.rows);
    assert_memory_equal(a->sample, b->sample, (size_t)a->sequences * sizeof *a->sample);
    assert_memory_equal(a->source.place, b->source.place, (size_t)a->sequences * sizeof *a->source.place);
    if (a->source.axis.rows > 0)
        assert_memory_equal(a->source.input.ids, b->source.input.ids, (size_t)a->source.axis.rows * 4);
    assert_memory_equal(a->input.ids, b->input.ids, (size_t)a->axis.rows * 4);
    assert_memory_equal(a->target.ids, b->target.ids, (size_t)a->axis.rows * 4);
}

/* From the middle of an epoch on, and read ahead, the batches are the same. */
static void test_resume_and_prefetch(void **state)
{
    (void)state;
    write_random("a", "b", 200);
    struct data_open o =
        data_open_train("type: lines, train: {source: a, target: b}, batch_size: 16", MODEL_PAIRS, PAIRS);
    struct sl_batcher *whole = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
    struct sl_batcher *later = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
    struct sl_batcher *ahead = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
    struct sl_prefetch *prefetch = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_batcher_seek(later, 1, 5, NULL), SEQLSTM_OK);
    assert_int_equal(sl_prefetch_create(ahead, 2, &prefetch, &err), SEQLSTM_OK);
    for (int i = 0; i < 25; i++) {
        struct sl_batch *a = data_next(whole), *c = NULL;
        assert_int_equal(sl_prefetch_next(prefetch, &c, &err), SEQLSTM_OK);
        assert_int_equal(a == NULL, c == NULL);
        if (a)
            expect_equal(a, c);
        if (i > 13 + 5 && a) { /* 13 batches and the end of the first epoch, then 5 of the second */
            struct sl_batch *b = data_next(later);
            expect_equal(a, b);
            sl_batch_destroy(b);
        }
        sl_batch_destroy(a);
        sl_batch_destroy(c);
    }
    sl_prefetch_destroy(prefetch);
    sl_batcher_close(whole);
    sl_batcher_close(later);
    sl_batcher_close(ahead);
    data_close(&o);
}

static void test_overflow(void **state)
{
    (void)state;
    data_write("a", "x\nx x x x\nx x\n");
    data_write("b", "1 1 1 1\n1\n1\n");
    struct data_open o = data_open_train("type: lines, train: {source: a, target: b}, batch_size: 2, batching: "
                                         "{max_length: 3, on_overflow: drop}",
                                         MODEL_PAIRS, PAIRS);
    const char *const kept[] = {"x x |<bos> 1 |1 <eos> "};
    expect_records(o.state, o.train, kept, 1);
    assert_int_equal(sl_dataset_get_counts(o.train)->dropped_records, 2);
    assert_int_equal(sl_dataset_get_counts(o.train)->dropped_rows, 6 + 6);
    data_close(&o);
    o = data_open_train("type: lines, train: {source: a, target: b}, batch_size: 2, batching: "
                        "{max_length: 3, on_overflow: truncate}",
                        MODEL_PAIRS, PAIRS);
    const char *const cut[] = {"x |<bos> 1 1 |1 1 1 ", "x x x |<bos> 1 |1 <eos> ", "x x |<bos> 1 |1 <eos> "};
    expect_records(o.state, o.train, cut, 3);
    assert_int_equal(sl_dataset_get_counts(o.train)->truncated_rows, 2 + 1);
    data_close(&o);
}

/* The saved state reads new data as the learned one does. */
static void test_saved_state(void **state)
{
    (void)state;
    data_write("a", "x y\nx\n");
    data_write("b", "1 2\n1\n");
    for (int shared = 0; shared < 2; shared++) {
        char data[200];
        snprintf(data, sizeof data,
                 "type: lines, train: {source: a, target: b}, tokenizer: {type: whitespace, shared: %s}, batch_size: 2",
                 shared ? "true" : "false");
        struct data_open o = data_open_train(data, MODEL_PAIRS, PAIRS);
        struct sl_buf first = {0}, second = {0};
        struct sl_data_state *copy = NULL;
        struct sl_dataset *again = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_data_state_write(o.state, &first, NULL), SEQLSTM_OK);
        if (sl_data_state_read("state", sl_buf_text(&first), first.length_bytes, &copy, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(sl_data_state_write(copy, &second, NULL), SEQLSTM_OK);
        assert_string_equal(sl_buf_text(&first), sl_buf_text(&second));
        const struct sl_data_facts *facts = sl_data_state_get_facts(copy);
        assert_true(facts->source.classes == (shared ? 7 : 3) && facts->source.on_steps);
        assert_true(facts->source_rows == 3 && facts->source_longest == 2);
        assert_true(facts->envelope.source_rows == 3 && facts->envelope.source_steps == 2);
        assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_TRAIN, copy, &again, &err), SEQLSTM_OK);
        const char *const expected[] = {"x y |<bos> 1 2 |1 2 <eos> ", "x |<bos> 1 |1 <eos> "};
        expect_records(copy, again, expected, 2);
        sl_dataset_close(again);
        sl_data_state_destroy(copy);
        sl_buf_deinit(&first);
        sl_buf_deinit(&second);
        data_close(&o);
    }
}

/* ---- generators ---- */

/* The numbers of record r of an addition, the smaller first. */
static void parse_sum(const struct sl_dataset *d, int64_t r, long long out[2])
{
    size_t bytes, target_bytes;
    const char *text = sl_dataset_find_text(d, r, &bytes), *target = sl_dataset_find_target_text(d, r, &target_bytes);
    char *end;
    long long a = strtoll(text, &end, 10), b;
    assert_int_equal(*end, '+');
    b = strtoll(end + 1, &end, 10);
    assert_int_equal(end - text, bytes);
    assert_int_equal(strtoll(target, &end, 10), a + b);
    assert_int_equal(end - target, target_bytes);
    assert_true(a >= 0 && a <= 99 && b >= 0 && b <= 99);
    out[0] = a < b ? a : b;
    out[1] = a < b ? b : a;
}

static void test_addition(void **state)
{
    (void)state;
    static unsigned char owner[100][100];
    struct data_open o = data_open_train("type: generator, name: addition, digits: 2, train: {size: 2000}, "
                                         "valid: {size: 300}, test: {size: 300, seed: 5}, batch_size: 32",
                                         MODEL_PAIRS, PAIRS);
    struct sl_dataset *splits[3] = {o.train, data_open_split(&o, SL_SPLIT_VALID), data_open_split(&o, SL_SPLIT_TEST)};
    memset(owner, 0, sizeof owner);
    for (int s = 0; s < 3; s++)
        for (int64_t r = 0; r < sl_dataset_get_records(splits[s]); r++) {
            long long n[2];
            parse_sum(splits[s], r, n);
            assert_int_equal(owner[n[0]][n[1]], 0); /* neither before in this split, nor in another */
            owner[n[0]][n[1]] = (unsigned char)(s + 1);
        }
    /* characters: 10 digits, +, <unk> */
    assert_int_equal(sl_dataset_get_facts(o.train)->source.classes, 12);
    assert_int_equal(sl_dataset_get_facts(o.train)->target.classes, 13);
    sl_dataset_close(splits[1]);
    sl_dataset_close(splits[2]);
    data_close(&o);

    /* the first records are those of a larger set */
    o = data_open_train("type: generator, train: {name: addition, size: 9}", MODEL_PAIRS, PAIRS);
    struct data_open larger = data_open_train("type: generator, train: {name: addition, size: 90}", MODEL_PAIRS, PAIRS);
    for (int64_t r = 0; r < 9; r++) {
        size_t bytes, more;
        const char *text = sl_dataset_find_text(o.train, r, &bytes);
        const char *same = sl_dataset_find_text(larger.train, r, &more);
        assert_int_equal(bytes, more);
        assert_memory_equal(text, same, bytes);
    }
    data_close(&larger);
    data_close(&o);
    data_expect_failure("type: generator, train: {name: addition, size: 60, digits: 1}", MODEL_PAIRS, PAIRS,
                        SEQLSTM_CORRUPT_DATA, "say more `digits` or a smaller `size`");
}

/* Symbols again, forwards or backwards. */
static void test_copy_and_reverse(void **state)
{
    (void)state;
    for (int reverse = 0; reverse < 2; reverse++) {
        char data[160];
        snprintf(data, sizeof data, "type: generator, train: {name: %s, size: 50, length: [2, 12], symbols: 5}",
                 reverse ? "reverse" : "copy");
        struct data_open o = data_open_train(data, MODEL_PAIRS, PAIRS);
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 50, 0);
        struct sl_batch *batch = data_next(batcher);
        assert_int_equal(sl_dataset_get_facts(o.train)->source.classes, 5 + 1);
        assert_int_equal(batch->sequences, 50);
        for (int64_t k = 0; k < 50; k++) {
            int64_t n = batch->axis.lengths[k] - 1;
            assert_in_range(n, 2, 12);
            assert_int_equal(batch->source.axis.lengths[batch->source.place[k]], n);
            for (int64_t t = 0; t < n; t++) {
                int32_t said = batch->target.ids[sl_batch_row(batch, k, reverse ? n - 1 - t : t)];
                int32_t read = batch->source.input.ids[sl_batch_source_row(batch, k, t)];
                assert_string_equal(sl_vocabulary_get_text(sl_data_state_find_source_vocabulary(o.state), read, NULL),
                                    data_token(o.state, said));
            }
        }
        sl_batch_destroy(batch);
        sl_batcher_close(batcher);
        data_close(&o);
    }
}

/* Both sides of pairs whose lengths have little to do with each other. */
static struct data_open open_uneven(const char *batching)
{
    struct sl_buf from = {0}, to = {0};
    char data[200];
    for (int r = 0; r < 300; r++) {
        for (int k = 0; k < 1 + r * 7 % 13; k++)
            sl_buf_append_text(&from, "a ");
        for (int k = 0; k < r * 5 % 11; k++)
            sl_buf_append_text(&to, "b ");
        sl_buf_append_char(&from, '\n');
        sl_buf_append_char(&to, '\n');
    }
    data_write("uneven.de", sl_buf_text(&from));
    data_write("uneven.en", sl_buf_text(&to));
    sl_buf_deinit(&from);
    sl_buf_deinit(&to);
    snprintf(data, sizeof data,
             "type: lines, train: {source: uneven.de, target: uneven.en}, batch_size: 8, batching: {%s}", batching);
    return data_open_train(data, MODEL_PAIRS, PAIRS);
}

/* Sequential steps of both sides in an epoch, and that no record is lost. */
static int64_t play_epoch(const struct data_open *o, int64_t *out_source_steps, int64_t *out_rows)
{
    struct sl_batcher *batcher = data_batcher(o->train, SL_BATCHING_TRAIN, 1, 0, 0);
    int64_t steps = 0, sequences = 0;
    int64_t real = 0;
    *out_source_steps = *out_rows = 0;
    for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch)) {
        int64_t longest = 0;
        for (int64_t k = 0; k < batch->sequences; k++) {
            int64_t length = sl_dataset_get_source_length(o->train, batch->sample[k]);
            longest = length > longest ? length : longest;
        }
        *out_source_steps += longest;
        steps += longest + batch->axis.lengths[0];
        *out_rows += batch->axis.rows + batch->source.axis.rows;
        sequences += batch->sequences;
        real += sl_batch_count_real_rows(batch);
    }
    assert_int_equal(sequences, 300);
    assert_int_equal(real, sl_data_facts_count_real_rows(sl_dataset_get_facts(o->train)));
    sl_batcher_close(batcher);
    return steps;
}

/* What `data stats` counts of both sides is what the batcher does; bringing both lengths together saves steps of both,
 * in pools and in buckets. */
static void test_both_sides_are_counted(void **state)
{
    (void)state;
    static const char *const batchings[] = {"bucketing: off",
                                            "bucketing: pools",
                                            "bucketing: auto",
                                            "bucketing: {count: 4}",
                                            "bucketing: {generator: greedy}",
                                            "bucketing: [4, 8]"};
    int64_t shuffled = 0, shuffled_source = 0;
    for (size_t i = 0; i < sizeof batchings / sizeof *batchings; i++) {
        struct data_open o = open_uneven(batchings[i]);
        struct sl_data_stats *stats;
        int count;
        int64_t source_steps, rows, steps = play_epoch(&o, &source_steps, &rows);
        assert_int_equal(sl_data_stats_create(o.train, NULL, &stats, NULL), SEQLSTM_OK);
        const struct sl_batching_cost *cost = sl_data_stats_get_costs(stats, &count);
        while (!cost->chosen)
            cost++;
        const struct sl_lengths *target = sl_data_stats_get_lengths(stats);
        const struct sl_lengths *source = sl_data_stats_find_source_lengths(stats);
        assert_int_equal(rows, target->rows + source->rows);
        assert_int_equal(cost->rows_computed, rows);
        assert_int_equal(cost->source_rows, source->rows);
        assert_int_equal(sl_lengths_get_longest(source), 13);
        assert_int_equal(sl_lengths_get_longest(target), 11);
        /* The order of an epoch has its seed: of buckets only records of equal lengths change places. */
        assert_true(steps >= sl_data_stats_get_least_steps(stats));
        assert_true(labs((long)(steps - cost->steps)) * 20 <= cost->steps);
        assert_true(labs((long)(source_steps - cost->source_steps)) * 20 <= cost->source_steps);
        shuffled = i == 0 ? steps : shuffled;
        shuffled_source = i == 0 ? source_steps : shuffled_source;
        assert_true(i == 0 || (steps * 10 < shuffled * 8 && source_steps < shuffled_source));
        sl_data_stats_destroy(stats);
        data_close(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parallel_files),
        cmocka_unit_test(test_other_splits),
        cmocka_unit_test(test_vocabularies),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_same_text),
        cmocka_unit_test(test_predict),
        cmocka_unit_test(test_rows_are_real_steps),
        cmocka_unit_test(test_resume_and_prefetch),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_saved_state),
        cmocka_unit_test(test_addition),
        cmocka_unit_test(test_copy_and_reverse),
        cmocka_unit_test(test_both_sides_are_counted),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

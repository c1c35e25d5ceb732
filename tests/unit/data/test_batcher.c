/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of batches: every record once, packed rows are real ones, the order is a function of seed and
 * epoch, seek is replay, segments and streams carry state. */
#include "data_fixture.h"

#include "data/batch/stats.h"

#define LM      "task: language_model"
#define RECORDS 53

/* Lines of 1 to 9 words and some without any. A line of n words has n steps (with <bos>). */
static void write_lines(void)
{
    struct sl_buf text = {0};
    for (int i = 0; i < RECORDS; i++) {
        for (int w = 0; w < 1 + (i * 7) % 9; w++)
            sl_buf_printf(&text, "w%d ", (i + w) % 11);
        sl_buf_append_char(&text, '\n');
    }
    data_write("train.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
}

static struct data_open open_lines(const char *batching)
{
    char data[400];
    write_lines();
    snprintf(data, sizeof data,
             "type: text, train: {file: train.txt}, tokenizer: {type: whitespace, specials: [bos]}, batch_size: 4, "
             "batching: {%s}",
             batching);
    return data_open_train(data, MODEL_LM, LM);
}

/* Sorted, packed without padding, inside the envelope, the same text as the record. */
static void check_batch(const struct data_open *o, const struct sl_batch *batch, struct sl_envelope envelope)
{
    int64_t rows = 0;
    assert_true(batch->sequences <= envelope.sequences && batch->axis.rows <= envelope.rows &&
                batch->axis.steps <= envelope.steps);
    for (int64_t k = 0; k < batch->sequences; k++) {
        int64_t record = batch->sample[k];
        int64_t length = k < batch->axis.sequences ? batch->axis.lengths[k] : 0;
        int64_t rest = sl_dataset_get_length(o->train, record) - batch->sample_step[k];
        assert_true(length <= rest || (rest < 0 && length == 0));
        assert_true(k == 0 || k >= batch->axis.sequences || batch->axis.lengths[k] <= batch->axis.lengths[k - 1]);
        rows += length;
        for (int64_t t = 0; t < length; t++) {
            char expected[16];
            snprintf(expected, sizeof expected, "w%d", (int)((record + batch->sample_step[k] + t) % 11));
            assert_string_equal(data_token(o->state, batch->target.ids[sl_batch_row(batch, k, t)]), expected);
        }
        if (k < batch->axis.sequences) {
            assert_int_equal(batch->axis.sequence_id[k], record);
            assert_int_equal(batch->axis.position0[k], batch->sample_step[k]);
        }
    }
    assert_int_equal(rows, batch->axis.rows);
}

static void check_epoch(const struct data_open *o, const char *batching, int64_t max_tokens)
{
    (void)batching;
    struct sl_batcher *batcher = data_batcher(o->train, SL_BATCHING_TRAIN, 3, 0, max_tokens);
    struct sl_envelope envelope = sl_batcher_envelope(batcher);
    for (int epoch = 0; epoch < 3; epoch++) {
        int seen[RECORDS] = {0};
        int64_t rows = 0, batches = 0, most = 0, first = 0;
        assert_int_equal(sl_batcher_get_epoch(batcher), epoch);
        int64_t expected = sl_batcher_get_batches(batcher);
        for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch)) {
            check_batch(o, batch, envelope);
            assert_int_equal(batch->ordinal, batches);
            assert_false(batch->carry_state);
            assert_true(batch->last_segment);
            assert_true(max_tokens == 0 || batch->axis.rows <= max_tokens || batch->sequences == 1);
            for (int64_t k = 0; k < batch->sequences; k++)
                seen[batch->sample[k]]++;
            rows += batch->axis.rows;
            first = batches++ == 0 ? batch->axis.rows : first;
            most = batch->axis.rows > most ? batch->axis.rows : most;
        }
        assert_int_equal(batches, expected);
        assert_int_equal(rows, sl_dataset_get_facts(o->train)->rows);
        if (epoch == 0)
            assert_int_equal(first, most);
        for (int r = 0; r < RECORDS; r++)
            assert_int_equal(seen[r], 1);
    }
    sl_batcher_close(batcher);
}

static void test_every_record_once(void **state)
{
    (void)state;
    static const char *const batchings[] = {
        "bucketing: off",        "bucketing: pools, pool: 3",      "bucketing: pools",    "bucketing: auto",
        "bucketing: {count: 3}", "bucketing: {generator: greedy}", "bucketing: [2, 5, 6]"};
    for (size_t i = 0; i < sizeof batchings / sizeof *batchings; i++) {
        struct data_open o = open_lines(batchings[i]);
        check_epoch(&o, batchings[i], 0);
        check_epoch(&o, batchings[i], 12);
        data_close(&o);
    }
}

static const struct sl_batching_cost *find_cost(const struct sl_data_stats *stats, const char *name)
{
    int count;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    for (int i = 0; i < count; i++)
        if (strcmp(costs[i].name, name) == 0)
            return &costs[i];
    fail_msg("no strategy %s", name);
    return NULL;
}

/* Pools of 3 batches: fewer steps than in shuffled order, and the same rows. */
static void test_pools_save_steps(void **state)
{
    (void)state;
    struct data_open o = open_lines("bucketing: pools, pool: 3");
    struct sl_data_stats *stats;
    assert_int_equal(sl_data_stats_create(o.train, NULL, &stats, NULL), SEQLSTM_OK);
    const struct sl_batching_cost *pools = find_cost(stats, "pools"), *packed = find_cost(stats, "packed");
    const struct sl_batching_cost *batch = find_cost(stats, "padded_to_batch");
    const struct sl_batching_cost *longest = find_cost(stats, "padded_to_longest");
    assert_true(pools->chosen && !packed->chosen);
    assert_true(pools->steps < packed->steps && pools->steps >= sl_data_stats_get_least_steps(stats));
    assert_int_equal(pools->rows_computed, packed->rows_computed);
    assert_true(find_cost(stats, "pools_padded")->rows_computed < batch->rows_computed);
    assert_true(batch->rows_computed < longest->rows_computed);
    assert_int_equal(longest->steps, 14 * 9);
    assert_int_equal(pools->batches, 14);
    int64_t binned = 0;
    const struct sl_lengths *lengths = sl_data_stats_get_lengths(stats);
    for (int i = 0; i < lengths->bin_count; i++)
        binned += lengths->bins[i].records;
    assert_int_equal(binned, RECORDS);
    assert_int_equal(lengths->bins[0].first, 1);
    assert_true(lengths->bins[lengths->bin_count - 1].last >= 9);
    assert_int_equal(sl_lengths_get_quantile(lengths, 0), 1);
    assert_int_equal(sl_lengths_get_quantile(lengths, 1), 9);
    assert_null(sl_data_stats_find_source_lengths(stats));
    sl_data_stats_destroy(stats);
    data_close(&o);
}

/* A number that stands for an epoch's batches, in their order. */
static uint64_t digest(struct sl_batcher *batcher)
{
    uint64_t hash = 5;
    for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch))
        for (int64_t k = 0; k < batch->sequences; k++)
            hash = hash * 1000003 + (uint64_t)batch->sample[k] * 97 + batch->ordinal;
    return hash;
}

static void test_order_is_a_function_of_seed_and_epoch(void **state)
{
    (void)state;
    struct data_open o = open_lines("pool: 3");
    struct sl_batcher *a = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
    struct sl_batcher *b = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
    struct sl_batcher *c = data_batcher(o.train, SL_BATCHING_TRAIN, 4, 0, 0);
    /* not epoch 0 with epoch 1: that alone has its largest batch first */
    uint64_t first = digest(a), second = digest(a), third = digest(a);
    assert_true(first != second && second != third && first != third);
    assert_true(digest(b) == first);
    assert_true(digest(c) != first && digest(c) != second);
    assert_int_equal(sl_batcher_seek(c, 0, 0, NULL), SEQLSTM_OK);
    sl_batch_destroy(data_next(b));
    assert_int_equal(sl_batcher_seek(b, 1, 0, NULL), SEQLSTM_OK);
    assert_true(digest(b) == second);
    sl_batcher_close(c);
    c = data_batcher(o.train, SL_BATCHING_TRAIN, 3 + (UINT64_C(1) << 32), 0, 0); /* all bits of the seed count */
    assert_true(digest(c) != first);
    sl_batcher_close(c);
    c = data_batcher(o.train, SL_BATCHING_EVALUATE, 3, 0, 0);
    first = digest(c);
    assert_true(digest(c) == first);
    sl_batcher_close(a);
    sl_batcher_close(b);
    sl_batcher_close(c);
    data_close(&o);
}

/* Every batch is a rectangle of the expected length; real steps are as without padding, the others hold nothing. */
static void check_padding(const char *batching, int64_t bucket, int64_t whole)
{
    struct data_open o = open_lines(batching);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
    struct sl_envelope envelope = sl_batcher_envelope(batcher);
    int64_t real = 0, counted = 0;
    for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch)) {
        int64_t longest = 0, padded = 0;
        counted += sl_batch_count_real_rows(batch);
        for (int64_t k = 0; k < batch->sequences; k++) {
            int64_t length = sl_dataset_get_length(o.train, batch->sample[k]);
            longest = length > longest ? length : longest;
            padded += batch->axis.steps - length;
        }
        int64_t expected = whole ? whole : bucket ? (longest <= 4 ? 4 : longest <= 6 ? 6 : 9) : longest;
        assert_int_equal(batch->axis.steps, expected);
        assert_int_equal(batch->axis.rows, batch->sequences * expected);
        assert_int_equal(batch->padded_rows, padded);
        assert_true(batch->axis.rows <= envelope.rows && batch->axis.steps <= envelope.steps);
        for (int64_t k = 0; k < batch->sequences; k++)
            for (int64_t t = 0; t < expected; t++) {
                int64_t row = sl_batch_row(batch, k, t), record = batch->sample[k];
                bool is_real = t < sl_dataset_get_length(o.train, record);
                char word[16];
                snprintf(word, sizeof word, "w%d", (int)((record + t) % 11));
                assert_true((batch->input.ids[row] >= 0) == is_real && (batch->target.ids[row] >= 0) == is_real);
                if (is_real)
                    assert_string_equal(data_token(o.state, batch->target.ids[row]), word);
                real += is_real;
            }
    }
    assert_int_equal(real, sl_dataset_get_facts(o.train)->rows);
    assert_int_equal(counted, sl_data_facts_count_real_rows(sl_dataset_get_facts(o.train)));
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_padding(void **state)
{
    (void)state;
    check_padding("bucketing: off, pad_to: batch", 0, 0);
    check_padding("bucketing: pools, pool: 2, pad_to: batch", 0, 0);
    check_padding("bucketing: off, pad_to: longest", 0, 9);
    check_padding("bucketing: [4, 6, 20], pad_to: bucket", 1, 0);
    data_write("train.csv", "g,x,y\n1,1,5\n1,2,5\n1,3,5\n2,1,7\n");
    struct data_open o =
        data_open_train("type: csv, train: {file: train.csv}, group: g, inputs: [x], targets: [y], batch_size: 4, "
                        "batching: {pad_to: batch}",
                        MODEL_REGRESS_STEPS, "loss: mse");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    static const float weights[] = {1, 1, 1, 0, 1, 0};
    assert_int_equal(batch->axis.rows, 6);
    assert_memory_equal(batch->weight.values, weights, sizeof weights);
    assert_true(batch->input.values[3] == 0 && batch->input.values[2] == 2);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

/* max_tokens alone, or the smaller of both; what a padded batch computes counts. */
static void test_max_tokens(void **state)
{
    (void)state;
    static const char *const batchings[] = {"max_tokens: 20", "max_tokens: 20, bucketing: off",
                                            "max_tokens: 20, pad_to: batch", "max_tokens: 20, bucketing: {count: 4}",
                                            "max_tokens: 20, bucketing: {count: 4}, pad_to: bucket"};
    for (size_t i = 0; i < sizeof batchings / sizeof *batchings; i++) {
        char data[300];
        int seen[RECORDS] = {0};
        int64_t most = 0, sequences = 0;
        write_lines();
        snprintf(data, sizeof data,
                 "type: text, train: {file: train.txt}, tokenizer: {type: whitespace, specials: [bos]}, batching: {%s}",
                 batchings[i]);
        struct data_open o = data_open_train(data, MODEL_LM, LM);
        assert_int_equal(o.model->data.batch_size, 0);
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
        struct sl_envelope envelope = sl_batcher_envelope(batcher);
        for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch)) {
            assert_true(batch->axis.rows <= 20 && batch->axis.rows <= envelope.rows);
            assert_true(batch->sequences <= envelope.sequences);
            for (int64_t k = 0; k < batch->sequences; k++)
                seen[batch->sample[k]]++;
            most = batch->axis.rows > most ? batch->axis.rows : most;
            sequences = batch->sequences > sequences ? batch->sequences : sequences;
        }
        assert_true(most > 14 && sequences > 4);
        for (int r = 0; r < RECORDS; r++)
            assert_int_equal(seen[r], 1);
        sl_batcher_close(batcher);
        data_close(&o);
    }
}

/* Edges given to a second batcher make its buckets; the list limits what is read only where it is told to. */
static void test_edges(void **state)
{
    (void)state;
    int64_t count;
    struct data_open o = open_lines("bucketing: {count: 3}");
    struct sl_batcher *first = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
    const int64_t *edges = sl_batcher_get_edges(first, &count);
    assert_int_equal(count, 3);
    assert_int_equal(edges[2], 9);
    static const int64_t others[] = {1, 5, 9};
    struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .seed = 3, .edges = others, .edge_count = 3};
    struct sl_batcher *second = NULL;
    assert_int_equal(sl_batcher_open(o.train, &request, &second, NULL), SEQLSTM_OK);
    assert_true(digest(first) != digest(second));
    assert_int_equal(sl_batcher_get_edges(second, &count)[1], 5);
    sl_batcher_close(first);
    sl_batcher_close(second);
    data_close(&o);
    o = open_lines("bucketing: [2, 5], on_overflow: drop");
    assert_int_equal(sl_dataset_get_facts(o.train)->longest, 5);
    assert_true(sl_dataset_get_counts(o.train)->dropped_records > 0);
    data_close(&o);
    o = open_lines("bucketing: [2, 5], on_overflow: truncate");
    assert_int_equal(sl_dataset_get_records(o.train), RECORDS);
    assert_int_equal(sl_dataset_get_facts(o.train)->longest, 5);
    data_close(&o);
}

/* From every place of two epochs, seek gives what playing up to there gives. */
static void check_seek(const struct data_open *o)
{
    struct sl_batcher *play = data_batcher(o->train, SL_BATCHING_TRAIN, 3, 0, 0);
    struct sl_batcher *jump = data_batcher(o->train, SL_BATCHING_TRAIN, 3, 0, 0);
    for (int steps = 0; sl_batcher_get_epoch(play) < 2; steps++) {
        uint64_t epoch = sl_batcher_get_epoch(play), ordinal = sl_batcher_get_ordinal(play);
        assert_int_equal(sl_batcher_seek(jump, epoch, ordinal, NULL), SEQLSTM_OK);
        struct sl_batch *a = data_next(play), *b = data_next(jump);
        assert_true(!a == !b);
        if (a) {
            assert_true(a->sequences == b->sequences && a->axis.rows == b->axis.rows && a->ordinal == b->ordinal &&
                        a->carry_state == b->carry_state && a->last_segment == b->last_segment);
            assert_memory_equal(a->sample, b->sample, (size_t)a->sequences * 8);
            assert_memory_equal(a->sample_step, b->sample_step, (size_t)a->sequences * 8);
            assert_memory_equal(a->input.ids, b->input.ids, (size_t)a->axis.rows * 4);
            assert_memory_equal(a->target.ids, b->target.ids, (size_t)a->axis.rows * 4);
        }
        sl_batch_destroy(a);
        sl_batch_destroy(b);
    }
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_batcher_seek(jump, 5, 1000, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_batcher_get_epoch(jump), sl_batcher_get_epoch(play));
    sl_batcher_close(play);
    sl_batcher_close(jump);
}

static void test_seek_is_replay(void **state)
{
    (void)state;
    static const char *const batchings[] = {
        "pool: 3",           "pool: 3, bptt: 2",        "unit: stream, bptt: 5",
        "bucketing: [3, 5]", "max_tokens: 14, pool: 2", "bucketing: {count: 3}, pad_to: bucket, bptt: 2"};
    for (size_t i = 0; i < sizeof batchings / sizeof *batchings; i++) {
        struct data_open o = open_lines(batchings[i]);
        check_seek(&o);
        data_close(&o);
    }
}

/* A batch has room for the longest sequence, or for a part of it where `bptt` is less, also by one step. */
static void test_segments_about_the_longest(void **state)
{
    (void)state;
    int64_t longest = 0;
    struct data_open o = open_lines("pool: 3");
    for (int64_t r = 0; r < RECORDS; r++)
        longest = sl_dataset_get_length(o.train, r) > longest ? sl_dataset_get_length(o.train, r) : longest;
    data_close(&o);
    for (int64_t bptt = longest - 1; bptt <= longest + 1; bptt++) {
        char batching[40];
        snprintf(batching, sizeof batching, "pool: 3, bptt: %d", (int)bptt);
        o = open_lines(batching);
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
        assert_int_equal(sl_batcher_envelope(batcher).steps, bptt < longest ? bptt : longest);
        sl_batcher_close(batcher);
        data_close(&o);
    }
}

/* bptt: segments of one batch have the same sequences; together they hold each step once, in order. */
static void test_segments(void **state)
{
    (void)state;
    struct data_open o = open_lines("pool: 3, bptt: 4");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 3, 0, 0);
    struct sl_envelope envelope = sl_batcher_envelope(batcher);
    int64_t visited[RECORDS] = {0}, previous[4] = {0}, previous_count = 0;
    bool expect_carry = false;
    assert_int_equal(envelope.steps, 4);
    for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch)) {
        check_batch(&o, batch, envelope);
        assert_int_equal(batch->carry_state, expect_carry);
        if (expect_carry) {
            assert_int_equal(batch->sequences, previous_count);
            assert_memory_equal(batch->sample, previous, (size_t)previous_count * 8);
        }
        for (int64_t k = 0; k < batch->sequences; k++) {
            int64_t length = k < batch->axis.sequences ? batch->axis.lengths[k] : 0;
            assert_true(length == 0 || visited[batch->sample[k]] == batch->sample_step[k]);
            visited[batch->sample[k]] += length;
        }
        previous_count = batch->sequences;
        memcpy(previous, batch->sample, (size_t)previous_count * 8);
        expect_carry = !batch->last_segment;
    }
    for (int64_t r = 0; r < RECORDS; r++)
        assert_int_equal(visited[r], sl_dataset_get_length(o.train, r));
    sl_batcher_close(batcher);
    data_close(&o);
}

/* The target of a whole sequence stands in the segment in which it ends, and only there. */
static void test_targets_of_segments(void **state)
{
    (void)state;
    data_write("train.txt", "0 a\n1 a b c d e\n0 a b c\n1 a b\n");
    struct data_open o = data_open_train(
        "type: lines, train: {file: train.txt}, label: first, tokenizer: {type: whitespace}, batch_size: 4, "
        "batching: {bptt: 2}",
        MODEL_CLASSIFY, "task: classify");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    int told[4] = {0};
    for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch)) {
        assert_int_equal(batch->sequences, 4);
        for (int64_t k = 0; k < 4; k++) {
            int64_t record = batch->sample[k];
            int64_t end = sl_dataset_get_length(o.train, record);
            bool here = batch->sample_step[k] < end && end <= batch->sample_step[k] + 2;
            assert_int_equal(batch->target.ids[k], here ? record % 2 : -1);
            told[record] += here;
        }
    }
    for (int r = 0; r < 4; r++)
        assert_int_equal(told[r], 1);
    sl_batcher_close(batcher);
    data_close(&o);
    data_write("train.csv", "g,x,y\n1,1,5\n1,2,5\n1,3,5\n2,1,7\n");
    o = data_open_train("type: csv, train: {file: train.csv}, group: g, inputs: [x], targets: [y], batch_size: 4, "
                        "batching: {bptt: 2}",
                        MODEL_REGRESS, "loss: mse");
    assert_true(sl_data_state_get_facts(o.state)->has_weight);
    batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    struct sl_batch *first = data_next(batcher), *second = data_next(batcher);
    assert_true(first->weight.values[0] == 0 && first->weight.values[1] == 1 && first->target.values[1] == 7);
    assert_true(second->weight.values[0] == 1 && second->weight.values[1] == 0 && second->target.values[0] == 5);
    assert_int_equal(second->axis.sequences, 1);
    sl_batch_destroy(first);
    sl_batch_destroy(second);
    sl_batcher_close(batcher);
    data_close(&o);
}

/* One text as parallel streams: part k is positions k * L .. k * L + L - 1, targets one further. */
static void test_streams(void **state)
{
    (void)state;
    struct sl_buf text = {0};
    for (int i = 0; i < 33; i++)
        sl_buf_printf(&text, "%d ", i);
    data_write("train.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
    struct data_open o = data_open_train(
        "type: tokens, train: {file: train.txt}, batch_size: 5, batching: {unit: stream, bptt: 4}", MODEL_LM, LM);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 1, 0, 0);
    assert_int_equal(sl_batcher_get_batches(batcher), 2);
    assert_int_equal(sl_batcher_get_lost_rows(batcher), 2);
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int64_t segment = 0; segment < 2; segment++) {
            struct sl_batch *batch = data_next(batcher);
            int64_t steps = segment == 0 ? 4 : 2;
            assert_true(batch->axis.steps == steps && batch->axis.rows == 5 * steps);
            assert_int_equal(batch->axis.flags & SEQLSTM_BIT_AXIS_UNIFORM, SEQLSTM_BIT_AXIS_UNIFORM);
            assert_int_equal(batch->carry_state, segment == 1);
            assert_int_equal(batch->last_segment, segment == 1);
            for (int64_t k = 0; k < 5; k++) {
                assert_true(batch->sample[k] == k && batch->axis.sequence_id[k] == (uint64_t)k);
                assert_int_equal(batch->axis.position0[k], segment * 4);
                for (int64_t t = 0; t < steps; t++) {
                    int64_t row = sl_batch_row(batch, k, t), position = 6 * k + 4 * segment + t;
                    assert_int_equal(batch->input.ids[row], position);
                    assert_int_equal(batch->target.ids[row], position + 1);
                }
            }
            sl_batch_destroy(batch);
        }
        assert_null(data_next(batcher));
    }
    sl_batcher_close(batcher);
    batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 1, 0); /* every position once */
    assert_int_equal(sl_batcher_get_lost_rows(batcher), 0);
    assert_int_equal(sl_batcher_get_batches(batcher), 8);
    sl_batcher_close(batcher);
    struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .batch_size = 33};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batcher *none = NULL;
    assert_int_equal(sl_batcher_open(o.train, &request, &none, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "32 steps, too few for the 33"));
    request.phase = SL_BATCHING_EVALUATE;
    assert_int_equal(sl_batcher_open(o.train, &request, &batcher, NULL), SEQLSTM_OK);
    assert_int_equal(sl_batcher_envelope(batcher).sequences, 32);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_prediction_keeps_the_order(void **state)
{
    (void)state;
    struct data_open o = open_lines("pool: 3, bptt: 2");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 3, 0, 0);
    for (int64_t first = 0; first < RECORDS; first += 4) {
        struct sl_batch *batch = data_next(batcher);
        for (int64_t k = 0; k < batch->sequences; k++)
            assert_in_range(batch->sample[k], first, first + 3);
        sl_batch_destroy(batch);
    }
    assert_null(data_next(batcher));
    sl_batcher_close(batcher);
    data_close(&o);
}

/* Targets with the label of `ignore` are -1. */
static void test_ignore(void **state)
{
    (void)state;
    data_write("train.txt", "a\tX\nb\tO\n\nc\tP\n");
    struct data_open o =
        data_open_train("type: conll, train: {file: train.txt}, label: 2, tokenizer: {type: whitespace}, batch_size: 4",
                        MODEL_TAG, "task: tag, loss: {type: cross_entropy, ignore: X}");
    assert_int_equal(sl_data_state_get_facts(o.state)->target.classes, 2);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 3, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_true(batch->target.ids[0] == -1 && batch->target.ids[1] == 1 && batch->target.ids[2] == 0);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_record_once),
        cmocka_unit_test(test_pools_save_steps),
        cmocka_unit_test(test_order_is_a_function_of_seed_and_epoch),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_max_tokens),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_seek_is_replay),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_segments_about_the_longest),
        cmocka_unit_test(test_targets_of_segments),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_prediction_keeps_the_order),
        cmocka_unit_test(test_ignore),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

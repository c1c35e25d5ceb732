/* SPDX-License-Identifier: Apache-2.0 */
/* The classic data sets, where the environment variable SEQLSTM_DATA names the folder that holds them:
 * their published counts must come out. */
#include "data_fixture.h"

#include "data/batch/stats.h"

static const char *folder; /* set in main */

static void test_ptb(void **state)
{
    (void)state;
    char data[1024];
    snprintf(data, sizeof data,
             "type: text, train: {file: %s/ptb/ptb.train.txt}, valid: {file: %s/ptb/ptb.valid.txt}, "
             "test: {file: %s/ptb/ptb.test.txt}, tokenizer: {type: whitespace, specials: [unk, eos]}, batch_size: 20, "
             "batching: {unit: stream, bptt: 20}",
             folder, folder, folder);
    struct data_open o = data_open_train(data, MODEL_LM, "task: language_model");
    const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
    assert_int_equal(sl_dataset_get_counts(o.train)->tokens, 929589);
    assert_int_equal(facts->input.classes, 10000);
    assert_int_equal(facts->target.classes, 10000);
    assert_int_equal(facts->rows, 929588);
    assert_int_equal(facts->envelope.rows, 400);
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID), *test = data_open_split(&o, SL_SPLIT_TEST);
    assert_int_equal(sl_dataset_get_counts(valid)->tokens, 73760);
    assert_int_equal(sl_dataset_get_counts(test)->tokens, 82430);
    assert_int_equal(sl_dataset_get_counts(test)->unknown_tokens, 0);
    struct sl_batcher *batcher = data_batcher(test, SL_BATCHING_EVALUATE, 1, 1, 0);
    int64_t predictions = 0;
    for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch))
        predictions += batch->axis.rows;
    assert_int_equal(predictions, 82429);
    sl_batcher_close(batcher);
    sl_dataset_close(valid);
    sl_dataset_close(test);
    data_close(&o);
}

/* The numbers of the table in the field survey: PTB by lines, batch 32. */
static void test_ptb_lines(void **state)
{
    (void)state;
    char data[1024];
    snprintf(
        data, sizeof data,
        "type: text, train: {file: %s/ptb/ptb.train.txt}, tokenizer: {type: whitespace, specials: [unk, bos, eos]}, "
        "batch_size: 32",
        folder);
    struct data_open o = data_open_train(data, MODEL_LM, "task: language_model");
    struct sl_data_stats *stats;
    int count;
    assert_int_equal(sl_data_stats_create(o.train, NULL, &stats, NULL), SEQLSTM_OK);
    const struct sl_lengths *lengths = sl_data_stats_get_lengths(stats);
    assert_int_equal(lengths->records, 42068);
    assert_int_equal(lengths->rows, 929589);
    assert_int_equal(sl_lengths_get_longest(lengths), 83);
    assert_int_equal(sl_lengths_get_quantile(lengths, 0.5), 21);
    assert_int_equal(sl_lengths_get_quantile(lengths, 0.95), 40);
    assert_null(sl_data_stats_find_source_lengths(stats));
    static const struct {
        const char *name;
        int64_t steps, rows, batches; /* 0: not known beforehand */
    } known[] = {{"greedy_padded", 29872, 0, 1341},
                 {"count_padded", 30627, 0, 1318},
                 {"padded_to_longest", 109145, 42068 * 83, 1315},
                 {"padded_to_batch", 0, 0, 1315}};
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    for (int i = 0; i < count; i++) {
        assert_true(strstr(costs[i].name, "padded") || costs[i].rows_computed == 929589);
        assert_true(costs[i].steps >= sl_data_stats_get_least_steps(stats));
        assert_true(costs[i].rows_lost == 0 && costs[i].sequences_lost == 0);
        if (strcmp(costs[i].name, "pools") == 0)
            assert_true(costs[i].steps <= 29850 && costs[i].chosen);
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (strcmp(costs[i].name, known[k].name) != 0)
                continue;
            assert_int_equal(costs[i].batches, known[k].batches);
            assert_true(known[k].steps == 0 || costs[i].steps == known[k].steps);
            assert_true(known[k].rows == 0 || costs[i].rows_computed == known[k].rows);
        }
    }
    sl_data_stats_destroy(stats);
    data_close(&o);
}

static void test_shakespeare(void **state)
{
    (void)state;
    char data[1024];
    snprintf(data, sizeof data,
             "type: text, train: {file: %s/tinyshakespeare/input.txt}, valid: {split: 0.1}, tokenizer: {type: char}, "
             "batch_size: 50, batching: {unit: stream, bptt: 50}",
             folder);
    struct data_open o = data_open_train(data, MODEL_LM, "task: language_model");
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    assert_int_equal(sl_dataset_get_counts(o.train)->tokens, 1003854);
    assert_int_equal(sl_dataset_get_counts(valid)->tokens, 111540);
    const struct sl_vocabulary *v = sl_data_state_find_vocabulary(o.state);
    int64_t specials = sl_vocabulary_get_special(v, SL_SPECIAL_UNK) >= 0;
    assert_int_equal(sl_vocabulary_get_size(v), 65 + specials);
    sl_dataset_close(valid);
    data_close(&o);
}

static void test_japanese_vowels(void **state)
{
    (void)state;
    char data[1024];
    snprintf(data, sizeof data,
             "type: csv, train: {file: %s/japanese-vowels/train.csv}, test: {file: %s/japanese-vowels/test.csv}, "
             "group: seq, label: speaker, inputs: [c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12], batch_size: 27",
             folder, folder);
    struct data_open o = data_open_train(data, MODEL_CLASSIFY_VALUES, "task: classify");
    struct sl_dataset *test = data_open_split(&o, SL_SPLIT_TEST);
    const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
    assert_int_equal(facts->records, 270);
    assert_int_equal(facts->rows, 4274);
    assert_int_equal(facts->longest, 26);
    assert_int_equal(facts->input.features, 12);
    assert_int_equal(facts->target.classes, 9);
    assert_int_equal(sl_dataset_get_facts(test)->records, 370);
    assert_int_equal(sl_dataset_get_facts(test)->rows, 5687);
    assert_int_equal(sl_dataset_get_facts(test)->longest, 29);
    sl_dataset_close(test);
    data_close(&o);
}

static void test_ewt(void **state)
{
    (void)state;
    char data[1024];
    snprintf(data, sizeof data,
             "type: conll, train: {file: %s/ud-english-ewt/en_ewt-ud-train.tsv}, "
             "test: {file: %s/ud-english-ewt/en_ewt-ud-test.tsv}, label: 2, "
             "tokenizer: {type: whitespace, lowercase: true, min_count: 2}, batch_size: 32",
             folder, folder);
    struct data_open o = data_open_train(data, MODEL_TAG, "task: tag");
    struct sl_dataset *test = data_open_split(&o, SL_SPLIT_TEST);
    const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
    assert_int_equal(facts->records, 12544);
    assert_int_equal(facts->rows, 204577);
    assert_int_equal(facts->target.classes, 17);
    assert_in_range(facts->input.classes, 8865, 8869);
    assert_int_equal(sl_dataset_get_facts(test)->records, 2077);
    assert_int_equal(sl_dataset_get_facts(test)->rows, 25094);
    sl_dataset_close(test);
    data_close(&o);
}

static void test_sst(void **state)
{
    (void)state;
    char data[1024];
    snprintf(data, sizeof data,
             "type: lines, train: {file: %s/sst/stsa.fine.train}, valid: {file: %s/sst/stsa.fine.dev}, label: first, "
             "tokenizer: {type: whitespace}, batch_size: 32",
             folder, folder);
    struct data_open o = data_open_train(data, MODEL_CLASSIFY, "task: classify");
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    assert_int_equal(sl_dataset_get_records(o.train), 8544);
    assert_int_equal(sl_dataset_get_records(valid), 1101);
    const struct sl_vocabulary *classes = sl_data_state_find_classes(o.state);
    static const int64_t expected[] = {1092, 2218, 1624, 2322, 1288};
    assert_int_equal(sl_vocabulary_get_size(classes), 5);
    for (int32_t c = 0; c < 5; c++)
        assert_int_equal(sl_vocabulary_get_count(classes, c), expected[c]);
    sl_dataset_close(valid);
    data_close(&o);
}

static void test_airline(void **state)
{
    (void)state;
    char data[1024];
    snprintf(data, sizeof data,
             "type: csv, train: {file: %s/univariate/airline-passengers.csv, rows: [1, 96]},  "
             "test: {file: %s/univariate/airline-passengers.csv, rows: [97, 144]}, time: Month, inputs: "
             "[Passengers], targets: [Passengers], window: {length: 12}, "
             "scale: {type: minmax, fit: all}, batch_size: 8",
             folder, folder);
    struct data_open o = data_open_train(data, MODEL_REGRESS, "loss: mse");
    struct sl_dataset *test = data_open_split(&o, SL_SPLIT_TEST);
    assert_int_equal(sl_dataset_get_records(o.train), 96 - 12);
    assert_int_equal(sl_dataset_get_records(test), 48 - 12);
    const struct sl_scaling *scaling = sl_data_state_find_target_scaling(o.state);
    assert_true(scaling->offset[0] == 104 && scaling->factor[0] == 622 - 104);
    sl_dataset_close(test);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ptb),         cmocka_unit_test(test_ptb_lines),
        cmocka_unit_test(test_shakespeare), cmocka_unit_test(test_japanese_vowels),
        cmocka_unit_test(test_ewt),         cmocka_unit_test(test_sst),
        cmocka_unit_test(test_airline),
    };
    folder = getenv("SEQLSTM_DATA");
    if (!folder || !*folder) {
        printf("1..0 # SKIP SEQLSTM_DATA is not set: the real data sets were not read\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

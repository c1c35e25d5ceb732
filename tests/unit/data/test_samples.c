/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that stand for an epoch are those of its batches, counted one by one. */
#include "data_fixture.h"

#include <math.h>

#include "base/batch/profile.h"

enum { MOST_BATCHES = 200, MOST_SEQUENCES = 64 };

struct shape {
    int64_t sequences, rows;
    int32_t lengths[MOST_SEQUENCES];
};

static void write_lines(int lines)
{
    struct sl_buf text = {0};
    for (int i = 0; i < lines; i++) {
        for (int w = 0; w < 1 + (i * i + 3 * i) % 13; w++)
            sl_buf_printf(&text, "w%d ", (i + w) % 11);
        sl_buf_append_char(&text, '\n');
    }
    data_write("train.txt", sl_buf_text(&text));
    sl_buf_deinit(&text);
}

/* All batches of the first epoch; segments count as batches. */
static int play(struct sl_batcher *batcher, struct shape shapes[MOST_BATCHES])
{
    struct sl_batch *batch;
    int count = 0;
    while ((batch = data_next(batcher)) != NULL) {
        struct shape *shape = &shapes[count++];
        assert_in_range(count, 1, MOST_BATCHES);
        *shape = (struct shape){.sequences = batch->sequences, .rows = batch->axis.rows};
        for (int64_t k = 0; k < batch->axis.sequences; k++)
            shape->lengths[k] = batch->axis.lengths[k];
        sl_batch_destroy(batch);
    }
    return count;
}

static bool is_shape(const struct sl_profile *profile, const struct shape *shape)
{
    return profile->sequences == shape->sequences &&
           memcmp(profile->lengths, shape->lengths, (size_t)shape->sequences * sizeof *shape->lengths) == 0;
}

static int more_rows(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a < b) - (a > b);
}

/* Groups of batches of like size are stood for by their middle. */
static double expect_rows(const struct shape *shapes, int count)
{
    int64_t rows[MOST_BATCHES], groups = count < SL_PROFILES ? count : SL_PROFILES;
    double sum = 0;
    for (int i = 0; i < count; i++)
        rows[i] = shapes[i].rows;
    qsort(rows, (size_t)count, sizeof *rows, more_rows);
    for (int64_t g = 0; g < groups; g++) {
        const int64_t begin = g * count / groups, end = (g + 1) * count / groups;
        sum += (double)(end - begin) / count * (double)rows[begin + (end - begin) / 2];
    }
    return sum;
}

static void check_sample(int lines, const char *batching)
{
    static struct shape shapes[MOST_BATCHES];
    char data[400];
    struct sl_profiles sample = {0};
    write_lines(lines);
    snprintf(data, sizeof data,
             "type: text, train: {file: train.txt}, tokenizer: {type: whitespace, specials: [bos]}, batching: {%s}",
             batching);
    struct data_open o = data_open_train(data, MODEL_LM, "task: language_model");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_TRAIN, 5, 4, 0);
    assert_int_equal(sl_batcher_sample(batcher, &sample, NULL), SEQLSTM_OK);
    const int count = play(batcher, shapes);
    assert_int_equal(sample.epoch_count, count);
    for (int i = 0; i < count; i++)
        assert_true(is_shape(&sample.epoch[i], &shapes[i]));
    assert_in_range(sample.count, 1, count < SL_PROFILES ? count : SL_PROFILES);
    double weight = 0, rows = 0;
    for (int32_t p = 0; p < sample.count; p++) {
        int found = 0;
        for (int i = 0; i < count; i++)
            found += is_shape(&sample.items[p], &shapes[i]);
        assert_true(found > 0);
        assert_true(p == 0 || sl_profile_get_rows(&sample.items[p]) <= sl_profile_get_rows(&sample.items[p - 1]));
        weight += sample.items[p].weight;
        rows += sample.items[p].weight * (double)sl_profile_get_rows(&sample.items[p]);
    }
    assert_true(fabs(weight - 1) < 1e-12);
    assert_true(fabs(rows - expect_rows(shapes, count)) < 1e-9);
    assert_false(sample.stream);
    sl_profiles_deinit(&sample);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_samples(void **state)
{
    (void)state;
    static const char *const ways[] = {"bucketing: off", "bucketing: {count: 3}", "bucketing: pools, pool: 2",
                                       "bptt: 3"};
    static const int lines[] = {2, 3, 4, 5, 29, 31, 32, 33, 37, 64, 71};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t l = 0; l < sizeof lines / sizeof *lines; l++)
            check_sample(lines[l], ways[w]);
}

/* Edges that are given are the batcher's own, and no batch reaches over one. */
static void test_given_edges(void **state)
{
    (void)state;
    static const int64_t edges[] = {2, 4, 9, 13};
    int64_t given[4], count;
    memcpy(given, edges, sizeof edges);
    write_lines(71);
    struct data_open o =
        data_open_train("type: text, train: {file: train.txt}, tokenizer: {type: whitespace, specials: "
                        "[bos]}, batching: {bucketing: {count: 2}}, batch_size: 5",
                        MODEL_LM, "task: language_model");
    for (int64_t most = 0; most <= 4; most++) {
        const struct sl_batcher_request request = {
            .phase = SL_BATCHING_TRAIN, .seed = 3, .edges = most ? given + 4 - most : NULL, .edge_count = most};
        struct sl_batcher *batcher = NULL;
        struct sl_batch *batch;
        memcpy(given, edges, sizeof edges);
        assert_int_equal(sl_batcher_open(o.train, &request, &batcher, NULL), SEQLSTM_OK);
        memset(given, 0, sizeof given); /* they were copied */
        const int64_t *own = sl_batcher_get_edges(batcher, &count);
        assert_int_equal(count, most ? most : 2);
        if (most)
            assert_memory_equal(own, edges + 4 - most, (size_t)most * sizeof *own);
        while ((batch = data_next(batcher)) != NULL) {
            for (int64_t e = 0; e < count; e++)
                assert_int_equal(batch->axis.lengths[0] <= own[e],
                                 batch->axis.lengths[batch->axis.sequences - 1] <= own[e]);
            sl_batch_destroy(batch);
        }
        sl_batcher_close(batcher);
    }
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples), cmocka_unit_test(test_given_edges)};
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

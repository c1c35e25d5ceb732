/* SPDX-License-Identifier: Apache-2.0 */
/* How many sequences and rows a batch may have: the limits of the model and those of a request, which take the place of
 * both; against batches that are cut one record after the other. */
#include "data_fixture.h"

#define LIMITS "type: tokens, train: {file: t.tokens}"

enum { RECORDS = 11 };

static const int lengths[RECORDS] = {3, 1, 4, 1, 5, 2, 6, 2, 4, 3, 1};

struct limits {
    int64_t batch_size, max_tokens;
};

/* Checks the batches of the records in their order; `has_steps`: rows are limited. */
static void expect_cut(struct sl_batcher *batcher, struct limits limits, bool of_sources)
{
    int at = 0;
    for (struct sl_batch *batch; (batch = data_next(batcher)) != NULL; sl_batch_destroy(batch)) {
        int64_t sequences = 0, rows = 0;
        while (at < RECORDS && (limits.batch_size == 0 || sequences < limits.batch_size) &&
               (limits.max_tokens == 0 || sequences == 0 || rows + lengths[at] <= limits.max_tokens)) {
            rows += lengths[at++];
            sequences++;
        }
        assert_int_equal(batch->sequences, sequences);
        assert_int_equal(of_sources ? batch->source.axis.rows : batch->axis.rows, rows);
    }
    assert_int_equal(at, RECORDS);
}

/* What a request says, and otherwise the model; one limit of a request does not leave the other to the model. */
static void test_limits_of_model_and_request(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        struct limits own;
    } models[] = {{"", {32, 0}},
                  {", batch_size: 4", {4, 0}},
                  {", batching: {max_tokens: 9}", {0, 9}},
                  {", batch_size: 4, batching: {max_tokens: 9}", {4, 9}}};
    static const struct limits asked[] = {{0, 0}, {3, 0}, {0, 7}, {3, 7}, {0, 100}, {100, 0}, {1, 0}, {0, 1}};
    struct sl_buf text = {0};
    for (int r = 0; r < RECORDS; r++)
        for (int t = 0; t <= lengths[r]; t++)
            sl_buf_printf(&text, "%d%s", (r + t) % 3, t < lengths[r] ? " " : "\n");
    data_write("t.tokens", sl_buf_text(&text));
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        char data[200];
        snprintf(data, sizeof data, LIMITS "%s", models[m].model);
        struct data_open o = data_open_train(data, MODEL_LM, "task: language_model");
        for (size_t a = 0; a < sizeof asked / sizeof *asked; a++) {
            const bool says = asked[a].batch_size > 0 || asked[a].max_tokens > 0;
            struct sl_batcher *batcher =
                data_batcher(o.train, SL_BATCHING_PREDICT, 1, asked[a].batch_size, asked[a].max_tokens);
            expect_cut(batcher, says ? asked[a] : models[m].own, false);
            sl_batcher_close(batcher);
        }
        data_close(&o);
    }
    sl_buf_deinit(&text);
}

/* Rows without steps have no tokens: a request for so many gets the size of the model, and that is one without any. */
static void test_records_without_steps(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t asked_size, asked_tokens, expected;
    } cases[] = {{", batch_size: 3", 0, 0, 3},
                 {", batch_size: 3", 0, 2, 3},
                 {", batch_size: 3", 2, 0, 2},
                 {", batch_size: 3", 2, 1, 2},
                 {"", 0, 0, 5},
                 {"", 0, 2, 5},
                 {"", 4, 2, 4}};
    data_write("t.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n9,10\n");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char data[200];
        snprintf(data, sizeof data, "type: csv, train: {file: t.csv}, inputs: [a], targets: [b]%s", cases[c].model);
        struct data_open o = data_open_train(data, MODEL_DENSE, "loss: mse");
        struct sl_batcher *batcher =
            data_batcher(o.train, SL_BATCHING_PREDICT, 1, cases[c].asked_size, cases[c].asked_tokens);
        struct sl_batch *batch = data_next(batcher);
        assert_int_equal(batch->sequences, cases[c].expected);
        assert_int_equal(sl_batcher_get_batches(batcher), (5 + cases[c].expected - 1) / cases[c].expected);
        sl_batch_destroy(batch);
        sl_batcher_close(batcher);
        data_close(&o);
    }
}

/* To predict, pairs have sources alone, and each of their rows counts once. */
static void test_sources_alone(void **state)
{
    (void)state;
    static const struct limits asked[] = {{0, 7}, {2, 7}, {4, 0}, {0, 12}};
    struct sl_buf text = {0};
    for (int r = 0; r < RECORDS; r++)
        for (int t = 1; t <= lengths[r]; t++)
            sl_buf_printf(&text, "%c%s", "xyz"[(r + t) % 3], t < lengths[r] ? " " : "\n");
    data_write("a", "x y z\n");
    data_write("b", "1\n");
    struct data_open o =
        data_open_train("type: lines, train: {source: a, target: b}, batch_size: 3", MODEL_PAIRS, PAIRS);
    const struct sl_input_request request = {.data = sl_buf_text(&text), .data_bytes = text.length_bytes};
    struct sl_dataset *input = NULL;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, NULL), SEQLSTM_OK);
    for (size_t a = 0; a < sizeof asked / sizeof *asked; a++) {
        struct sl_batcher *batcher =
            data_batcher(input, SL_BATCHING_PREDICT, 1, asked[a].batch_size, asked[a].max_tokens);
        expect_cut(batcher, asked[a], true);
        sl_batcher_close(batcher);
    }
    sl_dataset_close(input);
    data_close(&o);
    sl_buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_of_model_and_request),
        cmocka_unit_test(test_records_without_steps),
        cmocka_unit_test(test_sources_alone),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

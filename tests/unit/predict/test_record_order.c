/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions of a batch in the order of its records: each row of each step once, whatever the order of the batch; also
 * for sequences without steps, one row for each record, and batches in which a record is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ok.h"
#include "oom.h"

#include "predict/predictor_private.h"
#include "predict/records.h"

enum { SEQUENCES = 5, FIRST = 30, FEATURES = 3, ROWS = 14 };

static const int32_t lengths[SEQUENCES] = {6, 4, 3, 1, 0};

/* What was handed out so far. */
struct told {
    const struct sl_batch *batch;
    bool on_steps;
    int64_t next;
    int fails_at; /* the record at which the receiver fails; 0: none */
};

/* Value of a feature in row r of the output. */
static float number(int64_t row, int64_t feature)
{
    return (float)(row * 10 + feature);
}

static int64_t find_sequence(const struct sl_batch *batch, int64_t record)
{
    int64_t k = 0;
    while (batch->sample[k] != record)
        k++;
    return k;
}

static seqlstm_status receive(void *context, const struct sl_prediction *prediction, struct seqlstm_error *err)
{
    struct told *told = context;
    assert_int_equal(prediction->record, told->next++);
    const int64_t k = find_sequence(told->batch, prediction->record);
    assert_int_equal(prediction->rows, told->on_steps ? lengths[k] : 1);
    assert_int_equal(prediction->features, FEATURES);
    assert_int_equal(prediction->on_steps, told->on_steps);
    assert_true(prediction->classes == NULL && prediction->input == NULL && prediction->data == NULL);
    for (int64_t t = 0; t < prediction->rows; t++) {
        const int64_t row = told->on_steps ? sl_batch_row(told->batch, k, t) : k;
        assert_false(prediction->none[t]);
        for (int64_t f = 0; f < FEATURES; f++)
            assert_true(prediction->values[t * FEATURES + f] == number(row, f));
    }
    if (prediction->record == told->fails_at)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "the pipe is closed");
    return SEQLSTM_OK;
}

/* Sequence k is record FIRST + order[k]. */
static struct sl_batch *make_batch(const int64_t order[SEQUENCES])
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_batch_shape shape = {.sequences = SEQUENCES,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = 1,
                                         .input_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    assert_int_equal(batch->axis.rows, ROWS);
    for (int64_t k = 0; k < SEQUENCES; k++)
        ((int64_t *)batch->sample)[k] = FIRST + order[k];
    return batch;
}

static seqlstm_status hand_out(struct told *told, struct seqlstm_error *err)
{
    static float values[ROWS * FEATURES];
    static const struct sl_model model = {.layer_count = 2};
    static const struct sl_graph graph = {.output_layer = 0}; /* not the last layer: values */
    const struct sl_predictor predictor = {.made = {.model = &model}, .graph = &graph};
    const struct sl_outlet outlet = {.write = receive, .context = told};
    const struct sl_field output = {
        .kind = SL_FIELD_VALUES, .on_steps = told->on_steps, .features = FEATURES, .values = values};
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t f = 0; f < FEATURES; f++)
            values[row * FEATURES + f] = number(row, f);
    told->next = FIRST;
    return sl_records_hand_out(&predictor, &outlet, told->batch, &output, FIRST, err);
}

static const int64_t orders[][SEQUENCES] = {
    {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}, {1, 0, 4, 2, 3}, {3, 2, 4, 1, 0}};

static void records_are_in_order(void **state)
{
    (void)state;
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
        for (int on_steps = 0; on_steps < 2; on_steps++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct told told = {.batch = make_batch(orders[o]), .on_steps = on_steps};
            ok(hand_out(&told, &err), &err);
            assert_int_equal(told.next, FIRST + SEQUENCES);
            sl_batch_destroy((struct sl_batch *)told.batch);
        }
}

/* After an error of the receiver nothing more is handed out; without memory it is told, and nothing is lost. */
static void errors_end_it(void **state)
{
    (void)state;
    struct told told = {.batch = make_batch(orders[2]), .on_steps = true};
    for (int fails_at = FIRST; fails_at < FIRST + SEQUENCES; fails_at++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        told.fails_at = fails_at;
        assert_int_equal(hand_out(&told, &err), SEQLSTM_IO);
        assert_int_equal(told.next, fails_at + 1);
    }
    told.fails_at = 0;
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        const seqlstm_status status = hand_out(&told, &err);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
    }
    assert_int_equal(told.next, FIRST + SEQUENCES);
    sl_batch_destroy((struct sl_batch *)told.batch);
}

/* Records before and behind the batch, and one that stands twice: another one is missing, which is told. */
static void missing_records(void **state)
{
    (void)state;
    static const struct {
        int64_t order[SEQUENCES];
        const char *message;
    } cases[] = {{{0, 1, 2, 3, 5}, "record 34 is not"},
                 {{-1, 1, 2, 3, 4}, "record 30 is not"},
                 {{0, 1, 1, 3, 4}, "record 32 is not"},
                 {{4, 4, 4, 4, 4}, "record 30 is not"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct told told = {.batch = make_batch(cases[c].order)};
        assert_int_equal(hand_out(&told, &err), SEQLSTM_INTERNAL);
        assert_non_null(strstr(err.message, cases[c].message));
        assert_int_equal(told.next, FIRST);
        sl_batch_destroy((struct sl_batch *)told.batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_in_order),
        cmocka_unit_test(errors_end_it),
        cmocka_unit_test(missing_records),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

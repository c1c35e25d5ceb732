/* SPDX-License-Identifier: Apache-2.0 */
/* Packed batches: the axis of the lengths 4 2 1 as ops.h draws it, zero lengths, fields, pairs, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/batch/batch.h"
#include "base/batch/profile.h"
#include "oom.h"

static struct sl_batch *make(const struct sl_batch_shape *shape)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = NULL;
    if (sl_batch_create(shape, &batch, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    if (sl_batch_check(batch, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return batch;
}

static void axis_as_drawn(void **state)
{
    (void)state;
    const int32_t lengths[5] = {4, 2, 1, 0, 0};
    const struct sl_batch_shape shape = {.sequences = 5,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .target_kind = SL_FIELD_IDS,
                                         .input_features = 3,
                                         .input_on_steps = true,
                                         .has_weight = true};
    struct sl_batch *batch = make(&shape);
    const int32_t sizes[4] = {3, 2, 1, 1};
    const int64_t offsets[5] = {0, 3, 5, 6, 7};
    assert_int_equal(batch->axis.sequences, 3);
    assert_int_equal(batch->axis.steps, 4);
    assert_int_equal(batch->axis.rows, 7);
    assert_int_equal(batch->axis.flags, 0);
    assert_memory_equal(batch->axis.batch_sizes, sizes, sizeof sizes);
    assert_memory_equal(batch->axis.row_offsets, offsets, sizeof offsets);
    assert_memory_equal(batch->axis.lengths, lengths, sizeof lengths);
    assert_int_equal(sl_batch_row(batch, 1, 1), 4);
    assert_int_equal(batch->sequences, 5);
    assert_true(batch->has_steps && batch->input.on_steps && !batch->target.on_steps);
    assert_int_equal(batch->input.features, 3);
    assert_int_equal(batch->target.features, 1);
    assert_int_equal(batch->weight.features, 1);
    /* zeroed, writable to the last element, and apart from each other */
    float *x = (float *)(uintptr_t)batch->input.values, *w = (float *)(uintptr_t)batch->weight.values;
    int32_t *y = (int32_t *)(uintptr_t)batch->target.ids;
    for (int k = 0; k < 21; k++) {
        assert_true(x[k] == 0.0f);
        x[k] = 1.0f;
    }
    for (int k = 0; k < 5; k++) {
        assert_true(y[k] == 0 && w[k] == 0.0f && batch->sample[k] == 0 && batch->axis.sequence_id[k] == 0);
        y[k] = 7;
        w[k] = 2.0f;
    }
    assert_true(x[20] == 1.0f && y[4] == 7 && w[0] == 2.0f && batch->axis.position0[4] == 0);
    assert_memory_equal(batch->axis.batch_sizes, sizes, sizeof sizes);
    assert_int_equal((uintptr_t)x % SEQLSTM_ALIGNMENT, 0);
    sl_batch_destroy(batch);
}

static void uniform_and_empty(void **state)
{
    (void)state;
    const int32_t equal[3] = {2, 2, 2}, none[2] = {0, 0};
    struct sl_batch_shape shape = {.sequences = 3, .lengths = equal};
    struct sl_batch *batch = make(&shape);
    assert_int_equal(batch->axis.flags, SEQLSTM_BIT_AXIS_UNIFORM);
    assert_int_equal(batch->axis.rows, 6);
    assert_int_equal(batch->input.kind, SL_FIELD_NONE);
    sl_batch_destroy(batch);

    shape = (struct sl_batch_shape){.sequences = 2, .lengths = none};
    batch = make(&shape);
    assert_true(batch->has_steps);
    assert_int_equal(batch->axis.sequences, 0);
    assert_int_equal(batch->axis.steps, 0);
    assert_int_equal(batch->axis.rows, 0);
    sl_batch_destroy(batch);
}

static void without_steps(void **state)
{
    (void)state;
    const struct sl_batch_shape shape = {.sequences = 4,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = 2,
                                         .target_kind = SL_FIELD_VALUES,
                                         .target_features = 3};
    struct sl_batch *batch = make(&shape);
    assert_false(batch->has_steps);
    assert_int_equal(batch->axis.sequences, 0);
    assert_int_equal(batch->sequences, 4);
    ((float *)(uintptr_t)batch->target.values)[11] = 1.0f;
    sl_batch_destroy(batch);
    sl_batch_destroy(NULL);
}

static void refusals(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = (struct sl_batch *)(void *)&err; /* must stay as it is */
    const int32_t rising[3] = {1, 2, 0}, negative[2] = {1, -1};
    struct sl_batch_shape shape = {.sequences = 3, .lengths = rising};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "length 1"));
    shape = (struct sl_batch_shape){.sequences = 2, .lengths = negative};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "-1"));
    shape = (struct sl_batch_shape){.sequences = -1};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_INVALID_ARGUMENT);
    shape = (struct sl_batch_shape){.sequences = 1, .input_kind = SL_FIELD_VALUES};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_INVALID_ARGUMENT);
    shape = (struct sl_batch_shape){.sequences = 1, .input_kind = SL_FIELD_IDS, .input_on_steps = true};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_INVALID_ARGUMENT);
    shape = (struct sl_batch_shape){.sequences = INT32_MAX, .input_kind = SL_FIELD_VALUES, .input_features = INT64_MAX};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_NO_MEMORY);
    const int32_t lengths[3] = {4, 2, 0}, source_lengths[3] = {1, 5, 3}; /* its rows are those of both sides */
    shape = (struct sl_batch_shape){.sequences = 3,
                                    .lengths = lengths,
                                    .source_lengths = source_lengths,
                                    .source_kind = SL_FIELD_VALUES,
                                    .source_features = INT64_MAX / 2};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_NO_MEMORY);
    assert_string_equal(err.message, "a batch of 3 sequences and 15 rows is too large for memory");
    assert_ptr_equal(batch, &err);
}

static void check_finds_damage(void **state)
{
    (void)state;
    const int32_t lengths[3] = {3, 3, 1};
    const struct sl_batch_shape shape = {.sequences = 3, .lengths = lengths};
    struct sl_batch *batch = make(&shape);
    int32_t *sizes = (int32_t *)(uintptr_t)batch->axis.batch_sizes;
    sizes[1]++;
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_INTERNAL);
    sizes[1]--;
    batch->axis.rows++;
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_INTERNAL);
    batch->axis.rows--;
    ((int32_t *)(uintptr_t)batch->axis.lengths)[2] = 4;
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_INTERNAL);
    sl_batch_destroy(batch);
}

/* Rows of both sides are the real steps, and each sequence finds its own in both orders. */
static void check_pairs(const int32_t *lengths, const int32_t *source_lengths, int32_t B)
{
    const struct sl_batch_shape shape = {.sequences = B,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_IDS,
                                         .target_kind = SL_FIELD_IDS,
                                         .input_on_steps = true,
                                         .target_on_steps = true,
                                         .source_lengths = source_lengths,
                                         .source_kind = SL_FIELD_IDS};
    struct sl_batch *batch = make(&shape);
    const struct sl_source_side *source = &batch->source;
    int64_t rows = 0, source_rows = 0;
    assert_true(source->present && source->input.on_steps);
    int32_t *ids = (int32_t *)(uintptr_t)source->input.ids;
    for (int32_t k = 0; k < B; k++) {
        rows += lengths[k];
        source_rows += source_lengths[k];
        assert_int_equal(source->axis.lengths[source->place[k]], source_lengths[k]);
        assert_int_equal(source->sequence[source->place[k]], k);
        for (int32_t t = 0; t < source_lengths[k]; t++)
            ids[sl_batch_source_row(batch, k, t)] += 1 + 1000 * k + t;
        /* equal lengths keep the batch's order */
        const int32_t j = source->place[k];
        if (j > 0 && source->axis.lengths[j - 1] == source_lengths[k])
            assert_true(source->sequence[j - 1] < k);
    }
    assert_int_equal(batch->axis.rows, rows);
    assert_int_equal(source->axis.rows, source_rows);
    for (int64_t t = 0, row = 0; t < source->axis.steps; t++)
        for (int32_t j = 0; j < source->axis.batch_sizes[t]; j++, row++)
            assert_int_equal(ids[row], 1 + 1000 * source->sequence[j] + t); /* each row written once */
    sl_batch_destroy(batch);
}

static void pairs(void **state)
{
    (void)state;
    const int32_t lengths[4] = {4, 3, 3, 1}, sources[4] = {2, 5, 0, 2}, ones[4] = {1, 1, 1, 1}, none[4] = {0};
    check_pairs(lengths, sources, 4);
    check_pairs(lengths, none, 4);
    check_pairs(none, sources, 4);
    check_pairs(ones, ones, 4);
    check_pairs(none, none, 0);
    uint32_t word = 12345;
    for (int round = 0; round < 200; round++) {
        int32_t target[40], source[40], B = 1 + round % 40;
        for (int32_t k = 0; k < B; k++) {
            target[k] = (B - k) / 2;
            word = word * 1664525u + 1013904223u;
            source[k] = (int32_t)(word >> 24) % (1 + round % 13);
        }
        check_pairs(target, source, B);
    }
}

static void source_alone(void **state)
{
    (void)state;
    const int32_t falling[4] = {5, 2, 2, 0}, rising[2] = {1, 2}, negative[1] = {-1};
    struct sl_batch_shape shape = {
        .sequences = 4, .source_lengths = falling, .source_kind = SL_FIELD_VALUES, .source_features = 3};
    struct sl_batch *batch = make(&shape);
    assert_false(batch->has_steps);
    assert_int_equal(batch->axis.sequences, 0);
    assert_int_equal(batch->source.axis.sequences, 3);
    assert_int_equal(batch->source.axis.rows, 9);
    for (int32_t k = 0; k < 4; k++)
        assert_true(batch->source.place[k] == k && batch->source.sequence[k] == k);
    ((float *)(uintptr_t)batch->source.input.values)[26] = 1.0f;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_OK);
    batch->axis.sequences = 2;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "the axis has 2 sequences and 0 steps, expected none");
    batch->axis.sequences = 0;
    batch->axis.steps = 1;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "the axis has 0 sequences and 1 steps, expected none");
    batch->axis.steps = 0;
    sl_batch_destroy(batch);

    shape = (struct sl_batch_shape){.sequences = 2, .source_lengths = rising};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_INVALID_ARGUMENT);
    shape = (struct sl_batch_shape){.sequences = 1, .lengths = rising, .source_lengths = negative};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_INVALID_ARGUMENT);
    shape = (struct sl_batch_shape){.sequences = 1, .lengths = rising, .source_kind = SL_FIELD_IDS};
    assert_int_equal(sl_batch_create(&shape, &batch, &err), SEQLSTM_INVALID_ARGUMENT);
}

/* Each message says what is wrong where, with what was expected. */
static void damage_is_told(void **state)
{
    (void)state;
    const int32_t lengths[3] = {3, 2, 0}, sources[3] = {1, 4, 2};
    const struct sl_batch_shape shape = {.sequences = 3, .lengths = lengths, .source_lengths = sources};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = make(&shape);
    batch->axis.sequences = 4;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "the axis has 4 sequences, the batch 3");
    batch->axis.sequences = 1;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "length 1 of the axis is 2, which is out of order");
    batch->axis.sequences = 2;
    ((int32_t *)(uintptr_t)batch->axis.lengths)[2] = 1;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "length 2 of the axis is 1, which is out of order");
    ((int32_t *)(uintptr_t)batch->axis.lengths)[2] = 0;
    ((int32_t *)(uintptr_t)batch->axis.lengths)[1] = 4;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "length 1 of the axis is 4, which is out of order");
    ((int32_t *)(uintptr_t)batch->axis.lengths)[1] = 2;
    batch->axis.rows = 6;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "the axis has 6 rows, expected 5");
    batch->axis.rows = 5;
    ((int64_t *)(uintptr_t)batch->axis.row_offsets)[2] = 3;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "step 2 of the axis has 1 rows from 3, expected 1 from 4");
    ((int64_t *)(uintptr_t)batch->axis.row_offsets)[2] = 4;
    ((int64_t *)(uintptr_t)batch->axis.row_offsets)[3] = 6;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "the axis ends at row 6, expected 5");
    ((int64_t *)(uintptr_t)batch->axis.row_offsets)[3] = 5;
    batch->source.sequences = 2;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "the source has 2 sequences, the batch 3");
    batch->source.sequences = 3;
    ((int32_t *)(uintptr_t)batch->source.place)[1] = 2;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "place 2 of sequence 1 is not undone by the source's sequences");
    ((int32_t *)(uintptr_t)batch->source.place)[1] = 0;
    assert_int_equal(sl_batch_check(batch, &err), SEQLSTM_OK);
    sl_batch_destroy(batch);
}

static void check_finds_damaged_source(void **state)
{
    (void)state;
    const int32_t lengths[3] = {3, 3, 1}, sources[3] = {1, 4, 2};
    const struct sl_batch_shape shape = {.sequences = 3, .lengths = lengths, .source_lengths = sources};
    struct sl_batch *batch = make(&shape);
    int32_t *place = (int32_t *)(uintptr_t)batch->source.place;
    const int32_t first = place[0];
    place[0] = place[1];
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_INTERNAL);
    place[0] = -1;
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_INTERNAL);
    place[0] = first;
    batch->source.axis.rows++;
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_INTERNAL);
    batch->source.axis.rows--;
    batch->source.sequences--;
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_INTERNAL);
    batch->source.sequences++;
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_OK);
    batch->has_steps = false; /* one order is expected then */
    batch->axis.sequences = batch->axis.steps = 0;
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_INTERNAL);
    sl_batch_destroy(batch);
}

static void memory_runs_out(void **state)
{
    (void)state;
    const int32_t lengths[3] = {3, 3, 1};
    const struct sl_batch_shape shape = {.sequences = 3, .lengths = lengths, .has_weight = true};
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_batch *batch = NULL;
        oom_fail_at(n);
        const seqlstm_status status = sl_batch_create(&shape, &batch, &err);
        if (!oom_disarm()) {
            assert_int_equal(n, 2); /* one allocation holds it all */
            sl_batch_destroy(batch);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_null(batch);
    }
}

/* Profiles keep their own copies; equal ones add their weights; the encoder sees the lengths of its side. */
static void profiles_of_pairs(void **state)
{
    (void)state;
    struct sl_profiles profiles = {0};
    int32_t lengths[2][3] = {{5, 3, 1}, {2, 2, 0}}, sources[2][3] = {{4, 4, 2}, {7, 1, 1}};
    const int32_t first[3] = {5, 3, 1}, of_first[3] = {4, 4, 2}, of_second[3] = {7, 1, 1};
    for (int p = 0; p < 2; p++)
        assert_int_equal(sl_profiles_add(&profiles, 3, lengths[p], sources[p], 0.25, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add(&profiles, 3, lengths[0], sources[1], 0.125, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add(&profiles, 3, lengths[0], NULL, 0.125, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add(&profiles, 3, NULL, NULL, 0.125, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add(&profiles, 3, lengths[1], sources[1], 0.5, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add(&profiles, 3, NULL, NULL, 0.25, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add_epoch(&profiles, 3, lengths[1], sources[1], NULL), SEQLSTM_OK);
    memset(lengths, 0, sizeof lengths);
    memset(sources, 0, sizeof sources);
    assert_int_equal(profiles.count, 5);
    const double weights[5] = {0.25, 0.75, 0.125, 0.125, 0.375};
    const int64_t rows[5] = {9, 4, 9, 9, 3}, source_rows[5] = {10, 9, 9, 3, 3};
    const struct sl_profiles source = sl_profiles_get_source(&profiles);
    for (int p = 0; p < 5; p++) {
        assert_true(profiles.items[p].weight == weights[p] && source.items[p].weight == weights[p]);
        assert_int_equal(sl_profile_get_rows(&profiles.items[p]), rows[p]);
        assert_int_equal(sl_profile_get_rows(&source.items[p]), source_rows[p]);
    }
    assert_memory_equal(profiles.items[0].lengths, first, sizeof first);
    assert_memory_equal(source.items[0].lengths, of_first, sizeof of_first);
    assert_memory_equal(profiles.epoch[0].source_lengths, of_second, sizeof of_second);
    assert_int_equal(sl_profile_get_rows(&profiles.epoch[0]), 4);
    for (int p = profiles.count; p < SL_PROFILES; p++)
        assert_int_equal(sl_profiles_add(&profiles, p + 1, NULL, NULL, 0, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add(&profiles, 100, NULL, NULL, 0, NULL), SEQLSTM_INVALID_ARGUMENT);
    for (int p = profiles.epoch_count; p < SL_PROFILES_EPOCH; p++)
        assert_int_equal(sl_profiles_add_epoch(&profiles, 3, first, NULL, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add_epoch(&profiles, 3, first, NULL, NULL), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(profiles.epoch_count, SL_PROFILES_EPOCH);
    sl_profiles_deinit(&profiles);
    assert_true(profiles.count == 0 && profiles.epoch == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axis_as_drawn),      cmocka_unit_test(uniform_and_empty),
        cmocka_unit_test(without_steps),      cmocka_unit_test(refusals),
        cmocka_unit_test(check_finds_damage), cmocka_unit_test(pairs),
        cmocka_unit_test(source_alone),       cmocka_unit_test(check_finds_damaged_source),
        cmocka_unit_test(damage_is_told),     cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(profiles_of_pairs),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

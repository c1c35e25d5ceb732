/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of batches, profiles and envelopes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/batch/slice.h"
#include "oom.h"

enum { SEQUENCES = 7 };
static const int32_t lengths[SEQUENCES] = {5, 4, 4, 2, 1, 1, 0};
static const int32_t source_lengths[SEQUENCES] = {1, 3, 0, 2, 5, 2, 4};

/* Every value says its sequence and step. */
static struct sl_batch *make_batch(void)
{
    const struct sl_batch_shape shape = {.sequences = SEQUENCES,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = 2,
                                         .input_on_steps = true,
                                         .target_kind = SL_FIELD_IDS,
                                         .target_on_steps = false,
                                         .has_weight = true,
                                         .source_lengths = source_lengths,
                                         .source_kind = SL_FIELD_IDS};
    struct sl_batch *batch = NULL;
    assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
    for (int32_t k = 0; k < SEQUENCES; k++) {
        for (int32_t t = 0; t < lengths[k]; t++)
            for (int f = 0; f < 2; f++)
                ((float *)(uintptr_t)batch->input.values)[2 * sl_batch_row(batch, k, t) + f] =
                    (float)(100 * k + 10 * t + f);
        for (int32_t t = 0; t < source_lengths[k]; t++)
            ((int32_t *)(uintptr_t)batch->source.input.ids)[sl_batch_source_row(batch, k, t)] = 1000 * k + t;
        ((int32_t *)(uintptr_t)batch->target.ids)[k] = k;
        ((float *)(uintptr_t)batch->weight.values)[k] = (float)k / 2;
        ((int64_t *)(uintptr_t)batch->sample)[k] = 50 + k;
        ((uint64_t *)(uintptr_t)batch->axis.sequence_id)[k] = (uint64_t)(70 + k);
        ((uint32_t *)(uintptr_t)batch->axis.position0)[k] = (uint32_t)(90 + k);
        ((uint64_t *)(uintptr_t)batch->source.axis.sequence_id)[batch->source.place[k]] = (uint64_t)(30 + k);
        ((uint32_t *)(uintptr_t)batch->source.axis.position0)[batch->source.place[k]] = (uint32_t)(40 + k);
    }
    batch->ordinal = 11;
    batch->carry_state = true;
    batch->last_segment = true;
    batch->axis.flags |= SEQLSTM_BIT_AXIS_STREAM;
    batch->padded_rows = 3;
    return batch;
}

static void check_slice(const struct sl_batch *slice, int64_t first, int64_t stride)
{
    assert_int_equal(sl_batch_check(slice, NULL), SEQLSTM_OK);
    assert_int_equal(slice->sequences, sl_slice_count(SEQUENCES, first, stride));
    assert_int_equal(slice->ordinal, 11);
    assert_true(slice->carry_state && slice->last_segment);
    assert_true(slice->axis.flags & SEQLSTM_BIT_AXIS_STREAM);
    assert_false(slice->source.axis.flags & SEQLSTM_BIT_AXIS_STREAM);
    assert_int_equal(slice->padded_rows, first == 0 ? 3 : 0);
    for (int64_t j = 0; j < slice->sequences; j++) {
        const int64_t k = first + j * stride;
        assert_int_equal(slice->axis.lengths[j], lengths[k]);
        for (int32_t t = 0; t < lengths[k]; t++)
            for (int f = 0; f < 2; f++)
                assert_true(slice->input.values[2 * sl_batch_row(slice, j, t) + f] == (float)(100 * k + 10 * t + f));
        for (int32_t t = 0; t < source_lengths[k]; t++)
            assert_int_equal(slice->source.input.ids[sl_batch_source_row(slice, j, t)], 1000 * k + t);
        assert_int_equal(slice->target.ids[j], k);
        assert_true(slice->weight.values[j] == (float)k / 2);
        assert_int_equal(slice->sample[j], 50 + k);
        assert_int_equal(slice->axis.sequence_id[j], 70 + k);
        assert_int_equal(slice->axis.position0[j], 90 + k);
        assert_int_equal(slice->source.axis.sequence_id[slice->source.place[j]], 30 + k);
        assert_int_equal(slice->source.axis.position0[slice->source.place[j]], 40 + k);
    }
}

/* A stream stays one, on either side; and a slice has no more rows than the whole. */
static void streams_and_bounds(void **state)
{
    (void)state;
    for (int stream = 0; stream < 4; stream++) {
        struct sl_batch *batch = make_batch(), *slice = NULL;
        batch->axis.flags = stream & 1 ? SEQLSTM_BIT_AXIS_STREAM : 0;
        batch->source.axis.flags = stream & 2 ? SEQLSTM_BIT_AXIS_STREAM : 0;
        assert_int_equal(sl_batch_slice(batch, 1, 2, &slice, NULL), SEQLSTM_OK);
        assert_int_equal((slice->axis.flags & SEQLSTM_BIT_AXIS_STREAM) != 0, stream & 1);
        assert_int_equal((slice->source.axis.flags & SEQLSTM_BIT_AXIS_STREAM) != 0, stream >> 1);
        sl_batch_destroy(slice);
        sl_batch_destroy(batch);
    }
    static const struct {
        int64_t stride, rows;
    } rows[] = {{1, 120}, {2, 120}, {3, 120}, {6, 120}, {8, 100}};
    const struct sl_envelope whole = {.sequences = 8, .steps = 100, .rows = 120, .source_steps = 50, .source_rows = 90};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct sl_envelope slice = sl_envelope_slice(&whole, rows[k].stride);
        assert_int_equal(slice.rows, rows[k].rows);
        assert_int_equal(slice.source_rows, slice.sequences == 1 ? 50 : 90);
        assert_int_equal(slice.sequences, (8 + rows[k].stride - 1) / rows[k].stride);
    }
}

static void slices_hold_their_sequences(void **state)
{
    (void)state;
    struct sl_batch *batch = make_batch();
    for (int64_t stride = 1; stride <= SEQUENCES + 2; stride++)
        for (int64_t first = 0; first < stride && first < SEQUENCES; first++) {
            struct sl_batch *slice = NULL;
            assert_int_equal(sl_batch_slice(batch, first, stride, &slice, NULL), SEQLSTM_OK);
            check_slice(slice, first, stride);
            sl_batch_destroy(slice);
        }
    sl_batch_destroy(batch);
}

/* Targets of values have a width of their own, on each step or once. */
static void slices_hold_values_as_targets(void **state)
{
    (void)state;
    enum { FEATURES = 3 };
    for (int on_steps = 0; on_steps < 2; on_steps++) {
        const struct sl_batch_shape shape = {.sequences = SEQUENCES,
                                             .lengths = lengths,
                                             .input_kind = SL_FIELD_IDS,
                                             .input_features = 1,
                                             .input_on_steps = true,
                                             .target_kind = SL_FIELD_VALUES,
                                             .target_features = FEATURES,
                                             .target_on_steps = on_steps};
        struct sl_batch *batch = NULL, *slice = NULL;
        assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
        for (int32_t k = 0; k < SEQUENCES; k++)
            for (int32_t t = 0; t < (on_steps ? lengths[k] : 1); t++) {
                const int64_t row = on_steps ? sl_batch_row(batch, k, t) : k;
                for (int f = 0; f < FEATURES; f++)
                    ((float *)(uintptr_t)batch->target.values)[FEATURES * row + f] = (float)(100 * k + 10 * t + f);
            }
        assert_int_equal(sl_batch_slice(batch, 1, 2, &slice, NULL), SEQLSTM_OK);
        assert_int_equal(sl_batch_check(slice, NULL), SEQLSTM_OK);
        assert_int_equal(slice->target.features, FEATURES);
        for (int32_t j = 0; j < slice->sequences; j++)
            for (int32_t t = 0; t < (on_steps ? lengths[1 + 2 * j] : 1); t++) {
                const int64_t row = on_steps ? sl_batch_row(slice, j, t) : j;
                for (int f = 0; f < FEATURES; f++)
                    assert_true(slice->target.values[FEATURES * row + f] == (float)(100 * (1 + 2 * j) + 10 * t + f));
            }
        sl_batch_destroy(slice);
        sl_batch_destroy(batch);
    }
}

/* No slice of any batch is larger, and the first reaches the number of sequences and steps. */
static void envelopes_bound_all_slices(void **state)
{
    (void)state;
    struct sl_batch *batch = make_batch();
    const struct sl_envelope whole = {.sequences = SEQUENCES,
                                      .steps = 5,
                                      .rows = batch->axis.rows,
                                      .source_steps = 5,
                                      .source_rows = batch->source.axis.rows};
    for (int64_t stride = 1; stride <= SEQUENCES; stride++) {
        const struct sl_envelope bound = sl_envelope_slice(&whole, stride);
        for (int64_t first = 0; first < stride; first++) {
            struct sl_batch *slice = NULL;
            assert_int_equal(sl_batch_slice(batch, first, stride, &slice, NULL), SEQLSTM_OK);
            assert_true(slice->sequences <= bound.sequences && slice->axis.rows <= bound.rows);
            assert_true(slice->source.axis.rows <= bound.source_rows);
            assert_true(first > 0 || slice->sequences == bound.sequences);
            sl_batch_destroy(slice);
        }
    }
    sl_batch_destroy(batch);
}

static void profiles_become_those_of_the_first_slice(void **state)
{
    (void)state;
    struct sl_profiles profiles = {0};
    assert_int_equal(sl_profiles_add(&profiles, SEQUENCES, lengths, NULL, 1, NULL), SEQLSTM_OK);
    assert_int_equal(sl_profiles_add_epoch(&profiles, SEQUENCES, lengths, source_lengths, NULL), SEQLSTM_OK);
    sl_profiles_slice(&profiles, 3);
    const int32_t expected[] = {5, 2, 0}, expected_source[] = {1, 2, 4};
    assert_int_equal(profiles.items[0].sequences, 3);
    assert_memory_equal(profiles.items[0].lengths, expected, sizeof expected);
    assert_memory_equal(profiles.epoch[0].source_lengths, expected_source, sizeof expected_source);
    sl_profiles_deinit(&profiles);
}

/* Neither slices nor profiles; what was there before stays. */
static void no_memory_is_told(void **state)
{
    (void)state;
    struct sl_batch *batch = make_batch(), *slice = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int n = 1;
    for (;; n++) {
        oom_fail_at(n);
        const seqlstm_status status = sl_batch_slice(batch, 1, 2, &slice, &err);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_null(slice);
    }
    assert_int_equal(n, 3);
    sl_batch_destroy(slice);
    sl_batch_destroy(batch);
    for (n = 1;; n++) {
        struct sl_profiles profiles = {0};
        oom_fail_at(n);
        seqlstm_status status = sl_profiles_add(&profiles, SEQUENCES, lengths, source_lengths, 1, &err);
        if (status == SEQLSTM_OK)
            status = sl_profiles_add_epoch(&profiles, SEQUENCES, lengths, source_lengths, &err);
        const bool failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        assert_int_equal(profiles.count, n > 2);
        assert_int_equal(profiles.epoch_count, !failed);
        sl_profiles_deinit(&profiles);
        if (!failed)
            break;
    }
    assert_int_equal(n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_hold_values_as_targets),
        cmocka_unit_test(slices_hold_their_sequences),
        cmocka_unit_test(streams_and_bounds),
        cmocka_unit_test(envelopes_bound_all_slices),
        cmocka_unit_test(profiles_become_those_of_the_first_slice),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

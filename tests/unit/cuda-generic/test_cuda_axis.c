/* SPDX-License-Identifier: Apache-2.0 */
/* The axis of a binding on the device (bound_axis.c), whose memory is the host's here, and the step block of a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "counted_host.h"
#include "cuda-generic/plugin.h"

static int on_device;

seqlstm_status cg_blocks_take(struct cg_blocks *blocks, int32_t ordinal, void *stream, uint64_t bytes, void **out_block,
                              struct seqlstm_error *err)
{
    (void)blocks, (void)ordinal, (void)stream, (void)err;
    *out_block = malloc(bytes);
    memset(*out_block, 0xFF, bytes);
    on_device++;
    return SEQLSTM_OK;
}

void cg_blocks_give(struct cg_blocks *blocks, int32_t ordinal, void *stream, uint64_t bytes, void *block)
{
    (void)blocks, (void)ordinal, (void)stream, (void)bytes;
    free(block);
    on_device--;
}

seqlstm_status gpu_copy(int32_t ordinal, void *stream, uint32_t direction, void *to, const void *from, uint64_t bytes,
                        struct seqlstm_error *err)
{
    (void)ordinal, (void)stream, (void)err;
    assert_int_equal(direction, SEQLSTM_COPY_TO_DEVICE);
    memcpy(to, from, bytes);
    return SEQLSTM_OK;
}

/* Lengths 5, 3, 3, 1. */
enum { SEQUENCES = 4, STEPS = 5, ROWS = 12 };
static const int32_t lengths[] = {5, 3, 3, 1}, batch_sizes[] = {4, 3, 3, 1, 1};
static const int64_t row_offsets[] = {0, 4, 7, 10, 11, 12};
static const uint64_t ids[] = {70, 60, 80, 50}, device_ids[] = {1};
static const uint32_t positions[] = {9, 0, 4, 2}, device_positions[] = {1};

static struct seqlstm_axis make_axis(void)
{
    return (struct seqlstm_axis){.struct_size = sizeof(struct seqlstm_axis),
                                 .sequences = SEQUENCES,
                                 .steps = STEPS,
                                 .rows = ROWS,
                                 .lengths = lengths,
                                 .batch_sizes = batch_sizes,
                                 .row_offsets = row_offsets,
                                 .sequence_id = ids,
                                 .position0 = positions};
}

static struct seqlstm_instance instance = {.domain.host = COUNTED_HOST};
static const struct seqlstm_op op = {.instance = &instance};

static struct cg_bound_axis open_axis(const struct seqlstm_bind *bind)
{
    struct cg_bound_axis axis;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(&axis, 0, sizeof axis);
    assert_int_equal(cg_axis_open(&axis, &op, bind, NULL, &err), SEQLSTM_OK);
    return axis;
}

static void close_axis(struct cg_bound_axis *axis)
{
    cg_axis_close(axis, &op, NULL);
    assert_int_equal(on_host, 0);
    assert_int_equal(on_device, 0);
}

/* Rows and steps count from the first of the segment, and lengths are those inside it. */
static void a_segment_is_an_axis_of_its_own(void **state)
{
    static const struct {
        int64_t t0, t1;
        int32_t lengths[SEQUENCES], sizes[STEPS], sequence[ROWS], step[ROWS];
        int64_t offsets[STEPS + 1];
    } rows[] = {
        {0,
         5,
         {5, 3, 3, 1},
         {4, 3, 3, 1, 1},
         {0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 0, 0},
         {0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4},
         {0, 4, 7, 10, 11, 12}},
        {1, 4, {3, 2, 2}, {3, 3, 1}, {0, 1, 2, 0, 1, 2, 0}, {0, 0, 0, 1, 1, 1, 2}, {0, 3, 6, 7}},
        {0, 1, {1, 1, 1, 1}, {4}, {0, 1, 2, 3}, {0, 0, 0, 0}, {0, 4}},
        {4, 5, {1}, {1}, {0}, {0}, {0, 1}},
    };
    const struct seqlstm_axis axis = make_axis();
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const int64_t t0 = rows[k].t0, t1 = rows[k].t1, count = row_offsets[t1] - row_offsets[t0];
        const struct seqlstm_bind bind = {
            .struct_size = sizeof bind, .rows = count, .rows_in = count, .axis = &axis, .t0 = t0, .t1 = t1};
        struct cg_bound_axis bound = open_axis(&bind);
        const struct cg_axis *a = &bound.device;
        assert_int_equal(a->sequences, batch_sizes[t0]);
        assert_int_equal(a->steps, t1 - t0);
        assert_int_equal(a->rows, count);
        assert_int_equal(a->t0, t0);
        assert_memory_equal(a->lengths, rows[k].lengths, (size_t)a->sequences * 4);
        assert_memory_equal(a->batch_sizes, rows[k].sizes, (size_t)a->steps * 4);
        assert_memory_equal(a->row_offsets, rows[k].offsets, (size_t)(a->steps + 1) * 8);
        assert_memory_equal(a->row_sequence, rows[k].sequence, (size_t)count * 4);
        assert_memory_equal(a->row_step, rows[k].step, (size_t)count * 4);
        close_axis(&bound);
    }
}

static void on_sequences_there_is_one_row_for_each(void **state)
{
    const struct seqlstm_axis axis = make_axis();
    const struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                      .flags = SEQLSTM_BIT_BIND_ON_SEQUENCES,
                                      .rows = SEQUENCES,
                                      .rows_in = SEQUENCES,
                                      .axis = &axis,
                                      .t1 = STEPS};
    (void)state;
    struct cg_bound_axis bound = open_axis(&bind);
    assert_int_equal(bound.device.sequences, SEQUENCES);
    assert_int_equal(bound.device.steps, 1);
    assert_int_equal(bound.device.rows, SEQUENCES);
    assert_int_equal(bound.device.row_offsets[1], SEQUENCES);
    for (int32_t b = 0; b < SEQUENCES; b++) {
        assert_int_equal(bound.device.row_sequence[b], b);
        assert_int_equal(bound.device.row_step[b], 0);
        assert_int_equal(bound.device.lengths[b], 1);
    }
    close_axis(&bound);
}

/* Each call brings its ids, positions and whether it continues a stream, which a later call need not. */
static void a_call_renews_what_changes(void **state)
{
    static const uint64_t other_ids[] = {7, 6, 8, 5};
    static const uint32_t other_positions[] = {1, 2, 3, 4};
    struct seqlstm_axis axis = make_axis();
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_bind bind = {
        .struct_size = sizeof bind, .rows = ROWS, .rows_in = ROWS, .axis = &axis, .t1 = STEPS};
    (void)state;
    struct cg_bound_axis bound = open_axis(&bind);
    for (int round = 0; round < 3; round++) {
        axis.flags = round == 1 ? SEQLSTM_BIT_AXIS_STREAM : 0;
        axis.sequence_id = round == 1 ? other_ids : ids;
        axis.position0 = round == 1 ? other_positions : positions;
        assert_int_equal(cg_axis_renew(&bound, &op, &axis, NULL, &err), SEQLSTM_OK);
        assert_int_equal(bound.device.stream, round == 1);
        assert_memory_equal(bound.device.sequence_id, axis.sequence_id, sizeof ids);
        assert_memory_equal(bound.device.position0, axis.position0, sizeof positions);
        assert_memory_equal(bound.device.lengths, lengths, sizeof lengths);
    }
    close_axis(&bound);
}

/* Copies of the host's are used where both are there, which an older host does not know. */
static void copies_of_the_host_are_used(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        struct seqlstm_axis axis = make_axis();
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const struct seqlstm_bind bind = {
            .struct_size = sizeof bind, .rows = ROWS, .rows_in = ROWS, .axis = &axis, .t1 = STEPS};
        const bool both = k == 3;
        axis.device_sequence_id = k == 1 || k >= 3 ? device_ids : NULL;
        axis.device_position0 = k >= 2 ? device_positions : NULL;
        if (k == 4)
            axis.struct_size = (uint32_t)offsetof(struct seqlstm_axis, device_position0);
        struct cg_bound_axis bound = open_axis(&bind);
        assert_int_equal(bound.staging == NULL, both);
        assert_int_equal(bound.device.sequence_id == device_ids, both);
        assert_int_equal(bound.device.position0 == device_positions, both);
        axis.flags = SEQLSTM_BIT_AXIS_STREAM;
        assert_int_equal(cg_axis_renew(&bound, &op, &axis, NULL, &err), SEQLSTM_OK);
        assert_int_equal(bound.device.stream, 1);
        if (!both)
            assert_memory_equal(bound.device.sequence_id, ids, sizeof ids);
        close_axis(&bound);
    }
}

/* The step block of an older host is shorter: what lies behind it does not belong to it. */
static void a_shorter_step_is_not_read_beyond_its_end(void **state)
{
    static const size_t ends[] = {offsetof(struct seqlstm_step, weight_mask_step), offsetof(struct seqlstm_step, alpha),
                                  offsetof(struct seqlstm_step, device), sizeof(struct seqlstm_step)};
    (void)state;
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) {
        struct seqlstm_step step, expected = {0};
        memset(&step, 0x5A, sizeof step);
        step.struct_size = (uint32_t)ends[k];
        memcpy(&expected, &step, ends[k]);
        unsigned char *block = malloc(ends[k]); /* no longer than it says */
        memcpy(block, &step, ends[k]);
        const struct cg_live live[] = {cg_live_make(&step), cg_live_make((const struct seqlstm_step *)(void *)block)};
        for (int l = 0; l < 2; l++) {
            assert_memory_equal(&live[l].step, &expected, sizeof expected);
            assert_ptr_equal(live[l].device, expected.device);
        }
        free(block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_is_an_axis_of_its_own),
        cmocka_unit_test(on_sequences_there_is_one_row_for_each),
        cmocka_unit_test(a_call_renews_what_changes),
        cmocka_unit_test(copies_of_the_host_are_used),
        cmocka_unit_test(a_shorter_step_is_not_read_beyond_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

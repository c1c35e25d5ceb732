/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu-onednn says of batches that it is shown: which bytes they leave idle, and how much memory of its own they
 * take. */
#include <unistd.h>

#include "onednn_fixture.h"

/* Each member has buffers of its own, with room between them. */
static void fewer_members_leave_more_idle(void **state)
{
    (void)state;
    static const uint32_t modes[] = {SEQLSTM_MODE_TRAINING, SEQLSTM_MODE_INFERENCE};
    static struct batch b;
    static struct idle any, one, many;
    const bool has_several = sysconf(_SC_NPROCESSORS_CONF) > 1;
    batch_fill(&b, SEQUENCES, STEPS / 2, STEPS);
    for (int k = 0; k < 2; k++) {
        struct seqlstm_op *op = make_lstm(40, modes[k], "sliced");
        ask_members(&any, op, &b.axis, 0);
        ask_members(&one, op, &b.axis, 1);
        ask_members(&many, op, &b.axis, 4096);
        assert_int_equal(many.reserve_bytes, any.reserve_bytes);
        assert_int_equal(many.workspace_bytes, any.workspace_bytes);
        assert_true(has_several ? one.workspace_bytes > any.workspace_bytes
                                : one.workspace_bytes == any.workspace_bytes);
        assert_true(has_several && modes[k] == SEQLSTM_MODE_TRAINING ? one.reserve_bytes > any.reserve_bytes
                                                                     : one.reserve_bytes == any.reserve_bytes);
        table->op_destroy(op);
    }
}

static void smaller_batches_leave_more_idle(void **state)
{
    (void)state;
    static struct batch large, small;
    static struct idle bound, most, less;
    struct seqlstm_op *op = make_lstm(512, SEQLSTM_MODE_TRAINING, "sliced");
    batch_fill(&large, SEQUENCES, STEPS / 2, STEPS);
    batch_fill(&small, SEQUENCES / 2, STEPS / 4, STEPS / 2);
    ask(&bound, op, NULL);
    ask(&most, op, &large.axis);
    ask(&less, op, &small.axis);
    const uint64_t bytes = bound.sizes.reserve_bytes;
    assert_int_equal(bound.reserve_bytes, 0); /* of any batch */
    assert_true(most.reserve_bytes > 0 && most.sizes.reserve_bytes == bytes);
    assert_true(less.reserve_bytes > most.reserve_bytes);
    assert_true(less.workspace_bytes > most.workspace_bytes);
    /* a quarter of the rows takes a good quarter of what is left; the rest does not depend on rows */
    assert_true(bytes - less.reserve_bytes < (bytes - most.reserve_bytes) / 2);
    table->op_destroy(op);
}

/* Of sequences of one length, an eighth of the rows takes less than half. */
static void smaller_batches_of_equal_lengths_leave_more_idle(void **state)
{
    (void)state;
    static const uint32_t modes[] = {SEQLSTM_MODE_TRAINING, SEQLSTM_MODE_INFERENCE};
    static struct batch large, small;
    static struct idle most, less;
    batch_fill(&large, SEQUENCES, STEPS, STEPS);
    batch_fill(&small, SEQUENCES / 4, STEPS / 2, STEPS / 2);
    for (int k = 0; k < 2; k++) {
        flags = SEQLSTM_BIT_DESC_UNIFORM;
        struct seqlstm_op *op = make_lstm(128, modes[k], "sliced");
        flags = 0;
        ask(&most, op, &large.axis);
        ask(&less, op, &small.axis);
        const struct seqlstm_sizes *sizes = &most.sizes;
        assert_true(sizes->workspace_bytes - less.workspace_bytes <
                    (sizes->workspace_bytes - most.workspace_bytes) / 2);
        assert_true(modes[k] == SEQLSTM_MODE_INFERENCE ||
                    sizes->reserve_bytes - less.reserve_bytes < (sizes->reserve_bytes - most.reserve_bytes) / 2);
        table->op_destroy(op);
    }
}

static uint64_t say_own(const struct seqlstm_op *op, const struct batch *const *batches, uint32_t count, uint32_t bound)
{
    const struct seqlstm_axis *axes[8];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    uint64_t bytes = 0;
    assert_true(count <= 8);
    for (uint32_t k = 0; k < count; k++)
        axes[k] = &batches[k]->axis;
    assert_int_equal(get_footprint()->own_bytes(op, axes, count, bound, &bytes, &err), SEQLSTM_OK);
    return bytes;
}

/* Batches that are bound at the same time have calls each; the same shape comes again for nothing. */
static void own_memory_is_that_of_the_largest_group(void **state)
{
    (void)state;
    static struct batch a, b, c;
    const struct batch *const one[] = {&a}, *const same[] = {&a, &a, &a, &a}, *const two[] = {&a, &b},
                              *const late[] = {&a, &a, &a, &b}, *const three[] = {&a, &b, &c};
    struct seqlstm_op *op = make_lstm_for(8, 8, 32, SEQLSTM_MODE_INFERENCE, "sliced");
    batch_fill(&a, 1, 3, 3);
    batch_fill(&b, 1, 5, 5);
    batch_fill(&c, 1, 7, 7);
    const uint64_t alone = say_own(op, one, 1, 1), together = say_own(op, two, 2, 2);
    assert_true(alone > 0 && together > alone);
    assert_int_equal(say_own(op, one, 1, 0), alone);
    assert_int_equal(say_own(op, same, 4, 1), alone);
    assert_true(say_own(op, same, 4, 2) > alone && say_own(op, same, 4, 2) < together);
    assert_int_equal(say_own(op, late, 4, 2), together);
    assert_true(say_own(op, three, 3, 1) > together);
    table->op_destroy(op);
}

/* The largest batch is within the bounds of its operation, and they are not far above it: few long sequences need
 * other things than many short ones. */
static void bounds_fit_every_shape(void **state)
{
    (void)state;
    static const struct {
        int32_t sequences, steps;
    } shapes[] = {{1, 64}, {2, 64}, {64, 1}, {64, 2}, {63, 3}, {16, 16}, {5, 40}, {64, 64}};
    static struct batch b;
    static struct idle idle;
    for (size_t k = 0; k < 2 * sizeof shapes / sizeof *shapes; k++) {
        const int32_t sequences = shapes[k / 2].sequences, steps = shapes[k / 2].steps;
        struct seqlstm_op *op = make_lstm_for(sequences, steps, k % 2 ? 512 : 128, SEQLSTM_MODE_TRAINING, "sliced");
        batch_fill(&b, sequences, steps, steps);
        bind_once(op, &b); /* fails beyond the bounds */
        ask(&idle, op, &b.axis);
        const double bound = (double)idle.sizes.reserve_bytes, used = bound - (double)idle.reserve_bytes;
        if (!(used <= bound && bound <= 2 * used))
            fail_msg("%d sequences of %d steps: a bound of %.0f bytes for %.0f", sequences, steps, bound, used);
        table->op_destroy(op);
    }
}

/* Some threads have nothing to do then. */
static void sequences_without_steps_take_nothing(void **state)
{
    (void)state;
    static struct batch one, with_empty, longer;
    static struct idle alone, beside, more;
    struct seqlstm_op *op = make_lstm(64, SEQLSTM_MODE_TRAINING, "sliced");
    batch_fill(&one, 1, STEPS / 2, STEPS / 2);
    with_empty = one;
    with_empty.axis = one.axis;
    with_empty.axis.sequences = 2; /* the second has length 0 */
    batch_fill(&longer, 2, STEPS / 4, STEPS / 2);
    ask(&alone, op, &one.axis);
    ask(&beside, op, &with_empty.axis);
    ask(&more, op, &longer.axis);
    assert_true(beside.reserve_bytes > more.reserve_bytes);
    assert_in_range(beside.reserve_bytes, alone.reserve_bytes - 4096, alone.reserve_bytes);
    table->op_destroy(op);
}

/* No more ranges are written than the host gives room for. */
static void room_for_what_is_idle_is_kept(void **state)
{
    (void)state;
    static struct batch large;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = make_lstm(512, SEQLSTM_MODE_TRAINING, "sliced");
    batch_fill(&large, SEQUENCES, STEPS / 2, STEPS);
    struct seqlstm_range guard[2] = {{7, 7}, {7, 7}};
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    struct seqlstm_idle idle = {
        .struct_size = sizeof idle, .workspace = {.at = guard}, .reserve = {.at = guard + 1, .room = 0}};
    assert_int_equal(table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    assert_int_equal(get_footprint()->idle_ranges(op, &sizes, &large.axis, &idle, &err), SEQLSTM_OK);
    assert_int_equal(idle.workspace.count + idle.reserve.count, 0);
    assert_true(guard[0].begin == 7 && guard[0].end == 7 && guard[1].begin == 7 && guard[1].end == 7);
    table->op_destroy(op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_members_leave_more_idle),
        cmocka_unit_test(smaller_batches_leave_more_idle),
        cmocka_unit_test(smaller_batches_of_equal_lengths_leave_more_idle),
        cmocka_unit_test(own_memory_is_that_of_the_largest_group),
        cmocka_unit_test(bounds_fit_every_shape),
        cmocka_unit_test(sequences_without_steps_take_nothing),
        cmocka_unit_test(room_for_what_is_idle_is_kept),
    };
    if (!open_backend())
        return 0;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    table->close(instance);
    return failed || host.memory.live_blocks != 0;
}

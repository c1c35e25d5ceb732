/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of training steps: what a slot of the ring holds, what the device is told of each step, and how its results
 * come back. */
#include "frame_world.h"
#include "oom.h"

/* Starts a step, and returns the slot that it fills. */
static const char *start_step(const struct sl_exec_step *step)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int64_t slot = w.exec.ring.launched % SL_EXEC_AHEAD;
    sl_exec_make_frame(&w.exec, &w.exec.loose);
    assert_true(w.exec.loose.slot_bytes <= w.exec.ring.slot_bytes);
    ok(sl_exec_launch(&w.exec, &w.exec.loose, step, run_no_calls, &err), &err);
    return w.exec.ring.device + slot * w.exec.ring.slot_bytes;
}

static struct sl_exec_result land(void)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_result result;
    ok(sl_exec_land(&w.exec, &result, &err), &err);
    return result;
}

/* ---- slots ---- */

/* The next copy of the frame brings `bytes` bytes, which the slot contains. */
static void check_copy(const char *slot, uint32_t *copy_at, const void *to, const void *from, uint64_t bytes)
{
    const struct seqlstm_frame_copy *made = &w.exec.loose.begin.copies[(*copy_at)++];
    assert_ptr_equal(made->to, to);
    assert_null(made->from);
    assert_int_equal(made->bytes, bytes);
    assert_memory_equal(slot + made->offset, from, bytes);
}

/* Ids and positions of both sides, which differ, and each field once, however many tensors it has. */
static void a_slot_holds_the_batch_and_the_step(void **state)
{
    (void)state;
    uint32_t at = 0;
    open_world();
    w.exec.step.epoch = 17;
    const struct sl_exec_step step = {.course = {.updates = 5, .loss = 1.5, .weight = 2.5, .good = 3, .scale_most = 8}};
    const char *slot = start_step(&step);
    const struct seqlstm_axis *target = &w.exec.shape->sides[SL_EXEC_TARGET].steps;
    const struct seqlstm_axis *source = &w.exec.shape->sides[SL_EXEC_SOURCE].steps;
    check_copy(slot, &at, target->device_sequence_id, w.batch->axis.sequence_id, 3 * 8);
    check_copy(slot, &at, target->device_position0, w.batch->axis.position0, 3 * 4);
    check_copy(slot, &at, source->device_sequence_id, w.batch->source.axis.sequence_id, 3 * 8);
    check_copy(slot, &at, source->device_position0, w.batch->source.axis.position0, 3 * 4);
    check_copy(slot, &at, &w.fields[0], w.batch->input.values, 6 * 2 * 4);
    check_copy(slot, &at, &w.fields[SL_TENSOR_SOURCE - SL_TENSOR_INPUT], w.batch->source.input.ids, 7 * 4);
    check_copy(slot, &at, &w.fields[SL_TENSOR_TARGET - SL_TENSOR_INPUT], w.batch->target.values, 3 * 4);
    assert_int_equal(w.exec.loose.begin.copy_count, at);
    struct seqlstm_order order;
    struct seqlstm_step block;
    memcpy(&order, slot, sizeof order);
    memcpy(&block, slot + SEQLSTM_FRAME_STEP_OFFSET, sizeof block);
    assert_int_equal(block.epoch, 17);
    assert_int_equal(order.updates, 5);
    assert_true(order.loss == 1.5 && order.weight == 2.5 && order.scale_most == 8);
    assert_int_equal(order.good, 3);
    close_world();
}

/* The block that calls read has room for each side, and masks on the sequences axis read the same one. */
static void both_sides_have_their_ids_on_the_device(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_world();
    w.exec.step.epoch = 21;
    ok(sl_exec_renew_live(&w.exec, &err), &err);
    assert_int_equal(w.exec.step.device->epoch, 21);
    const struct seqlstm_axis *const from[] = {&w.batch->axis, &w.batch->source.axis};
    for (int side = 0; side < SL_EXEC_SIDES; side++) {
        const struct sl_exec_axes *axes = &w.exec.shape->sides[side];
        assert_memory_equal(axes->steps.device_sequence_id, from[side]->sequence_id, 3 * 8);
        assert_memory_equal(axes->steps.device_position0, from[side]->position0, 3 * 4);
        assert_ptr_equal(axes->rows.device_sequence_id, axes->steps.device_sequence_id);
        assert_ptr_equal(axes->rows.device_position0, axes->steps.device_position0);
    }
    for (int streams_on = 0; streams_on < 2; streams_on++) { /* each side has flags of its own */
        const uint32_t stream = streams_on ? SEQLSTM_BIT_AXIS_STREAM : 0;
        w.batch->axis.flags = (w.batch->axis.flags & ~(uint32_t)SEQLSTM_BIT_AXIS_STREAM) | stream;
        ok(sl_exec_bind(&w.exec, w.batch, &err), &err);
        assert_int_equal(w.exec.shape->sides[SL_EXEC_TARGET].rows.flags, SEQLSTM_BIT_AXIS_UNIFORM | stream);
        assert_int_equal(w.exec.shape->sides[SL_EXEC_SOURCE].rows.flags, SEQLSTM_BIT_AXIS_UNIFORM);
    }
    close_world();
}

/* ---- orders ---- */

static void the_device_is_told_what_the_step_is(void **state)
{
    (void)state;
    const struct sl_exec_update update = {.count = 1};
    const struct {
        bool carries;
        struct sl_exec_step step;
        uint32_t flags;
    } rows[] = {
        {true, {.accumulate = true}, 0},
        {false, {.accumulate = true}, SEQLSTM_BIT_ORDER_RESET},
        {true, {.accumulate = false}, SEQLSTM_BIT_ORDER_FIRST},
        {true, {.accumulate = true, .update = &update}, SEQLSTM_BIT_ORDER_UPDATE},
        {true, {.accumulate = true, .course = {.good_enough = 1}}, SEQLSTM_BIT_ORDER_SCALES},
        {true, {.accumulate = true, .course = {.good = 1}}, 0},
        {true, {.accumulate = true, .course = {.goes_on = true}}, SEQLSTM_BIT_ORDER_GOES_ON},
    };
    open_world();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_order orders[2];
        w.batch->carry_state = rows[k].carries;
        for (int ahead = 0; ahead < 2; ahead++) {
            const char *slot = start_step(&rows[k].step);
            memcpy(&orders[ahead], slot, sizeof orders[ahead]);
        }
        /* the host's numbers count where no step is under way */
        assert_int_equal(orders[0].flags, rows[k].flags | SEQLSTM_BIT_ORDER_SETTLED);
        assert_int_equal(orders[1].flags, rows[k].flags);
        for (int ahead = 0; ahead < 2; ahead++) {
            struct seqlstm_outcome *outcome = &w.exec.ring.outcomes[w.exec.ring.landed % SL_EXEC_AHEAD];
            *outcome = (struct seqlstm_outcome){.step = (uint64_t)w.exec.ring.landed + 1, .loss_scale = 1};
            land();
        }
    }
    close_world();
}

/* ---- results ---- */

/* Of two steps under way, each with rows and numbers of its own. */
static void each_step_gets_its_own_results(void **state)
{
    (void)state;
    const struct sl_exec_step step = {.accumulate = true};
    open_world();
    int64_t rows[2];
    for (int k = 0; k < 2; k++) {
        start_step(&step);
        rows[k] = sl_batch_count_computed_rows(w.batch);
        w.batch->source.axis.rows -= 2;
    }
    assert_int_equal(rows[0] - rows[1], 2);
    for (int k = 0; k < 2; k++) {
        w.exec.ring.outcomes[k] = (struct seqlstm_outcome){
            .step = 1 + (uint64_t)k, .loss = 3 + k, .weight = 5 + k, .squares = 64 * (k + 1), .loss_scale = 4};
        const struct sl_exec_result result = land();
        assert_true(result.loss_sum == 3 + k && result.weight_sum == 5 + k);
        assert_true(result.squares == 4 * (k + 1)); /* without the scale of the loss */
        assert_int_equal(result.rows, rows[k]);
    }
    assert_int_equal(w.exec.captures.ahead, 1);
    assert_int_equal(w.exec.captures.uncaptured, 2);
    assert_int_equal(w.exec.captures.launched, 0);
    close_world();
}

static void a_report_of_another_step_is_an_error(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_result result;
    const struct sl_exec_step step = {.accumulate = true};
    open_world();
    start_step(&step);
    w.exec.ring.outcomes[0] = (struct seqlstm_outcome){.step = 7, .loss_scale = 1};
    assert_int_equal(sl_exec_land(&w.exec, &result, &err), SEQLSTM_DEVICE);
    assert_string_equal(err.message, "the device reports step 7, expected 1");
    close_world();
}

/* ---- failures ---- */

/* The steps of a launch and of its landing, each of which fails once: the one that fails is not taken for done. */
static void a_step_that_fails_is_not_done(void **state)
{
    (void)state;
    const struct sl_exec_step step = {.accumulate = true};
    bool failed = true;
    int number = 0;
    for (; failed; number++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_exec_result result;
        open_world();
        start_step(&step); /* so that there is idle time between two */
        w.exec.ring.outcomes[0] = (struct seqlstm_outcome){.step = 1, .loss_scale = 1};
        land();
        sl_exec_make_frame(&w.exec, &w.exec.loose);
        fails_at = number;
        seqlstm_status status = sl_exec_launch(&w.exec, &w.exec.loose, &step, run_no_calls, &err);
        w.exec.ring.outcomes[1] = (struct seqlstm_outcome){.step = 2, .loss_scale = 1};
        if (status == SEQLSTM_OK)
            status = sl_exec_land(&w.exec, &result, &err);
        failed = fails_at < 0;
        assert_int_equal(status, failed ? SEQLSTM_DEVICE : SEQLSTM_OK);
        assert_string_equal(err.message, failed ? "the card is gone" : "");
        close_world();
    }
    assert_int_equal(number - 1, 9); /* copy, sent, wait; begun, both frames, ended; synchronize, elapsed */
}

/* What the device needs at both ends of a step: the ring, where the step, the sums and the norm lie, and the states. */
static void a_frame_says_where_things_lie(void **state)
{
    (void)state;
    float states[12];
    double sums[2], scalar;
    open_world();
    w.exec.state_elems = 12;
    w.exec.places[1].states = states;
    w.exec.places[1].sums = sums;
    w.exec.places[1].scalar = &scalar;
    sl_exec_make_frame(&w.exec, &w.exec.loose);
    const struct seqlstm_frame *ends[] = {&w.exec.loose.begin, &w.exec.loose.end};
    for (int k = 0; k < 2; k++) {
        const struct seqlstm_frame *frame = ends[k];
        assert_true(frame->slots == SL_EXEC_AHEAD && frame->slot_bytes == (uint64_t)w.exec.ring.slot_bytes);
        assert_true(frame->ring == (void *)w.exec.ring.device && frame->progress == w.exec.ring.progress);
        assert_true(frame->outcomes == w.exec.ring.outcomes && frame->step == (void *)w.exec.live.device);
        assert_true(frame->sums == sums && frame->squares == &scalar && frame->states == states);
        assert_int_equal(frame->state_bytes, 48);
    }
    assert_int_equal(w.exec.loose.end.copy_count, 0);
    for (uint32_t k = 0; k < SEQLSTM_FRAME_COPIES; k++) {
        assert_true(sl_exec_add_to_frame(&w.exec.loose, &states[0], &states[1 + k % 4], 4 + k));
        const struct seqlstm_frame_copy *copied = &w.exec.loose.end.copies[k];
        assert_true(copied->to == &states[0] && copied->from == &states[1 + k % 4] && copied->bytes == 4 + k);
    }
    assert_false(sl_exec_add_to_frame(&w.exec.loose, &states[0], &states[1], 4)); /* it is copied otherwise */
    assert_int_equal(w.exec.loose.end.copy_count, SEQLSTM_FRAME_COPIES);
    close_world();
}

/* ---- idle time ---- */

static void make_marks(double begun, double ended)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    now_ns = begun;
    ok(sl_exec_mark_begin(&w.exec, &err), &err);
    now_ns = ended;
    ok(sl_exec_mark_end(&w.exec, &err), &err);
    ok(sl_exec_count_idle(&w.exec, &err), &err);
}

/* The time between steps counts, unless the caller did something else. */
static void idle_time_lies_between_steps_that_follow(void **state)
{
    (void)state;
    open_world();
    make_marks(10, 20);
    make_marks(23, 30);
    sl_exec_pause(&w.exec);
    make_marks(1030, 1040);
    make_marks(1045, 1050);
    assert_int_equal(w.exec.captures.gaps, 2);
    assert_true(w.exec.captures.idle_ns == 8);
    close_world();
}

/* A frame brings the fields, and states only where they begin at zero. */
static void a_frame_makes_fields_valid(void **state)
{
    (void)state;
    open_world();
    for (int carries = 0; carries < 2; carries++) {
        memset(w.valid, 1 << SL_PLACE_HOST, sizeof w.valid);
        w.batch->carry_state = carries;
        sl_exec_note_frame(&w.exec);
        assert_int_equal(w.valid[X], 3);
        assert_int_equal(w.valid[SOURCE], 3);
        assert_int_equal(w.valid[STATE], carries ? 1 : 2);
        assert_int_equal(w.valid[SUMS], 2);
    }
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_holds_the_batch_and_the_step),
        cmocka_unit_test(both_sides_have_their_ids_on_the_device),
        cmocka_unit_test(the_device_is_told_what_the_step_is),
        cmocka_unit_test(each_step_gets_its_own_results),
        cmocka_unit_test(a_report_of_another_step_is_an_error),
        cmocka_unit_test(a_step_that_fails_is_not_done),
        cmocka_unit_test(a_frame_says_where_things_lie),
        cmocka_unit_test(idle_time_lies_between_steps_that_follow),
        cmocka_unit_test(a_frame_makes_fields_valid),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

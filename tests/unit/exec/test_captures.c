/* SPDX-License-Identifier: Apache-2.0 */
/* When a training step is captured, which capture is launched, and what is left of one that failed. */
#include "frame_world.h"
#include "oom.h"

#include "exec/update/update.h"
#include "exec/update/vectors.h"

static int grads_brought, updates_brought, updates_noted;

seqlstm_status __wrap_sl_params_provide(struct sl_params *params, int32_t place, enum sl_param_part part, int64_t begin,
                                        int64_t elems, float **out_elems, struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_bring_update(struct sl_exec *exec, struct seqlstm_error *err);
void __wrap_sl_exec_note_update(struct sl_exec *exec);

seqlstm_status __wrap_sl_params_provide(struct sl_params *params, int32_t place, enum sl_param_part part, int64_t begin,
                                        int64_t elems, float **out_elems, struct seqlstm_error *err)
{
    (void)params, (void)out_elems, (void)err;
    assert_int_equal(place, 1);
    assert_int_equal(begin, 0);
    assert_int_equal(elems, w.params.trainable_elems);
    grads_brought += part == SL_PART_GRADS;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_exec_bring_update(struct sl_exec *exec, struct seqlstm_error *err)
{
    (void)exec, (void)err;
    updates_brought++;
    return SEQLSTM_OK;
}

void __wrap_sl_exec_note_update(struct sl_exec *exec)
{
    (void)exec;
    updates_noted++;
}

static int bound; /* that are there */

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *opened);
seqlstm_status __wrap_sl_plugin_bind(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                     struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                                     struct seqlstm_binding **out_binding, struct seqlstm_error *err);
void __wrap_sl_plugin_destroy_binding(const struct seqlstm_backend *table, struct seqlstm_binding *binding);
seqlstm_status __wrap_sl_plugin_forward(const struct seqlstm_backend *table, struct seqlstm_binding *binding,
                                        struct seqlstm_queue *queue, const struct seqlstm_forward *args,
                                        struct seqlstm_error *err);

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *opened)
{
    (void)opened;
    return &backend;
}

seqlstm_status __wrap_sl_plugin_bind(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                     struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                                     struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    (void)table, (void)op, (void)queue, (void)bind, (void)err;
    bound++;
    *out_binding = malloc(1);
    return SEQLSTM_OK;
}

void __wrap_sl_plugin_destroy_binding(const struct seqlstm_backend *table, struct seqlstm_binding *binding)
{
    (void)table;
    bound--;
    free(binding);
}

seqlstm_status __wrap_sl_plugin_forward(const struct seqlstm_backend *table, struct seqlstm_binding *binding,
                                        struct seqlstm_queue *queue, const struct seqlstm_forward *args,
                                        struct seqlstm_error *err)
{
    (void)table, (void)queue, (void)args, (void)err;
    assert_non_null(binding);
    return SEQLSTM_OK;
}

/* A step leaves the sums on the device. */
static seqlstm_status leave_sums(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err)
{
    (void)step, (void)err;
    exec->valid[STATE] = 2;
    exec->grad_valid[Y] = 2;
    exec->param_written[0] = true;
    exec->loop.step = refuses ? 3 : -1;
    return SEQLSTM_OK;
}

static struct sl_exec_capture *prepare(const struct sl_exec_step *step)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_capture *capture = NULL;
    ok(sl_exec_prepare_capture(&w.exec, step, leave_sums, &capture, &err), &err);
    return capture;
}

/* Gradients that are added to, and what an update reads, are on the device before a step that uses them. */
static void what_a_step_reads_is_brought(void **state)
{
    (void)state;
    const struct sl_exec_update update = {.count = 1};
    for (int kind = 0; kind < 4; kind++) {
        const struct sl_exec_step step = {.accumulate = kind % 2, .update = kind / 2 ? &update : NULL};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        open_world();
        w.exec.captures_update = true;
        w.params.trainable_elems = 48;
        grads_brought = updates_brought = 0;
        ok(sl_exec_start_calls(&w.exec, &step, run_no_calls, &err), &err);
        assert_int_equal(grads_brought, kind % 2);
        assert_int_equal(updates_brought, kind / 2);
        close_world();
    }
}

/* The second time that a step of its kind comes; each kind has a capture of its own. */
static void a_step_is_captured_when_it_comes_again(void **state)
{
    (void)state;
    const struct sl_exec_update update = {.count = 1};
    const struct sl_exec_capture *made[4];
    open_world();
    w.exec.captures_update = true;
    for (int kind = 0; kind < 4; kind++) {
        const struct sl_exec_step step = {.accumulate = kind % 2, .update = kind / 2 ? &update : NULL};
        assert_null(prepare(&step));
        assert_int_equal(w.exec.captures.captured, kind);
        made[kind] = prepare(&step);
        assert_non_null(made[kind]);
        assert_ptr_equal(prepare(&step), made[kind]);
        assert_int_equal(w.exec.captures.captured, kind + 1);
        for (int before = 0; before < kind; before++)
            assert_ptr_not_equal(made[kind], made[before]);
    }
    assert_int_equal(captures, 4);
    close_world();
}

/* A batch of the same shape with other fields, or on an axis with other flags, is not that of the capture. */
static void a_capture_is_for_batches_with_the_same_fields(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_exec_step step = {.accumulate = false};
    open_world();
    prepare(&step);
    assert_non_null(prepare(&step));
    struct sl_batch *weighted = make_batch(true), *stream = make_batch(false), *targets = make_batch(false);
    stream->axis.flags |= SEQLSTM_BIT_AXIS_STREAM;
    targets->source.axis.flags ^= SEQLSTM_BIT_AXIS_STREAM;
    struct sl_batch *const others[] = {weighted, stream, targets};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        ok(sl_exec_bind(&w.exec, others[k], &err), &err);
        assert_null(prepare(&step));
    }
    ok(sl_exec_bind(&w.exec, w.batch, &err), &err);
    assert_non_null(prepare(&step));
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        sl_batch_destroy(others[k]);
    close_world();
}

/* Where factors of the update follow the scale of the loss, another scale needs another capture. */
static void captured_factors_follow_the_scale_of_the_loss(void **state)
{
    (void)state;
    const struct sl_exec_update update = {.count = 1};
    const struct sl_exec_step with = {.update = &update}, without = {.accumulate = false};
    for (int scales = 0; scales < 2; scales++) {
        open_world();
        w.exec.captures_update = true;
        w.exec.scales_factors = scales;
        w.exec.step.loss_scale = 8;
        for (int k = 0; k < 2; k++) {
            prepare(&with);
            prepare(&without);
        }
        assert_int_equal(w.exec.captures.captured, 2);
        w.exec.step.loss_scale = 4;
        assert_non_null(prepare(&with));
        assert_non_null(prepare(&without));
        assert_int_equal(w.exec.captures.captured, scales ? 3 : 2);
        assert_int_equal(captures, 2); /* the former is gone */
        close_world();
    }
}

/* Everything is as before the attempt: the step then runs call by call, and packs its weights. */
static void a_capture_that_failed_leaves_nothing(void **state)
{
    (void)state;
    const struct sl_exec_step step = {.accumulate = false};
    open_world();
    w.plan.call_count = CALLS;
    refuses = true;
    for (int c = 0; c < CALLS; c++)
        w.calls[c].packed_version = 5;
    memset(w.valid, 1 << SL_PLACE_HOST, sizeof w.valid);
    memset(w.grad_valid, 0, sizeof w.grad_valid);
    w.graph.param_count = 1;
    w.param_written[0] = false;
    w.batch->carry_state = true;
    assert_null(prepare(&step));
    for (int again = 0; again < 2; again++) /* it is not tried again */
        assert_null(prepare(&step));
    assert_string_equal(w.exec.captures.refusal, "the device is out of nodes");
    assert_int_equal(w.exec.captures.captured, 0);
    assert_int_equal(w.valid[STATE], 1 << SL_PLACE_HOST);
    assert_int_equal(w.valid[X], 1 << SL_PLACE_HOST);
    assert_true(w.grad_valid[Y] == 0 && !w.param_written[0]);
    w.graph.param_count = 0;
    assert_int_equal(w.exec.loop.step, -1);
    for (int c = 0; c < CALLS; c++)
        assert_int_equal(w.calls[c].packed_version, 0);
    close_world();
}

/* Whatever fails while a step is captured is told as the reason why it runs call by call; what fails when it is
 * launched fails the step. Nothing is left, and a step that was refused is not tried again. */
static void a_capture_fails_at_any_place(void **state)
{
    (void)state;
    const struct sl_exec_step step = {.accumulate = false};
    int refused = 0, failed = 0;
    for (int number = 0; refused + failed == number; number++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_exec_capture *capture = NULL;
        open_world();
        assert_null(prepare(&step));
        fails_at = number;
        seqlstm_status status = sl_exec_prepare_capture(&w.exec, &step, leave_sums, &capture, &err);
        const bool is_refused = fails_at < 0;
        assert_int_equal(status, SEQLSTM_OK);
        assert_int_equal(capture == NULL, is_refused);
        assert_string_equal(w.exec.captures.refusal, is_refused ? "the card is gone" : "");
        assert_int_equal(w.exec.captures.captured, !is_refused);
        if (is_refused) {
            assert_null(prepare(&step));
            assert_int_equal(w.exec.captures.captured, 0);
        } else if (sl_exec_launch_capture(&w.exec, capture, &step, &err) != SEQLSTM_OK) {
            assert_string_equal(err.message, "the card is gone");
            failed++;
        }
        assert_null(w.exec.capturing);
        refused += is_refused;
        close_world();
    }
    assert_int_equal(refused, 4); /* begin, both frames, end */
    assert_int_equal(failed, 6);  /* copy, sent, wait, begun, launch, ended */
}

/* Two sizes, the first of them twice. */
static seqlstm_status add_vectors(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err)
{
    static const int64_t sizes[] = {16, 48, 16};
    void *slots[1] = {exec};
    (void)step;
    for (size_t k = 0; exec->capturing && k < sizeof sizes / sizeof *sizes; k++)
        SEQLSTM_TRY(sl_exec_run_vector_part(exec, 0, slots, 1, sizes[k], err));
    return SEQLSTM_OK;
}

/* One for each size, which go with the capture, whether it was made, made anew for another scale of the loss, or
 * refused. */
static void bindings_of_vectors_go_with_their_capture(void **state)
{
    (void)state;
    static const union seqlstm_any_desc desc = {.vector = {.head = {.op = SEQLSTM_OP_VECTOR}}};
    static struct sl_vector_call vector = {.desc = &desc};
    static int32_t places[] = {1};
    const struct sl_exec_update update = {.count = 1};
    const struct sl_exec_step step = {.update = &update};
    bool whole = false;
    for (int number = -1; !whole; number++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_exec_capture *capture = NULL;
        open_world();
        w.plan.vectors = &vector;
        w.plan.vector_count = 1;
        w.exec.vector_places = places;
        w.exec.captures_update = w.exec.scales_factors = true;
        ok(sl_exec_prepare_capture(&w.exec, &step, add_vectors, &capture, &err), &err);
        fails_at = number;
        ok(sl_exec_prepare_capture(&w.exec, &step, add_vectors, &capture, &err), &err);
        whole = fails_at >= 0;
        fails_at = -1;
        assert_int_equal(capture != NULL, whole || number < 0);
        assert_true(bound <= 2);
        if (capture) {
            assert_int_equal(bound, 2);
            w.exec.step.loss_scale = 8;
            ok(sl_exec_prepare_capture(&w.exec, &step, add_vectors, &capture, &err), &err);
            assert_int_equal(w.exec.captures.captured, 2);
            assert_int_equal(bound, 2);
        }
        close_world();
        assert_int_equal(bound, 0);
    }
}

/* Afterwards the calls of other steps are not in the frame. */
static void a_step_in_a_frame_ends_with_it(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_exec_step step = {.accumulate = false};
    open_world();
    w.exec.staged = w.batch; /* the frame brings the fields, not what was staged */
    ok(sl_exec_start_calls(&w.exec, &step, run_no_calls, &err), &err);
    assert_null(w.exec.capturing);
    assert_null(w.exec.staged);
    close_world();
}

/* Calls without rows are not counted; weights are packed by every launch. */
static void a_launch_counts_as_its_calls(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_exec_update update = {.count = 1};
    const struct sl_exec_step step = {.update = &update};
    struct seqlstm_binding *bindings[CALLS] = {NULL, (void *)&bindings};
    open_world();
    w.exec.captures_update = true;
    struct seqlstm_binding **own = w.exec.shape->bindings;
    struct sl_param_view view = {.offset_elems = 0, .elems = 8};
    w.params.views = &view;
    w.graph.param_count = 1;
    prepare(&step);
    struct sl_exec_capture *capture = prepare(&step);
    memset(w.valid, 0, sizeof w.valid); /* as another step would leave them */
    memset(w.grad_valid, 0, sizeof w.grad_valid);
    w.param_written[0] = false;
    w.plan.call_count = CALLS;
    w.exec.shape->bindings = bindings;
    w.calls[1].axis = SL_AXIS_STEPS;
    w.params.version = 30;
    updates_noted = 0;
    ok(sl_exec_launch_capture(&w.exec, capture, &step, &err), &err);
    w.exec.shape->bindings = own;
    assert_int_equal(w.timing[0].calls, 0);
    assert_int_equal(w.timing[1].calls, 1);
    assert_int_equal(w.timing[1].rows, 6);
    assert_int_equal(w.calls[0].packed_version, 31);
    assert_int_equal(w.calls[1].packed_version, 31);
    assert_int_equal(w.valid[STATE], 2); /* as the calls left it, and the frame the fields */
    assert_true(w.grad_valid[Y] == 2 && w.param_written[0] && (w.valid[X] & 2) && (w.valid[SOURCE] & 2));
    w.graph.param_count = 0;
    assert_int_equal(updates_noted, 1);
    assert_int_equal(w.exec.captures.launched, 1);
    assert_int_equal(w.exec.captures.uncaptured, 0);
    close_world();
}

static seqlstm_status watch_nothing(void *context, struct sl_exec *exec, const struct sl_node *node,
                                    struct seqlstm_error *err)
{
    (void)context, (void)exec, (void)node, (void)err;
    return SEQLSTM_OK;
}

static void steps_may_be_started_ahead(void **state)
{
    (void)state;
    const struct sl_exec_update update = {.count = 1};
    const struct sl_exec_step plain = {.accumulate = false}, with = {.update = &update},
                              scaled = {.course = {.good_enough = 3}};
    open_world();
    assert_true(sl_exec_may_start(&w.exec, &plain));
    assert_true(sl_exec_may_start(&w.exec, &scaled));
    assert_false(sl_exec_may_start(&w.exec, &with)); /* its update is made by the host */
    w.exec.captures_update = true;
    assert_true(sl_exec_may_start(&w.exec, &with));
    w.exec.scales_factors = true; /* and the scale of the loss is not known yet */
    assert_false(sl_exec_may_start(&w.exec, &scaled));
    assert_true(sl_exec_may_start(&w.exec, &with));
    w.graph.output_needed = true;
    assert_false(sl_exec_may_start(&w.exec, &plain));
    w.graph.output_needed = false;
    w.exec.watch = watch_nothing;
    assert_false(sl_exec_may_start(&w.exec, &plain));
    w.exec.watch = NULL;
    assert_true(sl_exec_may_start(&w.exec, &plain));
    close_world();
}

/* A limit of single gradients, and regularizers of any parameter that is trained, are factors of the update that follow
 * the scale of the loss: an update with them cannot be started before that is known. */
static void only_some_updates_follow_the_scale_of_the_loss(void **state)
{
    (void)state;
    static const struct {
        double clip_value;
        struct sl_param_view views[3];
        bool follows;
    } cases[] = {
        {0, {{.trainable = true}, {.trainable = true}, {.trainable = true}}, false},
        {0.5, {{.trainable = true}, {.trainable = true}, {.trainable = true}}, true},
        {0, {{.trainable = true, .regularizer = {.l1 = 0.1}}, {.trainable = true}, {.trainable = true}}, true},
        {0, {{.trainable = true}, {.trainable = true}, {.trainable = true, .regularizer = {.l2 = 0.1}}}, true},
        {0, {{.trainable = true}, {.regularizer = {.l1 = 0.1, .l2 = 0.1}}, {.trainable = true}}, false},
    };
    const struct sl_exec_step scaled = {.course = {.good_enough = 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_world();
        w.graph.clip_value = cases[i].clip_value;
        w.params.views = (struct sl_param_view *)cases[i].views;
        w.params.view_count = 3;
        sl_exec_open_update(&w.exec);
        if (sl_exec_may_start(&w.exec, &scaled) == cases[i].follows)
            fail_msg("case %d: the update %s", (int)i, cases[i].follows ? "was started early" : "had to wait");
        close_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_step_reads_is_brought),
        cmocka_unit_test(a_step_is_captured_when_it_comes_again),
        cmocka_unit_test(a_capture_is_for_batches_with_the_same_fields),
        cmocka_unit_test(captured_factors_follow_the_scale_of_the_loss),
        cmocka_unit_test(a_capture_that_failed_leaves_nothing),
        cmocka_unit_test(a_capture_fails_at_any_place),
        cmocka_unit_test(bindings_of_vectors_go_with_their_capture),
        cmocka_unit_test(a_step_in_a_frame_ends_with_it),
        cmocka_unit_test(a_launch_counts_as_its_calls),
        cmocka_unit_test(steps_may_be_started_ahead),
        cmocka_unit_test(only_some_updates_follow_the_scale_of_the_loss),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

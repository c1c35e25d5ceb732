/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings of cuda-cudnn on the fake cuDNN: every batch within the bounds runs in the memory that was asked for; a
 * binding that gets another shape computes as a new one; algorithms that refuse a shape; what is given back.
 *
 *   test_cudnn_bindings PLUGIN.so LIBCUDNN.so */
#include "cudnn_fixture.h"

#include <seqlstm/ext/recorder.h>
#include <seqlstm/philox.h>

enum { TRAINING = SEQLSTM_MODE_TRAINING };

/* A layer without promises of equal lengths. */
static struct seqlstm_recurrent_desc describe_ragged(int64_t steps, int64_t sequences, int64_t rows)
{
    struct seqlstm_recurrent_desc d = describe(steps, TRAINING);
    d.head.flags = 0;
    d.head.max_sequences = sequences;
    d.head.max_rows = rows;
    return d;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

enum { FLOATS = 400 /* of each slot that are looked at */ };

/* Other values in each slot, and in each element. */
static void fill_slots(struct call *c)
{
    static float values[FLOATS];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int k = 0; k < SLOTS; k++) {
        for (int e = 0; e < FLOATS; e++)
            values[e] = (float)(seqlstm_mix64(1, (uint64_t)k, (uint64_t)e) % 2001) / 4000 - 0.25f;
        assert_int_equal(table->memory->copy(instance, 0, queue.native_stream, SEQLSTM_COPY_TO_DEVICE, c->slots[k],
                                             values, sizeof values, &err),
                         SEQLSTM_OK);
        assert_int_equal(table->memory->copy(instance, 0, queue.native_stream, SEQLSTM_COPY_TO_DEVICE, c->grads[k],
                                             values, sizeof values, &err),
                         SEQLSTM_OK);
        assert_int_equal(table->streams->synchronize(instance, 0, queue.native_stream, &err), SEQLSTM_OK);
    }
}

static void pack(struct call *c)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_step step = {.struct_size = sizeof step};
    assert_int_equal(table->weights_pack(c->op, &queue, c->slots, c->packed, &step, &err), SEQLSTM_OK);
}

/* What forward and backward have made of all slots. */
struct results {
    float slots[SLOTS][FLOATS], grads[SLOTS][FLOATS];
};

static void run(struct call *c, struct results *out)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    fill_slots(c);
    if (forward(c, &err) != SEQLSTM_OK || backward(c, &err) != SEQLSTM_OK)
        fail_msg("a call: %s", err.message);
    for (int k = 0; k < SLOTS; k++) {
        assert_int_equal(table->memory->copy(instance, 0, queue.native_stream, SEQLSTM_COPY_TO_HOST, out->slots[k],
                                             c->slots[k], sizeof out->slots[k], &err),
                         SEQLSTM_OK);
        assert_int_equal(table->memory->copy(instance, 0, queue.native_stream, SEQLSTM_COPY_TO_HOST, out->grads[k],
                                             c->grads[k], sizeof out->grads[k], &err),
                         SEQLSTM_OK);
    }
}

static void expect_same(const struct results *got, const struct results *wanted, const char *what, int a, int b)
{
    for (int k = 0; k < SLOTS; k++)
        if (memcmp(got->slots[k], wanted->slots[k], sizeof got->slots[k]) != 0 ||
            memcmp(got->grads[k], wanted->grads[k], sizeof got->grads[k]) != 0)
            fail_msg("%s %d, %d: slot %d", what, a, b, k);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void take_counter(void *context, const struct seqlstm_counter *counter)
{
    double *value = context;
    *value = counter->value;
}

static double count_memory(void)
{
    const struct seqlstm_recorder *recorder = table->get_extension(instance, SEQLSTM_RECORDER_EXTENSION);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double value = -1;
    const struct seqlstm_report to = {.struct_size = sizeof to, .context = &value, .counter = take_counter};
    assert_int_equal(recorder->report(instance, 0, &to, &err), SEQLSTM_OK);
    return value;
}

/* Of an operation, of one that is refused, of a binding with a workspace of its own. */
static void what_is_destroyed_leaves_no_memory(void **state)
{
    static const struct {
        const char *variant, *reserve, *refused;
        const struct seqlstm_axis *axis;
    } rows[] = {{"standard", "", "", &axis},
                {"standard", "", "", &two},
                {"persist_dynamic_layers", "", "", &axis},
                {"small_h_layers", "", "", &two},
                {"small_h+standard", "shared", "", &axis},
                {"small_h+standard", "scrambled", "", NULL},
                {"small_h+standard_layers", "", "", NULL},
                {"small_h", "", "3:data:3", NULL},
                {"small_h", "", "3:sizes:3", NULL},
                {"standard", "", "0:weights:3", NULL}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const double before = count_memory();
        const int64_t blocks = host.memory.live_blocks;
        const struct seqlstm_recurrent_desc d = describe(STEPS + (int64_t)k, TRAINING); /* not tried before */
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        setenv("FAKE_CUDNN_RESERVE", rows[k].reserve, 1);
        setenv("FAKE_CUDNN_REFUSE", rows[k].refused, 1);
        if (rows[k].axis != NULL) {
            struct call c;
            open_layer(&c, &d, rows[k].variant, rows[k].axis);
            assert_int_equal(forward(&c, &err), SEQLSTM_OK);
            assert_int_equal(backward(&c, &err), SEQLSTM_OK);
            close_call(&c);
        } else {
            struct seqlstm_op *op = NULL;
            assert_int_equal(table->op_create(instance, 0, &d.head, rows[k].variant, &op, &err), SEQLSTM_UNSUPPORTED);
            assert_null(op);
        }
        if (!(count_memory() == before) || host.memory.live_blocks != blocks)
            fail_msg("row %zu: %g bytes of the device and %d blocks of the host", k, count_memory() - before,
                     (int)(host.memory.live_blocks - blocks));
    }
    unsetenv("FAKE_CUDNN_RESERVE");
    unsetenv("FAKE_CUDNN_REFUSE");
}

/* Every allocation of the host fails in its turn, and all after it; then those of the device that exceed a limit. */
static void what_finds_no_memory_leaves_none(void **state)
{
    enum { FIRST_STEPS = 2000 }; /* of no other test */
    static const char *const variants[] = {"standard", "persist_dynamic_layers", "small_h+standard"};
    const double before = count_memory();
    const int64_t blocks = host.memory.live_blocks;
    int64_t steps = FIRST_STEPS;
    (void)state;
    setenv("FAKE_CUDNN_RESERVE", "shared", 1);
    for (int v = 0; v < 3; v++)
        for (int of_device = 0; of_device < 2; of_device++) {
            seqlstm_status status = SEQLSTM_NO_MEMORY;
            int turns = 0;
            for (; status != SEQLSTM_OK; turns++) {
                const struct seqlstm_recurrent_desc d = describe(steps++, TRAINING); /* not tried before */
                const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = ROWS, .axis = &axis, .t1 = STEPS};
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                struct seqlstm_op *op = NULL;
                struct seqlstm_binding *binding = NULL;
                char limit[32];
                snprintf(limit, sizeof limit, "%.0f", before + 512 * (turns * turns));
                if (of_device)
                    setenv("SEQLSTM_EMULATED_MEMORY", limit, 1);
                else
                    host.fail_after = host.memory.n_allocs + turns;
                status = table->op_create(instance, 0, &d.head, variants[v], &op, &err);
                if (status == SEQLSTM_OK)
                    status = table->op_bind(op, &queue, &bind, &binding, &err);
                unsetenv("SEQLSTM_EMULATED_MEMORY");
                host.fail_after = -1;
                if (status != SEQLSTM_OK && (status != SEQLSTM_NO_MEMORY || err.message[0] == '\0' || binding != NULL))
                    fail_msg("%s, turn %d of the %s: status %d, `%s`", variants[v], turns,
                             of_device ? "device" : "host", (int)status, err.message);
                table->binding_destroy(binding);
                table->op_destroy(op);
                if (!(count_memory() == before) || host.memory.live_blocks != blocks)
                    fail_msg("%s, turn %d of the %s: %g bytes of the device and %d blocks of the host", variants[v],
                             turns, of_device ? "device" : "host", count_memory() - before,
                             (int)(host.memory.live_blocks - blocks));
                assert_true(turns < 1000);
            }
            assert_true(turns > 1);
        }
    unsetenv("FAKE_CUDNN_RESERVE");
}

/* Its handle serves the next one: there are not more handles than streams at once. */
static void a_binding_that_is_destroyed_leaves_its_handle(void **state)
{
    enum { MORE = 70 };
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op;
    const struct seqlstm_bind bind = {
        .struct_size = sizeof bind, .rows = ROWS, .rows_in = ROWS, .axis = &axis, .t1 = STEPS};
    assert_int_equal(create(STEPS, SEQLSTM_MODE_INFERENCE, "standard", &op, &err), SEQLSTM_OK);
    void *streams[MORE];
    for (int k = 0; k < MORE; k++) {
        struct seqlstm_queue other = {.struct_size = sizeof other, .members = 1};
        struct seqlstm_binding *binding = NULL;
        assert_int_equal(table->streams->create(instance, 0, &streams[k], &err), SEQLSTM_OK);
        other.native_stream = streams[k];
        if (table->op_bind(op, &other, &bind, &binding, &err) != SEQLSTM_OK)
            fail_msg("stream %d: %s", k, err.message);
        table->binding_destroy(binding);
    }
    for (int k = 0; k < MORE; k++)
        table->streams->destroy(instance, 0, streams[k]);
    table->op_destroy(op);
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

/* Lengths that never increase, within the bounds. Returns how many sequences. */
static int32_t draw_lengths(uint64_t turn, const int64_t bounds[3], bool uniform, int32_t *out_lengths)
{
    const int64_t steps = bounds[0], most = bounds[1], rows = bounds[2];
    const int32_t sequences = (int32_t)(1 + seqlstm_mix64(2, turn, 0) % (uint64_t)most);
    int64_t left = rows - sequences, last = steps;
    for (int32_t b = 0; b < sequences; b++) {
        int64_t longest = left + 1 < last ? left + 1 : last;
        if (uniform)
            longest = rows / sequences < steps ? rows / sequences : steps;
        const int64_t of =
            turn % 3 == 0 || uniform ? longest : 1 + (int64_t)(seqlstm_mix64(3, turn, (uint64_t)b) % (uint64_t)longest);
        out_lengths[b] = (int32_t)(uniform && b > 0 ? out_lengths[0] : of);
        left -= out_lengths[b] - 1;
        last = out_lengths[b];
    }
    return sequences;
}

/* In the workspace and the reserve that the operation asks for, whatever their lengths. */
static void every_batch_within_the_bounds_runs(void **state)
{
    static const int64_t bounds[][3] = {{4, 3, 12}, {4, 3, 6},   {7, 5, 9},   {5, 6, 20}, {4, 3, 3},
                                        {7, 1, 7},  {4, 10, 11}, {8, 12, 40}, {1, 7, 7}};
    static const char *const variants[] = {"standard", "standard_layers", "small_h", "persist_dynamic"};
    enum { TURNS = 12 };
    (void)state;
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++)
        for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
            const bool uniform = v >= 2;
            struct seqlstm_recurrent_desc d = describe_ragged(bounds[k][0], bounds[k][1], bounds[k][2]);
            struct some_axis first, next;
            struct call c;
            const int32_t one[] = {1};
            d.head.flags = uniform ? SEQLSTM_BIT_DESC_UNIFORM : 0;
            make_axis(&first, one, 1);
            open_layer(&c, &d, variants[v], &first.axis);
            struct seqlstm_binding *const given = c.binding;
            for (uint64_t turn = 0; turn < TURNS; turn++) {
                int32_t drawn[AXIS_SEQUENCES];
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                make_axis(&next, drawn, draw_lengths(turn, bounds[k], uniform, drawn));
                const struct seqlstm_bind bind = bind_to(&next, 0, next.axis.steps);
                if (table->op_bind(c.op, &queue, &bind, &c.binding, &err) != SEQLSTM_OK ||
                    forward(&c, &err) != SEQLSTM_OK || backward(&c, &err) != SEQLSTM_OK ||
                    table->streams->synchronize(instance, 0, queue.native_stream, &err) != SEQLSTM_OK)
                    fail_msg("bounds %zu, %s, %d steps of %d sequences: %s", k, variants[v], (int)next.axis.steps,
                             (int)next.axis.sequences, err.message);
                table->binding_destroy(c.binding);
            }
            c.binding = given;
            close_call(&c);
        }
}

/* ---- another shape ----------------------------------------------------------------------------------------------- */

enum { SHAPES = 6 };

/* Equal lengths, different ones, two sequences, which need more workspace than three; segments of two of them. */
static const struct {
    int32_t sequences, lengths[SEQUENCES];
    int64_t t0, t1;
} shapes[SHAPES] = {{3, {4, 4, 4}, 0, 4}, {3, {4, 2, 1}, 0, 4}, {2, {3, 2}, 0, 3},
                    {1, {2}, 0, 2},       {3, {4, 3, 1}, 1, 3}, {3, {4, 2, 2}, 1, 4}};

/* The number of sequences of a shape in its first step. */
static int count_sequences(int shape)
{
    int count = 0;
    for (int b = 0; b < shapes[shape].sequences; b++)
        count += shapes[shape].lengths[b] > shapes[shape].t0;
    return count;
}

static void a_binding_with_another_shape_computes_as_a_new_one(void **state)
{
    static struct results wanted[SHAPES], got;
    static const char *const variants[] = {"standard", "standard_layers"};
    (void)state;
    const struct seqlstm_rebind *rebind = table->get_extension(instance, SEQLSTM_REBIND_EXTENSION);
    struct some_axis axes[SHAPES];
    for (int k = 0; k < SHAPES; k++)
        make_axis(&axes[k], shapes[k].lengths, shapes[k].sequences);
    for (int v = 0; v < 2; v++) {
        const struct seqlstm_recurrent_desc d = describe_ragged(STEPS, SEQUENCES, ROWS);
        struct call c;
        open_layer(&c, &d, variants[v], &axes[0].axis);
        fill_slots(&c);
        pack(&c);
        struct seqlstm_binding *const given = c.binding;
        for (int k = 0; k < 2 * SHAPES; k++) { /* alone, then after each other one */
            for (int from = 0; from < (k < SHAPES ? 1 : SHAPES); from++) {
                const int to = k % SHAPES, first = k < SHAPES ? to : from;
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                const struct seqlstm_bind a = bind_to(&axes[first], shapes[first].t0, shapes[first].t1),
                                          b = bind_to(&axes[to], shapes[to].t0, shapes[to].t1);
                assert_int_equal(table->op_bind(c.op, &queue, &a, &c.binding, &err), SEQLSTM_OK);
                const bool lacks = count_sequences(to) == 2 && count_sequences(first) != 2;
                const seqlstm_status status = k < SHAPES ? SEQLSTM_OK : rebind->rebind(c.binding, &queue, &b, &err);
                if (lacks) {
                    assert_int_equal(status, SEQLSTM_UNSUPPORTED);
                    assert_int_equal(strncmp(err.message, "cuDNN needs 3", 13), 0);
                    assert_non_null(strstr(err.message, " bytes of workspace for this shape"));
                } else {
                    if (status != SEQLSTM_OK)
                        fail_msg("%s, from %d to %d: %s", variants[v], first, to, err.message);
                    run(&c, k < SHAPES ? &wanted[to] : &got);
                    if (k >= SHAPES)
                        expect_same(&got, &wanted[to], variants[v], first, to);
                }
                table->binding_destroy(c.binding);
            }
        }
        c.binding = given;
        close_call(&c);
    }
}

/* Steps 1 and 2 of sequences of 4, 3 and 1 steps are two sequences of two steps. */
static void a_segment_is_a_batch_of_its_steps(void **state)
{
    static struct results wanted, got;
    static const int32_t whole[] = {4, 3, 1}, part[] = {2, 2};
    (void)state;
    const struct seqlstm_recurrent_desc d = describe_ragged(STEPS, SEQUENCES, ROWS);
    for (int segment = 0; segment < 2; segment++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct some_axis a;
        struct call c;
        make_axis(&a, segment ? whole : part, segment ? 3 : 2);
        open_layer(&c, &d, "standard", &a.axis);
        table->binding_destroy(c.binding);
        const struct seqlstm_bind bind = segment ? bind_to(&a, 1, 3) : bind_to(&a, 0, 2);
        assert_int_equal(table->op_bind(c.op, &queue, &bind, &c.binding, &err), SEQLSTM_OK);
        fill_slots(&c);
        pack(&c);
        run(&c, segment ? &got : &wanted);
        close_call(&c);
    }
    expect_same(&got, &wanted, "segment", 1, 3);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

/* An algorithm that refuses a batch, when it is bound or when it runs, leaves it to the standard one, whose values are
 * the same as without the other, also where its weights lie elsewhere. A binding that lacks an algorithm takes no other
 * shape. Where the standard one refuses, the other one runs alone. */
static void an_algorithm_may_refuse_a_batch(void **state)
{
    static struct results wanted[2], got; /* of one network; of one for each layer */
    (void)state;
    const struct seqlstm_rebind *rebind = table->get_extension(instance, SEQLSTM_REBIND_EXTENSION);
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 8, .rows_in = 8, .axis = &two, .t1 = STEPS};
    const struct seqlstm_recurrent_desc d = describe(STEPS, TRAINING);
    static const struct {
        const char *variant, *refused;
        bool layers, rebinds;
    } rows[] = {{"standard", "", false, true},
                {"standard_layers", "", true, true},
                {"small_h", "3:sizes:2", false, false},
                {"small_h", "0:sizes:2", false, false},
                {"small_h", "", false, true},
                {"small_h_layers", "3:weights:2", true, true},
                {"persist_dynamic", "2:sizes:2", false, false},
                {"persist_dynamic", "2:forward:2", false, true},
                {"persist_dynamic_layers", "2:sizes:2", true, false},
                {"persist_dynamic_layers", "2:data:2", true, true},
                {"standard", "0:sizes:1", false, true}}; /* not of this batch */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct call c;
        setenv("FAKE_CUDNN_REFUSE", rows[k].refused, 1);
        open_layer(&c, &d, rows[k].variant, &two);
        fill_slots(&c);
        pack(&c);
        run(&c, k < 2 ? &wanted[k] : &got);
        if (k >= 2)
            expect_same(&got, &wanted[rows[k].layers], rows[k].variant, (int)k, 0);
        if (rebind->rebind(c.binding, &queue, &bind, &err) != (rows[k].rebinds ? SEQLSTM_OK : SEQLSTM_UNSUPPORTED))
            fail_msg("row %zu: %s", k, err.message);
        if (!rows[k].rebinds)
            assert_string_equal(err.message, "the binding lacks descriptors, since cuDNN refused its shape");
        unsetenv("FAKE_CUDNN_REFUSE");
        close_call(&c);
    }
}

/* An algorithm that has refused to be bound is not asked to run. */
static void an_algorithm_that_refused_takes_nothing_over(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_recurrent_desc d = describe(STEPS, TRAINING);
    struct call c;
    setenv("FAKE_CUDNN_REFUSE", "0:sizes:2", 1);
    open_layer(&c, &d, "small_h", &two);
    setenv("FAKE_CUDNN_REFUSE", "3:forward:2", 1);
    assert_int_equal(forward(&c, &err), SEQLSTM_DEVICE);
    assert_non_null(strstr(err.message, "told to refuse"));
    unsetenv("FAKE_CUDNN_REFUSE");
    close_call(&c);
}

/* Each part of backward writes its own gradients and no others. */
static void backward_writes_the_parts_that_are_wanted(void **state)
{
    enum { INPUTS = SEQLSTM_BIT_BACKWARD_INPUTS, STATES = SEQLSTM_BIT_BACKWARD_STATES };
    enum { WEIGHTS = SEQLSTM_BIT_BACKWARD_WEIGHTS, LAYERS = 2 };
    static const uint32_t wanted[] = {
        INPUTS, STATES, WEIGHTS, INPUTS | STATES, INPUTS | WEIGHTS, STATES | WEIGHTS, INPUTS | STATES | WEIGHTS};
    static struct results before, after;
    (void)state;
    const uint32_t usual = parts;
    for (int v = 0; v < 2; v++)
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            struct seqlstm_recurrent_desc d = describe(STEPS, TRAINING);
            struct call c;
            d.options |= SEQLSTM_BIT_RECURRENT_INITIAL_STATE | SEQLSTM_BIT_RECURRENT_FINAL_STATE;
            open_layer(&c, &d, v ? "standard_layers" : "standard", &axis);
            fill_slots(&c);
            pack(&c);
            parts = 0;
            run(&c, &before); /* of no part: what fill_slots has written */
            parts = wanted[k];
            run(&c, &after);
            for (int s = 0; s < SLOTS; s++) {
                bool expected = s == SEQLSTM_SLOT_RECURRENT_X && (parts & INPUTS);
                for (int n = 0; n < LAYERS; n++) {
                    expected |= (parts & STATES) && (s == SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_H0) ||
                                                     s == SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_C0));
                    expected |= (parts & WEIGHTS) && s >= SEQLSTM_SLOT_RECURRENT_PARAM(LAYERS, n, SEQLSTM_PARAM_W_X) &&
                                s <= SEQLSTM_SLOT_RECURRENT_PARAM(LAYERS, n, SEQLSTM_PARAM_BIAS);
                }
                if ((memcmp(before.grads[s], after.grads[s], sizeof after.grads[s]) != 0) != expected)
                    fail_msg("parts %u: the gradient at %d %s", parts, s, expected ? "stays" : "changes");
            }
            close_call(&c);
        }
    parts = usual;
}

/* Algorithms whose weights lie alike share them. */
static void weights_that_lie_alike_are_packed_once(void **state)
{
    static const char *const variants[] = {"standard", "small_h", "persist_dynamic"};
    uint64_t bytes[3];
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
        struct seqlstm_op *op;
        assert_int_equal(create(STEPS, TRAINING, variants[k], &op, &err), SEQLSTM_OK);
        assert_int_equal(table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
        bytes[k] = sizes.packed_bytes;
        table->op_destroy(op);
    }
    assert_true(bytes[1] == bytes[0]);
    assert_true(bytes[2] >= 2 * bytes[0]);
}

/* The largest batch must run; and a batch that every algorithm refuses after that is a failure. */
static void a_size_that_all_refuse_is_a_failure(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 8, .rows_in = 8, .axis = &two, .t1 = STEPS};
    struct seqlstm_binding *binding = NULL;
    struct seqlstm_op *op = NULL;
    setenv("FAKE_CUDNN_REFUSE", "0:sizes:3", 1);
    assert_int_equal(create(STEPS, TRAINING, "standard", &op, &err), SEQLSTM_UNSUPPORTED);
    assert_non_null(strstr(err.message, "told to refuse"));
    setenv("FAKE_CUDNN_REFUSE", "0:sizes:2", 1);
    assert_int_equal(create(STEPS, TRAINING, "standard", &op, &err), SEQLSTM_OK);
    struct seqlstm_queue none = {.struct_size = sizeof none, .members = 1}; /* of no device */
    assert_int_equal(table->op_bind(op, &none, &bind, &binding, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "cuda-cudnn needs a queue of a CUDA device");
    assert_int_equal(table->op_bind(op, &queue, &bind, &binding, &err), SEQLSTM_DEVICE);
    assert_int_equal(err.code, SEQLSTM_DEVICE);
    assert_non_null(strstr(err.message, "told to refuse"));
    assert_null(binding);
    unsetenv("FAKE_CUDNN_REFUSE");
    table->op_destroy(op);
}

/* Reserves of other sizes: the message has both, in their order. Gradients that differ, be it the first or the last:
 * which. */
static void a_pair_that_does_not_fit_says_why(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    char version[32], expected[400];
    unsigned long first, second;
    assert_int_equal(create(STEPS, TRAINING, "small_h+standard", &op, &err), SEQLSTM_UNSUPPORTED);
    assert_int_equal(sscanf(err.message, "cuDNN %31s keeps %lu bytes for small_h and %lu", version, &first, &second),
                     3);
    assert_int_equal(first - second, 3 * 72); /* as fake_cudnn.c has it */
    snprintf(expected, sizeof expected,
             "cuDNN %s keeps %lu bytes for small_h and %lu for standard (steps: 4, sequences: 3): one cannot run "
             "backward after the other has run forward",
             version, first, second);
    assert_string_equal(err.message, expected);
    setenv("FAKE_CUDNN_RESERVE", "scrambled", 1);
    assert_int_equal(create(STEPS, TRAINING, "small_h+standard", &op, &err), SEQLSTM_UNSUPPORTED);
    snprintf(expected, sizeof expected,
             "cuDNN %s: gradients of the input by small_h forward and standard backward differ from those of standard "
             "alone by ",
             version);
    assert_int_equal(strncmp(err.message, expected, strlen(expected)), 0);
    setenv("FAKE_CUDNN_RESERVE", "biased", 1);
    assert_int_equal(create(STEPS, TRAINING, "small_h+standard", &op, &err), SEQLSTM_UNSUPPORTED);
    assert_non_null(strstr(err.message, ": gradients of biases by small_h forward and standard backward differ "));
    unsetenv("FAKE_CUDNN_RESERVE");
}

/* The gradient of the final c is one of the values that a pair is tried with, and what forward leaves unwritten in the
 * reserve is no number. */
static void a_pair_that_backward_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *reserve;
        uint32_t option;
        seqlstm_status expected;
    } rows[] = {{"sparse", 0, SEQLSTM_UNSUPPORTED},
                {"forgetful", SEQLSTM_BIT_RECURRENT_FINAL_STATE, SEQLSTM_UNSUPPORTED},
                {"forgetful", 0, SEQLSTM_OK}}; /* last: what has passed is not tried again */
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op = NULL;
        struct seqlstm_recurrent_desc d = describe(STEPS, TRAINING);
        d.options |= rows[k].option;
        setenv("FAKE_CUDNN_RESERVE", rows[k].reserve, 1);
        if (table->op_create(instance, 0, &d.head, "small_h+standard", &op, &err) != rows[k].expected ||
            (op == NULL && strstr(err.message, "gradients of the input by small_h forward and standard back") == NULL))
            fail_msg("row %zu: `%s`", k, err.message);
        table->op_destroy(op);
    }
    unsetenv("FAKE_CUDNN_RESERVE");
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void a_profile_asks_for_the_library_that_is_named(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *other = NULL;
    const struct seqlstm_setting settings[] = {{"library", library}, {"cupti", "/nowhere/libcupti.so"}};
    assert_int_equal(table->open(&host.services, settings, 2, &other, &err), SEQLSTM_OK);
    const struct seqlstm_recorder *recorder = table->get_extension(other, SEQLSTM_RECORDER_EXTENSION);
    assert_int_equal(recorder->start(other, 0, &err), SEQLSTM_UNAVAILABLE);
    assert_non_null(strstr(err.message, "/nowhere/libcupti.so"));
    assert_null(table->get_extension(other, "rebind"));
    table->close(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_destroyed_leaves_no_memory),
        cmocka_unit_test(what_finds_no_memory_leaves_none),
        cmocka_unit_test(a_binding_that_is_destroyed_leaves_its_handle),
        cmocka_unit_test(every_batch_within_the_bounds_runs),
        cmocka_unit_test(a_binding_with_another_shape_computes_as_a_new_one),
        cmocka_unit_test(a_segment_is_a_batch_of_its_steps),
        cmocka_unit_test(an_algorithm_may_refuse_a_batch),
        cmocka_unit_test(an_algorithm_that_refused_takes_nothing_over),
        cmocka_unit_test(backward_writes_the_parts_that_are_wanted),
        cmocka_unit_test(weights_that_lie_alike_are_packed_once),
        cmocka_unit_test(a_size_that_all_refuse_is_a_failure),
        cmocka_unit_test(a_pair_that_does_not_fit_says_why),
        cmocka_unit_test(a_pair_that_backward_does_not_fit_is_refused),
        cmocka_unit_test(a_profile_asks_for_the_library_that_is_named),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}

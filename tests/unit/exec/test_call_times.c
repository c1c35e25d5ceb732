/* SPDX-License-Identifier: Apache-2.0 */
/* What a run says of the time of its calls: on a clock that only the backend's functions advance, each by another time,
 * the sums of calls and pieces are exact; a profile has each call with its layer, its backend and its rows. */
#include "base/batch/pieces.h"
#include "base/system/trace.h"
#include "oom.h"
#include "passing_backend.h"
#include "exec/exec_private.h"

int64_t __wrap_sl_clock_ns(void);

static int64_t now_ns = 1;

int64_t __wrap_sl_clock_ns(void)
{
    return now_ns;
}

enum { B = 4, STEPS = 6, ROWS = 15, FEATURES = 2, CALLS = 8, PIECES = 3 };

static const int32_t lengths[B] = {6, 5, 3, 1};
static const char data[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n";
static const char layers[] = "model: [{type: lstm, name: one, units: 3, return_sequences: true},"
                             " {type: gru, name: both, units: 2, direction: bidirectional, return_sequences: true},"
                             " {type: lstm, name: two, units: 3, return_sequences: true},"
                             " {type: dense, name: out, units: 2}]\ntrain: {loss: mse, epochs: 1}";
static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = FEATURES},
                                           .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 2},
                                           .has_steps = true,
                                           .envelope = {.sequences = B, .steps = STEPS, .rows = ROWS}};

/* ---- the backend ------------------------------------------------------------------------------------------------- */

static struct world w;

/* What it has taken. */
static struct {
    int64_t forward[CALLS][STEPS], backward[CALLS][STEPS]; /* by the first step of the binding */
    int64_t packs[CALLS], weights[CALLS];
} taken;

static int32_t find_call(const struct seqlstm_op *op)
{
    int32_t c = 0;
    while (c < w.plan->call_count && w.plan->calls[c].op != op)
        c++;
    return c < w.plan->call_count ? c : -1; /* an operation of the update */
}

/* Advances the clock, by another time whenever it is called. */
static int64_t take(void)
{
    static int64_t turn = 0;
    const int64_t ns = 1000 + 17 * ++turn;
    now_ns += ns;
    return ns;
}

static seqlstm_status take_time(const struct passed *call, struct seqlstm_error *err)
{
    const int32_t c = find_call(call->op);
    const uint32_t parts = call->parts & ~(uint32_t)SEQLSTM_BIT_BACKWARD_ACCUMULATE;
    (void)err;
    if (c < 0)
        return SEQLSTM_OK;
    if (call->function == SL_FUNCTION_WEIGHTS_PACK)
        taken.packs[c] += take();
    else if (call->function == SL_FUNCTION_FORWARD)
        taken.forward[c][call->t0] += take();
    else if (w.graph->pieces > 0 && w.exec->units[c].pieced && parts == SEQLSTM_BIT_BACKWARD_WEIGHTS)
        taken.weights[c] += take();
    else if (call->function == SL_FUNCTION_BACKWARD)
        taken.backward[c][call->t0] += take();
    return SEQLSTM_OK;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static struct sl_batch *make_batch(void)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_batch_shape shape = {.sequences = B,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = FEATURES,
                                         .input_on_steps = true,
                                         .target_kind = SL_FIELD_VALUES,
                                         .target_features = 2,
                                         .target_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t i = 0; i < ROWS * FEATURES; i++)
        ((float *)(uintptr_t)batch->input.values)[i] = number((uint64_t)i);
    return batch;
}

static void open(int32_t pieces)
{
    passing_count = 0;
    memset(&taken, 0, sizeof taken);
    passing_before = take_time;
    world_query = passing_query;
    world_pieces = pieces;
    open_world(&w, data, layers, &facts, false);
    world_pieces = 0;
    assert_true(w.plan->call_count <= CALLS);
}

static void make_step(const struct sl_batch *batch, uint64_t number)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_exec_update update = {.count = number, .learning_rate = 0.1};
    const struct sl_exec_step step = {.normaliser = 1, .update = &update};
    struct sl_exec_result result;
    ok(sl_exec_run(w.exec, batch, &step, &result, &err), &err);
}

static int64_t sum(const int64_t *times)
{
    int64_t all = 0;
    for (int t = 0; t < STEPS; t++)
        all += times[t];
    return all;
}

/* Sums over two steps; packing counts with the forward calls, but before pieces. */
static void calls_have_the_time_that_they_took(void **state)
{
    (void)state;
    struct sl_batch *batch = make_batch();
    for (int32_t pieces = 0; pieces <= PIECES; pieces += PIECES) {
        open(pieces);
        for (uint64_t k = 1; k <= 2; k++)
            make_step(batch, k);
        int32_t count;
        const struct sl_exec_timing *timing = sl_exec_get_timing(w.exec, &count);
        assert_int_equal(count, w.plan->call_count);
        for (int32_t c = 0; c < count; c++) {
            const bool pieced = pieces > 0 && w.exec->units[c].pieced;
            assert_true(taken.packs[c] > 0 && sum(taken.forward[c]) > 0 && sum(taken.backward[c]) > 0);
            assert_int_equal(timing[c].forward_ns, sum(taken.forward[c]) + (pieced ? 0 : taken.packs[c]));
            assert_int_equal(timing[c].backward_ns, sum(taken.backward[c]) + taken.weights[c]);
            assert_int_equal(timing[c].calls, 2);
            assert_int_equal(timing[c].rows, 2 * ROWS);
        }
        close_world(&w);
    }
    sl_batch_destroy(batch);
}

static int64_t count_doubles(const double *times, int64_t count)
{
    double all = 0;
    for (int64_t k = 0; k < count; k++)
        all += times[k];
    return (int64_t)all;
}

/* Of two steps of three: the last one is not asked for. */
static void pieces_have_the_time_that_they_took(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = make_batch();
    struct sl_piece_times times;
    int64_t bounds[PIECES + 1];
    open(PIECES);
    const int32_t calls = w.plan->call_count;
    int pieced = 0, gathering = 0;
    assert_int_equal(sl_steps_cut(&batch->axis, PIECES, bounds), PIECES);
    ok(sl_piece_times_init(&times, calls, PIECES, &err), &err);
    sl_exec_time_pieces(w.exec, &times);
    make_step(batch, 1);
    make_step(batch, 2);
    sl_exec_time_pieces(w.exec, NULL);
    for (int32_t c = 0; c < calls; c++) {
        const double *forward = times.forward + c * PIECES, *backward = times.backward + c * PIECES;
        const bool in_pieces = w.exec->units[c].pieced;
        pieced += in_pieces;
        gathering += in_pieces && taken.weights[c] > 0;
        assert_int_equal(times.packs[c], in_pieces ? taken.packs[c] : 0);
        assert_int_equal(times.weights[c], taken.weights[c]);
        for (int p = 0; p < PIECES; p++) {
            const int64_t t = bounds[p], packed = in_pieces ? 0 : taken.packs[c];
            assert_int_equal(forward[p], in_pieces || p == 0 ? taken.forward[c][t] + packed : 0);
            assert_int_equal(backward[p], in_pieces || p == 0 ? taken.backward[c][t] : 0);
            assert_true(!in_pieces || (forward[p] > 0 && backward[p] > 0));
        }
    }
    assert_int_equal(pieced, 3);
    assert_true(gathering > 0 && taken.packs[0] > 0);
    const int64_t all = count_doubles(times.forward, times.count);
    make_step(batch, 3);
    assert_int_equal(count_doubles(times.forward, times.count), all);
    sl_piece_times_deinit(&times);
    close_world(&w);
    sl_batch_destroy(batch);
}

/* ---- profiles ---------------------------------------------------------------------------------------------------- */

/* Every activity of the step on the thread of the caller, with what it names, who did it and how much it was. */
static void a_profile_has_each_call_with_its_rows(void **state)
{
    (void)state;
    static const char expected[] = "prepare bindings - 0\n"
                                   "prepare fields - 0\n"
                                   "pack one reference 0\n"
                                   "forward one reference 15\n"
                                   "pack both reference 0\n"
                                   "forward both reference 15\n"
                                   "pack two reference 0\n"
                                   "forward two reference 15\n"
                                   "pack out+loss reference 0\n"
                                   "forward out+loss reference 15\n"
                                   "backward out+loss reference 15\n"
                                   "backward two reference 15\n"
                                   "backward both reference 15\n"
                                   "backward one reference 15\n"
                                   "optimizer squared_norm reference 368\n"
                                   "optimizer optimizer reference 368\n"
                                   "step - - 15\n";
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = make_batch();
    struct sl_buf said = {0};
    struct sl_trace trace;
    open(0);
    make_step(batch, 1); /* binds */
    ok(sl_trace_start(SL_TRACE_CALLS, 1000, &err), &err);
    make_step(batch, 2);
    sl_trace_stop(&trace);
    assert_int_equal(trace.track_count, 1);
    for (int64_t a = 0; a < trace.tracks[0].count; a++) {
        const struct sl_activity *activity = &trace.tracks[0].activities[a];
        sl_buf_printf(&said, "%s %s %s %lld\n", sl_activity_kind_get_name(activity->kind),
                      activity->name ? activity->name : "-", activity->detail ? activity->detail : "-",
                      (long long)activity->amount);
    }
    assert_string_equal(sl_buf_text(&said), expected);
    sl_trace_deinit(&trace);
    sl_buf_deinit(&said);
    close_world(&w);
    sl_batch_destroy(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_have_the_time_that_they_took),
        cmocka_unit_test(pieces_have_the_time_that_they_took),
        cmocka_unit_test(a_profile_has_each_call_with_its_rows),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

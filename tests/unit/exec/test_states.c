/* SPDX-License-Identifier: Apache-2.0 */
/* Final and carried states, and sequences without a step. */
#include "exec_cases.h"
#include "oom.h"

/* Zero-length sequences have a final state of zero, weigh as any other, and change no other sequence. */
static void empty_sequences_are_served(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world w;
    open_world(&w, data_values, "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    struct sl_batch *batch = make_batch(&facts);
    run(&w, batch, false);
    struct sl_field output = sl_exec_get_output(w.exec);
    assert_false(output.on_steps);
    for (int f = 0; f < 5; f++)
        assert_true(output.values[4 * 5 + f] == 0.0f);
    assert_true(output.values[3 * 5] != 0.0f);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* Its final state is zero, not what a sequence of the batch before has left in its place. */
static void an_empty_sequence_takes_nothing_from_the_batch_before(void **state)
{
    (void)state;
    static const int32_t full_lengths[] = {3, 2, 2, 2, 2};
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world fresh, used;
    static const char layers[] = "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}";
    open_world(&fresh, data_values, layers, &facts, true);
    open_world(&used, data_values, layers, &facts, true);
    struct sl_batch *full = make_values(full_lengths, B, 3, 5, false);
    run(&used, full, false);
    assert_true(sl_exec_get_output(used.exec).values[4 * 5] != 0.0f);
    sl_batch_destroy(full);
    assert_equal_and_close(&fresh, &used, &facts);
}

/* A stream without a step in one segment keeps its state for the next. */
static void an_empty_segment_keeps_the_carried_state(void **state)
{
    (void)state;
    enum { UNITS = 4, STATES = 2 };
    static const char data[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}, batching: {bptt: 3}}\n";
    static const int32_t both[] = {3, 3}, one[] = {3, 0};
    struct sl_data_facts facts = values_facts(2, true, UNITS);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    float *states, kept[STATES][UNITS];
    int64_t elems;
    facts.envelope = (struct sl_envelope){.sequences = 2, .steps = 3, .rows = 6};
    open_world(&w, data, "model: [{type: lstm, units: 4, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}",
               &facts, true);
    struct sl_batch *first = make_values(both, 2, 2, UNITS, true), *second = make_values(one, 2, 2, UNITS, true);
    second->carry_state = true;
    for (int k = 0; k < 2; k++) {
        run(&w, k ? second : first, false);
        ok(sl_exec_get_state(w.exec, &states, &elems, &err), &err);
        for (int32_t s = 0; s < STATES; s++) {
            const float *of_second = states + sl_exec_get_state_offset(w.exec, s) + UNITS;
            if (k)
                assert_memory_equal(of_second, kept[s], sizeof kept[s]);
            else
                memcpy(kept[s], of_second, sizeof kept[s]);
            assert_true(kept[s][0] != 0.0f);
        }
    }
    sl_batch_destroy(first);
    sl_batch_destroy(second);
    close_world(&w);
}

/* Two segments with carried states end where one run over both ends. */
static void carried_states_join_segments(void **state)
{
    (void)state;
    static const char layers[] =
        "model: [{type: lstm, units: 4, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}";
    static const char data[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}, batching: {bptt: 3}}\n";
    struct sl_data_facts facts = values_facts(2, true, 4);
    facts.envelope = (struct sl_envelope){.sequences = 2, .steps = 6, .rows = 12};
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_world(&w, data, layers, &facts, true);
    static const int32_t whole_lengths[] = {6, 6}, segment_lengths[] = {3, 3};
    struct sl_batch *whole = NULL, *segments[2] = {NULL, NULL};
    struct sl_batch_shape shape = {.sequences = 2,
                                   .lengths = whole_lengths,
                                   .input_kind = SL_FIELD_VALUES,
                                   .target_kind = SL_FIELD_VALUES,
                                   .input_features = 2,
                                   .target_features = 4,
                                   .input_on_steps = true,
                                   .target_on_steps = true};
    ok(sl_batch_create(&shape, &whole, &err), &err);
    shape.lengths = segment_lengths;
    for (int p = 0; p < 2; p++)
        ok(sl_batch_create(&shape, &segments[p], &err), &err);
    for (int i = 0; i < 12 * 2; i++) {
        ((float *)whole->input.values)[i] = number((uint64_t)i);
        ((float *)segments[i / 12]->input.values)[i % 12] = number((uint64_t)i);
    }
    segments[1]->carry_state = true;
    double expected = run(&w, whole, false);
    float last[4];
    memcpy(last, sl_exec_get_output(w.exec).values + 11 * 4, sizeof last);
    double got = run(&w, segments[0], false) + run(&w, segments[1], false);
    assert_true(fabs(expected - got) <= 1e-6 * fabs(expected));
    const float *again = sl_exec_get_output(w.exec).values + 5 * 4;
    for (int f = 0; f < 4; f++)
        assert_true(fabsf(again[f] - last[f]) <= 1e-6f);
    run(&w, segments[0], false); /* not carried: starts at zero again */
    double alone = run(&w, segments[0], false);
    assert_true(fabs(alone - run(&w, segments[0], false)) == 0.0);
    for (int p = 0; p < 2; p++)
        sl_batch_destroy(segments[p]);
    sl_batch_destroy(whole);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_sequences_are_served),
        cmocka_unit_test(an_empty_sequence_takes_nothing_from_the_batch_before),
        cmocka_unit_test(an_empty_segment_keeps_the_carried_state),
        cmocka_unit_test(carried_states_join_segments),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

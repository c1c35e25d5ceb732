/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of `ab` on sides that do nothing: how many there are, what each does, and a signal in the last of them. */
#include <stdbool.h>

#include "golden.h"
#include "oom.h"

#include "base/value/buf.h"

#include "compare/ab/ab_time.h"

enum { ROUNDS = SL_INTERVAL_ROUNDS_LEAST };

static struct sl_interrupt interrupt;
static int64_t starts, stops_at; /* of side a; 0: no signal */

static seqlstm_status start(struct sl_compare_side *side, int32_t batch, struct sl_compare_side_result *out_result,
                            int64_t *out_ns, struct seqlstm_error *err)
{
    (void)side;
    (void)batch;
    (void)err;
    memset(out_result, 0, sizeof *out_result);
    *out_ns = 1000000;
    starts++;
    return SEQLSTM_OK;
}

static seqlstm_status stop(struct sl_compare_side *side, struct seqlstm_error *err)
{
    (void)side;
    (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status take_turn(struct sl_compare_side *side, int32_t lead, int32_t steps, double *out_ns,
                                struct seqlstm_error *err)
{
    (void)side;
    (void)lead;
    (void)steps;
    (void)err;
    *out_ns = 1e6;
    if (stops_at > 0 && starts >= stops_at)
        atomic_store(&interrupt.stop, 2);
    return SEQLSTM_OK;
}

static seqlstm_status run(int64_t stops)
{
    static const struct sl_compare_side_table table = {.start = start, .stop = stop, .take_turn = take_turn};
    struct sl_compare_side a = {&table}, b = {&table};
    const struct sl_ab_time_request request = {.sides = {&a, &b},
                                               .batches = 1,
                                               .rounds = ROUNDS,
                                               .seconds = 1e-3,
                                               .confidence = 0.95,
                                               .interrupt = &interrupt};
    struct sl_ab_time times;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    atomic_store(&interrupt.stop, 0);
    starts = 0;
    stops_at = stops;
    return sl_ab_time_run(&request, &times, &err);
}

static void test_interrupt(void **state)
{
    (void)state;
    assert_int_equal(run(0), SEQLSTM_OK);
    assert_int_equal(starts, 2 * ROUNDS);
    assert_int_equal(run(2 * ROUNDS), SEQLSTM_CANCELLED); /* in the last turns of the last round */
    assert_int_equal(run(2), SEQLSTM_CANCELLED);
    assert_int_equal(starts, 2);
}

/* ---- what happens in which order ------------------------------------------------------------------- */

enum { CALLS = 2, ORDERED_ROUNDS = 6 };

static struct ordered {
    struct sl_compare_side side;
    char name;
    double ns[1 + CALLS]; /* of a turn */
    int turns;
} ordered[2];
static struct sl_buf calls;

static const struct ordered *say(struct sl_compare_side *side, char what)
{
    const struct ordered *o = side == &ordered[0].side ? &ordered[0] : &ordered[1];
    const bool follows = calls.length_bytes > 0 && calls.data[calls.length_bytes - 1] != ' ';
    sl_buf_printf(&calls, "%s%c%c ", follows ? " " : "", what, o->name);
    return o;
}

static seqlstm_status say_start(struct sl_compare_side *side, int32_t batch, struct sl_compare_side_result *out_result,
                                int64_t *out_ns, struct seqlstm_error *err)
{
    const struct ordered *o = say(side, '+');
    (void)err;
    sl_buf_printf(&calls, "%d ", (int)batch);
    memset(out_result, 0, sizeof *out_result);
    *out_ns = (int64_t)o->ns[0];
    return SEQLSTM_OK;
}

static seqlstm_status say_stop(struct sl_compare_side *side, struct seqlstm_error *err)
{
    (void)err;
    say(side, '-');
    return SEQLSTM_OK;
}

/* Every seventh turn takes longer, so that a mean would not do. */
static seqlstm_status say_turn(struct sl_compare_side *side, int32_t lead, int32_t steps, double *out_ns,
                               struct seqlstm_error *err)
{
    struct ordered *o = side == &ordered[0].side ? &ordered[0] : &ordered[1];
    (void)err;
    sl_buf_printf(&calls, "%c", o->name);
    if (lead != 1 || steps != 2)
        sl_buf_printf(&calls, "(%d, %d)", (int)lead, (int)steps);
    for (int c = 0; c <= CALLS; c++)
        out_ns[c] = o->ns[c] * (1 + 0.01 * (o->turns % 3)) * (o->turns % 7 == 0 ? 4 : 1);
    o->turns++;
    return SEQLSTM_OK;
}

/* Blocks are long enough that a busy machine, whose rounds take longer to begin, does not change their number. */
static void test_order(void **state)
{
    static const struct sl_compare_side_table table = {.start = say_start, .stop = say_stop, .take_turn = say_turn};
    (void)state;
    ordered[0] = (struct ordered){{&table}, 'a', {1e6, 4e5, 0.25}, 0};
    ordered[1] = (struct ordered){{&table}, 'b', {1.5e6, 3e5, 8}, 0};
    const struct sl_ab_time_request request = {.sides = {&ordered[0].side, &ordered[1].side},
                                               .batches = 3,
                                               .calls = CALLS,
                                               .rounds = ORDERED_ROUNDS,
                                               .seconds = 100,
                                               .confidence = 0.95,
                                               .seed = 7,
                                               .interrupt = &interrupt};
    struct sl_ab_time times[1 + CALLS];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0};
    atomic_store(&interrupt.stop, 0);
    assert_int_equal(sl_ab_time_run(&request, times, &err), SEQLSTM_OK);
    char *rest = calls.data, *word;
    while ((word = strsep(&rest, " ")) != NULL)
        sl_buf_printf(&out, "%s%s", word, *word == '-' && *rest == '+' ? "\n" : rest && strlen(word) > 8 ? "\n" : " ");
    for (int c = 0; c <= CALLS; c++)
        sl_buf_printf(&out, "\n%.6g %.6g %.6g [%.6g, %.6g] %lld", times[c].a_ns, times[c].b_ns, times[c].interval.ratio,
                      times[c].interval.low, times[c].interval.high, (long long)times[c].interval.rounds);
    sl_buf_append_char(&out, '\n');
    golden_expect("reports/ab_rounds.txt", "+", sl_buf_text(&out));
    sl_buf_deinit(&calls);
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_interrupt), cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

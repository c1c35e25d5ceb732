/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of `ab` on sides that do nothing: how many there are, and a signal in the last of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_interrupt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A case for collectives, as one rank runs it: its first check that fails is kept, and then nothing is exchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/collectives/trial.h"
#include "fake_collectives.h"

static int open_connection(void **state)
{
    fake_reset();
    return fake_connect(0, 2, (struct sl_connection **)state, NULL) == SEQLSTM_OK ? 0 : -1;
}

static int close_connection(void **state)
{
    sl_connection_close(*state);
    return 0;
}

static bool exchange(struct sl_trial *trial)
{
    return sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BARRIER, SEQLSTM_DTYPE_FLOAT32, 0, -1, NULL, NULL, 0);
}

/* Other ranks have not failed and may wait for exchanges of the case, but this rank no longer takes part in it. */
static void nothing_is_exchanged_after_a_failed_check(void **state)
{
    struct sl_trial trial = {.connection = *state, .ranks = 2};
    fake.runs = 0;
    fake.run_status = SEQLSTM_OK;
    for (int k = 0; k < 3; k++)
        assert_true(exchange(&trial) && sl_trial_check(&trial, true, "check %d", k));
    assert_int_equal(fake.runs, 3);
    assert_string_equal(trial.detail, "");
    assert_false(sl_trial_check(&trial, false, "check %d", 4));
    for (int k = 0; k < 3; k++)
        assert_false(exchange(&trial));
    assert_int_equal(fake.runs, 3);
    assert_false(sl_trial_check(&trial, false, "check %d", 5));
    assert_true(trial.failed);
    assert_string_equal(trial.detail, "check 4");
}

static void an_exchange_that_fails_is_a_failed_check(void **state)
{
    struct sl_trial trial = {.connection = *state, .ranks = 2};
    fake.runs = 0;
    fake.run_status = SEQLSTM_DEVICE;
    fake.run_message = "rank 1 has gone";
    for (int k = 0; k < 3; k++)
        assert_false(exchange(&trial));
    assert_int_equal(fake.runs, 1);
    assert_true(trial.failed);
    assert_non_null(strstr(trial.detail, "barrier of 0 elements"));
    assert_non_null(strstr(trial.detail, "rank 1 has gone"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_exchanged_after_a_failed_check),
        cmocka_unit_test(an_exchange_that_fails_is_a_failed_check),
    };
    return cmocka_run_group_tests(tests, open_connection, close_connection);
}

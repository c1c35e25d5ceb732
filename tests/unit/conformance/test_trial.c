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

static int runs;
static seqlstm_status run_status;

static seqlstm_status describe(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)err;
    transport->groups = 1;
    transport->ranks_most = 2;
    snprintf(transport->name, sizeof transport->name, "nothing");
    snprintf(transport->domain, sizeof transport->domain, "host");
    return SEQLSTM_OK;
}

static seqlstm_status open_it(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                              uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                              struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)rendezvous, (void)err;
    *out_connection = (struct seqlstm_connection *)&runs;
    return SEQLSTM_OK;
}

static void close_it(struct seqlstm_connection *connection)
{
    (void)connection;
}

static seqlstm_status group_create(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                   int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    (void)connection, (void)number, (void)ranks, (void)count, (void)err;
    *out_group = (struct seqlstm_group *)&runs;
    return SEQLSTM_OK;
}

static void group_destroy(struct seqlstm_group *group)
{
    (void)group;
}

static seqlstm_status run(struct seqlstm_group *group, struct seqlstm_queue *queue,
                          const struct seqlstm_exchange *exchange, struct seqlstm_error *err)
{
    (void)group, (void)queue, (void)exchange;
    runs++;
    return run_status == SEQLSTM_OK ? SEQLSTM_OK
                                    : seqlstm_error_set(err, run_status, __FILE__, __LINE__, "rank 1 has gone");
}

static seqlstm_status poll_it(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    (void)connection, (void)err;
    return SEQLSTM_OK;
}

static const struct seqlstm_collectives *query(uint32_t host_minor)
{
    static const struct seqlstm_collectives table = {.struct_size = sizeof table,
                                                     .magic = SEQLSTM_MAGIC,
                                                     .abi_major = SEQLSTM_COLLECTIVES_MAJOR,
                                                     .abi_minor_needed = SEQLSTM_COLLECTIVES_MINOR,
                                                     .id = "comm-test",
                                                     .version = "1",
                                                     .vendor = "a test",
                                                     .license = "none",
                                                     .build = "none",
                                                     .describe = describe,
                                                     .open = open_it,
                                                     .close = close_it,
                                                     .group_create = group_create,
                                                     .group_destroy = group_destroy,
                                                     .run = run,
                                                     .poll = poll_it,
                                                     .abort = close_it};
    (void)host_minor;
    return &table;
}

static int open_connection(void **state)
{
    static const struct sl_collectives_builtin builtins[] = {{"comm-test", query}};
    const struct sl_connection_request request = {
        .name = "comm-test", .builtins = builtins, .builtin_count = 1, .ranks = 2, .job = "a-job", .timeout_ns = 1000};
    return sl_connection_open(&request, (struct sl_connection **)state, NULL) == SEQLSTM_OK ? 0 : -1;
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
    runs = 0;
    run_status = SEQLSTM_OK;
    for (int k = 0; k < 3; k++)
        assert_true(exchange(&trial) && sl_trial_check(&trial, true, "check %d", k));
    assert_int_equal(runs, 3);
    assert_string_equal(trial.detail, "");
    assert_false(sl_trial_check(&trial, false, "check %d", 4));
    for (int k = 0; k < 3; k++)
        assert_false(exchange(&trial));
    assert_int_equal(runs, 3);
    assert_false(sl_trial_check(&trial, false, "check %d", 5));
    assert_true(trial.failed);
    assert_string_equal(trial.detail, "check 4");
}

static void an_exchange_that_fails_is_a_failed_check(void **state)
{
    struct sl_trial trial = {.connection = *state, .ranks = 2};
    runs = 0;
    run_status = SEQLSTM_DEVICE;
    for (int k = 0; k < 3; k++)
        assert_false(exchange(&trial));
    assert_int_equal(runs, 1);
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

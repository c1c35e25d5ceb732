/* SPDX-License-Identifier: Apache-2.0 */
/* A case for collectives, as one rank runs it: its first check that fails is kept, and then nothing is exchanged. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/operation/op_signature.h"
#include "conformance/collectives/cases.h"
#include "conformance/collectives/trial.h"
#include "fake_collectives.h"
#include "oom.h"

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

/* ---- what the checks of results notice, in a group of one rank ---- */

enum { AT_FIRST, AT_MIDDLE, AT_LAST, PLACES, BEFORE_FIRST = PLACES, BEHIND_LAST, EXCHANGES_MOST = 12 };

/* The exchange with this number returns one wrong element; 0: none does. */
static int wrong_run, wrong_place;

static seqlstm_status run_alone(struct seqlstm_group *group, struct seqlstm_queue *queue,
                                const struct seqlstm_exchange *e, struct seqlstm_error *err)
{
    (void)group, (void)queue, (void)err;
    const int64_t places[] = {0, e->elems / 2, e->elems - 1, -1, e->elems};
    const int64_t bytes = sl_dtype_bytes(e->dtype), place = places[wrong_place];
    if (e->to && e->from && e->to != e->from)
        memmove(e->to, e->from, (size_t)(e->elems * bytes));
    if (++fake.runs == wrong_run && e->to && e->elems > 0)
        ((unsigned char *)e->to)[place * bytes] ^= 1;
    else if (fake.runs == wrong_run)
        wrong_run = 0; /* nothing that could be wrong */
    return SEQLSTM_OK;
}

/* Memory of the plugin, of which a byte is not zero in this turn (0: in none), at this place. */
enum { MEMORY_BYTES = 320048 };
static int turn, dirty_turn;
static int64_t dirty_place;

static seqlstm_status allocate(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns,
                               void **out_memory, struct seqlstm_error *err)
{
    static _Alignas(
        SEQLSTM_ALIGNMENT) unsigned char memory[2][MEMORY_BYTES + SEQLSTM_ALIGNMENT - MEMORY_BYTES % SEQLSTM_ALIGNMENT];
    (void)connection, (void)timeout_ns, (void)err;
    assert_int_equal(bytes, MEMORY_BYTES);
    unsigned char *given = memory[turn++ % 2];
    memset(given, 0, MEMORY_BYTES);
    if (turn == dirty_turn)
        given[dirty_place] = 4;
    *out_memory = given;
    return SEQLSTM_OK;
}

/* Of one rank, whose exchanges are right but for those that a test asks for. */
static struct sl_connection *connect_alone(void)
{
    struct sl_connection *connection;
    fake_reset();
    fake.table.run = run_alone;
    fake.table.allocate = allocate;
    wrong_run = 0;
    assert_int_equal(fake_connect(0, 1, &connection, NULL), SEQLSTM_OK);
    return connection;
}

static struct sl_trial run_case(void (*run)(struct sl_trial *trial), struct sl_connection *connection)
{
    static const struct seqlstm_transport transport = {.struct_size = sizeof transport,
                                                       .dtypes = 1u << SEQLSTM_DTYPE_FLOAT32 |
                                                                 1u << SEQLSTM_DTYPE_INT32 | 1u << SEQLSTM_DTYPE_UINT8,
                                                       .reductions = (1u << SEQLSTM_REDUCE_COUNT) - 1,
                                                       .groups = 2};
    struct sl_trial trial = {.connection = connection, .transport = &transport, .ranks = 1, .seed = 3};
    fake.runs = turn = 0;
    run(&trial);
    return trial;
}

static void a_wrong_element_is_noticed_anywhere(void **state)
{
    static void (*const cases[])(struct sl_trial *) = {
        sl_trial_all_reduce, sl_trial_reduce_scatter, sl_trial_all_gather, sl_trial_rounding,
        sl_trial_broadcast,  sl_trial_many,           sl_trial_shared};
    struct sl_connection *connection = connect_alone();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        wrong_run = 0;
        struct sl_trial trial = run_case(cases[c], connection);
        assert_string_equal(trial.detail, "");
        assert_true(fake.runs > 0);
        const int count = fake.runs, stride = count / EXCHANGES_MOST + 1;
        for (int number = 1; number <= count; number += stride) {
            wrong_run = number;
            wrong_place = number / stride % PLACES;
            trial = run_case(cases[c], connection);
            if (wrong_run != 0 && !trial.failed)
                fail_msg("case %d, exchange %d, place %d", (int)c, number, wrong_place);
        }
    }
    wrong_run = 1, wrong_place = AT_LAST;
    assert_true(run_case(sl_trial_large, connection).failed);
    sl_connection_close(connection);
}

/* Memory that is not zero, and what a reduction writes beside its elements, wherever it is, in both rounds. */
/* A case that has no memory has not passed. */
static void without_memory_a_case_fails(void **state)
{
    static void (*const cases[])(struct sl_trial *) = {sl_trial_all_reduce, sl_trial_reduce_scatter,
                                                       sl_trial_all_gather, sl_trial_broadcast, sl_trial_large};
    struct sl_connection *connection = connect_alone();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int n = 1; n <= 3; n++) {
            oom_fail_at(n);
            const struct sl_trial trial = run_case(cases[c], connection);
            const bool failed = oom_disarm();
            if (trial.failed != failed || (failed && !strstr(trial.detail, "no memory")))
                fail_msg("case %d, allocation %d: `%s`", (int)c, n, trial.detail);
        }
    sl_connection_close(connection);
}

static void memory_of_the_plugin_is_looked_at_whole(void **state)
{
    static const int64_t places[] = {0, 1, MEMORY_BYTES / 2, MEMORY_BYTES - 2, MEMORY_BYTES - 1};
    struct sl_connection *connection = connect_alone();
    (void)state;
    for (dirty_turn = 0; dirty_turn <= 2; dirty_turn++)
        for (size_t k = 0; k < (dirty_turn ? sizeof places / sizeof *places : 1); k++) {
            dirty_place = places[k];
            const struct sl_trial trial = run_case(sl_trial_shared, connection);
            assert_string_equal(trial.detail, dirty_turn ? "memory of the plugin is not zero at first" : "");
            assert_int_equal(turn, dirty_turn == 1 ? 1 : 2);
        }
    dirty_turn = 0;
    const int reductions = SEQLSTM_REDUCE_COUNT * 3 * 4 * 2; /* of a round, which begins with a barrier */
    for (int round = 0; round < 2; round++)
        for (int k = round; k < reductions; k += 11) {   /* odd: each number of elements, in place and not */
            const bool has_room_before = k / 2 % 2 == 1; /* every other number of elements, each twice */
            wrong_run = 1 + round * (reductions + 1) + 1 + k;
            wrong_place = has_room_before && k % 2 ? BEFORE_FIRST : BEHIND_LAST;
            const struct sl_trial trial = run_case(sl_trial_shared, connection);
            if (!strstr(trial.detail, "wrote beside them"))
                fail_msg("round %d, reduction %d: `%s`", round, k, trial.detail);
        }
    wrong_run = 0;
    sl_connection_close(connection);
}

/* ---- --bench ---- */

/* Processors that this process may use, as `taskset` restricts them; and those of the last rank. */
static cpu_set_t allowed, taken;

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *out_set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *out_set)
{
    assert_int_equal(pid, 0);
    assert_true(bytes >= sizeof *out_set);
    *out_set = allowed;
    return 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set)
{
    assert_int_equal(pid, 0);
    assert_true(bytes >= sizeof *set);
    taken = *set;
    return 0;
}

/* Each on one of its own among those that may be used; wherever they may, where these are too few. */
static void ranks_are_timed_on_processors_that_may_be_used(void **state)
{
    static const int numbers[] = {2, 5, 6};
    CPU_ZERO(&allowed);
    for (int k = 0; k < 3; k++)
        CPU_SET(numbers[k], &allowed);
    for (int32_t ranks = 3; ranks <= 4; ranks++)
        for (int32_t rank = 0; rank < ranks; rank++) {
            struct sl_trial trial = {.connection = *state, .ranks = ranks, .rank = rank};
            CPU_ZERO(&taken);
            oom_fail_from(1); /* nothing is timed */
            sl_trial_time(&trial);
            oom_disarm();
            assert_int_equal(CPU_COUNT(&taken), ranks == 3);
            assert_true(ranks == 4 || CPU_ISSET(numbers[rank], &taken));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_exchanged_after_a_failed_check),
        cmocka_unit_test(an_exchange_that_fails_is_a_failed_check),
        cmocka_unit_test(a_wrong_element_is_noticed_anywhere),
        cmocka_unit_test(without_memory_a_case_fails),
        cmocka_unit_test(memory_of_the_plugin_is_looked_at_whole),
        cmocka_unit_test(ranks_are_timed_on_processors_that_may_be_used),
    };
    return cmocka_run_group_tests(tests, open_connection, close_connection);
}

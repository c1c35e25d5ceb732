/* SPDX-License-Identifier: Apache-2.0 */
/* What rounds say of a candidate's time, on a machine with others and without: synthetic times. */
#include <sched.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "dispatch/cost/rounds.h"
#include "oom.h"

enum { RUNS = 500 };

/* A share of the rounds is taken up by others, and lasts 2 to 20 times as long. */
static struct sl_rounds make(double ns, double share, uint64_t run, int32_t count)
{
    struct sl_rounds rounds = {0};
    for (int32_t i = 0; i < count; i++) {
        const bool disturbed = seqlstm_uniform(run, 2 * (uint64_t)i, 0, 0) < (float)share;
        const double longer = disturbed ? 2 + 18 * (double)seqlstm_uniform(run, 2 * (uint64_t)i + 1, 0, 0) : 1;
        sl_rounds_add(&rounds, 0.3 * ns * longer, 0.7 * ns * longer, disturbed);
    }
    return rounds;
}

static void a_quiet_machine(void **state)
{
    (void)state;
    struct sl_rounds rounds = {0};
    double forward, backward;
    for (int32_t i = 0; i < 5; i++)
        sl_rounds_add(&rounds, 10 + i, 20 - i, false);
    sl_rounds_get(&rounds, &forward, &backward);
    assert_true(forward == 11 && backward == 17);
    assert_true(sl_rounds_find(&rounds, 0) == 30 && sl_rounds_find(&rounds, 0.5) == 30);
    assert_true(sl_rounds_suffice(&rounds, 5));
    assert_false(sl_rounds_suffice(&rounds, 6));
}

/* One round that was left alone tells the time; and few rounds tell nothing. */
static void a_busy_machine(void **state)
{
    (void)state;
    struct sl_rounds rounds = {0};
    double forward, backward;
    for (int32_t i = 0; i + 1 < SL_ROUNDS_DISTURBED; i++)
        sl_rounds_add(&rounds, 400, 600, true);
    assert_false(sl_rounds_suffice(&rounds, 2));
    sl_rounds_add(&rounds, 4, 6, false);
    assert_true(sl_rounds_suffice(&rounds, 2));
    sl_rounds_get(&rounds, &forward, &backward);
    assert_true(forward == 4 && backward == 6);
}

/* Up to half of the rounds may be disturbed, and the others still tell the time. */
static void a_few_disturbed_rounds_do_not_count(void **state)
{
    (void)state;
    struct sl_rounds rounds = {0};
    for (int32_t i = 0; i < 6; i++)
        sl_rounds_add(&rounds, i < 3 ? 400 : 4, i < 3 ? 600 : 6, i < 3);
    assert_true(sl_rounds_suffice(&rounds, 6));
    assert_false(sl_rounds_suffice(&rounds, 7));
    sl_rounds_add(&rounds, 400, 600, true);
    assert_false(sl_rounds_suffice(&rounds, 7)); /* now most are */
}

/* Five of six rounds disturbed: of two candidates the quicker by half is found, as soon as the rounds suffice. */
static void the_quicker_is_found(void **state)
{
    (void)state;
    int found = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        double forward[2], backward[2];
        for (int side = 0; side < 2; side++) {
            struct sl_rounds rounds = make(side ? 1.5 : 1, 5.0 / 6, 2 * run + (uint64_t)side, SL_ROUNDS_MOST);
            assert_true(sl_rounds_suffice(&rounds, 3));
            sl_rounds_get(&rounds, &forward[side], &backward[side]);
        }
        found += forward[0] + backward[0] < forward[1] + backward[1];
    }
    /* It is not when none of its 31 rounds is left alone: (5/6)^31 = 0.35 % of the runs, 1.8 of 500. */
    assert_in_range(found, RUNS - 10, RUNS);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Beside another process on one processor this one is preempted, and that is counted. */
static void preemptions_are_counted(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const pid_t other = fork();
    assert_true(other >= 0);
    const double end = now() + 10;
    const int64_t before = sl_rounds_count_preemptions();
    while (now() < end && (other == 0 || sl_rounds_count_preemptions() == before))
        ;
    if (other == 0)
        _exit(0);
    assert_true(sl_rounds_count_preemptions() > before);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

/* The quantile of n rounds is one of them: the first for 0, the last for 1, and in between the lower neighbour. */
static void quantiles_are_rounds(void **state)
{
    (void)state;
    static const double shares[] = {0, 0.25, 0.5, 0.75, 1};
    for (int n = 1; n <= SL_ROUNDS_MOST; n++) {
        struct sl_rounds rounds = {0};
        for (int k = 0; k < n; k++) { /* 0 to n - 1, not in this order */
            const int place = n % 7 ? k * 7 % n : k;
            sl_rounds_add(&rounds, 0.25 * place, 0.75 * place, false);
        }
        double forward, backward;
        for (size_t s = 0; s < sizeof shares / sizeof *shares; s++)
            assert_true(sl_rounds_find(&rounds, shares[s]) == floor(shares[s] * (n - 1)));
        sl_rounds_get(&rounds, &forward, &backward);
        assert_true(forward == 0.25 * floor((n - 1) / 4.0) && backward == 0.75 * floor((n - 1) / 4.0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_rounds), cmocka_unit_test(a_quiet_machine),
        cmocka_unit_test(a_busy_machine),       cmocka_unit_test(a_few_disturbed_rounds_do_not_count),
        cmocka_unit_test(the_quicker_is_found), cmocka_unit_test(preemptions_are_counted),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

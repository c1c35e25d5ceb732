/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: a thread waits for the one whose call ended before, but not for long. Run under TSan too. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "base/system/cpu.h"
#include "base/system/turns.h"
#include "oom.h"

static void call_in_turn(void)
{
    sl_turns_begin();
    assert_true(sl_turns_end());
}

static void one_thread_never_waits(void **state)
{
    (void)state;
    sl_turns_begin();
    sl_turns_end(); /* whatever was before */
    for (int k = 0; k < 1000; k++)
        call_in_turn();
    sl_turns_begin();
}

static void *end_once(void *unused)
{
    sl_turns_begin();
    sl_turns_end();
    return unused;
}

static void a_thread_that_stays_outside_is_waited_for_once(void **state)
{
    (void)state;
    pthread_t other;
    for (int k = 0; k < 20; k++) {
        sl_turns_begin();
        assert_int_equal(pthread_create(&other, NULL, end_once, NULL), 0);
        assert_int_equal(pthread_join(other, NULL), 0);
        const int64_t before_ns = sl_clock_ns();
        assert_false(sl_turns_end());
        assert_true(sl_clock_ns() - before_ns >= 50000);
        call_in_turn();
        call_in_turn();
    }
    sl_turns_begin();
}

/* ---- two threads in step ---------------------------------------------------------------------------------------- */

enum { TRIES = 20000, OUTSIDE = 1, ENDING, BEGUN, DONE }; /* what the two have reached */
static _Atomic int reached;

/* False: the test is over. `ready`: the processor is kept, to see at once when it is reached. */
static bool await(int what, bool ready)
{
    int now;
    while ((now = atomic_load(&reached)) != what && now != DONE)
        if (!ready)
            sched_yield();
    return now == what;
}

static void *begin_as_the_other_ends(void *unused)
{
    do {
        sl_turns_begin();
        sl_turns_end();
        atomic_store(&reached, OUTSIDE);
        if (!await(ENDING, true))
            break;
        sl_turns_begin();
        atomic_store(&reached, BEGUN);
    } while (await(0, false));
    return unused;
}

/* One of the two may lose its processor for longer than the other waits, but not each time. */
static void a_thread_ends_when_the_other_begins(void **state)
{
    (void)state;
    pthread_t other;
    bool in_turn = false;
    if (sl_cpu_count_logical() < 2) {
        print_message("one processor: no two threads at a time\n");
        return;
    }
    assert_int_equal(pthread_create(&other, NULL, begin_as_the_other_ends, NULL), 0);
    for (int k = 0; k < TRIES && !in_turn; k++) {
        await(OUTSIDE, false);
        atomic_store(&reached, ENDING);
        in_turn = sl_turns_end();
        sl_turns_begin();
        await(BEGUN, false);
        atomic_store(&reached, 0);
    }
    await(OUTSIDE, false);
    atomic_store(&reached, DONE);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_true(in_turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_never_waits),
        cmocka_unit_test(a_thread_that_stays_outside_is_waited_for_once),
        cmocka_unit_test(a_thread_ends_when_the_other_begins),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

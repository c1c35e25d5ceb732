/* SPDX-License-Identifier: Apache-2.0 */
/* What the host offers to plugins: memory that is counted and may run out, queues that run everything once. */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/pool.h"
#include "base/system/trace.h"
#include "registry/host.h"
#include "registry/watch/running.h"
#include "oom.h"

static void the_host_counts_and_refuses_memory(void **state)
{
    (void)state;
    struct sl_host host;
    sl_host_init(&host, "test", NULL, NULL);
    void *a = host.services.allocate(host.services.context, 100);
    assert_non_null(a);
    assert_int_equal((uintptr_t)a % SEQLSTM_ALIGNMENT, 0);
    assert_int_equal(host.memory.live_bytes, 100);
    host.fail_after = host.memory.n_allocs;
    assert_null(host.services.allocate(host.services.context, 1));
    host.fail_after = -1;
    host.services.release(host.services.context, a);
    host.services.release(host.services.context, NULL);
    assert_int_equal(host.memory.live_blocks, 0);
    assert_int_equal(host.services.cancelled(host.services.context), 0);
    sl_host_init_minimal(&host, "test", NULL);
    assert_null(host.services.cancelled);
}

static void count_range(void *argument, int64_t begin, int64_t end)
{
    _Atomic int64_t *sum = argument;
    for (int64_t i = begin; i < end; i++)
        *sum += i;
}

static void count_team(void *argument, int32_t member, int32_t members)
{
    _Atomic int64_t *sum = argument;
    *sum += 1000 * members + member;
}

static void skip_range(void *argument, int64_t begin, int64_t end)
{
    (void)argument, (void)begin, (void)end;
}

static void skip_team(void *argument, int32_t member, int32_t members)
{
    (void)argument, (void)member, (void)members;
}

/* What members of a pool do is recorded under the plugin that asked for it: of a range how much each did, of a team how
 * many members it had. */
static void work_is_recorded_for_its_plugin(void **state)
{
    (void)state;
    enum { MEMBERS = 3, COUNT = 1000 };
    struct sl_pool *pool;
    struct sl_trace trace;
    struct sl_queue queue;
    struct sl_running running;
    assert_int_equal(sl_pool_create(MEMBERS, &pool, NULL), SEQLSTM_OK);
    sl_queue_init(&queue, pool);
    for (int team = 0; team < 2; team++) {
        int64_t amount = 0, parts = 0;
        assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 100, NULL), SEQLSTM_OK);
        sl_running_begin(&running, "made-up", SL_FUNCTION_FORWARD);
        if (team)
            queue.queue.services->team(&queue.queue, skip_team, NULL);
        else
            queue.queue.services->parallel_for(&queue.queue, COUNT, 100, skip_range, NULL);
        sl_running_end(&running);
        sl_trace_stop(&trace);
        for (int32_t t = 0; t < trace.track_count; t++)
            for (int64_t k = 0; k < trace.tracks[t].count; k++) {
                const struct sl_activity *done = &trace.tracks[t].activities[k];
                if (done->kind != SL_ACTIVITY_WORK)
                    continue;
                assert_string_equal(done->detail, "made-up");
                amount += done->amount;
                parts++;
            }
        assert_int_equal(amount, team ? MEMBERS * MEMBERS : COUNT);
        assert_true(team ? parts == MEMBERS : parts > 1);
        sl_trace_deinit(&trace);
    }
    sl_pool_destroy(pool);
}

static void round_up(void *argument, int64_t begin, int64_t end)
{
    (void)argument, (void)begin, (void)end;
    fesetround(FE_UPWARD);
}

static void round_up_together(void *argument, int32_t member, int32_t members)
{
    (void)argument, (void)member, (void)members;
    fesetround(FE_UPWARD);
}

static void note_rounding(void *argument, int32_t member, int32_t members)
{
    (void)members;
    ((int *)argument)[member] = fegetround();
}

/* A thread of the pool goes on as it was, and the call that it worked for is to blame. */
static void modes_of_the_pool_are_restored(void **state)
{
    (void)state;
    enum { MEMBERS = 3 };
    struct sl_pool *pool;
    struct sl_queue queue;
    assert_int_equal(sl_pool_create(MEMBERS, &pool, NULL), SEQLSTM_OK);
    sl_queue_init(&queue, pool);
    for (int how = 0; how < 3; how++) {
        struct sl_running running;
        int modes[MEMBERS] = {-1, -1, -1};
        sl_running_begin(&running, "made-up", SL_FUNCTION_FORWARD);
        if (how == 1)
            queue.queue.services->parallel_for(&queue.queue, 1000, 10, round_up, NULL);
        else if (how == 2)
            queue.queue.services->team(&queue.queue, round_up_together, NULL);
        queue.queue.services->team(&queue.queue, note_rounding, modes);
        sl_running_end(&running);
        assert_int_equal(atomic_load(&running.mode_changed), how > 0);
        for (int m = 0; m < MEMBERS; m++)
            assert_int_equal(modes[m], FE_TONEAREST);
    }
    sl_pool_destroy(pool);
}

static void run_never(void *argument, int64_t begin, int64_t end)
{
    (void)argument;
    fail_msg("from %lld to %lld", (long long)begin, (long long)end);
}

static void queues_run_everything_once(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_pool *pool;
    assert_int_equal(sl_pool_create(3, &pool, &err), SEQLSTM_OK);
    for (int inline_only = 0; inline_only < 2; inline_only++) {
        struct sl_queue queue;
        _Atomic int64_t sum = 0;
        sl_queue_init(&queue, inline_only ? NULL : pool);
        assert_int_equal(queue.queue.members, inline_only ? 1 : 3);
        queue.queue.services->parallel_for(&queue.queue, 1001, 10, count_range, (void *)&sum);
        assert_int_equal(sum, 1001 * 1000 / 2);
        queue.queue.services->parallel_for(&queue.queue, 0, 10, run_never, NULL);
        queue.queue.services->parallel_for(&queue.queue, -5, 10, run_never, NULL);
        assert_int_equal(sum, 1001 * 1000 / 2);
        sum = 0;
        queue.queue.services->team(&queue.queue, count_team, (void *)&sum);
        assert_int_equal(sum, inline_only ? 1000 : 3 * 3000 + 3);
    }
    sl_pool_destroy(pool);
}

struct seen {
    const struct sl_running *expected;
    _Atomic int parts, strange;
};

static void see_range(void *argument, int64_t begin, int64_t end)
{
    struct seen *seen = argument;
    (void)begin, (void)end;
    seen->parts++;
    seen->strange += sl_running_get() != seen->expected;
}

static void see_member(void *argument, int32_t member, int32_t members)
{
    (void)member;
    see_range(argument, 0, members);
}

/* So that a crash on any thread is blamed on the plugin that it works for, and on no other one afterwards. */
static void threads_run_the_call_that_they_work_for(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_running running;
    struct sl_pool *pool;
    struct sl_queue queue;
    assert_int_equal(sl_pool_create(3, &pool, &err), SEQLSTM_OK);
    sl_queue_init(&queue, pool);
    for (int round = 0; round < 4; round++) {
        struct seen seen = {.expected = round % 2 ? &running : NULL};
        if (round % 2)
            sl_running_begin(&running, "busy", SL_FUNCTION_FORWARD);
        queue.queue.services->parallel_for(&queue.queue, 300, 1, see_range, &seen);
        assert_int_equal(seen.parts, 3);
        queue.queue.services->team(&queue.queue, see_member, &seen);
        assert_int_equal(seen.parts, 6);
        assert_int_equal(seen.strange, 0);
        if (round % 2)
            sl_running_end(&running);
        seen = (struct seen){.expected = NULL}; /* work of the program's own */
        sl_pool_team(pool, see_member, &seen);
        assert_int_equal(seen.strange, 0);
    }
    sl_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_counts_and_refuses_memory),      cmocka_unit_test(queues_run_everything_once),
        cmocka_unit_test(work_is_recorded_for_its_plugin),         cmocka_unit_test(modes_of_the_pool_are_restored),
        cmocka_unit_test(threads_run_the_call_that_they_work_for),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

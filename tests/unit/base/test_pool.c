/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: each item once, all members at once, barriers that order memory, sleep and wake, nesting,
 * floating-point modes, signals, and failure to make one. Run under TSan too. */
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "base/system/cpu.h"
#include "base/system/pool.h"
#include "oom.h"

static const int32_t sizes[] = {1, 2, 3, 4, 5, 8, 13};
#define N_SIZES (sizeof sizes / sizeof *sizes)

static struct sl_pool *make(int32_t members)
{
    struct sl_pool *pool = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_pool_create(members, &pool, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return pool;
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

struct items {
    int64_t count, grain;
    int counts[1000];
    _Atomic int n_ranges, n_short;
};

static void visit(void *context, int64_t begin, int64_t end)
{
    struct items *items = context;
    items->n_ranges++;
    if (end - begin < items->grain && end != items->count)
        items->n_short++;
    for (int64_t i = begin; i < end; i++)
        items->counts[i]++; /* ranges are disjoint: TSan would tell otherwise */
}

static void each_item_is_visited_once(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SIZES; s++) {
        struct sl_pool *pool = make(sizes[s]);
        for (int64_t count = 0; count <= 1000; count = count * 3 / 2 + 1)
            for (int64_t grain = 0; grain <= 600; grain = grain * 2 + 1) {
                struct items items = {.count = count, .grain = grain};
                sl_pool_parallel_for(pool, count, grain, visit, &items);
                for (int64_t i = 0; i < 1000; i++)
                    assert_int_equal(items.counts[i], i < count);
                assert_int_equal(items.n_short, 0);
                assert_true(items.n_ranges <= sizes[s]);
                assert_true(count == 0 || items.n_ranges >= 1);
            }
        sl_pool_destroy(pool);
    }
}

static void huge(void *context, int64_t begin, int64_t end)
{
    _Atomic int64_t *sum = context;
    assert_true(begin >= 0 && end > begin);
    *sum += end - begin;
}

static void huge_counts_do_not_overflow(void **state)
{
    (void)state;
    struct sl_pool *pool = make(5);
    const int64_t grains[] = {1, 3, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        _Atomic int64_t sum = 0;
        sl_pool_parallel_for(pool, INT64_MAX, grains[i], huge, &sum);
        assert_true(sum == INT64_MAX);
    }
    _Atomic int64_t none = 0;
    sl_pool_parallel_for(pool, -5, 1, huge, &none);
    assert_true(none == 0);
    sl_pool_destroy(pool);
}

struct meeting {
    struct sl_pool *pool;
    int values[16];
    int wrong[16];
    int rounds;
    _Atomic int entered;
};

/* Each round every member writes its own value, then reads all: two barriers per round. */
static void meet(void *context, int32_t member, int32_t members)
{
    struct meeting *meeting = context;
    meeting->entered++;
    for (int round = 1; round <= meeting->rounds; round++) {
        meeting->values[member] = round * (member + 1);
        sl_pool_barrier(meeting->pool);
        for (int32_t other = 0; other < members; other++)
            meeting->wrong[member] += meeting->values[other] != round * (other + 1);
        sl_pool_barrier(meeting->pool);
    }
}

static void barriers_order_what_members_write(void **state)
{
    (void)state;
    for (size_t s = 0; s < N_SIZES; s++) {
        struct meeting meeting = {.pool = make(sizes[s]), .rounds = 300};
        for (int use = 0; use < 5; use++)
            sl_pool_team(meeting.pool, meet, &meeting);
        assert_int_equal(meeting.entered, 5 * sizes[s]);
        for (int i = 0; i < 16; i++)
            assert_int_equal(meeting.wrong[i], 0);
        assert_int_equal(sl_pool_get_members(meeting.pool), sizes[s]);
        sl_pool_destroy(meeting.pool);
    }
}

/* Members that come late: the others have to fall asleep in the barrier and be woken. */
static void meet_late(void *context, int32_t member, int32_t members)
{
    struct meeting *meeting = context;
    for (int round = 0; round < 2 * members; round++) {
        if (round % members == member)
            sleep_ms(2);
        meeting->values[member] = round;
        sl_pool_barrier(meeting->pool);
        for (int32_t other = 0; other < members; other++)
            meeting->wrong[member] += meeting->values[other] != round;
        sl_pool_barrier(meeting->pool);
    }
}

static void sleepers_are_woken(void **state)
{
    (void)state;
    struct meeting meeting = {.pool = make(4)};
    sl_pool_team(meeting.pool, meet_late, &meeting);
    for (int i = 0; i < 16; i++)
        assert_int_equal(meeting.wrong[i], 0);
    for (int i = 0; i < 20; i++) { /* the workers sleep between uses */
        struct items items = {.count = 100, .grain = 1};
        sleep_ms(2);
        sl_pool_parallel_for(meeting.pool, 100, 1, visit, &items);
        for (int k = 0; k < 100; k++)
            assert_int_equal(items.counts[k], 1);
    }
    sl_pool_lease_begin(meeting.pool);
    meeting.rounds = 20;
    sl_pool_team(meeting.pool, meet, &meeting);
    sl_pool_lease_end(meeting.pool);
    sl_pool_team(meeting.pool, meet, &meeting);
    assert_int_equal(meeting.entered, 8);
    for (int i = 0; i < 16; i++)
        assert_int_equal(meeting.wrong[i], 0);
    sl_pool_destroy(meeting.pool);
}

static void leased_threads_use_no_processor(void **state)
{
    (void)state;
    struct meeting meeting = {.pool = make(2), .rounds = 10};
    sl_pool_team(meeting.pool, meet, &meeting);
    sl_pool_lease_begin(meeting.pool);
    sleep_ms(5); /* a spinning worker would have gone to sleep by itself as well */
    int64_t before_ns = sl_clock_process_cpu_ns();
    sleep_ms(50);
    assert_true(sl_clock_process_cpu_ns() - before_ns < 5000000);
    sl_pool_lease_end(meeting.pool);
    sl_pool_destroy(meeting.pool);
}

/* A processor for each of two members; a thread outside the pool wants that of the first. */
struct crowd {
    int processors[2];
    _Atomic bool over;
};

static void take_processor(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

static void take_own_processor(void *context, int32_t member, int32_t members)
{
    assert_int_equal(members, 2);
    take_processor(((struct crowd *)context)->processors[member]);
}

static void *keep_busy(void *context)
{
    struct crowd *crowd = context;
    take_processor(crowd->processors[0]);
    while (!crowd->over)
        ;
    return NULL;
}

/* The second member works for 0.3 ms while the first one has nothing to do but wait. */
static void work_second(void *context, int32_t member, int32_t members)
{
    (void)context, (void)members;
    const int64_t end_ns = sl_clock_ns() + 300000;
    while (member == 1 && sl_clock_ns() < end_ns)
        ;
}

/* How often the calling thread lost its processor in so many uses of a pool while it was ready to run. */
static long count_losses(struct sl_pool *pool, int uses)
{
    struct rusage start, end;
    getrusage(RUSAGE_THREAD, &start);
    for (int i = 0; i < uses; i++)
        sl_pool_team(pool, work_second, NULL);
    getrusage(RUSAGE_THREAD, &end);
    return end.ru_nivcsw - start.ru_nivcsw;
}

/* A thread that yields a processor which another program wants gets it back a slice later: once is enough to learn
 * that. Other programs may take the processor, too, or make every use long: the best of several tries counts. */
static void crowded_processors_are_left_alone(void **state)
{
    (void)state;
    enum { USES = 200, TRIES = 20 };
    struct crowd crowd = {0};
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int found = 0;
    for (int c = 0; c < CPU_SETSIZE && found < 2; c++)
        if (CPU_ISSET((size_t)c, &before))
            crowd.processors[found++] = c;
    if (found < 2) {
        print_message("# one processor here: no other thread can have the second one\n");
        return;
    }
    struct sl_pool *pool = make(2);
    pthread_t other;
    sl_pool_team(pool, take_own_processor, &crowd);
    assert_int_equal(pthread_create(&other, NULL, keep_busy, &crowd), 0);
    long losses = USES;
    for (int k = 0; k < TRIES && losses >= USES / 2; k++)
        losses = count_losses(pool, USES);
    crowd.over = true;
    pthread_join(other, NULL);
    sl_pool_destroy(pool);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_in_range(losses, 0, USES / 2 - 1);
}

static void read_processors(void *context, int32_t member, int32_t members)
{
    cpu_set_t *of = context;
    assert_true(member < members);
    assert_int_equal(sched_getaffinity(0, sizeof *of, &of[member]), 0);
}

/* A worker that wakes on its caller's processor moves away, and may run everywhere again afterwards. */
static void workers_may_run_where_they_were_allowed_to(void **state)
{
    (void)state;
    enum { USES = 60 };
    struct sl_pool *pool = make(2);
    cpu_set_t allowed, of[2];
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int i = 0; i < USES; i++) {
        sl_pool_team(pool, read_processors, of);
        assert_true(CPU_EQUAL(&of[0], &allowed) && CPU_EQUAL(&of[1], &allowed));
        sleep_ms(2); /* longer than a worker spins: it sleeps, and is woken */
    }
    sl_pool_destroy(pool);
}

/* Stands for that of the C library. A mask that the kernel finds too small is refused. */
static _Atomic bool mask_is_too_small;
static _Atomic int32_t refused;

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *out_mask)
{
    if (mask_is_too_small) {
        refused++;
        errno = EINVAL;
        return -1;
    }
    memset(out_mask, 0, bytes);
    return syscall(SYS_sched_getaffinity, pid, bytes, out_mask) < 0 ? -1 : 0;
}

static void do_nothing(void *context, int32_t member, int32_t members)
{
    (void)context, (void)member, (void)members;
}

static void read_thread(void *context, int32_t member, int32_t members)
{
    (void)members;
    if (member == 1)
        *(pid_t *)context = (pid_t)syscall(SYS_gettid);
}

/* Waits until the thread may run on exactly these processors. */
static void expect_processors(pid_t thread, const cpu_set_t *want)
{
    cpu_set_t now;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(sched_getaffinity(thread, sizeof now, &now), 0);
        if (CPU_EQUAL(&now, want))
            return;
        sleep_ms(5);
    }
    fail_msg("thread %d may run on %d processors, not on %d", (int)thread, CPU_COUNT(&now), CPU_COUNT(want));
}

/* So that the kernel does not wake a worker on the processor of its caller. Limits that it got meanwhile stay. */
static void workers_sleep_away_from_their_caller(void **state)
{
    (void)state;
    cpu_set_t allowed, others, one, of[2];
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    if (CPU_COUNT(&allowed) < 2 || sl_cpu_count_logical() < 2) {
        print_message("# one processor here: a worker has no other\n");
        return;
    }
    struct sl_pool *pool = make(2);
    const int here = sched_getcpu();
    take_processor(here);
    others = allowed;
    CPU_CLR((size_t)here, &others);
    pid_t worker = 0;
    sl_pool_team(pool, read_thread, &worker);
    expect_processors(worker, &others);
    sl_pool_team(pool, read_processors, of);
    assert_true(CPU_EQUAL(&of[1], &allowed));
    expect_processors(worker, &others);
    CPU_ZERO(&one);
    CPU_SET((size_t)here, &one);
    assert_int_equal(sched_setaffinity(worker, sizeof one, &one), 0);
    sl_pool_team(pool, read_processors, of);
    assert_true(CPU_EQUAL(&of[1], &one));
    sl_pool_destroy(pool);
    assert_int_equal(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

/* The kernel is not asked in vain by every job. */
static void workers_stay_where_masks_are_too_small(void **state)
{
    (void)state;
    enum { USES = 1000 };
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (sl_cpu_count_logical() < 2) {
        print_message("# one processor here: workers never move\n");
        return;
    }
    const int here = sched_getcpu();
    struct crowd crowd = {.processors = {here, here}};
    struct sl_pool *pool = make(2);
    sl_pool_team(pool, take_own_processor, &crowd);
    mask_is_too_small = true;
    for (int i = 0; i < USES; i++)
        sl_pool_team(pool, do_nothing, NULL);
    mask_is_too_small = false;
    sl_pool_destroy(pool);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(refused, 1);
}

static void inner_member(void *context, int32_t member, int32_t members)
{
    struct meeting *meeting = context;
    assert_int_equal(member, 0);
    assert_int_equal(members, 1);
    sl_pool_barrier(meeting->pool); /* a team of one: no other member to wait for */
    meeting->entered++;
}

static void inner_range(void *context, int64_t begin, int64_t end)
{
    struct meeting *meeting = context;
    assert_true(begin == 0 && end == 10);
    meeting->entered++;
}

static void outer_member(void *context, int32_t member, int32_t members)
{
    struct meeting *meeting = context;
    (void)member;
    sl_pool_team(meeting->pool, inner_member, meeting);
    sl_pool_parallel_for(meeting->pool, 10, 1, inner_range, meeting);
    sl_pool_barrier(meeting->pool); /* and this one is the outer team's again */
    assert_int_equal(meeting->entered, 2 * members);
}

static void nested_uses_run_inline(void **state)
{
    (void)state;
    struct meeting meeting = {.pool = make(3)};
    sl_pool_team(meeting.pool, outer_member, &meeting);
    assert_int_equal(meeting.entered, 6);
    sl_pool_destroy(meeting.pool);
}

struct replicas {
    struct sl_pool *outer;
    struct meeting inner[2];
};

static void replica(void *context, int32_t member, int32_t members)
{
    struct replicas *replicas = context;
    (void)members;
    for (int i = 0; i < 10; i++) {
        sl_pool_team(replicas->inner[member].pool, meet, &replicas->inner[member]);
        sl_pool_barrier(replicas->outer);
    }
}

static void pools_within_pools(void **state)
{
    (void)state;
    struct replicas replicas = {.outer = make(2)};
    for (int i = 0; i < 2; i++)
        replicas.inner[i] = (struct meeting){.pool = make(2), .rounds = 5};
    sl_pool_team(replicas.outer, replica, &replicas);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(replicas.inner[i].entered, 20);
        assert_int_equal(replicas.inner[i].wrong[0] + replicas.inner[i].wrong[1], 0);
        sl_pool_destroy(replicas.inner[i].pool);
    }
    sl_pool_destroy(replicas.outer);
}

struct modes {
    int rounding[8];
    int blocked[8];
};

static void look_at_modes(void *context, int32_t member, int32_t members)
{
    struct modes *modes = context;
    (void)members;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    modes->rounding[member] = fegetround();
    modes->blocked[member] = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM);
}

static void threads_take_the_makers_modes_and_no_signals(void **state)
{
    (void)state;
    fesetround(FE_UPWARD);
    struct sl_pool *pool = make(3);
    fesetround(FE_TONEAREST);
    struct modes modes = {{0}, {0}};
    sl_pool_team(pool, look_at_modes, &modes);
    assert_int_equal(modes.rounding[0], FE_TONEAREST); /* the caller's own are left alone */
    assert_int_equal(modes.rounding[1], FE_UPWARD);
    assert_int_equal(modes.rounding[2], FE_UPWARD);
    assert_int_equal(modes.blocked[0], 0);
    assert_int_equal(modes.blocked[1] + modes.blocked[2], 2);
    sl_pool_destroy(pool);
}

static void bad_sizes_and_no_memory(void **state)
{
    (void)state;
    struct sl_pool *pool = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_pool_create(-1, &pool, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_pool_create(1025, &pool, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_null(pool);
    sl_pool_destroy(NULL);
    for (int n = 1;; n++) {
        oom_fail_at(n);
        seqlstm_status status = sl_pool_create(3, &pool, &err);
        if (!oom_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            assert_true(n > 3);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_null(pool);
    }
    sl_pool_destroy(pool);
    pool = make(0);
    assert_int_equal(sl_pool_get_members(pool), sl_cpu_count());
    sl_pool_destroy(pool);
}

static void made_and_destroyed_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        sl_pool_destroy(make(2 + i % 3));
}

static void uses_allocate_nothing(void **state)
{
    (void)state;
    struct meeting meeting = {.pool = make(3), .rounds = 3};
    struct items items = {.count = 1000, .grain = 1};
    oom_count_start();
    for (int i = 0; i < 50; i++) {
        sl_pool_team(meeting.pool, meet, &meeting);
        sl_pool_parallel_for(meeting.pool, 1000, 1, visit, &items);
    }
    assert_int_equal(oom_count(), 0);
    sl_pool_destroy(meeting.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_visited_once),
        cmocka_unit_test(huge_counts_do_not_overflow),
        cmocka_unit_test(barriers_order_what_members_write),
        cmocka_unit_test(sleepers_are_woken),
        cmocka_unit_test(leased_threads_use_no_processor),
        cmocka_unit_test(crowded_processors_are_left_alone),
        cmocka_unit_test(workers_may_run_where_they_were_allowed_to),
        cmocka_unit_test(workers_sleep_away_from_their_caller),
        cmocka_unit_test(workers_stay_where_masks_are_too_small),
        cmocka_unit_test(nested_uses_run_inline),
        cmocka_unit_test(pools_within_pools),
        cmocka_unit_test(threads_take_the_makers_modes_and_no_signals),
        cmocka_unit_test(bad_sizes_and_no_memory),
        cmocka_unit_test(made_and_destroyed_at_once),
        cmocka_unit_test(uses_allocate_nothing),
    };
    return cmocka_run_group_tests_name("pool", tests, oom_group_begin, oom_group_end);
}

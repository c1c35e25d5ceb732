/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: how work is handed out, how members meet, how they wait.
 *
 *   caller:  job = ...; generation++            waits until remaining == 0
 *   worker:  waits for generation to change;    runs its part; remaining--
 *
 * Every wait is the same: look, spin for a bounded time (not on a crowded processor), then sleep in the kernel (a
 * futex) on the word itself. A thread that changes a word and then sees a sleeper wakes it.
 *
 * Invariants:
 * 1. The caller writes `job` only while remaining == 0; workers read it after they have seen the new generation.
 * 2. A sleeper counts itself in *before* it looks at the word for the last time; a waker changes the word *before* it
 *    looks for sleepers; all four are sequentially consistent. So either the waker sees the sleeper or the sleeper sees
 *    the change.
 * 3. Words that different threads write are on different pairs of cache lines (128 bytes: the hardware fetches lines in
 *    pairs).
 * 4. The barrier is a dissemination barrier: in round r member i signals member i + 2^r and waits for member i - 2^r.
 *    After ceil(log2 members) rounds each has heard from all. With two members that is one store and one wait, each on
 *    its own line.
 */
#include "base/system/pool.h"

#include <assert.h>
#include <errno.h>
#include <fenv.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/relax.h"
#include "base/value/text.h"

#define POOL_LINE_BYTES 128
#define POOL_SPIN_FEW   32 /* looks before the clock is asked; all of them if oversubscribed */
/* Longer than a wake-up (5 us on bare metal, 110 us measured on a virtual machine). Were it shorter, a caller that
 * waits for a waking worker would itself fall asleep, the worker would then sleep before the caller is back, and every
 * use would pay for two wake-ups. */
#define POOL_SPIN_NS 200000
/* While spinning the processor is offered at this interval: the kernel sometimes puts a woken worker on the very
 * processor on which its caller spins. */
#define POOL_YIELD_NS 10000
/* A processor that comes back later than this is wanted by another program, or by a worker that the kernel woke there.
 * A thread that yields it to a program waits for a slice of the scheduler (4 ms and more) at every use; a thread that
 * sleeps runs again when woken. So a member that noticed this sleeps at once for a while: briefly the first time, and
 * twice as long each time that it notices it again soon afterwards. A worker moves to another processor in between. */
#define POOL_CROWD_NS         100000
#define POOL_CROWDED_LEAST_NS 500000
#define POOL_CROWDED_MOST_NS  20000000
/* A worker that the kernel put on its caller's processor moves to another one, at most this often. Where both sleep and
 * wake each other in turn, the kernel would leave them there. With more processors than a cpu_set_t holds, the worker
 * stays. */
#define POOL_MOVE_NS 1000000

/* One word on its own pair of lines. */
struct word {
    _Alignas(POOL_LINE_BYTES) _Atomic uint32_t value;
};

struct job {
    sl_pool_team_fn *team; /* one of team and range; neither: stop */
    sl_pool_range_fn *range;
    void *context;
    int64_t count, grain;
    int32_t active; /* members that have a range */
    int processor;  /* on which the caller runs */
};

struct worker {
    struct sl_pool *pool;
    pthread_t thread;
    int32_t member;
};

struct sl_pool {
    struct word generation; /* written by the caller */
    _Alignas(POOL_LINE_BYTES) struct job job;
    _Atomic uint32_t parked; /* leased away: sleep at once */
    int32_t members;
    int32_t n_started;
    uint32_t n_rounds;      /* of the barrier */
    int64_t spin_ns;        /* 0: more members than processors */
    fenv_t modes;           /* floating-point modes of the threads */
    struct worker *workers; /* [members - 1], of members 1, 2, ... */
    struct word *signals;   /* [members][n_rounds]: last phase that the member signalled */
    struct word *phases;    /* [members]: barriers that the member has passed */
    struct word sleepers;   /* workers that sleep for a generation */
    struct word remaining;  /* members still at work, the caller excepted */
    struct word caller_sleeps;
    struct word barrier_sleepers;
};

/* Which member of which team the running thread is. The caller of a pool may itself be a member of another one, so that
 * entries save and restore it. A barrier without a member argument (the contract's team_barrier) finds its caller here.
 */
static _Thread_local struct seat {
    struct sl_pool *pool;
    int32_t member, members;
} seat;

/* Until when the running thread considers its processor crowded, and for how long it did so last. */
static _Thread_local int64_t crowded_until_ns, crowded_ns;

static void futex_wait(_Atomic uint32_t *word, uint32_t while_value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_value, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* The processors of the running thread before and while it stays away from one. */
struct absence {
    cpu_set_t before, others;
};

/* Keeps the running thread away from the processor, and moves it if it runs there. False: there is no other processor
 * that it may use, or the kernel does not say which ones it may. */
static bool stay_away(int processor, struct absence *absence)
{
    static _Thread_local bool unknown;
    if (processor < 0 || unknown)
        return false;
    unknown = sched_getaffinity(0, sizeof absence->before, &absence->before) != 0;
    if (unknown)
        return false;
    absence->others = absence->before;
    CPU_CLR((size_t)processor, &absence->others);
    return CPU_COUNT(&absence->others) > 0 && sched_setaffinity(0, sizeof absence->others, &absence->others) == 0;
}

/* Lets the thread use the processor again, unless its processors were changed in between. */
static void end_absence(const struct absence *absence)
{
    cpu_set_t now;
    if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &absence->others))
        sched_setaffinity(0, sizeof absence->before, &absence->before);
}

/* Moves the running thread to another processor, if it may run on one. */
static void leave_processor(int processor)
{
    static _Thread_local int64_t moved_ns;
    struct absence absence;
    const int64_t now_ns = sl_clock_ns();
    if (now_ns - moved_ns < POOL_MOVE_NS)
        return;
    moved_ns = now_ns;
    if (stay_away(processor, &absence))
        end_absence(&absence);
}

/* Lets another thread run; the time afterwards. */
static int64_t offer_processor(int64_t now_ns)
{
    sched_yield();
    const int64_t back_ns = sl_clock_ns();
    if (back_ns - now_ns > POOL_CROWD_NS) {
        const bool again = now_ns - crowded_until_ns < POOL_CROWDED_MOST_NS;
        crowded_ns = again ? 2 * crowded_ns : POOL_CROWDED_LEAST_NS;
        if (crowded_ns > POOL_CROWDED_MOST_NS)
            crowded_ns = POOL_CROWDED_MOST_NS;
        crowded_until_ns = back_ns + crowded_ns;
    }
    return back_ns;
}

/* Waits until the word differs from `old`, and returns it. `waker` is the processor of the thread that will wake this
 * one, -1 if that is not known: a thread that sleeps stays away from it, since the kernel may wake it there, where it
 * would not run before its waker waits. */
static uint32_t await_change(struct sl_pool *pool, struct word *word, uint32_t old, struct word *sleepers, int waker)
{
    uint32_t now;
    for (int looks = 0; looks < POOL_SPIN_FEW; looks++) {
        now = atomic_load_explicit(&word->value, memory_order_acquire);
        if (now != old)
            return now;
        sl_relax();
    }
    int64_t now_ns = sl_clock_ns(), end_ns = now_ns + (now_ns < crowded_until_ns ? 0 : pool->spin_ns);
    int64_t yield_ns = now_ns + POOL_YIELD_NS;
    while (now_ns < end_ns && !atomic_load_explicit(&pool->parked, memory_order_relaxed)) {
        for (int looks = 0; looks < POOL_SPIN_FEW; looks++) {
            now = atomic_load_explicit(&word->value, memory_order_acquire);
            if (now != old)
                return now;
            sl_relax();
        }
        now_ns = sl_clock_ns();
        if (now_ns >= yield_ns) {
            now_ns = offer_processor(now_ns);
            yield_ns = now_ns + POOL_YIELD_NS;
        }
    }
    struct absence absence;
    const bool away = pool->spin_ns > 0 && stay_away(waker, &absence);
    atomic_fetch_add(&sleepers->value, 1);
    while ((now = atomic_load(&word->value)) == old)
        futex_wait(&word->value, old);
    atomic_fetch_sub(&sleepers->value, 1);
    if (away)
        end_absence(&absence);
    return now;
}

/* Writes the word and wakes the threads that sleep on it. */
static void announce(struct word *word, uint32_t value, struct word *sleepers)
{
    atomic_store(&word->value, value);
    if (atomic_load(&sleepers->value) != 0)
        futex_wake_all(&word->value);
}

/* The range of member `member`: whole grains of items, spread evenly, in order. */
static void run_range(const struct job *job, int32_t member)
{
    if (member >= job->active)
        return;
    int64_t grains = job->count / job->grain + (job->count % job->grain != 0);
    int64_t each = grains / job->active, rest = grains % job->active;
    int64_t first = each * member + (member < rest ? member : rest);
    int64_t last = first + each + (member < rest);
    int64_t begin = first * job->grain;
    int64_t end = last == grains ? job->count : last * job->grain;
    job->range(job->context, begin, end);
}

static void run_job(struct sl_pool *pool, const struct job *job, int32_t member)
{
    struct seat before = seat;
    seat = (struct seat){.pool = pool, .member = member, .members = pool->members};
    if (job->team)
        job->team(job->context, member, pool->members);
    else
        run_range(job, member);
    seat = before;
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct sl_pool *pool = worker->pool;
    fesetenv(&pool->modes);
    uint32_t generation = 0;
    struct job job = {.processor = -1};
    for (;;) {
        generation = await_change(pool, &pool->generation, generation, &pool->sleepers, job.processor);
        job = pool->job;
        if (!job.team && !job.range)
            return NULL;
        if (pool->spin_ns > 0 && sched_getcpu() == job.processor)
            leave_processor(job.processor);
        run_job(pool, &job, worker->member);
        if (atomic_fetch_sub(&pool->remaining.value, 1) == 1 && atomic_load(&pool->caller_sleeps.value) != 0)
            futex_wake_all(&pool->remaining.value);
    }
}

/* Hands the job to the workers without waiting. */
static void start_job(struct sl_pool *pool, const struct job *job)
{
    pool->job = *job;
    pool->job.processor = sched_getcpu();
    atomic_store_explicit(&pool->remaining.value, (uint32_t)pool->n_started, memory_order_relaxed);
    uint32_t next = atomic_load_explicit(&pool->generation.value, memory_order_relaxed) + 1;
    announce(&pool->generation, next, &pool->sleepers);
}

static void run_on_all(struct sl_pool *pool, const struct job *job)
{
    start_job(pool, job);
    run_job(pool, job, 0);
    uint32_t remaining;
    while ((remaining = atomic_load_explicit(&pool->remaining.value, memory_order_acquire)) != 0)
        await_change(pool, &pool->remaining, remaining, &pool->caller_sleeps, -1);
}

void sl_pool_team(struct sl_pool *pool, sl_pool_team_fn *fn, void *context)
{
    if (pool->members == 1) {
        fn(context, 0, 1);
        return;
    }
    if (seat.pool == pool) {
        struct seat before = seat;
        seat = (struct seat){.pool = pool, .member = 0, .members = 1};
        fn(context, 0, 1);
        seat = before;
        return;
    }
    run_on_all(pool, &(struct job){.team = fn, .context = context});
}

void sl_pool_parallel_for(struct sl_pool *pool, int64_t count, int64_t grain, sl_pool_range_fn *fn, void *context)
{
    if (count <= 0)
        return;
    if (grain < 1)
        grain = 1;
    if (pool->members == 1 || count <= grain || seat.pool == pool) {
        fn(context, 0, count);
        return;
    }
    int64_t grains = count / grain + (count % grain != 0);
    int32_t active = grains < pool->members ? (int32_t)grains : pool->members;
    run_on_all(pool, &(struct job){.range = fn, .context = context, .count = count, .grain = grain, .active = active});
}

void sl_pool_barrier(struct sl_pool *pool)
{
    if (pool->members == 1)
        return;
    assert(seat.pool == pool && "a barrier stands inside a team of the same pool");
    if (seat.members == 1)
        return;
    uint32_t members = (uint32_t)pool->members, member = (uint32_t)seat.member;
    struct word *own = &pool->signals[member * pool->n_rounds];
    uint32_t phase = atomic_load_explicit(&pool->phases[member].value, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool->phases[member].value, phase, memory_order_relaxed);
    for (uint32_t round = 0, step = 1; round < pool->n_rounds; round++, step *= 2) {
        announce(&own[round], phase, &pool->barrier_sleepers);
        uint32_t source = (member + members - step) % members;
        struct word *theirs = &pool->signals[source * pool->n_rounds + round];
        uint32_t seen = atomic_load_explicit(&theirs->value, memory_order_acquire);
        /* The other may be one barrier ahead, never more. */
        while ((int32_t)(seen - phase) < 0)
            seen = await_change(pool, theirs, seen, &pool->barrier_sleepers, -1);
    }
}

void sl_pool_lease_begin(struct sl_pool *pool)
{
    atomic_store_explicit(&pool->parked, 1, memory_order_relaxed);
}

void sl_pool_lease_end(struct sl_pool *pool)
{
    atomic_store_explicit(&pool->parked, 0, memory_order_relaxed);
}

int32_t sl_pool_get_members(const struct sl_pool *pool)
{
    return pool->members;
}

/* Zeroed words; NULL when memory runs out. */
static struct word *words_create(size_t count)
{
    struct word *words = aligned_alloc(POOL_LINE_BYTES, count * sizeof(struct word));
    if (words)
        memset(words, 0, count * sizeof(struct word));
    return words;
}

static seqlstm_status start_workers(struct sl_pool *pool, struct seqlstm_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = 0;
    while (pool->n_started < pool->members - 1) {
        struct worker *worker = &pool->workers[pool->n_started];
        *worker = (struct worker){.pool = pool, .member = pool->n_started + 1};
        failure = pthread_create(&worker->thread, NULL, worker_main, worker);
        if (failure != 0)
            break;
        pool->n_started++;
        char name[16];
        sl_text_snprintf(name, sizeof name, "seqlstm-%d", (int)worker->member);
        pthread_setname_np(worker->thread, name);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure != 0)
        SEQLSTM_FAIL(
            err, SEQLSTM_IO,
            "cannot start thread %d of %d: %s (a limit of the user or the container; `--threads` starts fewer)",
            (int)pool->n_started + 1, (int)pool->members - 1, strerror(failure));
    return SEQLSTM_OK;
}

seqlstm_status sl_pool_create(int32_t members, struct sl_pool **out_pool, struct seqlstm_error *err)
{
    if (members == 0)
        members = sl_cpu_count();
    if (members < 1 || members > SL_POOL_MEMBERS_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a thread pool has 1 to %d members, not %d", SL_POOL_MEMBERS_MOST,
                     (int)members);
    struct sl_pool *pool = aligned_alloc(POOL_LINE_BYTES, sizeof *pool);
    if (!pool)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a thread pool");
    memset(pool, 0, sizeof *pool);
    pool->members = members;
    for (uint32_t reach = 1; reach < (uint32_t)members; reach *= 2)
        pool->n_rounds++;
    seqlstm_status status = SEQLSTM_OK;
    if (members > 1) {
        pool->spin_ns = members <= sl_cpu_count_logical() ? POOL_SPIN_NS : 0;
        fegetenv(&pool->modes);
        pool->workers = calloc((size_t)members - 1, sizeof *pool->workers);
        pool->signals = words_create((size_t)members * pool->n_rounds);
        pool->phases = words_create((size_t)members);
        if (!pool->workers || !pool->signals || !pool->phases)
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                       "no memory for a thread pool of %d members", (int)members);
        else
            status = start_workers(pool, err);
    }
    if (status != SEQLSTM_OK) {
        sl_pool_destroy(pool);
        return status;
    }
    *out_pool = pool;
    return SEQLSTM_OK;
}

void sl_pool_destroy(struct sl_pool *pool)
{
    if (!pool)
        return;
    if (pool->n_started > 0)
        start_job(pool, &(struct job){0});
    for (int32_t i = 0; i < pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    free(pool->workers);
    free(pool->signals);
    free(pool->phases);
    free(pool);
}

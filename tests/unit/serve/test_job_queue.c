/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of jobs and the pile of retired ones, against an array in the order of arrival; and workers that sleep. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "oom.h"
#include "serve/job/queue.h"

enum { MOST = 5, JOBS = 12, OPERATIONS = 20000 };

/* What a queue is: those that wait, the oldest first. */
struct plain {
    struct sl_job *jobs[JOBS];
    int count;
};

struct taker {
    const struct plain *plain;
    uint64_t wanted; /* a bit for each job, by its number */
    int looked, chosen, asked;
    struct sl_job *all; /* by number */
};

static void look(void *context, const struct sl_job *job)
{
    struct taker *t = context;
    assert_true(t->chosen == 0 && t->looked < t->plain->count);
    assert_ptr_equal(job, t->plain->jobs[t->looked++]);
}

static void choose(void *context)
{
    struct taker *t = context;
    assert_int_equal(t->looked, t->plain->count);
    t->chosen++;
}

static bool wants(void *context, const struct sl_job *job)
{
    struct taker *t = context;
    assert_int_equal(t->chosen, 1);
    assert_ptr_equal(job, t->plain->jobs[t->asked++]);
    return t->wanted >> (job - t->all) & 1;
}

static void check_take(struct sl_job_queue *queue, struct plain *plain, struct sl_job *all, uint64_t wanted)
{
    struct taker t = {.plain = plain, .wanted = wanted, .all = all};
    const struct sl_job_taker taker = {&t, look, choose, wants};
    struct sl_job *taken = all;
    struct plain left = {.count = 0};
    assert_true(sl_job_queue_take(queue, false, &taker, &taken));
    assert_int_equal(t.chosen, plain->count > 0);
    for (int k = 0; k < plain->count; k++)
        if (wanted >> (plain->jobs[k] - all) & 1) {
            assert_ptr_equal(taken, plain->jobs[k]);
            taken = taken->next;
        } else {
            left.jobs[left.count++] = plain->jobs[k];
        }
    assert_null(taken);
    *plain = left;
}

/* Thousands of additions and takes of any of the jobs. */
static void test_order(void **state)
{
    struct sl_job *all = calloc(JOBS, sizeof *all);
    struct sl_job_queue queue;
    struct plain plain = {.count = 0};
    (void)state;
    assert_non_null(all);
    sl_job_queue_init(&queue, MOST);
    for (int n = 0; n < OPERATIONS; n++) {
        const uint64_t dice = seqlstm_mix64(3, (uint64_t)n, 0);
        struct sl_job *job = &all[dice % JOBS];
        bool waits = false;
        for (int k = 0; k < plain.count; k++)
            waits = waits || plain.jobs[k] == job;
        if (dice >> 8 & 3) {
            if (waits)
                continue;
            const bool again = (dice >> 10) % 8 == 0;
            if (again)
                sl_job_queue_add_again(&queue, job);
            else
                assert_int_equal(sl_job_queue_add(&queue, job), plain.count < MOST);
            if (again || plain.count < MOST)
                plain.jobs[plain.count++] = job;
            sl_job_queue_announce(&queue);
        } else {
            check_take(&queue, &plain, all, dice >> 16 & dice >> 32);
        }
        assert_int_equal(sl_job_queue_count(&queue), plain.count);
    }
    check_take(&queue, &plain, all, UINT64_MAX);
    sl_job_queue_deinit(&queue);
    free(all);
}

/* ---- workers that sleep ------------------------------------------------------------------------------------- */

static bool wants_all(void *context, const struct sl_job *job)
{
    (void)context, (void)job;
    return true;
}

static void look_at(void *context, const struct sl_job *job)
{
    (void)context, (void)job;
}

static void choose_all(void *context)
{
    (void)context;
}

static const struct sl_job_taker taker_of_all = {NULL, look_at, choose_all, wants_all};

struct sleeper {
    struct sl_job_queue *queue;
    pthread_t thread;
    bool goes_on;
    int taken;
};

static void *sleep_once(void *context)
{
    struct sleeper *s = context;
    struct sl_job *jobs;
    s->goes_on = sl_job_queue_take(s->queue, true, &taker_of_all, &jobs);
    for (; jobs; jobs = jobs->next)
        s->taken++;
    return NULL;
}

static void start(struct sleeper *sleepers, int count, struct sl_job_queue *queue)
{
    for (int k = 0; k < count; k++) {
        sleepers[k] = (struct sleeper){.queue = queue};
        assert_int_equal(pthread_create(&sleepers[k].thread, NULL, sleep_once, &sleepers[k]), 0);
    }
    for (;;) { /* until all sleep */
        pthread_mutex_lock(&queue->lock);
        const bool all = queue->sleeping == count;
        pthread_mutex_unlock(&queue->lock);
        if (all)
            return;
        usleep(1000);
    }
}

static int join(struct sleeper *sleepers, int count)
{
    int taken = 0;
    for (int k = 0; k < count; k++) {
        assert_int_equal(pthread_join(sleepers[k].thread, NULL), 0);
        taken += sleepers[k].taken;
    }
    return taken;
}

/* Each sleeper gets its share of jobs that come together; woken or ended ones get none. */
static void test_sleepers(void **state)
{
    enum { SLEEPERS = 3 };
    struct sl_job *all = calloc(JOBS, sizeof *all);
    struct sleeper sleepers[SLEEPERS];
    struct sl_job_queue queue;
    (void)state;
    assert_non_null(all);
    sl_job_queue_init(&queue, JOBS);
    start(sleepers, SLEEPERS, &queue);
    for (int k = 0; k < JOBS; k++)
        assert_true(sl_job_queue_add(&queue, &all[k]));
    sl_job_queue_announce(&queue);
    while (sl_job_queue_count(&queue) > 0)
        usleep(1000);
    sl_job_queue_wake(&queue); /* those that got none */
    assert_int_equal(join(sleepers, SLEEPERS), JOBS);
    for (int k = 0; k < SLEEPERS; k++)
        assert_true(sleepers[k].goes_on && sleepers[k].taken == JOBS / SLEEPERS);
    start(sleepers, SLEEPERS, &queue);
    sl_job_queue_wake(&queue);
    assert_int_equal(join(sleepers, SLEEPERS), 0);
    assert_true(sleepers[0].goes_on && sleepers[2].goes_on);
    for (int again = 0; again < 2; again++) { /* one job wakes one that sleeps, too */
        start(sleepers, 1, &queue);
        if (again)
            sl_job_queue_add_again(&queue, &all[0]);
        else
            assert_true(sl_job_queue_add(&queue, &all[0]));
        if (!again)
            sl_job_queue_announce(&queue);
        assert_int_equal(join(sleepers, 1), 1);
    }
    start(sleepers, SLEEPERS, &queue);
    sl_job_queue_close(&queue);
    assert_int_equal(join(sleepers, SLEEPERS), 0);
    assert_true(!sleepers[0].goes_on && !sleepers[1].goes_on && !sleepers[2].goes_on);
    /* what is there when it closes is still taken */
    struct sl_job *jobs;
    assert_true(sl_job_queue_add(&queue, &all[1]));
    assert_true(sl_job_queue_take(&queue, true, &taker_of_all, &jobs));
    assert_ptr_equal(jobs, &all[1]);
    assert_false(sl_job_queue_take(&queue, true, &taker_of_all, &jobs));
    assert_null(jobs);
    sl_job_queue_deinit(&queue);
    free(all);
}

/* The oldest first, and each once. */
static void test_pile(void **state)
{
    struct sl_job *all = calloc(JOBS, sizeof *all);
    struct sl_job_pile pile = {NULL};
    (void)state;
    assert_non_null(all);
    for (int count = 0; count <= JOBS; count++) {
        for (int k = 0; k < count; k++)
            sl_job_pile_add(&pile, &all[k]);
        const struct sl_job *job = sl_job_pile_take(&pile);
        for (int k = 0; k < count; k++, job = job->next)
            assert_ptr_equal(job, &all[k]);
        assert_null(job);
        assert_null(sl_job_pile_take(&pile));
    }
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_sleepers),
        cmocka_unit_test(test_pile),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

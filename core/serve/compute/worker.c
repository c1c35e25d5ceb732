/* SPDX-License-Identifier: Apache-2.0 */
/* See worker.h. */
#include "serve/compute/worker.h"

#include <stdlib.h>

#include "base/system/clock.h"

/* Only clients of jobs that have waited so long are asked for whether they are there: it is a system call. */
enum { LONG_NS = 50000000 };

static void see_added(struct sl_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    struct sl_runner *added = worker->added;
    worker->added = NULL;
    pthread_mutex_unlock(&worker->lock);
    while (added) {
        struct sl_runner *runner = added;
        added = runner->next;
        runner->next = worker->runners;
        worker->runners = runner;
    }
}

static struct sl_runner *find_runner(struct sl_worker *worker, const struct sl_job *job)
{
    struct sl_runner *runner = worker->runners;
    while (runner && runner->model != job->model)
        runner = runner->next;
    if (runner)
        return runner;
    see_added(worker);
    return find_runner(worker, job);
}

static void look(void *context, const struct sl_job *job)
{
    sl_runner_look(find_runner(context, job), job);
}

static void choose(void *context)
{
    struct sl_worker *worker = context;
    for (struct sl_runner *runner = worker->runners; runner; runner = runner->next)
        sl_runner_choose(runner);
}

static bool wants(void *context, const struct sl_job *job)
{
    struct sl_runner *runner = find_runner(context, job);
    if (!sl_runner_wants(runner, job))
        return false;
    runner->promised += job->count;
    return true;
}

static bool is_busy(const struct sl_worker *worker)
{
    for (const struct sl_runner *runner = worker->runners; runner; runner = runner->next)
        if (sl_runner_is_busy(runner))
            return true;
    return false;
}

static void destroy(struct sl_runner *runner)
{
    const struct sl_served_model *model = runner->model;
    sl_runner_deinit(runner);
    free(runner);
    sl_served_model_release(model);
}

/* Lets go of versions of models that are over. */
static void drop_over(struct sl_worker *worker)
{
    for (struct sl_runner **at = &worker->runners; *at;) {
        struct sl_runner *runner = *at;
        if (!atomic_load(&runner->model->uses->over)) {
            at = &runner->next;
            continue;
        }
        *at = runner->next;
        destroy(runner);
    }
}

/* Gives the jobs to their runners, but for those whose client has left. */
static void begin(struct sl_worker *worker, struct sl_job *jobs)
{
    struct sl_serving *serving = worker->serving;
    const int64_t now = sl_clock_ns();
    while (jobs) {
        struct sl_job *job = jobs;
        jobs = job->next;
        job->next = NULL;
        job->checked_ns = now;
        if (now - job->queued_ns > LONG_NS && serving->http->is_gone(job->request)) {
            sl_counters_note_gone(&serving->counters);
            sl_job_fail(serving, job, 499, "the client has left", false);
            continue;
        }
        sl_counters_note_queued(&serving->counters, (double)(now - job->queued_ns) * 1e-9);
        sl_runner_add(find_runner(worker, job), job);
    }
    for (struct sl_runner *runner = worker->runners; runner; runner = runner->next)
        runner->promised = 0;
}

static void run(struct sl_worker *worker)
{
    const int64_t began = sl_clock_ns(), had = sl_clock_thread_cpu_ns();
    for (struct sl_runner *runner = worker->runners; runner; runner = runner->next)
        if (sl_runner_is_busy(runner))
            sl_runner_run(runner);
    const int64_t now = sl_clock_ns();
    sl_processor_note(&worker->processor, now, now - began, sl_clock_thread_cpu_ns() - had);
}

static void *work(void *context)
{
    struct sl_worker *worker = context;
    struct sl_serving *serving = worker->serving;
    const struct sl_job_taker taker = {.context = worker, .look = look, .choose = choose, .wants = wants};
    for (bool busy = false, was = false;;) {
        struct sl_job *jobs = NULL;
        if (!sl_job_queue_take(&serving->queue, !busy, &taker, &jobs) && !busy)
            return NULL;
        begin(worker, jobs);
        busy = is_busy(worker);
        if (busy != was)
            sl_counters_note_busy(&serving->counters, busy ? 1 : -1);
        was = busy;
        run(worker);
        busy = is_busy(worker);
        if (was && !busy)
            sl_counters_note_busy(&serving->counters, -1);
        was = busy;
        see_added(worker);
        drop_over(worker);
    }
}

void sl_worker_init(struct sl_worker *worker, struct sl_serving *serving)
{
    *worker = (struct sl_worker){.serving = serving, .made = true};
    pthread_mutex_init(&worker->lock, NULL);
}

seqlstm_status sl_worker_add(struct sl_worker *worker, const struct sl_served_model *model, struct seqlstm_error *err)
{
    struct sl_runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a worker");
    const seqlstm_status status = sl_runner_init(runner, worker->serving, model, err);
    if (status != SEQLSTM_OK) {
        sl_runner_deinit(runner);
        free(runner);
        return status;
    }
    sl_served_model_hold(model);
    pthread_mutex_lock(&worker->lock);
    runner->next = worker->added;
    worker->added = runner;
    pthread_mutex_unlock(&worker->lock);
    return SEQLSTM_OK;
}

seqlstm_status sl_worker_start(struct sl_worker *worker, struct seqlstm_error *err)
{
    if (sl_processor_start(&worker->processor, &worker->thread, work, worker) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "a thread cannot be started");
    worker->started = true;
    return SEQLSTM_OK;
}

void sl_worker_end(struct sl_worker *worker)
{
    if (worker->started)
        pthread_join(worker->thread, NULL);
    if (worker->made) {
        see_added(worker);
        pthread_mutex_destroy(&worker->lock);
    }
    while (worker->runners) {
        struct sl_runner *runner = worker->runners;
        worker->runners = runner->next;
        destroy(runner);
    }
    *worker = (struct sl_worker){.started = false};
}

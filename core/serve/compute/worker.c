/* SPDX-License-Identifier: Apache-2.0 */
/* See worker.h. */
#include "serve/compute/worker.h"

#include <stdlib.h>

#include "base/system/clock.h"

/* Only clients of jobs that have waited so long are asked for whether they are there: it is a system call. */
enum { LONG_NS = 1000000 };

static struct sl_runner *find_runner(const struct sl_worker *worker, const struct sl_job *job)
{
    struct sl_runner *runner = worker->runners;
    while (runner->model != job->model)
        runner++;
    return runner;
}

static bool wants(void *context, const struct sl_job *job)
{
    struct sl_runner *runner = find_runner(context, job);
    if (!sl_runner_has_room(runner))
        return false;
    runner->promised += job->count;
    return true;
}

static bool is_busy(const struct sl_worker *worker)
{
    for (int m = 0; m < worker->count; m++)
        if (sl_runner_is_busy(&worker->runners[m]))
            return true;
    return false;
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
    for (int m = 0; m < worker->count; m++)
        worker->runners[m].promised = 0;
}

static void *work(void *context)
{
    struct sl_worker *worker = context;
    struct sl_serving *serving = worker->serving;
    for (bool busy = false, was = false;;) {
        struct sl_job *jobs = sl_job_queue_take(&serving->queue, !busy, wants, worker);
        if (jobs == NULL && !busy)
            return NULL;
        begin(worker, jobs);
        busy = is_busy(worker);
        if (busy != was)
            sl_counters_note_busy(&serving->counters, busy ? 1 : -1);
        was = busy;
        for (int m = 0; m < worker->count; m++)
            if (sl_runner_is_busy(&worker->runners[m]))
                sl_runner_run(&worker->runners[m]);
        busy = is_busy(worker);
        if (was && !busy)
            sl_counters_note_busy(&serving->counters, -1);
        was = busy;
    }
}

seqlstm_status sl_worker_start(struct sl_worker *worker, struct sl_serving *serving,
                               const struct sl_served_model *models, int count, struct seqlstm_error *err)
{
    *worker = (struct sl_worker){.serving = serving, .count = count};
    worker->runners = calloc((size_t)count, sizeof *worker->runners);
    if (worker->runners == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a worker");
    for (int m = 0; m < count; m++)
        SEQLSTM_TRY(sl_runner_init(&worker->runners[m], serving, &models[m], err));
    if (pthread_create(&worker->thread, NULL, work, worker) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "a thread cannot be started");
    worker->started = true;
    return SEQLSTM_OK;
}

void sl_worker_end(struct sl_worker *worker)
{
    if (worker->started)
        pthread_join(worker->thread, NULL);
    for (int m = 0; worker->runners && m < worker->count; m++)
        sl_runner_deinit(&worker->runners[m]);
    free(worker->runners);
    *worker = (struct sl_worker){.started = false};
}

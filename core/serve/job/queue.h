/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that wait for a worker, in the order of arrival, up to a limit. */
#ifndef SL_SERVE_JOB_QUEUE_H
#define SL_SERVE_JOB_QUEUE_H

#include <pthread.h>

#include "serve/job/job.h"

/* Any thread may call any of these. */
struct sl_job_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct sl_job *first, *last;
    int64_t count, most;
    int64_t sleeping; /* workers that wait */
    int64_t wakes;    /* by sl_job_queue_wake */
    bool closed;      /* take returns false once it is empty */
};

void sl_job_queue_init(struct sl_job_queue *queue, int64_t most);
void sl_job_queue_deinit(struct sl_job_queue *queue);

/* False: the queue is full, and the job stays the caller's. Workers that sleep do not see it before it is announced:
 * jobs that come together wake one of them once. */
bool sl_job_queue_add(struct sl_job_queue *queue, struct sl_job *job);
void sl_job_queue_announce(struct sl_job_queue *queue);
/* Adds and announces a job that has waited for its stream, also to a full queue. */
void sl_job_queue_add_again(struct sl_job_queue *queue, struct sl_job *job);

/* A worker that takes jobs. It is shown all that wait, in their order; then it chooses. */
struct sl_job_taker {
    void *context;
    void (*look)(void *context, const struct sl_job *job);
    void (*choose)(void *context);
    /* Is the job to be taken? It then is, so the function may count it. */
    bool (*wants)(void *context, const struct sl_job *job);
};

/* Takes the jobs that are wanted, in their order, as a list; NULL: there is none. With `waits` it waits for the first
 * job, or until it is woken. False: the queue is closed and empty. */
bool sl_job_queue_take(struct sl_job_queue *queue, bool waits, const struct sl_job_taker *taker,
                       struct sl_job **out_jobs);
/* Those that wait now return without a job. */
void sl_job_queue_wake(struct sl_job_queue *queue);

/* Wakes all workers. */
void sl_job_queue_close(struct sl_job_queue *queue);
int64_t sl_job_queue_count(struct sl_job_queue *queue);

#endif

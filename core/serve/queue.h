/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that wait for a worker, in the order of arrival, up to a limit. */
#ifndef SL_SERVE_QUEUE_H
#define SL_SERVE_QUEUE_H

#include <pthread.h>

#include "serve/job.h"

/* Any thread may call any of these. */
struct sl_job_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct sl_job *first, *last;
    int64_t count, most;
    bool closed; /* no jobs are added, and take returns NULL once it is empty */
};

void sl_job_queue_init(struct sl_job_queue *queue, int64_t most);
void sl_job_queue_deinit(struct sl_job_queue *queue);

/* False: the queue is full or closed, and the job stays the caller's. */
bool sl_job_queue_add(struct sl_job_queue *queue, struct sl_job *job);

/* Waits for a job, and takes it with all that wait for the same model, in their order, as long as one batch of the
 * model holds them. Returns them as a list, or NULL when the queue is closed and empty. */
struct sl_job *sl_job_queue_take(struct sl_job_queue *queue);

/* Wakes all workers. */
void sl_job_queue_close(struct sl_job_queue *queue);
int64_t sl_job_queue_count(struct sl_job_queue *queue);

#endif

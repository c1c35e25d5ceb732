/* SPDX-License-Identifier: Apache-2.0 */
/* See queue.h. */
#include "serve/job/queue.h"

void sl_job_queue_init(struct sl_job_queue *queue, int64_t most)
{
    *queue = (struct sl_job_queue){.most = most};
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->filled, NULL);
}

void sl_job_queue_deinit(struct sl_job_queue *queue)
{
    pthread_cond_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->lock);
}

static void append(struct sl_job_queue *queue, struct sl_job *job)
{
    job->next = NULL;
    *(queue->last ? &queue->last->next : &queue->first) = job;
    queue->last = job;
    queue->count++;
}

bool sl_job_queue_add(struct sl_job_queue *queue, struct sl_job *job)
{
    pthread_mutex_lock(&queue->lock);
    const bool added = queue->count < queue->most;
    if (added)
        append(queue, job);
    pthread_mutex_unlock(&queue->lock);
    return added;
}

void sl_job_queue_announce(struct sl_job_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const bool sleeps = queue->first && queue->sleeping > 0;
    pthread_mutex_unlock(&queue->lock);
    if (sleeps) /* without the lock, which the worker needs */
        pthread_cond_signal(&queue->filled);
}

void sl_job_queue_add_again(struct sl_job_queue *queue, struct sl_job *job)
{
    pthread_mutex_lock(&queue->lock);
    append(queue, job);
    const bool sleeps = queue->sleeping > 0;
    pthread_mutex_unlock(&queue->lock);
    if (sleeps)
        pthread_cond_signal(&queue->filled);
}

/* Workers that sleep get their share. */
static struct sl_job *take(struct sl_job_queue *queue, const struct sl_job_taker *taker)
{
    int64_t left = (queue->count + queue->sleeping) / (queue->sleeping + 1);
    struct sl_job *taken = NULL, **end = &taken, **at = &queue->first, *before = NULL;
    for (const struct sl_job *job = queue->first; job; job = job->next)
        taker->look(taker->context, job);
    taker->choose(taker->context);
    while (*at && left > 0) {
        struct sl_job *job = *at;
        if (!taker->wants(taker->context, job)) {
            before = job;
            at = &job->next;
            continue;
        }
        *at = job->next;
        if (queue->last == job)
            queue->last = before;
        job->next = NULL;
        *end = job;
        end = &job->next;
        queue->count--;
        left--;
    }
    return taken;
}

bool sl_job_queue_take(struct sl_job_queue *queue, bool waits, const struct sl_job_taker *taker,
                       struct sl_job **out_jobs)
{
    pthread_mutex_lock(&queue->lock);
    const int64_t wakes = queue->wakes;
    while (waits && queue->first == NULL && !queue->closed && queue->wakes == wakes) {
        queue->sleeping++;
        pthread_cond_wait(&queue->filled, &queue->lock);
        queue->sleeping--;
    }
    const bool over = queue->closed && queue->first == NULL;
    *out_jobs = queue->first ? take(queue, taker) : NULL;
    const bool sleeps = queue->first && queue->sleeping > 0;
    pthread_mutex_unlock(&queue->lock);
    if (sleeps)
        pthread_cond_signal(&queue->filled);
    return !over;
}

void sl_job_queue_wake(struct sl_job_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->wakes++;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

void sl_job_queue_close(struct sl_job_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

int64_t sl_job_queue_count(struct sl_job_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const int64_t count = queue->count;
    pthread_mutex_unlock(&queue->lock);
    return count;
}

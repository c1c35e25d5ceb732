/* SPDX-License-Identifier: Apache-2.0 */
/* See queue.h. */
#include "serve/queue.h"

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

bool sl_job_queue_add(struct sl_job_queue *queue, struct sl_job *job)
{
    pthread_mutex_lock(&queue->lock);
    const bool added = !queue->closed && queue->count < queue->most;
    job->next = NULL;
    if (added) {
        *(queue->last ? &queue->last->next : &queue->first) = job;
        queue->last = job;
        queue->count++;
        pthread_cond_signal(&queue->filled);
    }
    pthread_mutex_unlock(&queue->lock);
    return added;
}

/* Takes jobs for the model of the first one out of the list. */
static struct sl_job *take_batch(struct sl_job_queue *queue)
{
    const struct sl_served_model *model = queue->first->model;
    struct sl_job *taken = NULL, **end = &taken, **at = &queue->first, *before = NULL;
    int64_t sequences = 0, rows = 0;
    bool full = false;
    while (*at && !full) {
        struct sl_job *job = *at;
        full = job->model == model && taken &&
               (sequences + job->count > model->sequences || rows + job->rows > model->rows);
        if (job->model != model || full) {
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
        sequences += job->count;
        rows += job->rows;
        queue->count--;
    }
    return taken;
}

struct sl_job *sl_job_queue_take(struct sl_job_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->closed)
        pthread_cond_wait(&queue->filled, &queue->lock);
    struct sl_job *taken = queue->first ? take_batch(queue) : NULL;
    if (queue->first)
        pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
    return taken;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "serve/job/job.h"

#include <stdlib.h>

#include "serve/job/completion.h"

struct sl_job *sl_job_create(const struct sl_served_model *model, struct seqlstm_http_request *request)
{
    struct sl_job *job = malloc(sizeof *job); /* calloc of glibc takes a lock */
    if (job)
        *job = (struct sl_job){.model = model, .request = request};
    return job;
}

bool sl_job_prepare_failure(struct sl_job *job)
{
    job->failure = malloc(sizeof *job->failure);
    if (job->failure)
        *job->failure = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    return job->failure != NULL;
}

void sl_job_destroy(struct sl_job *job)
{
    if (job == NULL)
        return;
    for (int64_t k = 0; job->texts && k < job->count; k++)
        free(job->texts[k]);
    for (int64_t k = 0; job->written && k < job->count; k++)
        free(job->written[k].text);
    free(job->texts);
    free(job->text_bytes);
    free(job->written);
    free(job->id);
    free(job->x);
    free(job->lengths);
    free(job->stream_id);
    free(job->y);
    free(job->failure);
    sl_completion_destroy(job->completion);
    sl_served_model_release(job->model);
    free(job);
}

void sl_job_pile_add(struct sl_job_pile *pile, struct sl_job *job)
{
    job->next = atomic_load(&pile->newest);
    while (!atomic_compare_exchange_weak(&pile->newest, &job->next, job))
        ;
}

struct sl_job *sl_job_pile_take(struct sl_job_pile *pile)
{
    struct sl_job *job = atomic_exchange(&pile->newest, NULL), *oldest = NULL;
    while (job) {
        struct sl_job *next = job->next;
        job->next = oldest;
        oldest = job;
        job = next;
    }
    return oldest;
}

void sl_job_retire(struct sl_job_pile *retired, struct sl_job *job)
{
    free(job->y);
    job->y = NULL;
    sl_job_pile_add(retired, job);
}

void sl_job_destroy_retired(struct sl_job_pile *retired)
{
    struct sl_job *job = sl_job_pile_take(retired);
    while (job) {
        struct sl_job *next = job->next;
        sl_job_destroy(job);
        job = next;
    }
}

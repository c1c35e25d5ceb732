/* SPDX-License-Identifier: Apache-2.0 */
/* See job.h. */
#include "serve/job/job.h"

#include <stdlib.h>

#include "serve/job/completion.h"

struct sl_job *sl_job_create(const struct sl_served_model *model, struct seqlstm_http_request *request)
{
    struct sl_job *job = calloc(1, sizeof *job);
    if (job) {
        job->model = model;
        job->request = request;
        job->failure = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    }
    return job;
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
    sl_completion_destroy(job->completion);
    sl_served_model_release(job->model);
    free(job);
}

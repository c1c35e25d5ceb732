/* SPDX-License-Identifier: Apache-2.0 */
/* See worker.h. */
#include "serve/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "predict/whole.h"
#include "serve/infer_write.h"

/* ---- answers ----------------------------------------------------------------------------------------------- */

static void fail(const struct sl_worker_request *r, struct sl_job *job, int status, const char *message)
{
    sl_counters_note_reply(r->counters, status);
    sl_http_fail(r->http, job->request, status, message);
    sl_job_destroy(job);
}

static void answer(const struct sl_worker_request *r, struct sl_job *job)
{
    struct sl_buf body = {0};
    int64_t json_bytes = -1;
    char size[24];
    sl_infer_write(job, &body, &json_bytes);
    if (body.failed) {
        sl_buf_deinit(&body);
        fail(r, job, 503, "no memory for the answer");
        return;
    }
    snprintf(size, sizeof size, "%lld", (long long)json_bytes);
    const struct seqlstm_http_header headers[] = {
        {"Content-Type", json_bytes < 0 ? "application/json" : "application/octet-stream"},
        {json_bytes < 0 ? NULL : "Inference-Header-Content-Length", size},
        {NULL, NULL}};
    sl_counters_note_reply(r->counters, 200);
    r->http->reply(job->request, 200, headers, body.data, body.length_bytes, NULL);
    sl_buf_deinit(&body);
    sl_job_destroy(job);
}

/* ---- a batch ----------------------------------------------------------------------------------------------- */

/* Inputs and outputs of all jobs one after the other. One job alone uses its own memory. */
struct batch {
    void *x;
    int64_t *lengths;
    float *y;
    int64_t count, rows, out_rows;
};

static int64_t count_outputs(const struct sl_job *job)
{
    return job->model->gives_steps ? job->rows : job->count;
}

static bool join(struct sl_job *jobs, struct batch *batch)
{
    const struct sl_served_model *model = jobs->model;
    const size_t row_bytes = (size_t)model->input_features * sizeof(float);
    for (struct sl_job *job = jobs; job; job = job->next) {
        job->out_rows = count_outputs(job);
        batch->count += job->count;
        batch->rows += job->rows;
        batch->out_rows += job->out_rows;
    }
    batch->x = malloc((size_t)batch->rows * row_bytes + 1);
    batch->lengths = model->reads_steps ? malloc((size_t)batch->count * sizeof *batch->lengths + 1) : NULL;
    batch->y = malloc((size_t)(batch->out_rows * model->output_features) * sizeof *batch->y + 1);
    if (batch->x == NULL || batch->y == NULL || (model->reads_steps && batch->lengths == NULL))
        return false;
    char *x = batch->x;
    int64_t *lengths = batch->lengths;
    for (struct sl_job *job = jobs; job; job = job->next) {
        memcpy(x, job->x, (size_t)job->rows * row_bytes);
        x += (size_t)job->rows * row_bytes;
        if (lengths) {
            memcpy(lengths, job->lengths, (size_t)job->count * sizeof *lengths);
            lengths += job->count;
        }
    }
    return true;
}

/* Gives each job its part of the output, and answers it. */
static void hand_out(const struct sl_worker_request *r, struct sl_job *jobs, const struct batch *batch)
{
    const float *y = batch->y;
    while (jobs) {
        struct sl_job *next = jobs->next;
        const size_t elems = (size_t)(jobs->out_rows * jobs->model->output_features);
        jobs->y = malloc(elems * sizeof *y + 1);
        if (jobs->y) {
            memcpy(jobs->y, y, elems * sizeof *y);
            answer(r, jobs);
        } else
            fail(r, jobs, 503, "no memory for the answer");
        y += elems;
        jobs = next;
    }
}

static void fail_all(const struct sl_worker_request *r, struct sl_job *jobs, int status, const char *message)
{
    while (jobs) {
        struct sl_job *next = jobs->next;
        fail(r, jobs, status, message);
        jobs = next;
    }
}

static void compute(struct sl_worker *worker, struct sl_job *jobs)
{
    const struct sl_worker_request *r = worker->request;
    struct batch batch = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int64_t begin = sl_clock_ns();
    sl_counters_note_busy(r->counters, 1);
    if (join(jobs, &batch)) {
        struct sl_context *context = worker->contexts[jobs->model - r->models];
        const seqlstm_status status = sl_context_predict(context, batch.x, batch.lengths, batch.count, batch.y, &err);
        sl_counters_note_batch(r->counters, batch.count, batch.rows, (double)(sl_clock_ns() - begin) * 1e-9);
        if (status == SEQLSTM_OK)
            hand_out(r, jobs, &batch);
        else
            fail_all(r, jobs, status == SEQLSTM_NO_MEMORY ? 503 : 500, err.message);
    } else
        fail_all(r, jobs, 503, "no memory for a batch");
    sl_counters_note_busy(r->counters, -1);
    free(batch.x);
    free(batch.lengths);
    free(batch.y);
}

/* Leaves out the jobs whose client has left. */
static struct sl_job *drop_gone(const struct sl_worker_request *r, struct sl_job *jobs)
{
    struct sl_job *kept = NULL, **end = &kept;
    const int64_t now = sl_clock_ns();
    while (jobs) {
        struct sl_job *job = jobs;
        jobs = job->next;
        job->next = NULL;
        if (r->http->is_gone(job->request)) {
            sl_counters_note_gone(r->counters);
            fail(r, job, 499, "the client has left");
            continue;
        }
        sl_counters_note_queued(r->counters, (double)(now - job->queued_ns) * 1e-9);
        *end = job;
        end = &job->next;
    }
    return kept;
}

static void *work(void *context)
{
    struct sl_worker *worker = context;
    for (;;) {
        struct sl_job *jobs = sl_job_queue_take(worker->request->queue);
        if (jobs == NULL)
            return NULL;
        jobs = drop_gone(worker->request, jobs);
        if (jobs)
            compute(worker, jobs);
    }
}

/* ---- life -------------------------------------------------------------------------------------------------- */

static seqlstm_status open_contexts(struct sl_worker *worker, struct seqlstm_error *err)
{
    const struct sl_worker_request *r = worker->request;
    worker->contexts = calloc((size_t)r->model_count, sizeof(struct sl_context *));
    if (worker->contexts == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a worker");
    for (int m = 0; m < r->model_count; m++) {
        static const enum sl_predictor_use uses[] = {SL_USE_WHOLE, SL_USE_FEW};
        SEQLSTM_TRY(sl_context_open(r->models[m].predictor, &worker->contexts[m], err));
        for (int u = 0; u < 2; u++) {
            struct sl_predictor_lane *lane = NULL;
            if (sl_predictor_find_graph(r->models[m].predictor, uses[u]))
                SEQLSTM_TRY(sl_context_provide(worker->contexts[m], uses[u], &lane, err));
        }
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_worker_start(struct sl_worker *worker, const struct sl_worker_request *request,
                               struct seqlstm_error *err)
{
    *worker = (struct sl_worker){.request = request};
    SEQLSTM_TRY(open_contexts(worker, err));
    if (pthread_create(&worker->thread, NULL, work, worker) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "a thread cannot be started");
    worker->started = true;
    return SEQLSTM_OK;
}

void sl_worker_end(struct sl_worker *worker)
{
    if (worker->started)
        pthread_join(worker->thread, NULL);
    for (int m = 0; worker->contexts && m < worker->request->model_count; m++)
        sl_context_close(worker->contexts[m]);
    free(worker->contexts);
    *worker = (struct sl_worker){.started = false};
}

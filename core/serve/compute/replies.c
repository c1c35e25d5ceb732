/* SPDX-License-Identifier: Apache-2.0 */
/* See replies.h. */
#include "serve/compute/replies.h"

#include <stdio.h>

#include "base/value/json_write.h"
#include "serve/body/completion_write.h"
#include "serve/body/infer_write.h"

/* Of an answer in parts that a client has not read: it is not worth more memory. */
enum { UNREAD_BYTES_MOST = 1 << 20 };

enum { LONG_VALUES = 32 };

/* Ends an answer in parts: with an error, or as it should. */
static void end_parts(struct sl_serving *serving, struct sl_job *job, const char *message)
{
    struct sl_buf last = {0};
    if (message) {
        sl_buf_append_text(&last, "data: {\"error\":{\"message\":");
        sl_json_append_string(&last, message);
        sl_buf_append_text(&last, ",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n");
    } else
        sl_completion_write_end(job, &last);
    struct seqlstm_http_request *request = job->request;
    sl_job_retire(&serving->retired, job);
    if (!last.failed)
        serving->http->add(request, last.data, last.length_bytes, NULL);
    serving->http->end(request);
    sl_buf_deinit(&last);
}

static void refuse(struct sl_serving *serving, struct sl_job *job, int status, const char *message)
{
    sl_counters_note_reply(&serving->counters, status);
    if (job->completion && job->completion->begun) {
        end_parts(serving, job, message);
        return;
    }
    struct seqlstm_http_request *request = job->request;
    sl_job_retire(&serving->retired, job);
    sl_http_fail(serving->http, request, status, message);
}

bool sl_job_send_part(struct sl_serving *serving, struct sl_job *job, int64_t k)
{
    static const struct seqlstm_http_header headers[] = {
        {"Content-Type", "text/event-stream; charset=utf-8"}, {"Cache-Control", "no-cache"}, {NULL, NULL}};
    struct sl_buf part = {0};
    sl_completion_write_event(job, k, &part);
    if (!job->completion->begun)
        serving->http->begin(job->request, 200, headers, NULL);
    job->completion->begun = true;
    if (part.length_bytes > 0 && !part.failed)
        serving->http->add(job->request, part.data, part.length_bytes, NULL);
    const bool fine = !part.failed && serving->http->count_unread(job->request) <= UNREAD_BYTES_MOST;
    sl_buf_deinit(&part);
    return fine;
}

/* Gives the stream back before the client hears of it, and may ask again. */
static void leave_stream(struct sl_serving *serving, struct sl_job *job, bool ran, bool broken)
{
    struct sl_job *next, *orphans;
    if (job->stream == NULL)
        return;
    sl_stream_table_release(&serving->streams, job, ran, broken, &next, &orphans);
    if (next)
        sl_job_queue_add_again(&serving->queue, next);
    while (orphans) {
        struct sl_job *orphan = orphans;
        orphans = orphan->next;
        refuse(serving, orphan, 400, "the stream has ended while the request waited for it");
    }
}

void sl_job_fail(struct sl_serving *serving, struct sl_job *job, int status, const char *message, bool broken)
{
    leave_stream(serving, job, broken, broken);
    refuse(serving, job, status, message);
}

/* A whole answer. */
static void reply(struct sl_serving *serving, struct sl_job *job, const char *type, const char *json_size,
                  struct sl_buf *body)
{
    const struct seqlstm_http_header headers[] = {
        {"Content-Type", type}, {json_size ? "Inference-Header-Content-Length" : NULL, json_size}, {NULL, NULL}};
    leave_stream(serving, job, true, false);
    sl_counters_note_reply(&serving->counters, 200);
    struct seqlstm_http_request *request = job->request;
    sl_job_retire(&serving->retired, job);
    serving->http->reply(request, 200, headers, body->data, body->length_bytes, NULL);
}

void sl_job_answer(struct sl_serving *serving, struct sl_job *job)
{
    struct sl_buf body = {0};
    int64_t json_bytes = -1;
    char size[24];
    if (job->completion && job->completion->begun) {
        sl_counters_note_reply(&serving->counters, 200);
        end_parts(serving, job, NULL);
        return;
    }
    if (job->completion)
        sl_completion_write(job, &body);
    else
        sl_infer_write(job, &body, &json_bytes);
    snprintf(size, sizeof size, "%lld", (long long)json_bytes);
    if (body.failed)
        sl_job_fail(serving, job, 503, "no memory for the answer", true);
    else
        reply(serving, job, json_bytes < 0 ? "application/json" : "application/octet-stream",
              json_bytes < 0 ? NULL : size, &body);
    sl_buf_deinit(&body);
}

/* Does its answer take longer to write than to hand over? */
static bool is_long(const struct sl_job *job)
{
    return job->wants_y && !job->binary_y && job->out_rows * job->model->output_features >= LONG_VALUES;
}

/* The last one is answered here: that makes the thread of the server look for the others. */
void sl_jobs_answer(struct sl_serving *serving, struct sl_job *jobs, double sequence_ns)
{
    const bool slow = sequence_ns > (double)SL_REQUEST_NS * serving->workers;
    const bool leaves = jobs && jobs->next && (slow || is_long(jobs)) && sl_job_queue_count(&serving->queue) > 0;
    while (jobs) {
        struct sl_job *job = jobs;
        jobs = job->next;
        job->next = NULL;
        if (leaves && jobs && (slow || is_long(job)))
            sl_job_pile_add(&serving->finished, job);
        else
            sl_job_answer(serving, job);
    }
}

void sl_jobs_answer_finished(struct sl_serving *serving)
{
    struct sl_job *job = sl_job_pile_take(&serving->finished);
    while (job) {
        struct sl_job *next = job->next;
        job->next = NULL;
        sl_job_answer(serving, job);
        job = next;
    }
}

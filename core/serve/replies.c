/* SPDX-License-Identifier: Apache-2.0 */
/* See replies.h. */
#include "serve/replies.h"

#include <stdio.h>

#include "serve/infer_write.h"

static void refuse(struct sl_serving *serving, struct sl_job *job, int status, const char *message)
{
    sl_counters_note_reply(&serving->counters, status);
    sl_http_fail(serving->http, job->request, status, message);
    sl_job_destroy(job);
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

void sl_job_answer(struct sl_serving *serving, struct sl_job *job)
{
    struct sl_buf body = {0};
    int64_t json_bytes = -1;
    char size[24];
    sl_infer_write(job, &body, &json_bytes);
    if (body.failed) {
        sl_buf_deinit(&body);
        sl_job_fail(serving, job, 503, "no memory for the answer", true);
        return;
    }
    leave_stream(serving, job, true, false);
    snprintf(size, sizeof size, "%lld", (long long)json_bytes);
    const struct seqlstm_http_header headers[] = {
        {"Content-Type", json_bytes < 0 ? "application/json" : "application/octet-stream"},
        {json_bytes < 0 ? NULL : "Inference-Header-Content-Length", size},
        {NULL, NULL}};
    sl_counters_note_reply(&serving->counters, 200);
    serving->http->reply(job->request, 200, headers, body.data, body.length_bytes, NULL);
    sl_buf_deinit(&body);
    sl_job_destroy(job);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How jobs end: each is answered once, counted, and gives its stream back. */
#ifndef SL_SERVE_COMPUTE_REPLIES_H
#define SL_SERVE_COMPUTE_REPLIES_H

#include "serve/job/counters.h"
#include "serve/job/queue.h"
#include "serve/job/stream_table.h"
#include "serve/load/history.h"

/* What the thread of the server takes to read a request and to write and send its answer. */
enum { SL_REQUEST_NS = 30000 };

enum sl_serve_batching {
    SL_BATCHING_STEPS, /* sequences join and leave the batch as they begin and end */
    SL_BATCHING_PADDED /* batches are padded to their longest sequence */
};

/* What a server consists of, for its threads. */
struct sl_serving {
    const struct seqlstm_http_module *http;
    struct sl_job_queue queue;
    struct sl_job_pile finished, retired; /* without their answer; with it */
    struct sl_counters counters;
    struct sl_history *history; /* NULL: none is asked for */
    struct sl_stream_table streams;
    int64_t target_ns; /* of the 99th percentile of latency; 0: none */
    enum sl_serve_batching batching;
    bool reproducible; /* predictors are: each sequence is computed by itself */
    int workers;
};

/* Sends what choice k of a completion in parts has more. False: the client reads too slowly, or has left. */
bool sl_job_send_part(struct sl_serving *serving, struct sl_job *job, int64_t k);

/* These free the job. [any thread] */
void sl_job_answer(struct sl_serving *serving, struct sl_job *job);
/* Answers a list of jobs. While others wait, the worker goes on with them and leaves answers to the thread of the
 * server to write: long ones, and all if that thread has time, since workers compute for `sequence_ns` for each answer.
 */
void sl_jobs_answer(struct sl_serving *serving, struct sl_job *jobs, double sequence_ns);
/* Writes the answers that were left to the thread of the server, which calls it in each pass. */
void sl_jobs_answer_finished(struct sl_serving *serving);
/* `broken`: the job has changed the state of its stream, which therefore ends. */
void sl_job_fail(struct sl_serving *serving, struct sl_job *job, int status, const char *message, bool broken);

#endif

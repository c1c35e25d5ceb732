/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that computes jobs: those that wait for one model together, as one packed batch. */
#ifndef SL_SERVE_WORKER_H
#define SL_SERVE_WORKER_H

#include <pthread.h>

#include "serve/counters.h"
#include "serve/queue.h"

struct sl_context;

/* What all workers share; it outlives them. */
struct sl_worker_request {
    const struct seqlstm_http_module *http;
    struct sl_job_queue *queue;
    struct sl_counters *counters;
    const struct sl_served_model *models;
    int model_count;
};

struct sl_worker {
    const struct sl_worker_request *request;
    struct sl_context **contexts; /* one for each model */
    pthread_t thread;
    bool started;
};

/* Opens a context for each model, so that the first request finds everything ready, and starts the thread. Errors of
 * backends; NO_MEMORY; UNAVAILABLE: no thread can be started. */
seqlstm_status sl_worker_start(struct sl_worker *worker, const struct sl_worker_request *request,
                               struct seqlstm_error *err);
/* Waits for the thread, which ends when the queue is closed and empty. */
void sl_worker_end(struct sl_worker *worker);

#endif

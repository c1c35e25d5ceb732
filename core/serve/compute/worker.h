/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that computes jobs: a batch of each model that it has sequences of, again and again. */
#ifndef SL_SERVE_COMPUTE_WORKER_H
#define SL_SERVE_COMPUTE_WORKER_H

#include <pthread.h>

#include "serve/compute/runner.h"

struct sl_worker {
    struct sl_serving *serving;
    struct sl_runner *runners; /* one for each model */
    int count;
    pthread_t thread;
    bool started;
};

/* Opens a runner for each model, and starts the thread. Errors of backends; NO_MEMORY; UNAVAILABLE: no thread can be
 * started. */
seqlstm_status sl_worker_start(struct sl_worker *worker, struct sl_serving *serving,
                               const struct sl_served_model *models, int count, struct seqlstm_error *err);
/* Waits for the thread, which ends when the queue is closed and empty. Accepts a zeroed struct. */
void sl_worker_end(struct sl_worker *worker);

#endif

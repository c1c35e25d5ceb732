/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that computes jobs: a batch of each model that it has sequences of, again and again. */
#ifndef SL_SERVE_COMPUTE_WORKER_H
#define SL_SERVE_COMPUTE_WORKER_H

#include <pthread.h>

#include "serve/compute/processor.h"
#include "serve/compute/runner.h"

struct sl_worker {
    struct sl_serving *serving;
    struct sl_runner *runners; /* a list: one for each version of a model; the thread's own */
    pthread_mutex_t lock;
    struct sl_runner *added;       /* under the lock: those that the thread has not seen yet */
    struct sl_processor processor; /* before the start; then the thread's own */
    pthread_t thread;
    bool made, started;
};

void sl_worker_init(struct sl_worker *worker, struct sl_serving *serving);
/* Opens a runner for a version of a model, before jobs for it are queued. It uses the model until that is over. Errors
 * of backends; NO_MEMORY. [any thread] */
seqlstm_status sl_worker_add(struct sl_worker *worker, const struct sl_served_model *model, struct seqlstm_error *err);
/* UNAVAILABLE: no thread can be started. */
seqlstm_status sl_worker_start(struct sl_worker *worker, struct seqlstm_error *err);
/* Waits for the thread, which ends when the queue is closed and empty. Accepts a zeroed struct. */
void sl_worker_end(struct sl_worker *worker);

#endif

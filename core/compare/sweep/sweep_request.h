/* SPDX-License-Identifier: Apache-2.0 */
/* What a sweep goes through. */
#ifndef SL_COMPARE_SWEEP_SWEEP_REQUEST_H
#define SL_COMPARE_SWEEP_SWEEP_REQUEST_H

#include "session/session.h"

enum { SL_SWEEP_BATCHES_MOST = 32, SL_SWEEP_BACKENDS_MOST = 16, SL_SWEEP_THREADS_MOST = 8 };

struct sl_sweep_request {
    struct sl_session *session;
    const char *const *backends; /* see backend_spec.h; none: all that load, except the reference */
    int32_t backend_count;
    int64_t batches[SL_SWEEP_BATCHES_MOST]; /* ascending; none: 1, 2, 4 … 1024 */
    int32_t batch_count;
    int32_t threads[SL_SWEEP_THREADS_MOST]; /* none: 1 and all cores */
    int32_t thread_count;
    enum sl_phase phase; /* TRAIN or PREDICT */
    double seconds;      /* in total, approximately */
    const struct sl_interrupt *interrupt;
    /* Called before each batch size; may be NULL. */
    void (*on_progress)(void *context, int64_t batch);
    void *context;
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of results under one mutex. The thread fills it, and while it runs nothing else uses the batcher.
 *
 * Invariants:
 * 1. 0 <= count <= depth; the oldest result is ring[head].
 * 2. After a failed result the thread stops: the consumer gets that error from then on.
 */
#include "data/batch/prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/trace.h"
#include "data/batch/batcher.h"

#define DEEPEST 64

struct result {
    struct sl_batch *batch; /* NULL: end of the epoch, or a failure */
    seqlstm_status status;
};

struct sl_prefetch {
    struct sl_batcher *batcher;
    int depth; /* 0: no thread */
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    struct result ring[DEEPEST];
    int head, count;
    bool stop;
    struct seqlstm_error error; /* of the failed result */
    int64_t wait_ns;
};

static seqlstm_status build(struct sl_prefetch *p, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_BATCH, NULL);
    const seqlstm_status status = sl_batcher_next(p->batcher, out_batch, err);
    const bool built = status == SEQLSTM_OK && *out_batch;
    sl_trace_end(begin, SL_ACTIVITY_BATCH, NULL, NULL, built ? (*out_batch)->axis.rows : 0);
    return status;
}

static void *run(void *context)
{
    struct sl_prefetch *p = context;
    struct seqlstm_error error = SEQLSTM_ERROR_INIT;
    sl_trace_name_thread("batches");
    for (;;) {
        pthread_mutex_lock(&p->mutex);
        while (p->count == p->depth && !p->stop)
            pthread_cond_wait(&p->emptied, &p->mutex);
        bool stop = p->stop;
        pthread_mutex_unlock(&p->mutex);
        if (stop)
            return NULL;
        struct result result = {NULL, SEQLSTM_OK};
        result.status = build(p, &result.batch, &error);
        pthread_mutex_lock(&p->mutex);
        if (result.status != SEQLSTM_OK)
            p->error = error;
        p->ring[(p->head + p->count++) % DEEPEST] = result;
        pthread_cond_signal(&p->filled);
        pthread_mutex_unlock(&p->mutex);
        if (result.status != SEQLSTM_OK)
            return NULL;
    }
}

/* The thread blocks all signals: the main program handles them. */
static seqlstm_status start(struct sl_prefetch *p, struct seqlstm_error *err)
{
    sigset_t all, before;
    if (p->depth == 0)
        return SEQLSTM_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int code = pthread_create(&p->thread, NULL, run, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "cannot start the thread that builds batches: %s", strerror(code));
    p->running = true;
    return SEQLSTM_OK;
}

static void stop(struct sl_prefetch *p)
{
    if (p->running) {
        pthread_mutex_lock(&p->mutex);
        p->stop = true;
        pthread_cond_signal(&p->emptied);
        pthread_mutex_unlock(&p->mutex);
        pthread_join(p->thread, NULL);
        p->running = false;
    }
    for (; p->count > 0; p->count--, p->head = (p->head + 1) % DEEPEST)
        sl_batch_destroy(p->ring[p->head].batch);
}

seqlstm_status sl_prefetch_create(struct sl_batcher *batcher, int depth, struct sl_prefetch **out_prefetch,
                                  struct seqlstm_error *err)
{
    if (depth < 0 || depth > DEEPEST)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a queue of %d batches, expected 0 to %d", depth, DEEPEST);
    struct sl_prefetch *p = calloc(1, sizeof *p);
    if (!p)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a queue of batches");
    p->batcher = batcher;
    p->depth = depth;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->filled, NULL);
    pthread_cond_init(&p->emptied, NULL);
    seqlstm_status status = start(p, err);
    if (status != SEQLSTM_OK) {
        sl_prefetch_destroy(p);
        return status;
    }
    *out_prefetch = p;
    return SEQLSTM_OK;
}

seqlstm_status sl_prefetch_next(struct sl_prefetch *p, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    int64_t before = sl_clock_ns();
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_FETCH, NULL);
    if (p->depth == 0) {
        seqlstm_status status = build(p, out_batch, err);
        p->wait_ns += sl_clock_ns() - before;
        sl_trace_end(begin, SL_ACTIVITY_FETCH, NULL, NULL, 0);
        return status;
    }
    pthread_mutex_lock(&p->mutex);
    bool waited = p->count == 0;
    while (p->count == 0)
        pthread_cond_wait(&p->filled, &p->mutex);
    struct result result = p->ring[p->head];
    if (result.status == SEQLSTM_OK) {
        p->head = (p->head + 1) % DEEPEST;
        p->count--;
        pthread_cond_signal(&p->emptied);
    } else if (err && err->struct_size >= sizeof *err) {
        uint32_t size = err->struct_size;
        *err = p->error;
        err->struct_size = size;
    }
    pthread_mutex_unlock(&p->mutex);
    if (waited)
        p->wait_ns += sl_clock_ns() - before;
    sl_trace_end(begin, SL_ACTIVITY_FETCH, NULL, NULL, 0);
    if (result.status != SEQLSTM_OK)
        return result.status;
    *out_batch = result.batch;
    return SEQLSTM_OK;
}

void sl_prefetch_destroy(struct sl_prefetch *prefetch)
{
    if (!prefetch)
        return;
    stop(prefetch);
    pthread_cond_destroy(&prefetch->filled);
    pthread_cond_destroy(&prefetch->emptied);
    pthread_mutex_destroy(&prefetch->mutex);
    free(prefetch);
}

int64_t sl_prefetch_get_wait_ns(const struct sl_prefetch *prefetch)
{
    return prefetch->wait_ns;
}

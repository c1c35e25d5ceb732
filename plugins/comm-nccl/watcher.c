/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that watches queued exchanges: no call waits for them, and without an abort they would keep the device
 * for ever when a rank does not come. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "connection.h"

enum { LOOK_NS = 2 * 1000 * 1000 };

/* Takes finished exchanges out of the list; the oldest one that is left, under the lock. */
static seqlstm_status drop_finished(struct seqlstm_connection *c, struct seqlstm_error *err)
{
    while (c->queued_count > 0) {
        bool happened = false;
        SEQLSTM_TRY(ncc_cuda(gpu_event_query(c->device, c->queued[0].event, &happened, err), err));
        if (!happened)
            return SEQLSTM_OK;
        void *event = c->events[0];
        c->queued_count--;
        memmove(c->queued, c->queued + 1, (size_t)c->queued_count * sizeof *c->queued);
        memmove(c->events, c->events + 1, (NCC_QUEUED - 1) * sizeof *c->events);
        c->events[NCC_QUEUED - 1] = event;
        pthread_cond_broadcast(&c->changed);
    }
    return SEQLSTM_OK;
}

/* Looks after the oldest exchange, under the lock. This thread alone takes exchanges out of the list. */
static seqlstm_status look_after_oldest(struct seqlstm_connection *c, struct seqlstm_error *err)
{
    SEQLSTM_TRY(drop_finished(c, err));
    if (c->queued_count == 0 || c->status != SEQLSTM_OK)
        return SEQLSTM_OK;
    const struct ncc_passage oldest = c->queued[0];
    const seqlstm_status status = ncc_look(c, &oldest, err);
    if (status != SEQLSTM_CANCELLED)
        return status;
    pthread_mutex_unlock(&c->lock);
    const bool ends = ncc_ends_by_itself(c, &oldest);
    pthread_mutex_lock(&c->lock);
    return ends ? SEQLSTM_OK : status;
}

/* Waits until something has changed; while exchanges are queued, not for long. Under the lock. */
static void wait_for_change(struct seqlstm_connection *c)
{
    struct timespec until;
    if (c->queued_count == 0) {
        pthread_cond_wait(&c->changed, &c->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&c->changed, &c->lock, &until);
}

static void *work(void *connection)
{
    struct seqlstm_connection *c = connection;
    pthread_mutex_lock(&c->lock);
    while (!c->closes) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = look_after_oldest(c, &err);
        if (status != SEQLSTM_OK) {
            c->queued_count = 0;
            ncc_fail(c, status, &err);
        }
        if (!c->closes)
            wait_for_change(c);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

seqlstm_status ncc_watch(struct seqlstm_connection *c, struct ncc_passage p, void *stream, struct seqlstm_error *err)
{
    pthread_mutex_lock(&c->lock);
    while (c->queued_count == NCC_QUEUED && c->status == SEQLSTM_OK)
        pthread_cond_wait(&c->changed, &c->lock);
    seqlstm_status status = ncc_get_failure(c, err);
    if (status == SEQLSTM_OK) {
        p.event = c->events[c->queued_count];
        status = ncc_cuda(gpu_event_record(c->device, p.event, stream, err), err);
        if (status == SEQLSTM_OK)
            c->queued[c->queued_count++] = p;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Signals are for the thread that computes. */
seqlstm_status ncc_start_watcher(struct seqlstm_connection *c, struct seqlstm_error *err)
{
    sigset_t all, before;
    for (int k = 0; k < NCC_QUEUED; k++)
        SEQLSTM_TRY(gpu_event_create(c->device, &c->events[k], err));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    c->watched = pthread_create(&c->watcher, NULL, work, c) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!c->watched)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no thread that watches the exchanges");
    return SEQLSTM_OK;
}

void ncc_stop_watcher(struct seqlstm_connection *c)
{
    pthread_mutex_lock(&c->lock);
    c->closes = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (c->watched)
        pthread_join(c->watcher, NULL);
    c->watched = false;
    for (int k = 0; k < NCC_QUEUED; k++)
        gpu_event_destroy(c->device, c->events[k]);
}

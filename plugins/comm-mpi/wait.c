/* SPDX-License-Identifier: Apache-2.0 */
/* How a rank waits: it asks MPI again and again, first at once and then after pauses, and looks every few milliseconds
 * whether the others are still there. Where another thread needs the core it pauses from the beginning: the kernel lets
 * one that awakes run soon, but one that gives way only when the other has used its time. */
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "connection.h"

enum {
    LOOK_NS = 5 * 1000 * 1000,
    PAUSE_NS = 50 * 1000,
    SLACK_NS = 1000,            /* the kernel may prolong pauses; it usually does so by 50 us */
    LONG_NS = 100 * 1000 * 1000 /* then the others are told that this rank waits */
};

static seqlstm_status blame(struct mpi_wait *w, int32_t rank, seqlstm_status status, const char *what)
{
    seqlstm_error_set(w->err, status, __FILE__, __LINE__, "rank %d %s", rank, what);
    if (w->err)
        w->err->native_code = 1 + rank;
    w->connection->fault = 1 + rank;
    w->connection->late = status == SEQLSTM_DEVICE ? 1 + rank : 0;
    return status;
}

/* That rank has left, or has given up another rank for which this one waits, too. */
static seqlstm_status blame_gone(struct mpi_wait *w, int32_t rank)
{
    const int32_t late = w->connection->peers[rank].last.late - 1;
    if (late >= 0 && late != w->connection->rank)
        return blame(w, late, SEQLSTM_DEVICE, "did not come in time");
    return blame(w, rank, SEQLSTM_CANCELLED, "has left the job");
}

/* Has the rank left before it did its part of what this one waits for? */
static bool is_missed(const struct mpi_wait *w, int32_t rank)
{
    const struct mpi_peer *peer = &w->connection->peers[rank];
    if (!mpi_is_gone(peer))
        return false;
    if (w->group)
        return (int32_t)(peer->last.made[w->group->number] - w->group->calls) < 0;
    return w->receives ? (int32_t)(peer->last.sent - peer->received) <= 0
                       : (int32_t)(peer->last.received - peer->sent) <= 0;
}

static seqlstm_status find_missed(struct mpi_wait *w)
{
    for (int32_t m = 0; w->group && m < w->group->members; m++)
        if (is_missed(w, w->group->ranks[m]))
            return blame_gone(w, w->group->ranks[m]);
    if (w->peer >= 0 && is_missed(w, w->peer))
        return blame_gone(w, w->peer);
    return SEQLSTM_OK;
}

/* A process that is gone may have said that it leaves. */
static seqlstm_status find_dead(struct mpi_wait *w)
{
    struct seqlstm_connection *c = w->connection;
    for (int32_t r = 0; r < c->ranks; r++) {
        if (r == c->rank || mpi_is_gone(&c->peers[r]) || !mpi_has_died(c, r))
            continue;
        SEQLSTM_TRY(mpi_listen(c, w->err));
        if (!mpi_is_gone(&c->peers[r]))
            return blame(w, r, SEQLSTM_CANCELLED, "has died");
    }
    return SEQLSTM_OK;
}

/* The time is over: the first rank that has not said that it waits, too. */
static seqlstm_status find_late(struct mpi_wait *w)
{
    const struct seqlstm_group *g = w->group;
    if (w->peer >= 0)
        return blame(w, w->peer, SEQLSTM_DEVICE, "did not come in time");
    for (int32_t m = 0; g && m < g->members; m++) {
        const struct mpi_notice *said = &w->connection->peers[g->ranks[m]].waiting;
        if (m != g->place && (said->group != g->number || said->call != g->calls))
            return blame(w, g->ranks[m], SEQLSTM_DEVICE, "did not come in time");
    }
    SEQLSTM_FAIL(w->err, SEQLSTM_DEVICE, "MPI has not finished the exchange in time");
}

static void tell_group(struct mpi_wait *w)
{
    struct seqlstm_connection *c = w->connection;
    pthread_mutex_lock(&c->lock);
    for (int32_t m = 0; m < w->group->members; m++)
        if (m != w->group->place)
            mpi_tell(c, w->group->ranks[m], MPI_NOTICE_WAITING, w->group);
    pthread_mutex_unlock(&c->lock);
    w->told = true;
}

seqlstm_status mpi_look(struct mpi_wait *w)
{
    struct seqlstm_connection *c = w->connection;
    const struct seqlstm_host *host = c->host;
    SEQLSTM_TRY(mpi_listen(c, w->err));
    const int aborted = atomic_load(&c->aborted);
    if (aborted)
        return blame(w, aborted - 1, SEQLSTM_CANCELLED, "has ended the job");
    SEQLSTM_TRY(find_missed(w));
    SEQLSTM_TRY(find_dead(w));
    if (host->cancelled && host->cancelled(host->context))
        SEQLSTM_FAIL(w->err, SEQLSTM_CANCELLED, "the user stopped it");
    return SEQLSTM_OK;
}

static seqlstm_status test(struct mpi_wait *w, MPI_Request *request, int *out_done)
{
    pthread_mutex_lock(&w->connection->lock);
    const int code = MPI_Test(request, out_done, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&w->connection->lock);
    return mpi_check(code, "an exchange", w->err);
}

/* The thread belongs to the host: its slack stays what it was. */
static void sleep_shortly(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const int usual = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
    nanosleep(&pause, NULL);
    if (usual > 0)
        prctl(PR_SET_TIMERSLACK, usual, 0, 0, 0);
}

static void pause_for(const struct mpi_wait *w, int64_t waited_ns)
{
    if (waited_ns > w->connection->patience_ns)
        sleep_shortly();
    else if (waited_ns > w->connection->spin_ns)
        sched_yield();
}

seqlstm_status mpi_finish(struct mpi_wait *w, MPI_Request *request)
{
    for (int done = 0;;) {
        SEQLSTM_TRY(test(w, request, &done));
        if (done)
            return SEQLSTM_OK;
        const int64_t now = mpi_now_ns(), waited = now - w->begin_ns;
        if (now - w->look_ns > LOOK_NS) {
            w->look_ns = now;
            const seqlstm_status status = mpi_look(w);
            if (status != SEQLSTM_OK) {
                SEQLSTM_TRY(test(w, request, &done)); /* it may have come meanwhile */
                return done && status == SEQLSTM_CANCELLED && !atomic_load(&w->connection->aborted) ? SEQLSTM_OK
                                                                                                    : status;
            }
        }
        if (w->group && !w->told && (waited > LONG_NS || waited > (w->deadline_ns - w->begin_ns) / 4))
            tell_group(w);
        if (now >= w->deadline_ns)
            return find_late(w);
        pause_for(w, waited);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The exchanges, as calls of MPI that do not wait. MPI counts in int, so large ones are made chunk by chunk. */
#include <string.h>

#include "common/collectives_check.h"
#include "connection.h"
#include "elements.h"

enum { CHUNK_ELEMS = 1 << 27 };

/* An exchange on its way. */
struct passage {
    struct mpi_wait wait;
    const struct seqlstm_exchange *exchange;
    int64_t elem_bytes;
};

static int get_chunk(int64_t elems, int64_t at)
{
    return (int)(elems - at < CHUNK_ELEMS ? elems - at : CHUNK_ELEMS);
}

/* `code`: of the call that made the request, under the lock, which is released here. */
static seqlstm_status finish(struct passage *p, int code, MPI_Request *request)
{
    pthread_mutex_unlock(&p->wait.connection->lock);
    SEQLSTM_TRY(mpi_check(code, "an exchange", p->wait.err));
    return mpi_finish(&p->wait, request);
}

static void lock(const struct passage *p)
{
    pthread_mutex_lock(&p->wait.connection->lock);
}

static seqlstm_status all_reduce(struct passage *p)
{
    const struct seqlstm_exchange *e = p->exchange;
    for (int64_t at = 0; at < e->elems; at += CHUNK_ELEMS) {
        MPI_Request request;
        char *to = (char *)e->to + at * p->elem_bytes;
        const void *from = e->from == e->to ? MPI_IN_PLACE : (const char *)e->from + at * p->elem_bytes;
        lock(p);
        const int code = MPI_Iallreduce(from, to, get_chunk(e->elems, at), mpi_elem_type(e->dtype),
                                        mpi_get_operation(e->dtype, e->reduction), p->wait.group->comm, &request);
        SEQLSTM_TRY(finish(p, code, &request));
    }
    return SEQLSTM_OK;
}

/* Member by member, since the parts that MPI scatters must lie side by side. */
static seqlstm_status reduce_in_chunks(struct passage *p)
{
    const struct seqlstm_exchange *e = p->exchange;
    for (int32_t m = 0; m < p->wait.group->members; m++)
        for (int64_t at = 0; at < e->elems; at += CHUNK_ELEMS) {
            MPI_Request request;
            lock(p);
            const int code =
                MPI_Ireduce((const char *)e->from + (m * e->elems + at) * p->elem_bytes,
                            (char *)e->to + at * p->elem_bytes, get_chunk(e->elems, at), mpi_elem_type(e->dtype),
                            mpi_get_operation(e->dtype, e->reduction), m, p->wait.group->comm, &request);
            SEQLSTM_TRY(finish(p, code, &request));
        }
    return SEQLSTM_OK;
}

static seqlstm_status reduce_scatter(struct passage *p)
{
    const struct seqlstm_exchange *e = p->exchange;
    MPI_Request request;
    if (e->elems > CHUNK_ELEMS / p->wait.group->members)
        return reduce_in_chunks(p);
    lock(p);
    const int code =
        MPI_Ireduce_scatter_block(e->from, e->to, (int)e->elems, mpi_elem_type(e->dtype),
                                  mpi_get_operation(e->dtype, e->reduction), p->wait.group->comm, &request);
    return finish(p, code, &request);
}

/* `to` of all members becomes that of `root`. */
static seqlstm_status broadcast_bytes(struct passage *p, char *to, int64_t bytes, int32_t root)
{
    for (int64_t at = 0; at < bytes; at += CHUNK_ELEMS) {
        MPI_Request request;
        lock(p);
        const int code = MPI_Ibcast(to + at, get_chunk(bytes, at), MPI_BYTE, root, p->wait.group->comm, &request);
        SEQLSTM_TRY(finish(p, code, &request));
    }
    return SEQLSTM_OK;
}

static seqlstm_status all_gather(struct passage *p)
{
    const struct seqlstm_exchange *e = p->exchange;
    const struct seqlstm_group *g = p->wait.group;
    const int64_t bytes = e->elems * p->elem_bytes;
    char *own = (char *)e->to + g->place * bytes;
    MPI_Request request;
    if (bytes > 0 && own != e->from)
        memcpy(own, e->from, (size_t)bytes);
    if (bytes > CHUNK_ELEMS) {
        for (int32_t m = 0; m < g->members; m++)
            SEQLSTM_TRY(broadcast_bytes(p, (char *)e->to + m * bytes, bytes, m));
        return SEQLSTM_OK;
    }
    lock(p);
    const int code = MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, e->to, (int)bytes, MPI_BYTE, g->comm, &request);
    return finish(p, code, &request);
}

static seqlstm_status broadcast(struct passage *p)
{
    return broadcast_bytes(p, p->exchange->to, p->exchange->elems * p->elem_bytes, p->exchange->peer);
}

static seqlstm_status barrier(struct passage *p)
{
    MPI_Request request;
    lock(p);
    const int code = MPI_Ibarrier(p->wait.group->comm, &request);
    return finish(p, code, &request);
}

static seqlstm_status run_pair(struct passage *p, int32_t peer)
{
    const struct seqlstm_exchange *e = p->exchange;
    struct seqlstm_connection *c = p->wait.connection;
    const int64_t bytes = e->elems * p->elem_bytes;
    p->wait.group = NULL;
    p->wait.peer = peer;
    p->wait.receives = e->kind == SEQLSTM_COLLECTIVE_RECEIVE;
    for (int64_t at = 0; at == 0 || at < bytes; at += CHUNK_ELEMS) {
        MPI_Request request;
        const int now = get_chunk(bytes, at);
        lock(p);
        const int code = p->wait.receives
                             ? MPI_Irecv((char *)e->to + at, now, MPI_BYTE, peer, 0, c->pairs, &request)
                             : MPI_Isend((const char *)e->from + at, now, MPI_BYTE, peer, 0, c->pairs, &request);
        SEQLSTM_TRY(finish(p, code, &request));
    }
    if (p->wait.receives)
        c->peers[peer].received++;
    else
        c->peers[peer].sent++;
    return SEQLSTM_OK;
}

static seqlstm_status run_group(struct passage *p)
{
    static seqlstm_status (*const functions[SEQLSTM_COLLECTIVE_COUNT])(struct passage *) = {
        [SEQLSTM_COLLECTIVE_ALL_REDUCE] = all_reduce, [SEQLSTM_COLLECTIVE_REDUCE_SCATTER] = reduce_scatter,
        [SEQLSTM_COLLECTIVE_ALL_GATHER] = all_gather, [SEQLSTM_COLLECTIVE_BROADCAST] = broadcast,
        [SEQLSTM_COLLECTIVE_BARRIER] = barrier,
    };
    struct seqlstm_group *g = p->wait.group;
    g->calls++;
    SEQLSTM_TRY(functions[p->exchange->kind](p));
    g->connection->made[g->number] = g->calls;
    return SEQLSTM_OK;
}

seqlstm_status mpi_exchange(struct seqlstm_group *group, const struct seqlstm_exchange *exchange,
                            struct seqlstm_error *err)
{
    const int64_t now = mpi_now_ns();
    struct passage p = {
        .wait = {.connection = group->connection,
                 .group = group,
                 .peer = -1,
                 .begin_ns = now,
                 .deadline_ns = now > INT64_MAX - exchange->timeout_ns ? INT64_MAX : now + exchange->timeout_ns,
                 .err = err},
        .exchange = exchange,
        .elem_bytes = collectives_elem_bytes(exchange->dtype),
    };
    if (atomic_load(&group->connection->aborted))
        return mpi_look(&p.wait);
    return collectives_is_pair(exchange) ? run_pair(&p, group->ranks[exchange->peer]) : run_group(&p);
}

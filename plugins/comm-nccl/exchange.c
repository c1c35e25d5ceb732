/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange. Buffers of the host pass through a stage on the device, part by part, and the call waits for the end;
 * buffers on the device are exchanged where they are, in the order of the host's stream. */
#include <string.h>

#include "common/collectives_check.h"
#include "connection.h"

static int find_dtype(uint32_t dtype)
{
    static const int8_t dtypes[] = {
        [SEQLSTM_DTYPE_FLOAT32] = NCC_FLOAT32, [SEQLSTM_DTYPE_BFLOAT16] = NCC_BFLOAT16,
        [SEQLSTM_DTYPE_FLOAT16] = NCC_FLOAT16, [SEQLSTM_DTYPE_FLOAT64] = NCC_FLOAT64,
        [SEQLSTM_DTYPE_INT32] = NCC_INT32,     [SEQLSTM_DTYPE_INT8] = NCC_INT8,
        [SEQLSTM_DTYPE_UINT8] = NCC_UINT8,
    };
    return dtypes[dtype];
}

static int find_reduction(uint32_t reduction)
{
    return reduction == SEQLSTM_REDUCE_SUM ? NCC_SUM : reduction == SEQLSTM_REDUCE_MAX ? NCC_MAX : NCC_MIN;
}

/* Queues an exchange of buffers on the device. */
static seqlstm_status queue(struct seqlstm_group *g, void *stream, const struct seqlstm_exchange *e,
                            struct seqlstm_error *err)
{
    static const char *const names[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast",
                                        "Send",      "Recv",          "AllReduce"};
    const int dtype = find_dtype(e->dtype), reduction = find_reduction(e->reduction);
    const size_t elems = (size_t)e->elems;
    int result = NCC_SUCCESS;
    pthread_mutex_lock(&g->connection->lock);
    seqlstm_status status = ncc_get_failure(g->connection, err);
    if (status == SEQLSTM_OK && e->kind == SEQLSTM_COLLECTIVE_REDUCE_SCATTER)
        result = ncc.ReduceScatter(e->from, e->to, elems, dtype, reduction, g->comm, stream);
    else if (status == SEQLSTM_OK && e->kind == SEQLSTM_COLLECTIVE_ALL_GATHER)
        result = ncc.AllGather(e->from, e->to, elems, dtype, g->comm, stream);
    else if (status == SEQLSTM_OK && e->kind == SEQLSTM_COLLECTIVE_BROADCAST)
        result = ncc.Broadcast(e->to, e->to, elems, dtype, e->peer, g->comm, stream);
    else if (status == SEQLSTM_OK && e->kind == SEQLSTM_COLLECTIVE_SEND)
        result = ncc.Send(e->from, elems, dtype, e->peer, g->comm, stream);
    else if (status == SEQLSTM_OK && e->kind == SEQLSTM_COLLECTIVE_RECEIVE)
        result = ncc.Recv(e->to, elems, dtype, e->peer, g->comm, stream);
    else if (status == SEQLSTM_OK)
        result = ncc.AllReduce(e->from, e->to, elems, dtype, reduction, g->comm, stream);
    if (status == SEQLSTM_OK)
        status = ncc_check(result, names[e->kind], g->comm, err);
    pthread_mutex_unlock(&g->connection->lock);
    return status;
}

/* ---- through the stage ------------------------------------------------------------------------------------------ */

/* A range of an exchange: elements [at, at + elems) of each vector. */
struct part {
    const struct seqlstm_exchange *whole;
    int64_t at, elems, elem_bytes;
};

/* How many vectors of `elems` elements lie in `from` and in `to`. */
static int32_t count_vectors(const struct seqlstm_group *g, const struct seqlstm_exchange *e, bool to)
{
    const uint32_t many = to ? SEQLSTM_COLLECTIVE_ALL_GATHER : SEQLSTM_COLLECTIVE_REDUCE_SCATTER;
    const uint32_t none = to ? SEQLSTM_COLLECTIVE_SEND : SEQLSTM_COLLECTIVE_RECEIVE;
    if (e->kind == many)
        return g->members;
    return e->kind == none || e->kind == SEQLSTM_COLLECTIVE_BARRIER ? 0 : 1;
}

static seqlstm_status upload(struct seqlstm_group *g, const struct part *p, struct seqlstm_error *err)
{
    struct seqlstm_connection *c = g->connection;
    const struct seqlstm_exchange *e = p->whole;
    const bool sends = e->kind != SEQLSTM_COLLECTIVE_BROADCAST || e->peer == g->place;
    const char *from = e->kind == SEQLSTM_COLLECTIVE_BROADCAST ? e->to : e->from;
    char *stage = e->kind == SEQLSTM_COLLECTIVE_BROADCAST ? c->to : c->from;
    for (int32_t v = 0; sends && v < count_vectors(g, e, false); v++)
        SEQLSTM_TRY(
            ncc_cuda(gpu_copy(c->device, c->stream, SEQLSTM_COPY_TO_DEVICE, stage + v * p->elems * p->elem_bytes,
                              from + (v * e->elems + p->at) * p->elem_bytes, (uint64_t)(p->elems * p->elem_bytes), err),
                     err));
    return SEQLSTM_OK;
}

static seqlstm_status download(struct seqlstm_group *g, const struct part *p, struct seqlstm_error *err)
{
    struct seqlstm_connection *c = g->connection;
    const struct seqlstm_exchange *e = p->whole;
    for (int32_t v = 0; v < count_vectors(g, e, true); v++)
        SEQLSTM_TRY(ncc_cuda(gpu_copy(c->device, c->stream, SEQLSTM_COPY_TO_HOST,
                                      (char *)e->to + (v * e->elems + p->at) * p->elem_bytes,
                                      c->to + v * p->elems * p->elem_bytes, (uint64_t)(p->elems * p->elem_bytes), err),
                             err));
    return SEQLSTM_OK;
}

static seqlstm_status run_part(const struct ncc_passage *passage, const struct part *p, struct seqlstm_error *err)
{
    struct seqlstm_group *g = passage->group;
    struct seqlstm_connection *c = g->connection;
    struct seqlstm_exchange staged = *p->whole;
    staged.from = c->from;
    staged.to = c->to;
    staged.elems = p->elems;
    SEQLSTM_TRY(upload(g, p, err));
    SEQLSTM_TRY(queue(g, c->stream, &staged, err));
    SEQLSTM_TRY(ncc_settle(c, passage, "an exchange", err));
    SEQLSTM_TRY(ncc_cuda(gpu_event_record(c->device, c->event, c->stream, err), err));
    SEQLSTM_TRY(ncc_wait(c, passage, err));
    return download(g, p, err);
}

static seqlstm_status run_staged(const struct ncc_passage *passage, const struct seqlstm_exchange *e,
                                 struct seqlstm_error *err)
{
    const int64_t bytes = collectives_elem_bytes(e->dtype);
    const int64_t most = NCC_STAGE_BYTES / bytes / passage->group->members;
    if (e->kind == SEQLSTM_COLLECTIVE_BARRIER) {
        struct seqlstm_exchange one = *e;
        one.dtype = SEQLSTM_DTYPE_UINT8;
        return run_part(passage, &(struct part){&one, 0, 1, 1}, err);
    }
    for (int64_t at = 0; at < e->elems; at += most)
        SEQLSTM_TRY(run_part(passage, &(struct part){e, at, e->elems - at < most ? e->elems - at : most, bytes}, err));
    return SEQLSTM_OK;
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

seqlstm_status ncc_exchange(struct seqlstm_group *g, void *stream, const struct seqlstm_exchange *e,
                            struct seqlstm_error *err)
{
    struct seqlstm_connection *c = g->connection;
    const bool pair = collectives_is_pair(e);
    if (e->elems == 0 && e->kind != SEQLSTM_COLLECTIVE_BARRIER)
        return SEQLSTM_OK;
    g->calls += !pair;
    const struct ncc_passage passage = {.group = g,
                                        .event = c->event,
                                        .call = g->calls,
                                        .peer = pair ? g->ranks[e->peer] : -1,
                                        .deadline_ns = host_ranks_deadline_ns(e->timeout_ns)};
    atomic_store(&ncc_get_board(c, c->ranks.rank)->begun[g->number], g->calls);
    if (stream == NULL || e->kind == SEQLSTM_COLLECTIVE_BARRIER)
        return run_staged(&passage, e, err);
    SEQLSTM_TRY(queue(g, stream, e, err));
    SEQLSTM_TRY(ncc_settle(c, &passage, "an exchange", err));
    return ncc_watch(c, passage, stream, err);
}

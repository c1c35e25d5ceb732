/* SPDX-License-Identifier: Apache-2.0 */
/* comm-nccl: ranks of one host, each with a CUDA device of its own, exchange data through NCCL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/collectives_check.h"
#include "common/collectives_table.h"
#include "common/host_memory.h"
#include "connection.h"

static const int64_t farewell_ns = INT64_C(2) * 1000000000;

static seqlstm_status ncc_describe(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)err;
    collectives_describe(transport);
    transport->groups = NCC_GROUPS;
    transport->ranks_most = GPU_DEVICES_MAX;
    transport->one_host = 1;
    snprintf(transport->name, sizeof transport->name, "NCCL");
    snprintf(transport->domain, sizeof transport->domain, "cuda:");
    return SEQLSTM_OK;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

/* A launcher may show each rank another one. */
static bool sees_one_device(void)
{
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");
    return shown != NULL && shown[0] != 0 && strchr(shown, ',') == NULL;
}

/* The same answer for all ranks, except where one of them has no device. */
static seqlstm_status find_device(struct seqlstm_connection *c, const struct seqlstm_rendezvous *r,
                                  struct seqlstm_error *err)
{
    struct gpu_device devices[GPU_DEVICES_MAX];
    uint32_t count = 0;
    SEQLSTM_TRY(gpu_runtime_open(devices, &count, err));
    if (r->ranks > (int32_t)count && !(count == 1 && r->device == 0 && sees_one_device()))
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "NCCL needs a CUDA device for each of the %d ranks, and there %s %u",
                     r->ranks, count == 1 ? "is" : "are", count);
    if (r->device < 0 || r->device >= (int32_t)count)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "rank %d computes on %s, and there are the CUDA devices 0 to %u",
                     r->rank, r->device < 0 ? "the processor" : "a device with a higher number", count - 1);
    c->device = devices[r->device].ordinal;
    return SEQLSTM_OK;
}

static seqlstm_status open_device(struct seqlstm_connection *c, struct seqlstm_error *err)
{
    void *from, *to;
    SEQLSTM_TRY(gpu_use(c->device, err));
    SEQLSTM_TRY(gpu_stream_create(c->device, &c->stream, err));
    SEQLSTM_TRY(gpu_event_create(c->device, &c->event, err));
    SEQLSTM_TRY(gpu_allocate(c->device, SEQLSTM_MEMORY_DEVICE, NCC_STAGE_BYTES, &from, err));
    c->from = from;
    SEQLSTM_TRY(gpu_allocate(c->device, SEQLSTM_MEMORY_DEVICE, NCC_STAGE_BYTES, &to, err));
    c->to = to;
    return SEQLSTM_OK;
}

static void ncc_close(struct seqlstm_connection *c)
{
    if (c == NULL)
        return;
    const struct seqlstm_host *host = c->ranks.host;
    ncc_stop_watcher(c);
    gpu_stream_destroy(c->device, c->stream);
    gpu_event_destroy(c->device, c->event);
    gpu_release(c->device, SEQLSTM_MEMORY_DEVICE, c->from);
    gpu_release(c->device, SEQLSTM_MEMORY_DEVICE, c->to);
    host_ranks_close(&c->ranks);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    host_release(host, c);
}

static seqlstm_status open_all(struct seqlstm_connection *c, const struct seqlstm_host *host, const char *library,
                               const struct seqlstm_rendezvous *r, struct seqlstm_error *err)
{
    const uint64_t bytes = host_ranks_head_bytes(r->ranks) + (uint64_t)r->ranks * sizeof(struct ncc_board);
    SEQLSTM_TRY(ncc_library_load(library, err));
    SEQLSTM_TRY(find_device(c, r, err));
    SEQLSTM_TRY(open_device(c, err));
    SEQLSTM_TRY(host_ranks_open(&c->ranks, host, r, bytes, err));
    return ncc_start_watcher(c, err);
}

static seqlstm_status ncc_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                               uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                               struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    const char *library = "auto";
    pthread_mutexattr_t recursive;
    for (uint32_t k = 0; k < setting_count; k++)
        library = strcmp(settings[k].key, "library") == 0 ? settings[k].value : library;
    struct seqlstm_connection *c = host_allocate(host, sizeof *c);
    if (c == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a connection");
    c->ranks.host = host;
    c->ranks.file = -1;
    c->timeout_ns = rendezvous->timeout_ns;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&c->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_cond_init(&c->changed, NULL);
    const seqlstm_status status = open_all(c, host, library, rendezvous, err);
    if (status != SEQLSTM_OK) {
        ncc_close(c);
        return status;
    }
    *out_connection = c;
    return SEQLSTM_OK;
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

/* The first member makes the id, and the others read it from its board. */
static seqlstm_status share_id(struct seqlstm_group *g, const struct ncc_passage *p, struct ncc_id *out,
                               struct seqlstm_error *err)
{
    struct seqlstm_connection *c = g->connection;
    const struct timespec pause = {.tv_nsec = 100000};
    struct ncc_board *board = ncc_get_board(c, g->ranks[0]);
    if (g->place == 0) {
        SEQLSTM_TRY(ncc_check(ncc.GetUniqueId(out), "GetUniqueId", NULL, err));
        board->groups[g->number].id = *out;
        atomic_store(&board->groups[g->number].there, 1);
        return SEQLSTM_OK;
    }
    while (atomic_load(&board->groups[g->number].there) == 0) {
        SEQLSTM_TRY(host_ranks_check(&c->ranks, err));
        if (host_ranks_has_left(&c->ranks, g->ranks[0]))
            return host_ranks_blame(g->ranks[0], SEQLSTM_CANCELLED, "has left the job", err);
        if (host_ranks_now_ns() >= p->deadline_ns)
            return host_ranks_blame(g->ranks[0], SEQLSTM_DEVICE, "did not come in time", err);
        nanosleep(&pause, NULL);
    }
    *out = board->groups[g->number].id;
    return SEQLSTM_OK;
}

/* Returns when all members have come. */
static seqlstm_status join_group(struct seqlstm_group *g, struct seqlstm_error *err)
{
    struct seqlstm_connection *c = g->connection;
    struct ncc_config config = {
        .size = sizeof config, .magic = NCC_CONFIG_MAGIC, .version = NCC_CONFIG_VERSION, .blocking = 0};
    const struct ncc_passage p = {
        .group = g, .call = ++g->calls, .peer = -1, .deadline_ns = host_ranks_deadline_ns(c->timeout_ns)};
    struct ncc_id id;
    atomic_store(&ncc_get_board(c, c->ranks.rank)->begun[g->number], g->calls);
    SEQLSTM_TRY(ncc_cuda(gpu_use(c->device, err), err));
    SEQLSTM_TRY(share_id(g, &p, &id, err));
    SEQLSTM_TRY(ncc_check(ncc.CommInitRankConfig(&g->comm, g->members, id, g->place, &config), "CommInitRankConfig",
                          NULL, err));
    return ncc_settle(c, &p, "the meeting of the ranks", err);
}

static seqlstm_status ncc_group_create(struct seqlstm_connection *c, uint32_t number, const int32_t *ranks,
                                       int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    const int32_t place = collectives_find_place(c->ranks.rank, c->ranks.ranks, ranks, count);
    SEQLSTM_TRY(collectives_check_group(place, number, NCC_GROUPS, c->used_groups, err));
    struct seqlstm_group *g = host_allocate(c->ranks.host, sizeof *g + (uint64_t)count * sizeof *g->ranks);
    if (g == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a group");
    g->connection = c;
    g->number = number;
    g->members = count;
    g->place = place;
    g->ranks = (int32_t *)(void *)(g + 1);
    memcpy(g->ranks, ranks, (size_t)count * sizeof *ranks);
    c->used_groups |= 1u << number;
    const seqlstm_status status = join_group(g, err);
    if (status != SEQLSTM_OK) {
        if (g->comm != NULL)
            ncc.CommAbort(g->comm);
        host_release(c->ranks.host, g);
        return ncc_fail(c, status, err);
    }
    pthread_mutex_lock(&c->lock);
    c->groups[number] = g;
    pthread_mutex_unlock(&c->lock);
    *out_group = g;
    return SEQLSTM_OK;
}

/* NCCL's own end waits for the other ranks. If they do not come, or the job has failed, the communicator is aborted. */
static void disconnect(struct seqlstm_group *g)
{
    struct seqlstm_connection *c = g->connection;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct ncc_passage p = {
        .group = g, .call = g->calls, .peer = -1, .deadline_ns = host_ranks_deadline_ns(farewell_ns)};
    if (g->comm == NULL)
        return;
    const int result = ncc.CommFinalize(g->comm);
    if (ncc_check(result, "CommFinalize", g->comm, &err) == SEQLSTM_OK &&
        ncc_settle(c, &p, "CommFinalize", &err) == SEQLSTM_OK)
        ncc.CommDestroy(g->comm);
    else if (g->comm != NULL)
        ncc.CommAbort(g->comm);
    g->comm = NULL;
}

static void ncc_group_destroy(struct seqlstm_group *g)
{
    if (g == NULL)
        return;
    struct seqlstm_connection *c = g->connection;
    bool last = true;
    pthread_mutex_lock(&c->lock);
    while (c->queued_count > 0 && c->status == SEQLSTM_OK)
        pthread_cond_wait(&c->changed, &c->lock);
    c->groups[g->number] = NULL;
    for (int k = 0; k < NCC_GROUPS; k++)
        last &= c->groups[k] == NULL;
    pthread_mutex_unlock(&c->lock);
    if (last) /* before NCCL waits for ranks that may wait for this one */
        host_ranks_leave(&c->ranks);
    disconnect(g);
    host_release(c->ranks.host, g);
}

/* ---- use -------------------------------------------------------------------------------------------------------- */

static seqlstm_status ncc_run(struct seqlstm_group *g, struct seqlstm_queue *queue, const struct seqlstm_exchange *e,
                              struct seqlstm_error *err)
{
    struct seqlstm_connection *c = g->connection;
    SEQLSTM_TRY(collectives_check(e, g->place, g->members, err));
    SEQLSTM_TRY(ncc_get_failure(c, err));
    SEQLSTM_TRY(ncc_cuda(gpu_use(c->device, err), err));
    if (host_ranks_is_over(&c->ranks))
        return host_ranks_check(&c->ranks, err);
    const seqlstm_status status = ncc_exchange(g, queue != NULL ? queue->native_stream : NULL, e, err);
    return status == SEQLSTM_OK ? SEQLSTM_OK : ncc_fail(c, status, err);
}

static seqlstm_status ncc_poll(struct seqlstm_connection *c, struct seqlstm_error *err)
{
    SEQLSTM_TRY(ncc_get_failure(c, err));
    return host_ranks_check(&c->ranks, err);
}

static void ncc_abort(struct seqlstm_connection *c)
{
    host_ranks_abort(&c->ranks);
}

static const struct seqlstm_option options[] = {
    {"library", "string", "auto", "file libnccl.so.2 of NCCL, or a folder that contains it"}};

static const struct seqlstm_collectives table = {
    COLLECTIVES_HEAD("comm-nccl", "0.1.0", NCC_BUILD ", compiler " __VERSION__),
    .option_count = 1,
    .options = options,
    .describe = ncc_describe,
    .open = ncc_open,
    .close = ncc_close,
    .group_create = ncc_group_create,
    .group_destroy = ncc_group_destroy,
    .run = ncc_run,
    .poll = ncc_poll,
    .abort = ncc_abort,
};

COLLECTIVES_EXPORT(table)

/* SPDX-License-Identifier: Apache-2.0 */
/* See division.h. */
#include "session/prepare/division.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/cpu.h"
#include "base/value/buf.h"
#include "session/finding/cuda_device.h"
#include "session/finding/finding.h"
#include "session/record/collectives.h"
#include "session/record/session_record.h"
#include "session/run_folder/plan_json.h"
#include "session/run_folder/stored_plan.h"

static const int64_t usual_stall_ns = INT64_C(600) * 1000000000;

/* Ranks that were started for this training. */
static int32_t count_ranks(const struct sl_session *session)
{
    const struct sl_rank_identity *identity = session->options.identity;
    if (!identity)
        return 1;
    return identity->ranks > 0 ? identity->ranks : sl_parallel_count_ranks(&session->model->parallel);
}

seqlstm_status sl_session_divide_threads(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_rank_identity *identity = session->options.identity;
    const struct sl_parallel_config *parallel = &session->model->parallel;
    const bool ordered = sl_parallel_keeps_bits(parallel);
    if (!sl_session_is_divided(session))
        return SEQLSTM_OK;
    if (ordered && session->options.threads_given && session->options.threads > 1) {
        seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                          "with `%s` each rank computes with one thread, not %d: the same bits need it; use more "
                          "ranks (--set parallel.%s=%d)",
                          parallel->shards > 0 ? "shards" : "pieces", session->options.threads,
                          parallel->shards > 0 ? "data" : "pipeline", session->options.threads);
        return SEQLSTM_INVALID_CONFIG;
    }
    if (session->options.threads_given)
        return SEQLSTM_OK;
    int32_t local = identity && identity->local_ranks > 0 ? identity->local_ranks : sl_parallel_count_ranks(parallel);
    int32_t threads = ordered ? 1 : sl_cpu_count() / (local > 0 ? local : 1);
    session->options.threads = threads > 1 ? threads : 1;
    session->options.threads_given = ordered || session->stored.threads == 0;
    return SEQLSTM_OK;
}

void sl_session_choose_overlap(struct sl_session *session)
{
    const struct sl_rank_identity *identity = session->options.identity;
    const int32_t local = identity && identity->local_ranks > 0 ? identity->local_ranks : session->ranks.ranks;
    const int32_t threads = session->pool ? sl_pool_get_members(session->pool) : 1;
    session->ranks.spares_core = sl_cpu_count() > local * threads;
    session->ranks.overlaps = local < session->ranks.ranks || session->ranks.spares_core;
}

static seqlstm_status check_ranks(const struct sl_session *session, int32_t ranks, struct seqlstm_error *err)
{
    const struct sl_parallel_config *parallel = &session->model->parallel;
    const int32_t stages = (int32_t)parallel->pipeline, replicas = ranks / stages;
    if (ranks % stages != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "`pipeline: %d` needs %d ranks, or a multiple of that, and there %s %d; use --set "
                     "parallel.pipeline=N",
                     stages, stages, ranks == 1 ? "is" : "are", ranks);
    if (parallel->shards > 0 ? replicas <= parallel->shards : replicas == parallel->data)
        return SEQLSTM_OK;
    if (stages > 1 && parallel->shards == 0)
        SEQLSTM_FAIL(
            err, SEQLSTM_INVALID_CONFIG,
            "`parallel: {data: %lld, pipeline: %d}` needs %d ranks, and there %s %d; use --set parallel.data=%d",
            (long long)parallel->data, stages, sl_parallel_count_ranks(parallel), ranks == 1 ? "is" : "are", ranks,
            replicas);
    if (parallel->shards > 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%d ranks were started for %lld shard%s; use at most as many ranks",
                     ranks, (long long)parallel->shards, parallel->shards == 1 ? "" : "s");
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                 "`parallel: {data: %lld}` divides each batch among %lld ranks, and there %s %d; use --set "
                 "parallel.data=%d, or `shards`, with which the number of ranks changes nothing",
                 (long long)parallel->data, (long long)parallel->data, ranks == 1 ? "is" : "are", ranks, ranks);
}

/* Ranks of several hosts that a launcher of MPI has started exchange through MPI, and all others through shared memory.
 */
static const char *choose_collectives(const struct sl_session_options *options)
{
    static const char *const launchers[] = {"OpenMPI", "MPICH", "Slurm"};
    const struct sl_rank_identity *identity = options->identity;
    if (options->collectives)
        return options->collectives;
    if (identity && identity->local_ranks > 0 && identity->local_ranks < identity->ranks)
        for (size_t k = 0; k < sizeof launchers / sizeof *launchers; k++)
            if (strcmp(identity->launcher, launchers[k]) == 0)
                return "comm-mpi";
    return "comm-shm";
}

static struct sl_connection_request make_request(const struct sl_session *session)
{
    const struct sl_session_options *options = &session->options;
    return (struct sl_connection_request){
        .name = choose_collectives(options),
        .builtins = sl_collectives_builtins,
        .builtin_count = 1,
        .folders = options->backend_folders,
        .folder_count = options->backend_folder_count,
        .trust = options->trust,
        .device = sl_session_find_cuda(session),
        .timeout_ns = options->stall_ns > 0 ? options->stall_ns : usual_stall_ns,
        .log = options->log,
    };
}

seqlstm_status sl_session_check_ranks(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_connection_request request = make_request(session);
    struct sl_arena arena;
    struct sl_backend_record record;
    struct seqlstm_collectives table;
    SEQLSTM_TRY(sl_session_divide_threads(session, err));
    sl_arena_init(&arena);
    seqlstm_status status = sl_collectives_load(&arena, &request, &record, &table, err);
    if (status == SEQLSTM_OK && record.status != SL_BACKEND_OK) {
        status = record.status == SL_BACKEND_NOT_FOUND ? SEQLSTM_NOT_FOUND : SEQLSTM_UNAVAILABLE;
        seqlstm_error_set(err, status, __FILE__, __LINE__, "the collectives %.200s cannot be used: %.600s",
                          request.name, record.reason);
    }
    sl_arena_deinit(&arena);
    return status;
}

/* Ranks with GPUs on one host exchange through NCCL, if it can be used there. */
static bool prefers_nccl(const struct sl_session *session, const struct sl_connection_request *request)
{
    return !session->options.collectives && session->model->device >= SL_DEVICE_CUDA &&
           strcmp(request->name, "comm-shm") == 0;
}

static seqlstm_status open_connection(struct sl_session *session, const struct sl_connection_request *request,
                                      struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_connection_request nccl = *request;
    nccl.name = "comm-nccl";
    const seqlstm_status status =
        prefers_nccl(session, request) ? sl_connection_open(&nccl, &session->connection, &why) : SEQLSTM_NOT_FOUND;
    if (status == SEQLSTM_OK)
        return SEQLSTM_OK;
    if (status != SEQLSTM_NOT_FOUND && status != SEQLSTM_UNAVAILABLE) {
        if (err)
            *err = why;
        return status;
    }
    if (why.message[0])
        sl_log_printf(session->options.log, SL_LOG_INFO, "the ranks exchange through shared memory: %s", why.message);
    return sl_connection_open(request, &session->connection, err);
}

static seqlstm_status connect(struct sl_session *session, int32_t ranks, struct seqlstm_error *err)
{
    const struct sl_rank_identity *identity = session->options.identity;
    struct sl_connection_request request = make_request(session);
    if (ranks == 1)
        return SEQLSTM_OK;
    request.rank = identity->rank;
    request.ranks = ranks;
    request.local_ranks = identity->local_ranks;
    request.job = identity->job;
    return open_connection(session, &request, err);
}

seqlstm_status sl_session_join(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_session_options *options = &session->options;
    const int32_t ranks = count_ranks(session);
    if (!sl_session_is_divided(session))
        return SEQLSTM_OK;
    SEQLSTM_TRY(check_ranks(session, ranks, err));
    SEQLSTM_TRY(connect(session, ranks, err));
    return sl_ranks_init(&session->ranks, session->connection, &session->model->parallel, options->interrupt, err);
}

seqlstm_status sl_session_meet(struct sl_session *session, const struct sl_parallel_config *config,
                               struct seqlstm_error *err)
{
    const struct sl_session_options *options = &session->options;
    SEQLSTM_TRY(connect(session, options->identity ? options->identity->ranks : 1, err));
    return sl_ranks_init(&session->ranks, session->connection, config, options->interrupt, err);
}

void sl_session_leave(struct sl_session *session)
{
    sl_connection_close(session->connection);
    session->connection = NULL;
    session->ranks.connection = NULL;
}

seqlstm_status sl_session_send_plan(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_buf text = {0};
    if (!session->connection || session->ranks.rank > 0)
        return SEQLSTM_OK;
    sl_session_write_choices(session, &text);
    int64_t bytes = (int64_t)text.length_bytes;
    seqlstm_status status =
        text.failed ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the plan")
                    : sl_ranks_broadcast(&session->ranks, 0, &bytes, (int64_t)sizeof bytes, err);
    if (status == SEQLSTM_OK)
        status = sl_ranks_broadcast(&session->ranks, 0, text.data, bytes, err);
    sl_buf_deinit(&text);
    return status;
}

seqlstm_status sl_session_take_plan(struct sl_session *session, struct seqlstm_error *err)
{
    int64_t bytes = 0;
    if (!session->connection || session->ranks.rank == 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_ranks_broadcast(&session->ranks, 0, &bytes, (int64_t)sizeof bytes, err));
    char *text = malloc((size_t)bytes + 1);
    if (text == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    seqlstm_status status = sl_ranks_broadcast(&session->ranks, 0, text, bytes, err);
    sl_arena_deinit(&session->stored.arena);
    memset(&session->stored, 0, sizeof session->stored);
    sl_arena_init(&session->stored.arena);
    if (status == SEQLSTM_OK)
        status = sl_stored_plan_parse("the plan of rank 0", text, (size_t)bytes, &session->stored, err);
    session->replay = true;
    session->options.threads_given = false; /* the plan has the number */
    free(text);
    return status;
}

struct sl_exchanged_request sl_session_request_exchange(const struct sl_session *session)
{
    const struct sl_envelope batch = sl_batcher_envelope(session->train_batcher);
    return (struct sl_exchanged_request){
        .compress_rank = sl_parallel_get_compress_rank(&session->model->parallel),
        .lookups = sl_exchanged_count_lookups(&batch, (int32_t)session->model->train.accumulate)};
}

/* Refuses a `compress` that makes the gradient of no matrix smaller. */
static seqlstm_status check_compress(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_graph *graph = session->train.plan->graph;
    const struct sl_exchanged_request request = sl_session_request_exchange(session);
    for (int32_t p = 0; p < graph->param_count; p++)
        if (sl_exchanged_is_compressed(graph, p, &request))
            return SEQLSTM_OK;
    seqlstm_error_set(
        err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
        "`compress` has no effect: no matrix of this model has fewer bytes as two factors of rank %d; use "
        "a smaller `rank`, or remove `compress`",
        (int)request.compress_rank);
    return sl_session_add_finding(session, "E0503", "parallel.compress", SEQLSTM_INVALID_CONFIG, err);
}

seqlstm_status sl_session_check_division(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_plan *plan = session->train.plan;
    for (int32_t c = 0; sl_session_is_divided(session) && c < plan->call_count; c++) {
        const struct sl_call *call = &plan->calls[c];
        const struct seqlstm_device_info *device = sl_backend_get_device(call->backend, call->device);
        if (!sl_parallel_has_pieces(&session->model->parallel) || strcmp(device->domain, "host") == 0)
            continue;
        seqlstm_error_set(
            err, SEQLSTM_UNSUPPORTED, __FILE__, __LINE__,
            "pieces and pipelines run on processors only, and `%s` would run on %s; use --set device=cpu, "
            "or `data` alone",
            call->node->name, device->device_class);
        return sl_session_add_finding(session, "E0503", "parallel", SEQLSTM_UNSUPPORTED, err);
    }
    return session->model->parallel.compress.kind == SL_COMPRESS_NONE ? SEQLSTM_OK : check_compress(session, err);
}

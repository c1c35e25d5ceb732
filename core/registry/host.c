/* SPDX-License-Identifier: Apache-2.0 */
/* See host.h. */
#include "registry/host.h"

#include <string.h>

#include "base/value/text.h"

/* ---- services ------------------------------------------------------------------------------- */

static void host_log(void *context, int32_t level, const char *message)
{
    const struct sl_host *host = context;
    int mapped = level <= SEQLSTM_LOG_ERROR ? SL_LOG_ERROR : level - SEQLSTM_LOG_ERROR;
    if (mapped > SL_LOG_TRACE)
        mapped = SL_LOG_TRACE;
    sl_log_printf(host->log, (enum sl_log_level)mapped, "%s: %s", host->id, message ? message : "(no message)");
}

static void *host_allocate(void *context, uint64_t bytes)
{
    struct sl_host *host = context;
    if (host->fail_after >= 0 && host->memory.n_allocs >= host->fail_after)
        return NULL;
    if (bytes > SIZE_MAX)
        return NULL;
    return sl_memory_alloc(&host->memory, bytes ? (size_t)bytes : 1);
}

static void host_release(void *context, void *pointer)
{
    struct sl_host *host = context;
    sl_memory_free(&host->memory, pointer);
}

static int32_t host_cancelled(void *context)
{
    const struct sl_host *host = context;
    return sl_interrupt_get_stop(host->interrupt) != 0;
}

static void host_trace_begin(void *context, const char *name)
{
    const struct sl_host *host = context;
    if (sl_log_is_on(host->log, SL_LOG_TRACE))
        sl_log_printf(host->log, SL_LOG_TRACE, "%s: begin %s", host->id, name ? name : "");
}

static void host_trace_end(void *context)
{
    const struct sl_host *host = context;
    if (sl_log_is_on(host->log, SL_LOG_TRACE))
        sl_log_printf(host->log, SL_LOG_TRACE, "%s: end", host->id);
}

void sl_host_init_minimal(struct sl_host *host, const char *id, const struct sl_log *log)
{
    memset(host, 0, sizeof *host);
    sl_memory_init(&host->memory);
    host->log = log;
    host->fail_after = -1;
    sl_text_snprintf(host->id, sizeof host->id, "%s", id);
    host->services.struct_size = (uint32_t)sizeof host->services;
    host->services.abi_minor = SEQLSTM_ABI_MINOR;
    host->services.context = host;
    host->services.log = host_log;
    host->services.allocate = host_allocate;
    host->services.release = host_release;
}

void sl_host_init(struct sl_host *host, const char *id, const struct sl_log *log, const struct sl_interrupt *interrupt)
{
    sl_host_init_minimal(host, id, log);
    host->interrupt = interrupt;
    host->services.cancelled = host_cancelled;
    host->services.trace_begin = host_trace_begin;
    host->services.trace_end = host_trace_end;
}

/* ---- queues --------------------------------------------------------------------------------- */

static struct sl_pool *queue_pool(struct seqlstm_queue *queue)
{
    return ((struct sl_queue *)queue->host_data)->pool;
}

static void queue_parallel_for(struct seqlstm_queue *queue, int64_t count, int64_t grain,
                               void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    struct sl_pool *pool = queue_pool(queue);
    if (count <= 0)
        return;
    if (!pool)
        fn(argument, 0, count);
    else
        sl_pool_parallel_for(pool, count, grain, fn, argument);
}

static void queue_team(struct seqlstm_queue *queue, void (*fn)(void *argument, int32_t member, int32_t members),
                       void *argument)
{
    struct sl_pool *pool = queue_pool(queue);
    if (!pool)
        fn(argument, 0, 1);
    else
        sl_pool_team(pool, fn, argument);
}

static void queue_team_barrier(struct seqlstm_queue *queue)
{
    struct sl_pool *pool = queue_pool(queue);
    if (pool)
        sl_pool_barrier(pool);
}

static void queue_lease_begin(struct seqlstm_queue *queue)
{
    struct sl_pool *pool = queue_pool(queue);
    if (pool)
        sl_pool_lease_begin(pool);
}

static void queue_lease_end(struct seqlstm_queue *queue)
{
    struct sl_pool *pool = queue_pool(queue);
    if (pool)
        sl_pool_lease_end(pool);
}

static const struct seqlstm_queue_services queue_services = {
    .struct_size = (uint32_t)sizeof(struct seqlstm_queue_services),
    .parallel_for = queue_parallel_for,
    .team = queue_team,
    .team_barrier = queue_team_barrier,
    .lease_begin = queue_lease_begin,
    .lease_end = queue_lease_end,
};

void sl_queue_init(struct sl_queue *queue, struct sl_pool *pool)
{
    memset(queue, 0, sizeof *queue);
    queue->pool = pool;
    queue->queue.struct_size = (uint32_t)sizeof queue->queue;
    queue->queue.members = pool ? sl_pool_get_members(pool) : 1;
    queue->queue.services = &queue_services;
    queue->queue.host_data = queue;
}

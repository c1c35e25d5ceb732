/* SPDX-License-Identifier: Apache-2.0 */
/* See host.h. */
#include "registry/host.h"

#include <string.h>

#include "base/system/trace.h"
#include "base/value/text.h"
#include "registry/watch/fp_state.h"
#include "registry/watch/plugin_text.h"
#include "registry/watch/running.h"
#include "registry/watch/watch.h"

enum { LOG_BYTES = 2048 };

/* ---- services ------------------------------------------------------------------------------- */

/* In the middle of a call of the plugin, whose own output is captured. */
static void write_log(const struct sl_host *host, enum sl_log_level level, const char *before, const char *words)
{
    char text[LOG_BYTES];
    sl_text_snprintf(text, sizeof text, "%s%s", before, words);
    sl_plugin_text_clean(text, sizeof text);
    sl_watch_pause_capture(true);
    sl_log_printf(host->log, level, "%s: %s", host->id, text);
    sl_watch_pause_capture(false);
}

static void host_log(void *context, int32_t level, const char *message)
{
    int mapped = level <= SEQLSTM_LOG_ERROR ? SL_LOG_ERROR : level - SEQLSTM_LOG_ERROR;
    if (mapped > SL_LOG_TRACE)
        mapped = SL_LOG_TRACE;
    write_log(context, (enum sl_log_level)mapped, "", message ? message : "(no message)");
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
        write_log(host, SL_LOG_TRACE, "begin ", name ? name : "");
    sl_trace_push(name ? name : "");
}

static void host_trace_end(void *context)
{
    const struct sl_host *host = context;
    if (sl_log_is_on(host->log, SL_LOG_TRACE))
        write_log(host, SL_LOG_TRACE, "end", "");
    sl_trace_pop(host->id);
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

/* What members of a pool run for a plugin: a range or a team. */
struct work {
    void (*range)(void *argument, int64_t begin, int64_t end);
    void (*team)(void *argument, int32_t member, int32_t members);
    void *argument;
    struct sl_running *running; /* the plugin's call; NULL: the call is not watched */
};

/* Runs on a thread of the pool, which must come back as it was. */
static void finish_work(const struct work *work, struct sl_running *before, struct sl_fp_state mode)
{
    if (!sl_fp_state_is_equal(sl_fp_state_get(), mode)) {
        sl_fp_state_set(mode);
        if (work->running)
            atomic_store_explicit(&work->running->mode_changed, true, memory_order_relaxed);
    }
    sl_running_set(before);
}

/* NULL: the call is not watched. */
static const char *get_plugin(const struct work *work)
{
    return work->running ? work->running->plugin : NULL;
}

static void work_range(void *context, int64_t begin, int64_t end)
{
    const struct work *work = context;
    struct sl_running *before = sl_running_get();
    struct sl_fp_state mode = sl_fp_state_get();
    const int64_t start = sl_trace_begin(SL_ACTIVITY_WORK, NULL);
    sl_running_set(work->running);
    work->range(work->argument, begin, end);
    finish_work(work, before, mode);
    sl_trace_end(start, SL_ACTIVITY_WORK, NULL, get_plugin(work), end - begin);
}

static void work_team(void *context, int32_t member, int32_t members)
{
    const struct work *work = context;
    struct sl_running *before = sl_running_get();
    struct sl_fp_state mode = sl_fp_state_get();
    const int64_t start = sl_trace_begin(SL_ACTIVITY_WORK, NULL);
    sl_running_set(work->running);
    work->team(work->argument, member, members);
    finish_work(work, before, mode);
    sl_trace_end(start, SL_ACTIVITY_WORK, NULL, get_plugin(work), members);
}

static void queue_parallel_for(struct seqlstm_queue *queue, int64_t count, int64_t grain,
                               void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    struct sl_pool *pool = queue_pool(queue);
    if (count <= 0)
        return;
    struct work work = {.range = fn, .argument = argument, .running = sl_running_get()};
    if (!pool)
        fn(argument, 0, count);
    else
        sl_pool_parallel_for(pool, count, grain, work_range, &work);
}

static void queue_team(struct seqlstm_queue *queue, void (*fn)(void *argument, int32_t member, int32_t members),
                       void *argument)
{
    struct sl_pool *pool = queue_pool(queue);
    struct work work = {.team = fn, .argument = argument, .running = sl_running_get()};
    if (!pool)
        fn(argument, 0, 1);
    else
        sl_pool_team(pool, work_team, &work);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* See connection.h. */
#include "registry/collectives/connection.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/system/trace.h"
#include "registry/host.h"
#include "registry/loader.h"
#include "registry/opening.h"
#include "registry/search.h"
#include "registry/kind/settings.h"
#include "registry/table.h"
#include "registry/watch/plugin_text.h"
#include "registry/watch/watch.h"

enum { GROUPS_MOST = 64 };

struct sl_connection {
    struct sl_arena arena;
    struct sl_backend_record record;
    struct seqlstm_collectives table;
    struct sl_host host;
    struct seqlstm_transport transport;
    struct seqlstm_connection *native;
    struct seqlstm_group *groups[GROUPS_MOST];
    int32_t rank, ranks;
    int64_t timeout_ns;
};

/* Calls a function of the table; the result is set to what it returns. */
#define WATCHED(connection, number, result, expression)                                                                \
    do {                                                                                                               \
        struct sl_watched_call call_;                                                                                  \
        sl_watch_begin(&call_, (connection)->table.id, (number));                                                      \
        result expression;                                                                                             \
        sl_watch_end(&call_);                                                                                          \
    } while (0)

static seqlstm_status check(const struct sl_connection *c, enum sl_plugin_function function, seqlstm_status status,
                            struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK)
        return SEQLSTM_OK;
    if (status < SEQLSTM_OK || status > SEQLSTM_INTERNAL)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "%s is faulty: its %s returned %d, which is no status", c->table.id,
                     sl_plugin_function_name(function), (int)status);
    sl_plugin_error_clean(err);
    if (err && err->struct_size >= sizeof *err && err->message[0] == 0)
        SEQLSTM_FAIL(err, status, "%s failed in %s (status %d) and gave no reason", c->table.id,
                     sl_plugin_function_name(function), (int)status);
    return status;
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static seqlstm_status load_file(struct sl_arena *arena, const struct sl_connection_request *request, const char *path,
                                struct sl_backend_record *record, struct seqlstm_collectives *out_table,
                                struct seqlstm_error *err)
{
    char real[PATH_MAX];
    if (path[0] != '/' && realpath(path, real))
        path = real;
    return sl_loader_load(arena, &sl_collectives_kind, path, request->trust, record, out_table, err);
}

static seqlstm_status find_and_load(struct sl_arena *arena, const struct sl_connection_request *request,
                                    struct sl_backend_record *record, struct seqlstm_collectives *out_table,
                                    struct seqlstm_error *err)
{
    struct sl_search search;
    const char **files;
    uint32_t count;
    SEQLSTM_TRY(sl_search_init(&search, arena, request->folders, request->folder_count, false, err));
    SEQLSTM_TRY(sl_search_find(&search, arena, &sl_collectives_kind, request->name, &files, &count, err));
    if (count == 0)
        return sl_record_refuse(arena, record, SL_BACKEND_NOT_FOUND, err,
                                "there is no file libseqlstm_collectives_%s.so in any of the %u folders of the backend "
                                "path",
                                request->name, search.folder_count);
    SEQLSTM_TRY(load_file(arena, request, files[0], record, out_table, err));
    if (record->status == SL_BACKEND_OK && strcmp(out_table->id, request->name) != 0)
        return sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err,
                                "the file is named after %s but says that it is %s", request->name, out_table->id);
    return SEQLSTM_OK;
}

seqlstm_status sl_collectives_load(struct sl_arena *arena, const struct sl_connection_request *request,
                                   struct sl_backend_record *record, struct seqlstm_collectives *out_table,
                                   struct seqlstm_error *err)
{
    memset(record, 0, sizeof *record);
    record->entry = record->wrong_setting = -1;
    record->id = sl_arena_strdup(arena, strchr(request->name, '/') ? "" : request->name);
    if (!record->id)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading %.200s", request->name);
    if (strchr(request->name, '/'))
        return load_file(arena, request, request->name, record, out_table, err);
    for (uint32_t i = 0; i < request->builtin_count; i++)
        if (strcmp(request->builtins[i].id, request->name) == 0)
            return sl_table_query(arena, &sl_collectives_kind, (sl_query_fn *)request->builtins[i].query, record,
                                  out_table, err);
    return find_and_load(arena, request, record, out_table, err);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static seqlstm_status describe(struct sl_connection *c, struct seqlstm_error *err)
{
    struct seqlstm_transport *t = &c->transport;
    seqlstm_status status;
    t->struct_size = (uint32_t)sizeof *t;
    WATCHED(c, SL_FUNCTION_DESCRIBE, status =, c->table.describe(t, err));
    SEQLSTM_TRY(check(c, SL_FUNCTION_DESCRIBE, status, err));
    sl_plugin_text_clean(t->name, sizeof t->name);
    sl_plugin_text_clean(t->domain, sizeof t->domain);
    if (t->name[0] == 0 || t->domain[0] == 0 || t->groups == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "%s is faulty: its describe gave no name, domain or groups", c->table.id);
    if (t->ranks_most > 0 && c->ranks > t->ranks_most)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s connects at most %d ranks, not %d", c->table.id, t->ranks_most,
                     c->ranks);
    return SEQLSTM_OK;
}

/* Joins the job. What is wrong is an error, and not only in the record: without its ranks nothing can be trained. */
static seqlstm_status join(struct sl_connection *c, const struct sl_connection_request *request,
                           struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_opening opening;
    struct sl_running running;
    const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                  .rank = request->rank,
                                                  .ranks = request->ranks,
                                                  .local_ranks = request->local_ranks,
                                                  .device = request->device,
                                                  .job = request->job,
                                                  .folder = request->folder,
                                                  .timeout_ns = request->timeout_ns};
    sl_opening_begin(&opening, &c->arena);
    sl_running_begin(&running, c->table.id, SL_FUNCTION_OPEN);
    seqlstm_status status =
        c->table.open(&c->host.services, request->settings, request->setting_count, &rendezvous, &c->native, &why);
    sl_running_end(&running);
    sl_plugin_error_clean(&why);
    SEQLSTM_TRY(sl_opening_end(&opening, c->table.id, status, &why, request->setting_count > 0, &c->record, err));
    if (c->record.status != SL_BACKEND_OK) {
        const int32_t native = why.native_code;
        seqlstm_error_set(err, status == SEQLSTM_OK ? SEQLSTM_UNAVAILABLE : status, __FILE__, __LINE__, "%s: %.700s",
                          c->table.id, c->record.reason);
        if (err)
            err->native_code = native;
        return status == SEQLSTM_OK ? SEQLSTM_UNAVAILABLE : status;
    }
    if (!c->native)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "%s is faulty: its open returned OK but no connection", c->table.id);
    if (c->record.warning)
        sl_log_printf(request->log, SL_LOG_WARN, "%s misbehaves: %s", c->table.id, c->record.warning);
    return SEQLSTM_OK;
}

static seqlstm_status open_all(struct sl_connection *c, const struct sl_connection_request *request,
                               struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_collectives_load(&c->arena, request, &c->record, &c->table, err));
    if (c->record.status != SL_BACKEND_OK)
        SEQLSTM_FAIL(err, c->record.status == SL_BACKEND_NOT_FOUND ? SEQLSTM_NOT_FOUND : SEQLSTM_UNAVAILABLE,
                     "the collectives %.200s cannot be used: %.600s", request->name, c->record.reason);
    SEQLSTM_TRY(sl_settings_check(c->table.id, c->table.options, c->table.option_count, request->settings,
                                  request->setting_count, NULL, err));
    sl_host_init(&c->host, c->table.id, request->log, request->interrupt);
    sl_watch_report_to(c->table.id, request->log);
    SEQLSTM_TRY(describe(c, err));
    SEQLSTM_TRY(join(c, request, err));
    int32_t *all = SL_ARENA_ARRAY(&c->arena, int32_t, (size_t)c->ranks);
    if (!all)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the ranks");
    for (int32_t r = 0; r < c->ranks; r++)
        all[r] = r;
    return sl_connection_add_group(c, 0, all, c->ranks, err);
}

seqlstm_status sl_connection_open(const struct sl_connection_request *request, struct sl_connection **out_connection,
                                  struct seqlstm_error *err)
{
    if (request->ranks < 1 || request->rank < 0 || request->rank >= request->ranks || request->timeout_ns <= 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no rank %d of %d", request->rank, request->ranks);
    struct sl_connection *c = calloc(1, sizeof *c);
    if (!c)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for a connection");
    c->rank = request->rank;
    c->ranks = request->ranks;
    c->timeout_ns = request->timeout_ns;
    seqlstm_status status = open_all(c, request, err);
    if (status != SEQLSTM_OK) {
        sl_connection_close(c);
        return status;
    }
    *out_connection = c;
    return SEQLSTM_OK;
}

void sl_connection_close(struct sl_connection *connection)
{
    if (!connection)
        return;
    for (int g = GROUPS_MOST - 1; g >= 0; g--)
        if (connection->groups[g])
            WATCHED(connection, SL_FUNCTION_GROUP_DESTROY, , connection->table.group_destroy(connection->groups[g]));
    if (connection->native)
        WATCHED(connection, SL_FUNCTION_CLOSE, , connection->table.close(connection->native));
    if (connection->host.memory.live_blocks != 0)
        sl_log_printf(connection->host.log, SL_LOG_WARN,
                      "%s misbehaves: after its close it still holds %lld bytes of the host's memory",
                      connection->table.id, (long long)connection->host.memory.live_bytes);
    if (connection->table.id)
        sl_watch_report_to(connection->table.id, NULL);
    sl_arena_deinit(&connection->arena);
    free(connection);
}

int32_t sl_connection_get_rank(const struct sl_connection *connection)
{
    return connection->rank;
}

int32_t sl_connection_get_ranks(const struct sl_connection *connection)
{
    return connection->ranks;
}

const struct seqlstm_transport *sl_connection_get_transport(const struct sl_connection *connection)
{
    return &connection->transport;
}

/* ---- use -------------------------------------------------------------------------------------------------------- */

seqlstm_status sl_connection_add_group(struct sl_connection *c, uint32_t number, const int32_t *ranks, int32_t count,
                                       struct seqlstm_error *err)
{
    seqlstm_status status;
    if (number >= GROUPS_MOST || number >= c->transport.groups)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s has at most %u groups", c->table.id, c->transport.groups);
    if (c->groups[number])
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "group %u exists already", number);
    WATCHED(c, SL_FUNCTION_GROUP_CREATE, status =,
            c->table.group_create(c->native, number, ranks, count, &c->groups[number], err));
    SEQLSTM_TRY(check(c, SL_FUNCTION_GROUP_CREATE, status, err));
    if (!c->groups[number])
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "%s is faulty: its group_create returned OK but no group", c->table.id);
    return SEQLSTM_OK;
}

seqlstm_status sl_connection_run(struct sl_connection *c, uint32_t group, struct seqlstm_exchange exchange,
                                 struct seqlstm_error *err)
{
    return sl_connection_run_on(c, group, NULL, exchange, err);
}

seqlstm_status sl_connection_run_on(struct sl_connection *c, uint32_t group, struct seqlstm_queue *queue,
                                    struct seqlstm_exchange exchange, struct seqlstm_error *err)
{
    seqlstm_status status;
    if (group >= GROUPS_MOST || !c->groups[group])
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no group %u", group);
    exchange.struct_size = (uint32_t)sizeof exchange;
    if (exchange.timeout_ns <= 0)
        exchange.timeout_ns = c->timeout_ns;
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_EXCHANGE, c->table.id);
    WATCHED(c, SL_FUNCTION_RUN, status =, c->table.run(c->groups[group], queue, &exchange, err));
    sl_trace_end(begin, SL_ACTIVITY_EXCHANGE, c->table.id, c->table.id, 0);
    return check(c, SL_FUNCTION_RUN, status, err);
}

seqlstm_status sl_connection_allocate(struct sl_connection *c, int64_t bytes, void **out_memory,
                                      struct seqlstm_error *err)
{
    seqlstm_status status;
    *out_memory = NULL;
    if (!c->table.allocate)
        return SEQLSTM_OK;
    WATCHED(c, SL_FUNCTION_ALLOCATE, status =,
            c->table.allocate(c->native, (uint64_t)bytes, c->timeout_ns, out_memory, err));
    SEQLSTM_TRY(check(c, SL_FUNCTION_ALLOCATE, status, err));
    if (!*out_memory || (uintptr_t)*out_memory % SEQLSTM_ALIGNMENT != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "%s is faulty: its allocate returned OK but no aligned memory",
                     c->table.id);
    return SEQLSTM_OK;
}

seqlstm_status sl_connection_poll(struct sl_connection *c, struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(c, SL_FUNCTION_POLL, status =, c->table.poll(c->native, err));
    return check(c, SL_FUNCTION_POLL, status, err);
}

void sl_connection_abort(struct sl_connection *c)
{
    WATCHED(c, SL_FUNCTION_ABORT, , c->table.abort(c->native));
}

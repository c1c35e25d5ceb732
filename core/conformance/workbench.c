/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a backend and the reference side by side. */
#include "conformance/workbench.h"

#include <string.h>

#include "base/value/text.h"
#include "conformance/checks/allocations.h"
#include "registry/instance.h"
#include "registry/loader.h"
#include "registry/plugin.h"
#include "registry/kind/settings.h"
#include "registry/table.h"
#include "registry/watch/watch.h"

seqlstm_status sl_workbench_load(struct sl_workbench *w, const struct sl_conformance_request *request,
                                 struct seqlstm_error *err)
{
    for (uint32_t i = 0; i < request->builtin_count; i++)
        if (strcmp(request->builtins[i].id, request->file) == 0)
            return sl_table_query(&w->arena, &sl_backend_kind, (sl_query_fn *)request->builtins[i].query, &w->record,
                                  &w->table, err);
    return sl_loader_load(&w->arena, &sl_backend_kind, request->file, request->trust, &w->record, &w->table, err);
}

/* Keeps the first report of the watch until the running check ends. */
static void keep_misdeed(void *context, enum sl_log_level level, const char *message)
{
    struct sl_workbench *w = context;
    (void)level;
    if (w->misdeed[0] == 0)
        sl_text_snprintf(w->misdeed, sizeof w->misdeed, "%s", message);
}

static seqlstm_status open_subject(struct sl_workbench *w, const struct sl_conformance_request *request,
                                   struct seqlstm_error *err)
{
    if (w->record.status == SL_BACKEND_OK) {
        SEQLSTM_TRY(sl_settings_check(w->table.id, w->table.options, w->table.option_count, request->settings,
                                      request->setting_count, NULL, err));
        sl_host_init(&w->host, w->table.id, &w->outlet.log, NULL);
        sl_watch_report_to(w->table.id, &w->misdeeds);
        SEQLSTM_TRY(sl_instance_open(&w->arena, &w->table, &w->host.services, request->settings, request->setting_count,
                                     &w->record, &w->instance, err));
    }
    if (w->record.status == SL_BACKEND_OK)
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err,
                 w->record.status == SL_BACKEND_NOT_FOUND     ? SEQLSTM_NOT_FOUND
                 : w->record.status == SL_BACKEND_UNAVAILABLE ? SEQLSTM_UNAVAILABLE
                                                              : SEQLSTM_INVALID_ARGUMENT,
                 "%.300s is %s: %.500s", request->file, sl_backend_status_name(w->record.status), w->record.reason);
}

static seqlstm_status open_reference(struct sl_workbench *w, const struct sl_conformance_request *request,
                                     struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_table_query(&w->arena, &sl_backend_kind, (sl_query_fn *)request->reference, &w->reference_record,
                               &w->reference_table, err));
    if (w->reference_record.status == SL_BACKEND_OK) {
        sl_host_init(&w->reference_host, "reference", request->log, NULL);
        SEQLSTM_TRY(sl_instance_open(&w->arena, &w->reference_table, &w->reference_host.services, NULL, 0,
                                     &w->reference_record, &w->reference_instance, err));
    }
    if (w->reference_record.status != SL_BACKEND_OK)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the reference does not open: %.500s", w->reference_record.reason);
    const struct seqlstm_backend *table = &w->reference_table;
    w->bench.reference.float64 = sl_plugin_get_extension(table, w->reference_instance, SEQLSTM_FLOAT64_EXTENSION);
    if (!w->bench.reference.float64)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the reference has no extension %s", SEQLSTM_FLOAT64_EXTENSION);
    return SEQLSTM_OK;
}

seqlstm_status sl_workbench_init(struct sl_workbench *w, const struct sl_conformance_request *request,
                                 struct seqlstm_error *err)
{
    memset(w, 0, sizeof *w);
    sl_outlet_init(&w->outlet, request->log, request->worker || request->is_worker);
    w->misdeeds = (struct sl_log){.write = keep_misdeed, .context = w, .level = SL_LOG_WARN};
    sl_watch_guard_all(true);
    sl_outlet_begin(&w->outlet);
    seqlstm_status rc = sl_workbench_load(w, request, err);
    if (rc == SEQLSTM_OK)
        rc = open_subject(w, request, err);
    sl_outlet_end(&w->outlet, w->said, sizeof w->said);
    if (rc == SEQLSTM_OK && strcmp(w->record.devices[0].domain, "host") == 0)
        sl_allocations_watch(&w->record); /* on a device, the plugin is also responsible for the driver */
    if (rc == SEQLSTM_OK)
        rc = open_reference(w, request, err);
    for (int32_t i = 0; rc == SEQLSTM_OK && i < SL_WORKBENCH_QUEUES; i++) {
        rc = sl_pool_create(i + 1, &w->pools[i], err);
        if (rc == SEQLSTM_OK)
            sl_queue_init(&w->queues[i], w->pools[i]);
    }
    if (rc != SEQLSTM_OK) {
        sl_workbench_deinit(w);
        return rc;
    }
    sl_queue_init(&w->reference_queue, NULL);
    struct sl_bench *b = &w->bench;
    const struct seqlstm_device_info *device = &w->record.devices[0];
    b->subject = (struct sl_subject){.table = &w->table,
                                     .instance = w->instance,
                                     .device_class = device->device_class,
                                     .queue = &w->queues[1].queue};
    b->reference.table = &w->reference_table;
    b->reference.instance = w->reference_instance;
    b->reference.device_class = w->reference_record.devices[0].device_class;
    b->reference.queue = &w->reference_queue.queue;
    b->host = &w->host;
    b->outlet = &w->outlet;
    b->misdeed = w->misdeed;
    b->seed = request->seed;
    b->variant = request->variant;
    b->queues = w->queues;
    b->queue_count = SL_WORKBENCH_QUEUES;
    if (strcmp(device->domain, "host") == 0)
        return SEQLSTM_OK;
    for (int i = 0; i < SL_WORKBENCH_QUEUES; i++) {
        rc = sl_domain_open(&w->domains[i], &w->table, w->instance, 0, device->domain, err);
        if (rc != SEQLSTM_OK) {
            sl_workbench_deinit(w);
            return rc;
        }
    }
    b->domains = w->domains;
    b->subject.domain = &w->domains[1];
    b->subject.queue = &w->domains[1].queue.queue;
    return SEQLSTM_OK;
}

void sl_workbench_deinit(struct sl_workbench *w)
{
    for (int i = 0; i < SL_WORKBENCH_QUEUES; i++)
        sl_domain_close(&w->domains[i]);
    if (w->instance)
        sl_plugin_close(&w->table, w->instance);
    if (w->reference_instance)
        sl_plugin_close(&w->reference_table, w->reference_instance);
    for (int i = 0; i < SL_WORKBENCH_QUEUES; i++)
        sl_pool_destroy(w->pools[i]);
    if (w->table.id)
        sl_watch_report_to(w->table.id, NULL);
    sl_watch_guard_all(false);
    sl_arena_deinit(&w->arena);
    sl_outlet_deinit(&w->outlet);
    memset(w, 0, sizeof *w);
}

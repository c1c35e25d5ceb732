/* SPDX-License-Identifier: Apache-2.0 */
/* See opened_backend.h. */
#include "registry/opened_backend.h"

#include <string.h>

#include "registry/answer.h"
#include "registry/host.h"
#include "registry/instance.h"
#include "registry/plugin.h"
#include "registry/kind/settings.h"
#include "registry/watch/watch.h"

struct sl_backend {
    const char *id;
    struct seqlstm_backend table;
    struct seqlstm_instance *instance;
    struct sl_host host;
    const struct sl_backend_record *record;
    int32_t device; /* of the request */
};

static bool has_processor(const struct sl_backend_record *record)
{
    for (uint32_t d = 0; d < record->device_count; d++)
        if (strncmp(record->devices[d].device_class, "cpu", 3) == 0)
            return true;
    return false;
}

/* The number of the device that the request asks for, counted from 1; 0: any. */
static int32_t find_number(const struct sl_backend_request *request, const struct sl_backend_record *record)
{
    const bool cuda = record->device_count > 0 && strncmp(record->devices[0].device_class, "cuda", 4) == 0;
    return request->device > 0 || !cuda ? request->device : request->cuda;
}

/* Does the open backend have the devices that the request asks for? If not, the record is refused. */
static seqlstm_status check_devices(struct sl_arena *arena, const struct sl_backend_request *request,
                                    struct sl_backend_record *record, struct seqlstm_error *err)
{
    if (request->cpu_only && !has_processor(record))
        return sl_record_refuse(arena, record, SL_BACKEND_UNAVAILABLE, err,
                                "it computes on %s, and `device: cpu` asks for the processor",
                                record->devices[0].device_class);
    const int32_t device = find_number(request, record);
    if (device > (int32_t)record->device_count)
        return sl_record_refuse(arena, record, SL_BACKEND_UNAVAILABLE, err,
                                "it has %u device%s, counted from 0, and no device %d", record->device_count,
                                record->device_count == 1 ? "" : "s", device - 1);
    return SEQLSTM_OK;
}

seqlstm_status sl_backend_open(struct sl_arena *arena, const struct sl_backend_request *request,
                               const struct seqlstm_backend *table, struct sl_backend_record *record,
                               struct sl_backend **out_backend, struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_backend *backend = SL_ARENA_NEW(arena, struct sl_backend);
    *out_backend = NULL;
    if (backend == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening backend %s", table->id);
    if (sl_settings_check(table->id, table->options, table->option_count, request->settings, request->setting_count,
                          &record->wrong_setting, &why) != SEQLSTM_OK) {
        record->misconfigured = true;
        return sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err, "%s", why.message);
    }
    backend->id = record->id;
    backend->table = *table;
    backend->record = record;
    sl_host_init(&backend->host, record->id, request->log, request->interrupt);
    sl_watch_report_to(backend->table.id, request->log);
    SEQLSTM_TRY(sl_instance_open(arena, &backend->table, &backend->host.services, request->settings,
                                 request->setting_count, record, &backend->instance, err));
    if (record->status != SL_BACKEND_OK)
        return SEQLSTM_OK;
    backend->device = find_number(request, record);
    seqlstm_status status = check_devices(arena, request, record, err);
    if (status == SEQLSTM_OK && record->status == SL_BACKEND_OK)
        *out_backend = backend;
    else
        sl_backend_close(backend);
    return status;
}

void sl_backend_close(struct sl_backend *backend)
{
    const struct sl_host *host = &backend->host;
    sl_plugin_close(&backend->table, backend->instance);
    if (host->memory.live_blocks != 0)
        sl_log_printf(host->log, SL_LOG_WARN,
                      "the backend %s misbehaves: after its close it still holds %lld bytes of the host's memory",
                      backend->id, (long long)host->memory.live_bytes);
    sl_watch_report_to(backend->table.id, NULL);
}

const char *sl_backend_get_id(const struct sl_backend *backend)
{
    return backend->id;
}

const struct seqlstm_backend *sl_backend_get_table(const struct sl_backend *backend)
{
    return &backend->table;
}

struct seqlstm_instance *sl_backend_get_instance(const struct sl_backend *backend)
{
    return backend->instance;
}

uint32_t sl_backend_get_device_count(const struct sl_backend *backend)
{
    return backend->record->device_count;
}

const struct seqlstm_device_info *sl_backend_get_device(const struct sl_backend *backend, uint32_t index)
{
    return &backend->record->devices[index];
}

const struct sl_backend_record *sl_backend_get_record(const struct sl_backend *backend)
{
    return backend->record;
}

bool sl_backend_find_device(const struct sl_backend *backend, uint32_t *out_device)
{
    const uint32_t count = sl_backend_get_device_count(backend);
    *out_device = backend->device > 0 ? (uint32_t)backend->device - 1 : 0;
    if (backend->device > 0)
        return true;
    for (uint32_t d = 0; d < count; d++)
        if (strcmp(sl_backend_get_device(backend, d)->domain, "host") == 0) {
            *out_device = d;
            return true;
        }
    return count > 0;
}

int64_t sl_backend_get_live_bytes(const struct sl_backend *backend)
{
    return backend->host.memory.live_bytes;
}

seqlstm_status sl_backend_supports(const struct sl_backend *backend, uint32_t device, const struct seqlstm_desc *desc,
                                   struct seqlstm_answer *out_answer, struct seqlstm_error *err)
{
    if (device >= sl_backend_get_device_count(backend))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "backend %s has no device %u", sl_backend_get_id(backend), device);
    return sl_table_supports(sl_backend_get_table(backend), sl_backend_get_device(backend, device)->device_class, desc,
                             out_answer, err);
}

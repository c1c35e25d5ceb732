/* SPDX-License-Identifier: Apache-2.0 */
/* See instance.h. */
#include "registry/instance.h"

#include <string.h>

#include "registry/opening.h"
#include "registry/plugin.h"

#define REFUSE(...) return sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err, __VA_ARGS__)

static bool is_text(const char *text, size_t capacity)
{
    return text[0] != 0 && memchr(text, 0, capacity) != NULL;
}

static seqlstm_status read_devices(struct sl_arena *arena, const struct seqlstm_backend *table,
                                   struct seqlstm_instance *instance, struct sl_backend_record *record,
                                   struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    uint32_t count = 0;
    if (sl_plugin_count_devices(table, instance, &count, &why) != SEQLSTM_OK)
        REFUSE("its device_count failed: %.500s", why.message);
    if (count == 0)
        return sl_record_refuse(arena, record, SL_BACKEND_UNAVAILABLE, err, "it found no device");
    if (count > SL_BACKEND_DEVICES_MOST)
        REFUSE("it reports %u devices", count);
    struct seqlstm_device_info *devices = SL_ARENA_ARRAY(arena, struct seqlstm_device_info, count);
    if (!devices)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening backend %s", table->id);
    for (uint32_t i = 0; i < count; i++) {
        devices[i].struct_size = (uint32_t)sizeof *devices;
        if (sl_plugin_describe_device(table, instance, i, &devices[i], &why) != SEQLSTM_OK)
            REFUSE("its device_info failed for device %u: %.500s", i, why.message);
        if (!is_text(devices[i].name, sizeof devices[i].name) ||
            !is_text(devices[i].device_class, sizeof devices[i].device_class) ||
            !is_text(devices[i].domain, sizeof devices[i].domain))
            REFUSE("it gives device %u no valid name, class or domain", i);
        if (strcmp(devices[i].domain, "host") != 0 && (!table->memory || !table->streams))
            REFUSE("its device %u works in the domain %s, but it has no tables for memory and streams", i,
                   devices[i].domain);
    }
    record->devices = devices;
    record->device_count = count;
    return SEQLSTM_OK;
}

seqlstm_status sl_instance_open(struct sl_arena *arena, const struct seqlstm_backend *table,
                                const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                uint32_t setting_count, struct sl_backend_record *record,
                                struct seqlstm_instance **out_instance, struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_opening opening;
    struct seqlstm_instance *instance = NULL;
    *out_instance = NULL;
    record->status = SL_BACKEND_OK;
    sl_opening_begin(&opening, arena);
    seqlstm_status rc = sl_plugin_open(table, host, settings, setting_count, &instance, &why);
    seqlstm_status kept = sl_opening_end(&opening, table->id, rc, &why, setting_count > 0, record, err);
    if (rc != SEQLSTM_OK)
        return kept;
    if (kept == SEQLSTM_OK && !instance)
        REFUSE("its open returned OK but no instance");
    if (kept == SEQLSTM_OK && record->status == SL_BACKEND_OK)
        kept = read_devices(arena, table, instance, record, err);
    if (kept == SEQLSTM_OK && record->status == SL_BACKEND_OK)
        *out_instance = instance;
    else if (instance)
        sl_plugin_close(table, instance);
    return kept;
}

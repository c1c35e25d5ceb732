/* SPDX-License-Identifier: Apache-2.0 */
/* See record_line.h. */
#include "conformance/record_line.h"

#include <string.h>

#include <jansson.h>

#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "base/value/text.h"

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static json_t *list_devices(const struct sl_backend_record *record)
{
    json_t *list = json_array();
    for (uint32_t d = 0; d < record->device_count; d++)
        list = sl_json_add(list, json_pack("{s:s, s:s, s:s}", "name", record->devices[d].name, "class",
                                           record->devices[d].device_class, "domain", record->devices[d].domain));
    return list;
}

static json_t *list_files(const struct sl_backend_record *record)
{
    json_t *list = json_array();
    for (uint32_t f = 0; f < record->file_count; f++)
        list = sl_json_add(list, json_pack("{s:o, s:s}", "path", sl_json_text(or_empty(record->files[f].path)),
                                           "build_id", or_empty(record->files[f].build_id)));
    return list;
}

char *sl_record_line_print(const struct sl_backend_record *record, seqlstm_status status, const char *message)
{
    static const struct sl_backend_record none = {.id = ""};
    const struct sl_backend_record *r = record ? record : &none;
    json_t *root =
        json_pack("{s:i, s:o, s:s, s:o, s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:o}", "status", (int)status, "message",
                  sl_json_text(message), "id", or_empty(r->id), "file", sl_json_text(or_empty(r->file)), "version",
                  or_empty(r->version), "vendor", or_empty(r->vendor), "license", or_empty(r->license), "build",
                  or_empty(r->build), "abi_major", (int)r->abi_major, "abi_minor", (int)r->abi_minor_needed, "devices",
                  list_devices(r), "files", list_files(r));
    struct sl_buf line = {0};
    if (!sl_json_append_line(&line, root))
        line.failed = true;
    return sl_buf_take(&line, NULL);
}

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the record of the backend");
}

static seqlstm_status copy(struct sl_arena *arena, const json_t *object, const char *key, const char **out,
                           struct seqlstm_error *err)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the worker's record of the backend has no text `%s`", key);
    *out = sl_arena_strdup(arena, text);
    return *out ? SEQLSTM_OK : no_memory(err);
}

static seqlstm_status read_lists(const json_t *root, struct sl_arena *arena, struct sl_backend_record *record,
                                 struct seqlstm_error *err)
{
    const json_t *devices = json_object_get(root, "devices"), *files = json_object_get(root, "files"), *item;
    size_t k;
    struct seqlstm_device_info *infos = SL_ARENA_ARRAY(arena, struct seqlstm_device_info, json_array_size(devices) + 1);
    struct sl_backend_file *paths = SL_ARENA_ARRAY(arena, struct sl_backend_file, json_array_size(files) + 1);
    if (!infos || !paths)
        return no_memory(err);
    json_array_foreach(devices, k, item)
    {
        const char *name, *class, *domain;
        SEQLSTM_TRY(copy(arena, item, "name", &name, err));
        SEQLSTM_TRY(copy(arena, item, "class", &class, err));
        SEQLSTM_TRY(copy(arena, item, "domain", &domain, err));
        infos[k].struct_size = (uint32_t)sizeof *infos;
        sl_text_snprintf(infos[k].name, sizeof infos[k].name, "%s", name);
        sl_text_snprintf(infos[k].device_class, sizeof infos[k].device_class, "%s", class);
        sl_text_snprintf(infos[k].domain, sizeof infos[k].domain, "%s", domain);
    }
    json_array_foreach(files, k, item)
    {
        SEQLSTM_TRY(copy(arena, item, "path", &paths[k].path, err));
        SEQLSTM_TRY(copy(arena, item, "build_id", &paths[k].build_id, err));
    }
    record->devices = infos;
    record->device_count = (uint32_t)json_array_size(devices);
    record->files = paths;
    record->file_count = (uint32_t)json_array_size(files);
    return SEQLSTM_OK;
}

static seqlstm_status read(const json_t *root, struct sl_arena *arena, struct sl_backend_record *record,
                           struct seqlstm_error *err)
{
    seqlstm_status status = (seqlstm_status)json_integer_value(json_object_get(root, "status"));
    if (status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, status, "%.800s", or_empty(json_string_value(json_object_get(root, "message"))));
    *record = (struct sl_backend_record){.entry = -1,
                                         .wrong_setting = -1,
                                         .has_abi = true,
                                         .abi_major = (uint32_t)json_integer_value(json_object_get(root, "abi_major")),
                                         .abi_minor_needed =
                                             (uint32_t)json_integer_value(json_object_get(root, "abi_minor"))};
    const struct {
        const char *key, **out;
    } texts[] = {{"id", &record->id},         {"file", &record->file},       {"version", &record->version},
                 {"vendor", &record->vendor}, {"license", &record->license}, {"build", &record->build}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        SEQLSTM_TRY(copy(arena, root, texts[k].key, texts[k].out, err));
    return read_lists(root, arena, record, err);
}

seqlstm_status sl_record_line_parse(const char *line, struct sl_arena *arena, struct sl_backend_record *out_record,
                                    struct seqlstm_error *err)
{
    bool none;
    json_t *root = sl_json_load(line, strlen(line), 0, NULL, &none);
    if (none)
        return no_memory(err);
    if (!json_is_object(root)) {
        json_decref(root);
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the worker answered with something else than the record of the backend");
    }
    seqlstm_status status = read(root, arena, out_record, err);
    json_decref(root);
    return status;
}

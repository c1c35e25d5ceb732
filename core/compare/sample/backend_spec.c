/* SPDX-License-Identifier: Apache-2.0 */
/* See backend_spec.h. */
#include "compare/sample/backend_spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/absolute_path.h"
#include "base/value/text.h"

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the name of a backend");
}

/* "key=value,key=value" */
static seqlstm_status parse_settings(struct sl_arena *arena, const char *text, struct sl_backend_spec *c,
                                     struct seqlstm_error *err)
{
    struct seqlstm_setting *settings = SL_ARENA_ARRAY(arena, struct seqlstm_setting, SL_BACKEND_SETTINGS_MOST);
    if (!settings)
        return no_memory(err);
    c->settings = settings;
    for (const char *at = text; *at;) {
        size_t bytes = strcspn(at, ",");
        const char *equals = memchr(at, '=', bytes);
        if (!equals || equals == at || c->setting_count == SL_BACKEND_SETTINGS_MOST)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "`%.*s` is no option of a backend; options are written `id,key=value`, at most %d of them",
                         (int)bytes, at, SL_BACKEND_SETTINGS_MOST);
        const size_t key = (size_t)(equals - at);
        int64_t device;
        if (key == strlen("device") && strncmp(at, "device", key) == 0) {
            if (!sl_text_parse_int64(equals + 1, bytes - key - 1, &device) || device < 0 ||
                device >= SL_BACKEND_DEVICES_MOST)
                SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                             "`%.*s`: expected the number of a device, from 0 to %d, as in `id,device=1`", (int)bytes,
                             at, SL_BACKEND_DEVICES_MOST - 1);
            c->device = (int32_t)device + 1;
            at += bytes + (at[bytes] == ',');
            continue;
        }
        struct seqlstm_setting *setting = &settings[c->setting_count++];
        setting->key = sl_arena_strndup(arena, at, key);
        setting->value = sl_arena_strndup(arena, equals + 1, (size_t)(at + bytes - equals - 1));
        if (!setting->key || !setting->value)
            return no_memory(err);
        at += bytes + (at[bytes] == ',');
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_backend_spec_parse(struct sl_arena *arena, const char *text, struct sl_backend_spec *out_spec,
                                     struct seqlstm_error *err)
{
    struct sl_backend_spec c = {.text = sl_arena_strdup(arena, text)};
    const char *comma = strchr(text, ',');
    char *name = sl_arena_strndup(arena, text, comma ? (size_t)(comma - text) : strlen(text));
    if (!c.text || !name)
        return no_memory(err);
    char *slash = strrchr(name, '/'), *colon = strchr(slash ? slash : name, ':');
    if (colon) {
        *colon = 0;
        c.variant = colon + 1;
    }
    size_t length = strlen(name);
    if (length == 0 || (colon && !c.variant[0]))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "`%s` names no backend; it is written `id`, `./file.so`, `id:variant` or `id,key=value`", text);
    if (!slash && length > 3 && strcmp(name + length - 3, ".so") == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`%s` is not the id of a backend; a file is written `./%s`", name,
                     name);
    if (comma)
        SEQLSTM_TRY(parse_settings(arena, comma + 1, &c, err));
    c.name = name;
    if (slash) {
        char *path = NULL;
        SEQLSTM_TRY(sl_path_absolute(name, &path, err));
        c.name = sl_arena_strdup(arena, path);
        free(path);
        if (!c.name)
            return no_memory(err);
    }
    *out_spec = c;
    return SEQLSTM_OK;
}

struct sl_registry_entry sl_backend_spec_get_entry(const struct sl_backend_spec *spec)
{
    return (struct sl_registry_entry){
        .name = spec->name, .settings = spec->settings, .setting_count = spec->setting_count, .device = spec->device};
}

bool sl_backend_spec_is_same(const struct sl_backend_spec *a, const struct sl_backend_spec *b)
{
    if (strcmp(a->name, b->name) != 0 || a->setting_count != b->setting_count || a->device != b->device)
        return false;
    for (uint32_t s = 0; s < a->setting_count; s++)
        if (strcmp(a->settings[s].key, b->settings[s].key) != 0 ||
            strcmp(a->settings[s].value, b->settings[s].value) != 0)
            return false;
    return true;
}

seqlstm_status sl_backend_spec_find(const struct sl_backend_spec *spec, const struct sl_registry *registry,
                                    struct sl_backend **out_backend, struct seqlstm_error *err)
{
    bool is_file = spec->name[0] == '/';
    for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, r);
        bool same_file = record->file && strcmp(record->file, spec->name) == 0;
        if (is_file ? !same_file : strcmp(record->id, spec->name) != 0)
            continue;
        struct sl_backend *backend = sl_registry_find_backend(registry, record->id);
        if (record->status == SL_BACKEND_OK && backend && sl_backend_get_record(backend) == record) {
            *out_backend = backend;
            return SEQLSTM_OK;
        }
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the backend `%.200s` does not load: %.500s", spec->text,
                     record->reason ? record->reason : "another one of its id was loaded");
    }
    SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the backend `%.200s` was not loaded", spec->text);
}

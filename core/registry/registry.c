/* SPDX-License-Identifier: Apache-2.0 */
/* See registry.h. */
#include "registry/registry.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "base/value/hash.h"
#include "base/value/text.h"
#include "registry/loader.h"
#include "registry/search.h"
#include "registry/table.h"

struct node {
    struct sl_backend_record record;
    struct sl_backend *backend; /* NULL: it is not open */
    struct node *next;
};

struct sl_registry {
    struct sl_arena arena;
    struct sl_search search;
    struct node *first_node, **last_node;
    uint32_t record_count, backend_count;
    const struct sl_registry_entry *entries; /* the request's, during sl_registry_create */
};

/* ---- records ------------------------------------------------------------------------- */

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading backends");
}

static struct node *add_node(struct sl_registry *r, const struct sl_registry_entry *entry, const char *id)
{
    struct node *node = SL_ARENA_NEW(&r->arena, struct node);
    if (!node)
        return NULL;
    struct sl_backend_record *record = &node->record;
    record->id = sl_arena_strdup(&r->arena, id ? id : "");
    record->searched = r->search.folders;
    record->entry = record->wrong_setting = -1;
    if (entry) {
        record->entry = (int32_t)(entry - r->entries);
        record->required = entry->require;
        for (uint32_t i = 0; i < entry->setting_count; i++)
            record->settings_hash =
                sl_hash_combine(sl_hash_combine(record->settings_hash, sl_hash_text(entry->settings[i].key)),
                                sl_hash_text(entry->settings[i].value));
        record->origin = entry->origin ? sl_arena_strdup(&r->arena, entry->origin) : NULL;
    }
    if (!record->id || (entry && entry->origin && !record->origin))
        return NULL;
    *r->last_node = node;
    r->last_node = &node->next;
    r->record_count++;
    return node;
}

static bool is_open(const struct sl_registry *r, const char *id)
{
    return sl_registry_find_backend(r, id) != NULL;
}

/* Opens a backend whose table was read, unless one of this id is open. */
static seqlstm_status open_backend(struct sl_registry *r, const struct sl_registry_request *request,
                                   const struct sl_registry_entry *entry, const struct seqlstm_backend *table,
                                   struct node *node, struct seqlstm_error *err)
{
    struct sl_backend_record *record = &node->record;
    const struct sl_backend *other = sl_registry_find_backend(r, table->id);
    record->id = sl_arena_strdup(&r->arena, table->id);
    if (!record->id)
        return no_memory(err);
    if (other) {
        const char *file = sl_backend_get_record(other)->file;
        return sl_record_refuse(&r->arena, record, SL_BACKEND_SHADOWED, err, "the backend %s is loaded already (%s)",
                                table->id, file ? file : "built in");
    }
    record->option_count = table->option_count;
    record->options = table->options;
    const struct sl_backend_request open = {.settings = entry ? entry->settings : NULL,
                                            .setting_count = entry ? entry->setting_count : 0,
                                            .device = entry ? entry->device : 0,
                                            .cpu_only = request->cpu_only,
                                            .cuda = request->cuda,
                                            .log = request->log,
                                            .interrupt = request->interrupt};
    SEQLSTM_TRY(sl_backend_open(&r->arena, &open, table, record, &node->backend, err));
    r->backend_count += node->backend != NULL;
    return SEQLSTM_OK;
}

static void report(const struct sl_registry_request *request, const struct sl_backend_record *record)
{
    const char *file = record->file ? record->file : "built in";
    if (record->warning)
        sl_log_printf(request->log, SL_LOG_WARN, "the backend %s misbehaves: %s", record->id[0] ? record->id : file,
                      record->warning);
    if (record->status == SL_BACKEND_OK)
        sl_log_printf(request->log, SL_LOG_DEBUG, "backend %s %s (%s)", record->id, record->version, file);
    else
        sl_log_printf(request->log, SL_LOG_DEBUG, "backend %s %s (%s): %s", record->id,
                      sl_backend_status_name(record->status), file, record->reason);
}

/* ---- loading -------------------------------------------------------------------------------- */

/* `expected_id`: the id in the file's name, or NULL. */
static seqlstm_status load_file(struct sl_registry *r, const struct sl_registry_request *request,
                                const struct sl_registry_entry *entry, const char *path, const char *expected_id,
                                struct seqlstm_error *err)
{
    struct seqlstm_backend table;
    struct node *node = add_node(r, entry, expected_id);
    if (!node)
        return no_memory(err);
    struct sl_backend_record *record = &node->record;
    if (expected_id)
        record->searched_count = r->search.folder_count;
    SEQLSTM_TRY(sl_loader_load(&r->arena, &sl_backend_kind, path, request->trust, record, &table, err));
    if (record->status == SL_BACKEND_OK) {
        if (expected_id && strcmp(expected_id, table.id) != 0)
            SEQLSTM_TRY(sl_record_refuse(&r->arena, record, SL_BACKEND_REFUSED, err,
                                         "the file is named after backend %s but says that it is %s", expected_id,
                                         table.id));
        else
            SEQLSTM_TRY(open_backend(r, request, entry, &table, node, err));
    }
    report(request, record);
    return SEQLSTM_OK;
}

static seqlstm_status load_builtin(struct sl_registry *r, const struct sl_registry_request *request,
                                   const struct sl_registry_entry *entry, const struct sl_backend_builtin *builtin,
                                   struct seqlstm_error *err)
{
    struct seqlstm_backend table;
    struct node *node = add_node(r, entry, builtin->id);
    if (!node)
        return no_memory(err);
    struct sl_backend_record *record = &node->record;
    SEQLSTM_TRY(sl_table_query(&r->arena, &sl_backend_kind, (sl_query_fn *)builtin->query, record, &table, err));
    if (record->status == SL_BACKEND_OK)
        SEQLSTM_TRY(open_backend(r, request, entry, &table, node, err));
    report(request, record);
    return SEQLSTM_OK;
}

static seqlstm_status add_shadowed(struct sl_registry *r, const char *id, const char *file, const char *by,
                                   struct seqlstm_error *err)
{
    struct node *node = add_node(r, NULL, id);
    if (!node)
        return no_memory(err);
    struct sl_backend_record *record = &node->record;
    record->file = file;
    return sl_record_refuse(&r->arena, record, SL_BACKEND_SHADOWED, err, "%s was found first", by);
}

static const struct sl_backend_builtin *find_builtin(const struct sl_registry_request *request, const char *id)
{
    for (uint32_t i = 0; i < request->builtin_count; i++)
        if (strcmp(request->builtins[i].id, id) == 0)
            return &request->builtins[i];
    return NULL;
}

/* The id of a backend on the backend path that `id` may mean; NULL: none. */
static seqlstm_status find_near(struct sl_registry *r, const struct sl_registry_request *request, const char *id,
                                const char **out_near, struct seqlstm_error *err)
{
    const char **files;
    uint32_t count, known = 0;
    SEQLSTM_TRY(sl_search_find(&r->search, &r->arena, &sl_backend_kind, NULL, &files, &count, err));
    const char **ids = SL_ARENA_ARRAY(&r->arena, const char *, (size_t)count + request->builtin_count + 1);
    if (!ids)
        return no_memory(err);
    for (uint32_t i = 0; i < count; i++)
        if ((ids[known++] = sl_search_copy_id(&r->arena, &sl_backend_kind, files[i])) == NULL)
            return no_memory(err);
    for (uint32_t i = 0; i < request->builtin_count; i++)
        ids[known++] = request->builtins[i].id;
    *out_near = sl_text_closest(id, ids, known);
    return SEQLSTM_OK;
}

static seqlstm_status load_by_id(struct sl_registry *r, const struct sl_registry_request *request,
                                 const struct sl_registry_entry *entry, struct seqlstm_error *err)
{
    const char **files;
    uint32_t count;
    const struct sl_backend_builtin *builtin = find_builtin(request, entry->name);
    if (builtin)
        return load_builtin(r, request, entry, builtin, err);
    SEQLSTM_TRY(sl_search_find(&r->search, &r->arena, &sl_backend_kind, entry->name, &files, &count, err));
    if (count == 0) {
        struct node *node = add_node(r, entry, entry->name);
        if (!node)
            return no_memory(err);
        struct sl_backend_record *record = &node->record;
        record->searched_count = r->search.folder_count;
        const char *near = NULL;
        SEQLSTM_TRY(find_near(r, request, entry->name, &near, err));
        SEQLSTM_TRY(sl_record_refuse(
            &r->arena, record, SL_BACKEND_NOT_FOUND, err,
            "there is no file libseqlstm_backend_%s.so in any of the %u folders of the backend path%s%s%s", entry->name,
            r->search.folder_count, near ? "; did you mean `" : "", near ? near : "", near ? "`?" : ""));
        report(request, record);
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(load_file(r, request, entry, files[0], entry->name, err));
    for (uint32_t i = 1; i < count; i++)
        SEQLSTM_TRY(add_shadowed(r, entry->name, files[i], files[0], err));
    return SEQLSTM_OK;
}

static seqlstm_status load_by_path(struct sl_registry *r, const struct sl_registry_request *request,
                                   const struct sl_registry_entry *entry, struct seqlstm_error *err)
{
    char folder[PATH_MAX];
    if (entry->name[0] == '/')
        return load_file(r, request, entry, entry->name, NULL, err);
    if (!getcwd(folder, sizeof folder))
        SEQLSTM_FAIL(err, SEQLSTM_IO, "the current folder has no path: give the backend's file as one");
    const char *path = sl_arena_printf(&r->arena, "%s/%s", folder, entry->name);
    if (!path)
        return no_memory(err);
    return load_file(r, request, entry, path, NULL, err);
}

/* The first record of this id; NULL: there is none. */
static const struct sl_backend_record *find_record(const struct sl_registry *r, const char *id)
{
    for (const struct node *n = r->first_node; n; n = n->next)
        if (strcmp(n->record.id, id) == 0)
            return &n->record;
    return NULL;
}

static bool has_file(const struct sl_registry *r, const char *file)
{
    for (const struct node *n = r->first_node; n; n = n->next)
        if (n->record.file && strcmp(n->record.file, file) == 0)
            return true;
    return false;
}

static seqlstm_status load_all(struct sl_registry *r, const struct sl_registry_request *request,
                               struct seqlstm_error *err)
{
    const char **files;
    uint32_t count;
    SEQLSTM_TRY(sl_search_find(&r->search, &r->arena, &sl_backend_kind, NULL, &files, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        const char *id = sl_search_copy_id(&r->arena, &sl_backend_kind, files[i]);
        if (!id)
            return no_memory(err);
        if (find_builtin(request, id) || has_file(r, files[i]))
            continue; /* the built-in one is used; or an entry has named the file */
        const struct sl_backend_record *known = find_record(r, id);
        if (!known)
            SEQLSTM_TRY(load_file(r, request, NULL, files[i], id, err));
        else if (known->file)
            SEQLSTM_TRY(add_shadowed(r, id, files[i], known->file, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_registry_create(const struct sl_registry_request *request, struct sl_registry **out_registry,
                                  struct seqlstm_error *err)
{
    seqlstm_status rc;
    struct sl_registry *r = calloc(1, sizeof *r);
    if (!r)
        return no_memory(err);
    r->last_node = &r->first_node;
    r->entries = request->entries;
    rc = sl_search_init(&r->search, &r->arena, request->folders, request->folder_count, request->only_folders, err);
    for (uint32_t i = 0; rc == SEQLSTM_OK && i < request->entry_count; i++) {
        const struct sl_registry_entry *entry = &request->entries[i];
        rc = strchr(entry->name, '/') ? load_by_path(r, request, entry, err) : load_by_id(r, request, entry, err);
    }
    if (rc == SEQLSTM_OK && request->all_backends)
        rc = load_all(r, request, err);
    if (request->all_builtins)
        for (uint32_t i = 0; rc == SEQLSTM_OK && i < request->builtin_count; i++)
            if (!is_open(r, request->builtins[i].id))
                rc = load_builtin(r, request, NULL, &request->builtins[i], err);
    if (rc != SEQLSTM_OK) {
        sl_registry_destroy(r);
        return rc;
    }
    r->entries = NULL;
    *out_registry = r;
    return SEQLSTM_OK;
}

void sl_registry_destroy(struct sl_registry *registry)
{
    if (!registry)
        return;
    for (struct node *n = registry->first_node; n; n = n->next)
        if (n->backend)
            sl_backend_close(n->backend);
    sl_arena_deinit(&registry->arena);
    free(registry);
}

seqlstm_status sl_registry_fail_unloaded(const struct sl_registry *registry, const char *id, struct seqlstm_error *err)
{
    struct sl_buf text = {0};
    sl_buf_printf(&text, "the backend `%.200s` is not loaded", id);
    for (const struct node *n = registry->first_node; n; n = n->next)
        if (strcmp(n->record.id, id) == 0 && n->record.reason)
            sl_buf_printf(&text, ": %.300s", n->record.reason);
    if (strchr(id, '/'))
        sl_buf_printf(&text, "; a file is named in the model: --set 'backends=[%.200s]'", id);
    const uint32_t count = sl_registry_get_backend_count(registry);
    for (uint32_t b = 0; b < count; b++)
        sl_buf_printf(&text, "%s`%s`", b == 0 ? "; there is " : ", ",
                      sl_backend_get_id(sl_registry_get_backend(registry, b)));
    sl_buf_append_text(&text, "; `seqlstm backends -v` shows where backends were looked for");
    seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "%s", sl_buf_text(&text));
    sl_buf_deinit(&text);
    return SEQLSTM_UNAVAILABLE;
}

/* ---- accessors ------------------------------------------------------------------------------- */

uint32_t sl_registry_get_record_count(const struct sl_registry *registry)
{
    return registry->record_count;
}

const struct sl_backend_record *sl_registry_get_record(const struct sl_registry *registry, uint32_t index)
{
    const struct node *node = registry->first_node;
    while (index--)
        node = node->next;
    return &node->record;
}

uint32_t sl_registry_get_folder_count(const struct sl_registry *registry)
{
    return registry->search.folder_count;
}

const char *sl_registry_get_folder(const struct sl_registry *registry, uint32_t index)
{
    return registry->search.folders[index];
}

uint32_t sl_registry_get_backend_count(const struct sl_registry *registry)
{
    return registry->backend_count;
}

struct sl_backend *sl_registry_get_backend(const struct sl_registry *registry, uint32_t index)
{
    for (const struct node *n = registry->first_node; n; n = n->next)
        if (n->backend && index-- == 0)
            return n->backend;
    return NULL;
}

struct sl_backend *sl_registry_find_backend(const struct sl_registry *registry, const char *id)
{
    for (const struct node *n = registry->first_node; n; n = n->next)
        if (n->backend && strcmp(sl_backend_get_id(n->backend), id) == 0)
            return n->backend;
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Files, and what they include. */
#include "model/load/doc_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/system/absolute_path.h"
#include "base/system/file.h"
#include "base/value/path.h"
#include "model/load/overlay.h"
#include "base/value/text.h"
#include "model/yaml/diagnostics_private.h"

/* Reads one file without its includes. */
static seqlstm_status load_file(struct sl_arena *arena, const char *path, const struct sl_place *from,
                                struct sl_diagnostics *diagnostics, struct sl_node **out, struct seqlstm_error *err)
{
    struct seqlstm_error reason = SEQLSTM_ERROR_INIT;
    char *text = NULL, *folder = NULL, *absolute = NULL;
    size_t bytes = 0;
    *out = NULL;
    seqlstm_status status = sl_file_read(path, SL_DOC_MAX_BYTES, &text, &bytes, &reason);
    if (status == SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, status, "no memory to read %s", path);
    if (status != SEQLSTM_OK) {
        struct sl_place place = from->line > 0 ? *from : (struct sl_place){path, 0, 0, 0};
        sl_diagnostics_addf(diagnostics, "E0001", place, "%s", reason.message);
        SEQLSTM_FAIL(err, status == SEQLSTM_CORRUPT_DATA ? SEQLSTM_INVALID_CONFIG : status, "%s", reason.message);
    }
    status = sl_path_absolute(path, &absolute, err);
    if (status == SEQLSTM_OK)
        folder = sl_path_folder(absolute);
    const char *kept_folder = folder ? sl_arena_strdup(arena, folder) : NULL;
    const char *kept_path = sl_arena_strdup(arena, path);
    if (status == SEQLSTM_OK && (kept_folder == NULL || kept_path == NULL))
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory to read %s", path);
    if (status == SEQLSTM_OK)
        status = sl_doc_parse(arena, kept_path, kept_folder, text, bytes, diagnostics, out, err);
    free(text);
    free(folder);
    free(absolute);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

/* Reads an included file. It may be any file of this machine, and the model file may be another person's: of a file
 * that is no model nothing is shown but where it is broken, and none but a regular file is opened. */
static seqlstm_status load_included(struct sl_arena *arena, const char *path, const struct sl_place *from,
                                    struct sl_diagnostics *diagnostics, struct sl_node **out, struct seqlstm_error *err)
{
    if (sl_file_exists(path) && !sl_file_is_regular(path)) {
        sl_diagnostics_addf(diagnostics, "E0010", *from, "`%.200s` cannot be included: it is not a regular file", path);
        return SEQLSTM_OK;
    }
    const size_t before = diagnostics->finding_count;
    SEQLSTM_TRY(load_file(arena, path, from, diagnostics, out, err));
    const bool is_map = *out && (*out)->kind == SL_NODE_MAP;
    if (!is_map || !(ends_with(path, ".yaml") || ends_with(path, ".yml")))
        sl_diagnostics_add_file(diagnostics, path, "", 0);
    if (is_map)
        return SEQLSTM_OK;
    if (*out) {
        sl_diagnostics_addf(diagnostics, "E0101", (*out)->place, "a model file is a map, not %s",
                            sl_node_kind_get_name((*out)->kind));
        *out = NULL;
        return SEQLSTM_OK;
    }
    const struct sl_place place = before < diagnostics->finding_count ? diagnostics->findings[before].place : *from;
    sl_diagnostics_cut(diagnostics, before);
    struct sl_diagnostic finding = {.code = "E0010", .place = *from};
    char message[400], help[400];
    sl_text_snprintf(message, sizeof message, "`%.200s` cannot be included: line %d is not that of a model file", path,
                     place.line > 0 ? place.line : 1);
    sl_text_snprintf(help, sizeof help, "`seqlstm check %.200s` shows what is wrong with it", path);
    finding.message = message;
    finding.help = help;
    sl_diagnostics_add(diagnostics, &finding);
    return SEQLSTM_OK;
}

static seqlstm_status load_include(struct sl_arena *arena, const struct sl_node *name,
                                   struct sl_diagnostics *diagnostics, struct sl_node **merged,
                                   struct seqlstm_error *err)
{
    if (name->kind != SL_NODE_SCALAR || sl_node_is_null(name)) {
        sl_diagnostics_addf(diagnostics, "E0010", name->place, "`include` takes a path, or a list of paths");
        return SEQLSTM_OK;
    }
    /* beside the file that names it, as the user wrote that file's name */
    const bool in_folder = name->folder != NULL && strchr(name->place.file, '/') != NULL;
    char *folder = in_folder ? sl_path_folder(name->place.file) : NULL;
    char *joined = in_folder && folder == NULL ? NULL : sl_path_join(folder, name->text);
    const char *path = joined ? sl_arena_strdup(arena, joined) : NULL;
    free(folder);
    free(joined);
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read %s", name->text);
    struct sl_node *included = NULL;
    SEQLSTM_TRY(load_included(arena, path, &name->place, diagnostics, &included, err));
    if (included == NULL)
        return SEQLSTM_OK;
    const struct sl_pair *nested = sl_node_find_pair(included, "include");
    if (nested != NULL) {
        sl_diagnostics_addf(diagnostics, "E0010", nested->place, "an included file must not include others");
        return SEQLSTM_OK;
    }
    *merged = sl_doc_overlay(arena, sl_site_top, *merged, included);
    if (*merged == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read %s", path);
    return SEQLSTM_OK;
}

/* Merges what `root` includes under it. */
static seqlstm_status resolve_includes(struct sl_arena *arena, bool includes, struct sl_diagnostics *diagnostics,
                                       struct sl_node **root, struct seqlstm_error *err)
{
    const struct sl_node *include = sl_node_find(*root, "include");
    if (include == NULL)
        return SEQLSTM_OK;
    if (!includes) {
        sl_diagnostics_addf(diagnostics, "E0010", include->place,
                            "the saved configuration of a run includes nothing: it was changed after the run began");
        return SEQLSTM_OK;
    }
    struct sl_node *merged = NULL;
    size_t count = include->kind == SL_NODE_LIST ? include->count : 1;
    for (size_t i = 0; i < count; i++)
        SEQLSTM_TRY(load_include(arena, include->kind == SL_NODE_LIST ? include->items[i] : include, diagnostics,
                                 &merged, err));
    sl_node_remove(*root, "include");
    if ((*root)->count > 0 || merged == NULL) /* a file that only includes others says nothing of its own */
        merged = sl_doc_overlay(arena, sl_site_top, merged, *root);
    *root = merged;
    if (*root == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to merge the included files");
    return SEQLSTM_OK;
}

seqlstm_status sl_doc_load(struct sl_arena *arena, const char *path, const struct sl_place *from, bool includes,
                           struct sl_diagnostics *diagnostics, struct sl_node **out, struct seqlstm_error *err)
{
    SEQLSTM_TRY(load_file(arena, path, from, diagnostics, out, err));
    return *out ? resolve_includes(arena, includes, diagnostics, out, err) : SEQLSTM_OK;
}

seqlstm_status sl_doc_load_text(struct sl_arena *arena, const char *file, const char *text, size_t text_bytes,
                                struct sl_diagnostics *diagnostics, struct sl_node **out, struct seqlstm_error *err)
{
    char *absolute = NULL;
    SEQLSTM_TRY(sl_path_absolute(file, &absolute, err));
    char *folder = sl_path_folder(absolute);
    const char *kept_folder = folder ? sl_arena_strdup(arena, folder) : NULL;
    const char *kept_file = sl_arena_strdup(arena, file);
    free(absolute);
    free(folder);
    if (kept_folder == NULL || kept_file == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read %s", file);
    SEQLSTM_TRY(sl_doc_parse(arena, kept_file, kept_folder, text, text_bytes, diagnostics, out, err));
    return *out ? resolve_includes(arena, true, diagnostics, out, err) : SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Overlays, includes and single assignments. */
#include "model/yaml/doc_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "base/system/file.h"
#include "base/value/text.h"
#include "model/yaml/diagnostics_private.h"

enum { MAX_STEPS = 16 }; /* of a dotted path; the schema is far less deep */

static bool says_other_type(const struct sl_node *base, const struct sl_node *over)
{
    const struct sl_node *a = sl_node_find(base, "type"), *b = sl_node_find(over, "type");
    return a != NULL && b != NULL && strcmp(a->text, b->text) != 0;
}

/* `adam` becomes `{type: adam}`. */
static struct sl_node *expand_word(struct sl_arena *arena, struct sl_node *word)
{
    struct sl_node *map = sl_node_create(arena, SL_NODE_MAP, word->place, word->folder);
    if (map == NULL || !sl_node_append_pair(arena, map, "type", word->place, word))
        return NULL;
    return map;
}

static bool overlay_pair(struct sl_arena *arena, struct sl_node *base, const struct sl_pair *pair)
{
    if (sl_node_is_null(pair->value)) {
        sl_node_remove(base, pair->key);
        return true;
    }
    struct sl_pair *old = sl_node_find_pair(base, pair->key);
    if (old == NULL)
        return sl_node_append_pair(arena, base, pair->key, pair->place, pair->value);
    old->value = sl_doc_overlay(arena, old->value, pair->value);
    old->place = pair->place;
    return old->value != NULL;
}

struct sl_node *sl_doc_overlay(struct sl_arena *arena, struct sl_node *base, struct sl_node *over)
{
    if (base == NULL || over->kind != SL_NODE_MAP || base->kind == SL_NODE_LIST)
        return over;
    if (base->kind == SL_NODE_SCALAR) {
        if (sl_node_is_null(base) || sl_node_find(over, "type") != NULL)
            return over;
        base = expand_word(arena, base);
    }
    if (base == NULL || says_other_type(base, over))
        return base ? over : NULL;
    for (size_t i = 0; i < over->count; i++)
        if (!overlay_pair(arena, base, &over->pairs[i]))
            return NULL;
    return base;
}

/* One step of a dotted path: a key, or an index in brackets. */
struct step {
    const char *name; /* NULL: an index */
    int64_t index;
};

/* Cuts the next step off *path; false: malformed. `first` is false behind a step. */
static bool next_step(struct sl_arena *arena, const char **path, bool first, struct step *out)
{
    const char *p = *path;
    if (*p == '[') {
        size_t digits = strspn(p + 1, "0123456789");
        if (digits == 0 || p[1 + digits] != ']' || !sl_text_parse_int64(p + 1, digits, &out->index))
            return false;
        out->name = NULL;
        *path = p + digits + 2;
        return true;
    }
    if (!first && *p++ != '.')
        return false;
    size_t length = strcspn(p, ".[]");
    if (length == 0)
        return false;
    out->name = sl_arena_strndup(arena, p, length);
    *path = p + length;
    return out->name != NULL;
}

/* The slot of list element `step`: by index, or by the `name:` of the element. */
static struct sl_node **find_item(const struct sl_node *list, const struct step *step)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct sl_node *name = sl_node_find(list->items[i], "name");
        if (step->name ? name != NULL && strcmp(name->text, step->name) == 0 : (int64_t)i == step->index)
            return &list->items[i];
    }
    return NULL;
}

/* The slot that one step below `*at` leads to; maps grow as needed. NULL: there is none, or no
 * memory. */
static struct sl_node **descend(struct sl_arena *arena, struct sl_node **at, const struct step *step,
                                struct sl_place place, bool *out_no_memory)
{
    if ((*at)->kind == SL_NODE_LIST)
        return find_item(*at, step);
    if (step->name == NULL)
        return NULL;
    if ((*at)->kind == SL_NODE_SCALAR) {
        struct sl_node *map =
            sl_node_is_null(*at) ? sl_node_create(arena, SL_NODE_MAP, place, NULL) : expand_word(arena, *at);
        *out_no_memory = map == NULL;
        if (map == NULL)
            return NULL;
        *at = map;
    }
    struct sl_pair *pair = sl_node_find_pair(*at, step->name);
    if (pair == NULL) {
        struct sl_node *empty = sl_node_create_scalar(arena, place, NULL, "");
        *out_no_memory = !sl_node_append_pair(arena, *at, step->name, place, empty);
        if (*out_no_memory)
            return NULL;
        pair = sl_node_find_pair(*at, step->name);
    }
    return &pair->value;
}

/* The value, with the columns that it has after `path=`. */
static seqlstm_status parse_value(struct sl_arena *arena, const char *label, const char *assignment, size_t path_bytes,
                                  struct sl_diagnostics *diagnostics, struct sl_node **out, struct seqlstm_error *err)
{
    size_t bytes = strlen(assignment);
    char *padded = sl_arena_strdup(arena, assignment);
    if (padded == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for `%s`", label);
    memset(padded, ' ', path_bytes + 1);
    if (strspn(padded, " ") == bytes) { /* nothing after the `=`: removes the key */
        struct sl_place place = {label, 1, (int)path_bytes + 2, 1};
        *out = sl_node_create_scalar(arena, place, NULL, "");
        sl_diagnostics_add_file(diagnostics, label, assignment, bytes);
        if (*out == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for `%s`", label);
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(sl_doc_parse(arena, label, NULL, padded, bytes, diagnostics, out, err));
    sl_diagnostics_add_file(diagnostics, label, assignment, bytes);
    return SEQLSTM_OK;
}

static void report_path(struct sl_diagnostics *diagnostics, struct sl_place place, const char *message,
                        const char *help)
{
    struct sl_diagnostic finding = {.code = "E0009", .place = place, .message = message, .help = help};
    sl_diagnostics_add(diagnostics, &finding);
}

seqlstm_status sl_doc_assign(struct sl_arena *arena, struct sl_node *base, const char *origin, const char *assignment,
                             struct sl_diagnostics *diagnostics, struct seqlstm_error *err)
{
    const char *equals = strchr(assignment, '=');
    size_t path_bytes = equals ? (size_t)(equals - assignment) : strlen(assignment);
    const char *path = sl_arena_strndup(arena, assignment, path_bytes);
    const char *label = path == NULL                   ? NULL
                        : strcmp(origin, "--set") == 0 ? sl_arena_printf(arena, "--set %s", path)
                                                       : sl_arena_strdup(arena, origin);
    if (label == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for `%s`", origin);
    struct sl_place place = {label, 1, 1, path_bytes ? (int)path_bytes : 1};
    if (equals == NULL) {
        sl_diagnostics_add_file(diagnostics, label, assignment, strlen(assignment));
        report_path(diagnostics, place, "this is not of the form `path=value`",
                    "as in `train.optimizer.learning_rate=1e-3`");
        return SEQLSTM_OK;
    }
    struct sl_node *value;
    SEQLSTM_TRY(parse_value(arena, label, assignment, path_bytes, diagnostics, &value, err));
    if (value == NULL)
        return SEQLSTM_OK;
    struct sl_node *root = base, **at = &root;
    struct sl_node *parent = NULL;
    struct step step = {0};
    bool no_memory = false;
    for (int steps = 0; *path != 0; steps++) {
        if (steps == MAX_STEPS || !next_step(arena, &path, steps == 0, &step)) {
            report_path(diagnostics, place, "this path cannot be read",
                        "keys with dots between them, list elements as `model[2]` or by name");
            return SEQLSTM_OK;
        }
        parent = *at;
        at = descend(arena, at, &step, place, &no_memory);
        if (no_memory)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for `%s`", label);
        if (at == NULL) {
            report_path(diagnostics, place, "this path does not exist in the model file",
                        "list elements are `model[0]`, `model[1]`, … or their `name:`");
            return SEQLSTM_OK;
        }
        parent = parent->kind == SL_NODE_SCALAR ? NULL : parent;
    }
    if (at == &root) {
        report_path(diagnostics, place, "the path before `=` is empty", NULL);
        return SEQLSTM_OK;
    }
    if (sl_node_is_null(value)) {
        if (parent != NULL && parent->kind == SL_NODE_MAP && step.name != NULL)
            sl_node_remove(parent, step.name);
        return SEQLSTM_OK;
    }
    struct sl_node *merged = sl_node_is_null(*at) ? value : sl_doc_overlay(arena, *at, value);
    if (merged == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for `%s`", label);
    *at = merged;
    if (parent != NULL && step.name != NULL && sl_node_find_pair(parent, step.name) != NULL)
        sl_node_find_pair(parent, step.name)->place = place;
    return SEQLSTM_OK;
}

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
    status = sl_file_absolute(path, &absolute, err);
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
    char *joined = sl_path_join(name->folder, name->text);
    const char *path = joined ? sl_arena_strdup(arena, joined) : NULL;
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
    *merged = sl_doc_overlay(arena, *merged, included);
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
    *root = sl_doc_overlay(arena, merged, *root);
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
    SEQLSTM_TRY(sl_file_absolute(file, &absolute, err));
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

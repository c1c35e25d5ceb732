/* SPDX-License-Identifier: Apache-2.0 */
/* Single values of flags: `path=value`. */
#include "model/load/doc_merge.h"

#include <string.h>

#include "base/memory/arena.h"
#include "base/value/text.h"
#include "model/load/overlay.h"
#include "model/yaml/diagnostics.h"

enum { MAX_STEPS = 16 }; /* of a dotted path; the schema is far less deep */

/* One step of a dotted path: a key, or an index in brackets. */
struct step {
    const char *name; /* NULL: an index */
    int64_t index;
};

/* Cuts the next step off *path; false: malformed, or no memory. `first` is false behind a step. */
static bool next_step(struct sl_arena *arena, const char **path, bool first, struct step *out, bool *out_no_memory)
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
    *out_no_memory = out->name == NULL;
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

/* Where a path has led so far. */
struct walk {
    struct sl_arena *arena;
    struct sl_place place; /* of the path */
    bool removes;          /* the key is to be removed: nothing is made on the way */
    struct sl_node *parent, **at;
    struct sl_site site; /* of *at */
    struct step step;    /* the last one */
    bool absent;         /* in a removal: there is nothing to remove */
    bool no_memory;
};

/* Makes a map of *at, which is empty or a bare word. */
static bool make_map(struct walk *w)
{
    struct sl_node *map = sl_node_is_null(*w->at) ? sl_node_create(w->arena, SL_NODE_MAP, w->place, NULL)
                                                  : sl_overlay_expand(w->arena, w->site, *w->at);
    w->no_memory = map == NULL;
    if (map != NULL)
        *w->at = map;
    return map != NULL;
}

/* The slot of `key` in a map, which is made if it is not there. */
static struct sl_node **find_value(struct walk *w, struct sl_node *map, const char *key)
{
    if (sl_node_find_pair(map, key) == NULL) {
        struct sl_node *empty = sl_node_create_scalar(w->arena, w->place, NULL, "");
        w->no_memory = !sl_node_append_pair(w->arena, map, key, w->place, empty);
    }
    return w->no_memory ? NULL : &sl_node_find_pair(map, key)->value;
}

/* In a removal: whether the map at *at, or the one that a bare word there stands for, has the key. */
static bool has_key(struct walk *w, const char *key)
{
    struct sl_node *map = *w->at;
    if (map->kind == SL_NODE_SCALAR && !sl_node_is_null(map))
        map = sl_overlay_expand(w->arena, w->site, map);
    w->no_memory = map == NULL;
    return map != NULL && sl_node_find_pair(map, key) != NULL;
}

/* One step down; false: the path leads nowhere, or there is no memory. */
static bool descend(struct walk *w)
{
    const char *key = w->step.name;
    if ((*w->at)->kind == SL_NODE_LIST) {
        w->parent = *w->at;
        w->at = find_item(w->parent, &w->step);
        w->site = sl_site_find_item(w->site);
        return w->at != NULL;
    }
    if (key == NULL || (w->removes && !sl_site_has_key(w->site, key)))
        return false;
    w->absent = w->removes && !has_key(w, key);
    if (w->absent || w->no_memory)
        return !w->no_memory;
    if ((*w->at)->kind == SL_NODE_SCALAR && !make_map(w))
        return false;
    w->parent = *w->at;
    w->no_memory = !w->removes && !sl_overlay_displace(w->arena, w->site, w->parent, key, NULL);
    if (w->no_memory)
        return false;
    const struct sl_node *const maps[2] = {w->parent, NULL};
    w->at = find_value(w, w->parent, key);
    w->site = sl_site_find(w->site, maps, key);
    return w->at != NULL;
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

/* How the elements of the list are named in which a step was not found. */
static const char *help_of_list(const struct walk *w)
{
    enum { NAMES_MOST = 64 };
    const struct sl_node *list = w->at == NULL ? w->parent : NULL;
    const char *names[NAMES_MOST], *near = NULL;
    size_t count = 0;
    if (list == NULL || list->kind != SL_NODE_LIST || list->count == 0)
        return "keys with dots between them, list elements as `model[2]` or by name";
    for (size_t i = 0; i < list->count && count < NAMES_MOST; i++) {
        const struct sl_node *name = sl_node_find(list->items[i], "name");
        if (name != NULL && name->text != NULL)
            names[count++] = name->text;
    }
    if (w->step.name && (near = sl_text_closest(w->step.name, names, count)) != NULL)
        return sl_arena_printf(w->arena, "did you mean `%s`, an element of this list?", near);
    return sl_arena_printf(w->arena, "this list has %zu element%s: `[0]`%s, or their `name:`", list->count,
                           list->count > 1 ? "s" : "",
                           list->count > 2   ? ", `[1]`, …"
                           : list->count > 1 ? " and `[1]`"
                                             : "");
}

/* Follows the path to its end; false: reported, or no memory. */
static bool follow(struct walk *w, const char *path, struct sl_diagnostics *diagnostics)
{
    for (int steps = 0; *path != 0 && !w->absent; steps++) {
        if (steps == MAX_STEPS || !next_step(w->arena, &path, steps == 0, &w->step, &w->no_memory)) {
            if (!w->no_memory)
                report_path(diagnostics, w->place, "this path cannot be read",
                            "keys with dots between them, list elements as `model[2]` or by name");
            return false;
        }
        if (!descend(w)) {
            const char *help = w->no_memory ? NULL : help_of_list(w);
            w->no_memory = help == NULL;
            if (help != NULL)
                report_path(diagnostics, w->place, "this path does not exist in the model file", help);
            return false;
        }
    }
    if (w->parent == NULL && !w->absent)
        report_path(diagnostics, w->place, "the path before `=` is empty", NULL);
    return w->parent != NULL;
}

/* Removes the key that the path has led to. */
static void take_away(struct walk *w, struct sl_diagnostics *diagnostics)
{
    if (w->absent)
        return;
    if (w->parent->kind == SL_NODE_LIST)
        report_path(diagnostics, w->place, "an element of a list cannot be removed", "give the whole list again");
    else
        sl_node_remove(w->parent, w->step.name);
}

/* Puts the value where the path has led. */
static void put(struct walk *w, struct sl_node *value)
{
    struct sl_node *merged = sl_node_is_null(*w->at) ? value : sl_doc_overlay(w->arena, w->site, *w->at, value);
    w->no_memory = merged == NULL;
    if (merged == NULL)
        return;
    *w->at = merged;
    struct sl_pair *pair = w->step.name != NULL ? sl_node_find_pair(w->parent, w->step.name) : NULL;
    if (pair != NULL)
        pair->place = w->place;
}

seqlstm_status sl_doc_assign(struct sl_arena *arena, struct sl_node *base, const char *origin, const char *assignment,
                             struct sl_diagnostics *diagnostics, struct seqlstm_error *err)
{
    const char *equals = strchr(assignment, '=');
    size_t path_bytes = equals ? (size_t)(equals - assignment) : strlen(assignment);
    const char *path = sl_arena_strndup(arena, assignment, path_bytes);
    const bool many = strcmp(origin, "--set") == 0 || strcmp(origin, "override") == 0; /* each has a name of its own */
    const char *label = path == NULL ? NULL
                        : many       ? sl_arena_printf(arena, "%s %s", origin, path)
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
    struct sl_node *root = base;
    struct walk w = {
        .arena = arena, .place = place, .removes = sl_node_is_null(value), .at = &root, .site = sl_site_top};
    if (follow(&w, path, diagnostics)) {
        if (w.removes)
            take_away(&w, diagnostics);
        else
            put(&w, value);
    }
    if (w.no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for `%s`", label);
    return SEQLSTM_OK;
}

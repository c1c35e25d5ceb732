/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what --set and overlays change in a saved run: both configurations, each written by the program (one key a
 * line, indented by two spaces a level, "- " for elements of a list), are split into paths and values and compared. */
#include "session/run_folder/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "base/value/text.h"
#include "session/record/session_record.h"

enum { LEVELS = 64, SHOWN = 20 };

/* One "path" → "value"; both in the arena. */
struct entry {
    const char *path, *value;
};

struct list {
    struct entry *items;
    size_t count;
};

struct level {
    int depth; /* of its line; an element of a list is half a level deeper than a key of the same indent */
    char name[96];
    int elements;
};

static void join(const struct level *levels, int count, struct sl_buf *out)
{
    for (int l = 0; l < count; l++)
        sl_buf_printf(out, "%s%s", l && levels[l].name[0] != '[' ? "." : "", levels[l].name);
}

static bool keep(struct sl_arena *arena, struct list *list, const struct level *levels, int count, const char *value)
{
    struct sl_buf path = {0};
    join(levels, count, &path);
    list->items[list->count].path = path.failed ? NULL : sl_arena_strdup(arena, sl_buf_text(&path));
    list->items[list->count].value = sl_arena_strdup(arena, value);
    sl_buf_deinit(&path);
    return list->items[list->count].path && list->items[list->count++].value;
}

/* One line, which is split in place. */
static bool take_line(struct sl_arena *arena, struct list *list, struct level *levels, int *count, char *line)
{
    size_t indent = strspn(line, " ");
    for (line += indent;; line += 2, indent += 2) {
        bool element = line[0] == '-' && line[1] == ' ';
        int depth = 2 * (int)indent + element, index = 0;
        while (*count > 0 && levels[*count - 1].depth >= depth) {
            if (levels[*count - 1].depth == depth)
                index = levels[*count - 1].elements;
            (*count)--;
        }
        if (*count == LEVELS)
            return true;
        struct level *level = &levels[(*count)++];
        *level = (struct level){.depth = depth, .elements = index + 1};
        if (element) {
            snprintf(level->name, sizeof level->name, "[%d]", index);
            continue;
        }
        char *colon = strstr(line, ": ");
        size_t bytes = strlen(line);
        if (colon == NULL && (bytes == 0 || line[bytes - 1] != ':')) { /* a bare element */
            (*count)--;
            return keep(arena, list, levels, *count, line);
        }
        snprintf(level->name, sizeof level->name, "%.*s", (int)(colon ? (size_t)(colon - line) : bytes - 1), line);
        return colon == NULL || keep(arena, list, levels, *count, colon + 2);
    }
}

static bool take_apart(struct sl_arena *arena, const struct sl_model *model, struct list *list)
{
    struct sl_buf text = {0};
    struct level levels[LEVELS];
    int level_count = 0;
    if (sl_model_write_config(model, 0, &text, NULL) != SEQLSTM_OK) {
        sl_buf_deinit(&text);
        return false;
    }
    size_t lines = 1;
    for (size_t i = 0; i < text.length_bytes; i++)
        lines += text.data[i] == '\n';
    list->items = SL_ARENA_ARRAY(arena, struct entry, lines);
    bool fine = list->items != NULL;
    char *rest = NULL;
    for (char *line = strtok_r(text.data, "\n", &rest); line && fine; line = strtok_r(NULL, "\n", &rest))
        fine = take_line(arena, list, levels, &level_count, line);
    sl_buf_deinit(&text);
    return fine;
}

static const char *find(const struct list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].path, path) == 0)
            return list->items[i].value;
    return NULL;
}

static bool is_same(const char *a, const char *b)
{
    double x, y;
    return strcmp(a, b) == 0 ||
           (sl_text_parse_float64(a, strlen(a), &x) && sl_text_parse_float64(b, strlen(b), &y) && x == y);
}

size_t sl_session_log_changes(const struct sl_session *session, const struct sl_model *before)
{
    struct sl_arena arena;
    struct list old = {0}, new = {0};
    size_t changes = 0;
    sl_arena_init(&arena);
    if (take_apart(&arena, before, &old) && take_apart(&arena, session->model, &new)) {
        for (size_t i = 0; i < new.count; i++) {
            const char *was = find(&old, new.items[i].path);
            if ((was && is_same(was, new.items[i].value)) || changes++ >= SHOWN)
                continue;
            sl_log_printf(session->options.log, SL_LOG_INFO, "changed %s: %s -> %s", new.items[i].path,
                          was ? was : "(not set)", new.items[i].value);
        }
        for (size_t i = 0; i < old.count; i++)
            if (find(&new, old.items[i].path) == NULL && changes++ < SHOWN)
                sl_log_printf(session->options.log, SL_LOG_INFO, "changed %s: %s -> (not set)", old.items[i].path,
                              old.items[i].value);
        if (changes > SHOWN)
            sl_log_printf(session->options.log, SL_LOG_INFO, "and %zu more changes", changes - SHOWN);
    }
    sl_arena_deinit(&arena);
    return changes;
}

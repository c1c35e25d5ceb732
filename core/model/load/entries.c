/* SPDX-License-Identifier: Apache-2.0 */
/* See entries.h. */
#include "model/load/entries.h"

#include <stdio.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "base/value/text.h"

enum { LEVELS = 64 };

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

static bool keep(struct sl_arena *arena, struct sl_config_entries *list, const struct level *levels, int count,
                 const char *value)
{
    struct sl_buf path = {0};
    join(levels, count, &path);
    list->items[list->count].path = path.failed ? NULL : sl_arena_strdup(arena, sl_buf_text(&path));
    list->items[list->count].value = sl_arena_strdup(arena, value);
    sl_buf_deinit(&path);
    return list->items[list->count].path && list->items[list->count++].value;
}

/* One line, which is split in place. */
static bool take_line(struct sl_arena *arena, struct sl_config_entries *list, struct level *levels, int *count,
                      char *line)
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

bool sl_config_entries_read(struct sl_arena *arena, char *text, struct sl_config_entries *out)
{
    struct level levels[LEVELS];
    int level_count = 0;
    size_t lines = 1;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    *out = (struct sl_config_entries){.items = SL_ARENA_ARRAY(arena, struct sl_config_entry, lines)};
    bool fine = out->items != NULL;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line && fine; line = strtok_r(NULL, "\n", &rest))
        fine = take_line(arena, out, levels, &level_count, line);
    return fine;
}

const char *sl_config_entries_find(const struct sl_config_entries *entries, const char *path)
{
    for (size_t i = 0; i < entries->count; i++)
        if (strcmp(entries->items[i].path, path) == 0)
            return entries->items[i].value;
    return NULL;
}

bool sl_config_entries_is_same(const char *a, const char *b)
{
    double x, y;
    return strcmp(a, b) == 0 ||
           (sl_text_parse_float64(a, strlen(a), &x) && sl_text_parse_float64(b, strlen(b), &y) && x == y);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Paths: environment variables, and the folder of the file that contains them. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/system/absolute_path.h"
#include "base/value/buf.h"
#include "base/value/path.h"
#include "model/model.h"
#include "model/read/reader.h"

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

/* Appends the value of the variable that `text` (after `${`) names, and returns the rest of the path; NULL after a
 * report. */
static const char *append_variable(struct sl_reader *reader, const struct sl_node *node, const char *text,
                                   struct sl_buf *out)
{
    size_t length = strspn(text, name_letters);
    const char *end = strchr(text, '}');
    bool has_fallback = strncmp(text + length, ":-", 2) == 0;
    if (length == 0 || end == NULL || (!has_fallback && text + length != end)) {
        sl_reader_report(reader, "E0105", node->place, "variables are `${NAME}` or `${NAME:-default}`", NULL,
                         "the variable in this path cannot be read");
        return NULL;
    }
    char *name = sl_arena_strndup(reader->arena, text, length);
    if (name == NULL) {
        reader->no_memory = true;
        return NULL;
    }
    const char *value = getenv(name);
    if (has_fallback && (value == NULL || value[0] == 0)) {
        sl_buf_append(out, text + length + 2, (size_t)(end - text) - length - 2);
    } else if (value != NULL) {
        sl_buf_append_text(out, value);
    } else {
        sl_reader_report(reader, "E0105", node->place,
                         sl_reader_printf(reader, "set it, or give a default: `${%s:-data}`", name), NULL,
                         "the variable `%s` is not set", name);
        return NULL;
    }
    return end + 1;
}

/* Remembers how the user wrote a path that is now absolute: relative to the current folder, as the name of the file
 * in which it stands. */
static void keep_written(struct sl_reader *reader, const struct sl_node *node, const char *written,
                         const char *absolute)
{
    const char *slash = node->folder != NULL && node->place.file ? strrchr(node->place.file, '/') : NULL;
    if (written[0] == '/')
        return;
    if (slash != NULL)
        written = sl_reader_printf(reader, "%.*s/%s", (int)(slash - node->place.file), node->place.file, written);
    sl_diagnostics_add_path(reader->diagnostics, absolute, written);
}

const char *sl_reader_find_memory(struct sl_reader *reader, const struct sl_node *node)
{
    static const char prefix[] = "memory:";
    if (strncmp(node->text, prefix, sizeof prefix - 1) != 0)
        return NULL;
    for (size_t i = 0; i < reader->memory_count; i++)
        if (strcmp(reader->memory[i].name, node->text + sizeof prefix - 1) == 0) {
            sl_diagnostics_add_path(reader->diagnostics, reader->memory[i].path, node->text);
            return reader->memory[i].path;
        }
    return node->text;
}

const char *sl_reader_resolve_path(struct sl_reader *reader, const struct sl_node *node, bool absolute)
{
    struct sl_buf expanded;
    sl_buf_init(&expanded);
    for (const char *p = node->text; *p != 0;) {
        if (p[0] == '$' && p[1] == '{') {
            p = append_variable(reader, node, p + 2, &expanded);
            if (p == NULL) {
                sl_buf_deinit(&expanded);
                return NULL;
            }
        } else {
            sl_buf_append_char(&expanded, *p++);
        }
    }
    const char *kept = NULL;
    if (expanded.failed) {
        kept = NULL;
    } else if (!absolute) {
        kept = sl_arena_strdup(reader->arena, sl_buf_text(&expanded));
    } else {
        char *joined = sl_path_join(node->folder, sl_buf_text(&expanded));
        char *path = NULL;
        if (joined != NULL && sl_path_absolute(joined, &path, NULL) == SEQLSTM_OK)
            kept = sl_arena_strdup(reader->arena, path);
        if (kept != NULL)
            keep_written(reader, node, sl_buf_text(&expanded), kept);
        free(joined);
        free(path);
    }
    sl_buf_deinit(&expanded);
    if (kept == NULL)
        reader->no_memory = true;
    return kept;
}

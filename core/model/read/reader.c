/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of every section needs: memory, reports, defaults. */
#include "model/read/reader.h"

#include <stdarg.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "base/value/text.h"
#include "model/read/reader_private.h"

void *sl_reader_alloc(struct sl_reader *reader, size_t count, size_t element_bytes)
{
    void *memory = sl_arena_alloc_array(reader->arena, count, element_bytes);
    if (memory == NULL)
        reader->no_memory = true;
    return memory;
}

const char *sl_reader_printf(struct sl_reader *reader, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = sl_arena_vprintf(reader->arena, format, args);
    va_end(args);
    if (text == NULL)
        reader->no_memory = true;
    return text ? text : "";
}

bool sl_reader_is_saved(const struct sl_reader *reader, struct sl_place place)
{
    return reader->saved != NULL && place.file != NULL && strcmp(place.file, reader->saved) == 0;
}

void sl_reader_report(struct sl_reader *reader, const char *code, struct sl_place place, const char *help,
                      const char *note, const char *format, ...)
{
    struct sl_buf message;
    if (strcmp(code, "E0205") == 0 && sl_reader_is_saved(reader, place))
        return;
    sl_buf_init(&message);
    va_list args;
    va_start(args, format);
    sl_buf_vprintf(&message, format, args);
    va_end(args);
    if (message.failed)
        reader->no_memory = true;
    struct sl_diagnostic finding = {
        .code = code, .place = place, .message = sl_buf_text(&message), .help = help, .note = note};
    sl_diagnostics_add(reader->diagnostics, &finding);
    sl_buf_deinit(&message);
    if (code[0] == 'E')
        reader->errors++;
}

void sl_reader_refuse_later(struct sl_reader *reader, struct sl_place place, const char *what)
{
    sl_reader_report(reader, "E0401", place, NULL, NULL, "%s is not available in this version", what);
}

bool sl_reader_expand(struct sl_reader *reader, struct sl_node *node, const char *key)
{
    if (node->kind != SL_NODE_SCALAR)
        return true;
    struct sl_node *word = sl_node_copy(reader->arena, node);
    node->kind = SL_NODE_MAP;
    node->text = "";
    node->quoted = false;
    if (word != NULL && sl_node_append_pair(reader->arena, node, key, word->place, word))
        return true;
    reader->no_memory = true;
    return false;
}

static struct sl_node *add_default(struct sl_reader *reader, struct sl_node *map, const char *key,
                                   struct sl_node *value)
{
    static const struct sl_place nowhere;
    if (value == NULL || !sl_node_append_pair(reader->arena, map, key, nowhere, value)) {
        reader->no_memory = true;
        return NULL;
    }
    return value;
}

struct sl_node *sl_reader_set_default(struct sl_reader *reader, struct sl_node *map, const char *key, const char *text)
{
    static const struct sl_place nowhere;
    struct sl_node *old = sl_node_find(map, key);
    if (old != NULL || map->kind != SL_NODE_MAP)
        return old;
    struct sl_node *value = strcmp(text, "{}") == 0 ? sl_node_create(reader->arena, SL_NODE_MAP, nowhere, map->folder)
                                                    : sl_node_create_scalar(reader->arena, nowhere, map->folder, text);
    if (value != NULL)
        value->is_default = true;
    return add_default(reader, map, key, value);
}

static void mark_default(struct sl_node *node)
{
    node->is_default = true;
    for (size_t i = 0; i < node->count; i++)
        mark_default(node->kind == SL_NODE_MAP ? node->pairs[i].value : node->items[i]);
}

struct sl_node *sl_reader_set_default_copy(struct sl_reader *reader, struct sl_node *map, const char *key,
                                           const struct sl_node *value)
{
    struct sl_node *old = sl_node_find(map, key);
    if (old != NULL)
        return old;
    struct sl_node *copy = sl_node_copy(reader->arena, value);
    if (copy != NULL)
        mark_default(copy);
    return add_default(reader, map, key, copy);
}

bool sl_reader_was_said(const struct sl_node *map, const char *key)
{
    const struct sl_node *value = sl_node_find(map, key);
    return value != NULL && !value->is_default;
}

bool sl_reader_was_refused(const struct sl_node *map, const char *key)
{
    const struct sl_node *value = sl_node_find(map, key);
    return value != NULL && value->refused;
}

struct sl_place sl_reader_get_place(const struct sl_node *map, const char *key)
{
    const struct sl_pair *pair = sl_node_find_pair(map, key);
    return pair != NULL && pair->place.line > 0 ? pair->place : map->place;
}

const char *sl_reader_describe(struct sl_reader *reader, const struct sl_section *section, int variant)
{
    if (section->variants == NULL || variant < 0)
        return section->noun;
    const char *word = sl_word_get_name(section->variants, variant);
    if (section != &sl_section_layer)
        return sl_reader_printf(reader, "%s `%s`", section->noun, word);
    /* "an lstm", "an rnn": as the letters are pronounced. */
    return sl_reader_printf(reader, "%s %s layer", strchr("aeior", word[0]) || !strcmp(word, "lstm") ? "an" : "a",
                            word);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a section: its variant, its keys, then each option or its default. */
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

/* Sets the variant; false: it is unknown, and the rest of the map is not read. */
static bool read_variant(struct sl_reader *reader, const struct sl_section *section, struct sl_node *map, void *out,
                         int *out_variant)
{
    *out_variant = -1;
    if (section->variants == NULL)
        return true;
    if (sl_node_find(map, "type") == NULL) {
        if (section->default_variant == NULL) {
            sl_reader_report(reader, "E0206", map->place, NULL,
                             sl_reader_printf(reader, "it takes %s", sl_reader_list_words(reader, section->variants)),
                             "%s needs a `type`", section->noun);
            return false;
        }
        sl_reader_set_default(reader, map, "type", section->default_variant);
    }
    struct sl_node *node = sl_node_find(map, "type");
    if (node == NULL)
        return false;
    /* "`optimizer` has no value `adm`", but "`type` has …" of layers and sources. */
    const char *last = strrchr(section->path, '.');
    bool by_type = section == &sl_section_layer || section == &sl_section_source;
    const struct sl_option option = {.key = by_type ? "type"
                                            : last  ? last + 1
                                                    : section->path,
                                     .kind = SL_VALUE_WORD,
                                     .offset = section->variant_offset,
                                     .words = section->variants};
    size_t errors = reader->errors;
    sl_reader_read_value(reader, &option, node, (char *)out + section->variant_offset);
    if (reader->errors != errors || reader->no_memory)
        return false;
    memcpy(out_variant, (char *)out + section->variant_offset, sizeof *out_variant);
    return true;
}

bool sl_reader_is_misspelt(const struct sl_section *section, const struct sl_node *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++) {
        const char *said = map->pairs[i].key;
        const struct sl_synonym *synonym = sl_synonym_find(said, section);
        if (sl_option_find(section, said, -1) != NULL)
            continue;
        if (synonym != NULL && synonym->key != NULL && strcmp(synonym->key, key) == 0)
            return true;
        if (synonym == NULL && sl_text_distance(said, key) <= 2)
            return true;
    }
    return false;
}

static void read_option(struct sl_reader *reader, const struct sl_section *section, const struct sl_option *option,
                        struct sl_node *map, int variant, void *out)
{
    struct sl_node *node = sl_node_find(map, option->key);
    if (node != NULL && sl_node_is_null(node)) {
        sl_reader_report(reader, "E0104", sl_reader_get_place(map, option->key), "give a value, or remove the key",
                         NULL, "`%s` has no value", option->key);
        return;
    }
    if (node == NULL && option->default_text != NULL)
        node = sl_reader_set_default(reader, map, option->key, option->default_text);
    if (node != NULL && option->kind == SL_VALUE_LATER) {
        sl_reader_refuse_later(reader, sl_reader_get_place(map, option->key),
                               sl_reader_printf(reader, "`%s`", option->key));
    } else if (node != NULL) {
        sl_reader_read_value(reader, option, node, (char *)out + option->offset);
    } else if ((option->flags & SL_OPTION_REQUIRED) && !sl_reader_is_misspelt(section, map, option->key)) {
        bool version = section == &sl_section_top && strcmp(option->key, "seqlstm") == 0;
        sl_reader_report(reader, "E0204", map->place, version ? "begin the file with `seqlstm: 1`" : NULL, option->doc,
                         "%s needs `%s`", sl_reader_describe(reader, section, variant), option->key);
    }
}

void sl_reader_read_section(struct sl_reader *reader, const struct sl_section *section, struct sl_node *node, void *out)
{
    int variant;
    if (node->kind == SL_NODE_SCALAR && (section->bare_key != NULL || section->variants != NULL) &&
        !sl_reader_expand(reader, node, section->bare_key ? section->bare_key : "type"))
        return;
    if (node->kind != SL_NODE_MAP) {
        char help[64];
        sl_text_snprintf(help, sizeof help, "as in `{%s: …}`", section->options->key);
        sl_reader_report(reader, "E0101", node->place, help, NULL, "%s is a map, not %s", section->noun,
                         sl_node_kind_get_name(node->kind));
        return;
    }
    if (!read_variant(reader, section, node, out, &variant))
        return;
    sl_reader_check_keys(reader, section, node, variant);
    for (const struct sl_option *option = section->options; option->key != NULL; option++)
        if (sl_option_belongs(option, variant) && !reader->no_memory)
            read_option(reader, section, option, node, variant, out);
}

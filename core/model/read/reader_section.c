/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a section: its variant, its keys, then each option or its default. Values may be sections again. */
#include "model/read/reader_private.h"

#include <string.h>

#include "base/value/text.h"

/* The key that may mean `type`; NULL: there is none. */
static const struct sl_pair *find_misspelt_type(const struct sl_section *section, const struct sl_node *map)
{
    static const char *const type = "type";
    for (size_t i = 0; i < map->count; i++) {
        const char *said = map->pairs[i].key;
        const struct sl_synonym *synonym = sl_synonym_find(said, section);
        if (sl_option_find(section, said, -1) == NULL &&
            (synonym ? synonym->key != NULL && strcmp(synonym->key, type) == 0
                     : sl_text_closest(said, &type, 1) != NULL || sl_text_distance(said, type) == 1))
            return &map->pairs[i];
    }
    return NULL;
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
            const struct sl_pair *misspelt = find_misspelt_type(section, map);
            sl_reader_report(reader, "E0206", misspelt ? misspelt->place : map->place,
                             misspelt ? "did you mean `type`?" : NULL,
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
        const char *note = NULL;
        sl_text_snprintf(help, sizeof help, "as in `{%s: …}`", section->variants ? "type" : section->options->key);
        if (section->variants)
            note = sl_reader_printf(reader, "it takes %s", sl_reader_list_words(reader, section->variants));
        sl_reader_report(reader, "E0101", node->place, help, note, "%s is a map, not %s", section->noun,
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

/* Reports and returns false if an option with only one value in this version has another. */
static bool check_fixed(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node)
{
    if (!(option->flags & SL_OPTION_FIXED) || option->kind == SL_VALUE_WORD)
        return true;
    if (node->kind == SL_NODE_SCALAR && strcmp(node->text, option->default_text) == 0)
        return true;
    const char *what = node->kind == SL_NODE_SCALAR
                           ? sl_reader_printf(reader, "`%s: %.60s`", option->key, node->text)
                           : sl_reader_printf(reader, "`%s` with %s", option->key, sl_node_kind_get_name(node->kind));
    sl_reader_refuse_later(reader, node->place, what);
    return false;
}

static void read_value(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    if (option->kind == SL_VALUE_SECTION)
        sl_reader_read_section(reader, option->section, node, field);
    else if (option->kind == SL_VALUE_CUSTOM)
        option->custom->read(reader, option, node, field);
    else
        sl_reader_read_scalar(reader, option, node, field);
}

void sl_reader_read_value(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    const size_t errors = reader->errors;
    if (check_fixed(reader, option, node))
        read_value(reader, option, node, field);
    node->refused |= reader->errors > errors;
}

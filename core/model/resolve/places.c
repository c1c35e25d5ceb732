/* SPDX-License-Identifier: Apache-2.0 */
/* The list of places: every value of a tree that was given, sorted by path; and lookup in it. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "model/read/sections.h"

enum { PATH_BYTES = 512 };

static size_t count_said(const struct sl_node *node)
{
    size_t said = 0;
    for (size_t i = 0; i < node->count; i++) {
        const struct sl_node *child = node->kind == SL_NODE_MAP ? node->pairs[i].value : node->items[i];
        said += !child->is_default + count_said(child);
    }
    return said;
}

static void collect(struct sl_reader *reader, const struct sl_node *node, const char *prefix,
                    struct sl_place_entry *entries, size_t *count)
{
    for (size_t i = 0; i < node->count && !reader->no_memory; i++) {
        bool is_map = node->kind == SL_NODE_MAP;
        const struct sl_node *child = is_map ? node->pairs[i].value : node->items[i];
        const char *path = is_map ? sl_reader_printf(reader, "%s%s%s", prefix, *prefix ? "." : "", node->pairs[i].key)
                                  : sl_reader_printf(reader, "%s[%zu]", prefix, i);
        if (!child->is_default)
            entries[(*count)++] =
                (struct sl_place_entry){path, is_map ? node->pairs[i].place : child->place, child->place};
        collect(reader, child, path, entries, count);
    }
}

static int compare_entries(const void *left, const void *right)
{
    const struct sl_place_entry *a = left, *b = right;
    return strcmp(a->path, b->path);
}

struct sl_place_list sl_places_collect(struct sl_reader *reader, const struct sl_node *node)
{
    struct sl_place_list list = {0};
    struct sl_place_entry *entries = sl_reader_alloc(reader, count_said(node) + 1, sizeof *entries);
    if (entries == NULL)
        return list;
    collect(reader, node, "", entries, &list.count);
    if (reader->no_memory)
        return (struct sl_place_list){0};
    qsort(entries, list.count, sizeof *entries, compare_entries);
    list.items = entries;
    return list;
}

const struct sl_place_entry *sl_places_find(const struct sl_place_list *places, const char *path)
{
    const struct sl_place_entry wanted = {.path = path};
    if (places->count == 0)
        return NULL;
    return bsearch(&wanted, places->items, places->count, sizeof wanted, compare_entries);
}

/* The entry of `path`, or of its longest prefix that was given; NULL: none. */
static const struct sl_place_entry *find_longest(const struct sl_place_list *places, const char *path)
{
    char prefix[PATH_BYTES];
    size_t length = strlen(path);
    if (length >= sizeof prefix)
        return NULL;
    memcpy(prefix, path, length + 1);
    while (length > 0) {
        const struct sl_place_entry *entry = sl_places_find(places, prefix);
        if (entry != NULL)
            return entry;
        do
            length--;
        while (length > 0 && prefix[length] != '.' && prefix[length] != '[');
        prefix[length] = 0;
    }
    return NULL;
}

struct sl_place sl_layer_find_option_place(const struct sl_layer *layer, const char *key)
{
    const struct sl_place_entry *entry = find_longest(&layer->places, key);
    return entry ? entry->key : layer->place;
}

bool sl_layer_has_option(const struct sl_layer *layer, const char *key)
{
    return sl_places_find(&layer->places, key) != NULL;
}

struct sl_place sl_model_find_place(const struct sl_model *model, const char *path)
{
    static const struct sl_place nowhere;
    const struct sl_place_entry *entry = find_longest(&model->places, path);
    return entry ? entry->key : nowhere;
}

/* The node of layer `index`; NULL: there is none. */
static const struct sl_node *find_layer_node(const struct sl_model *model, size_t index)
{
    const struct sl_node *list = sl_node_find(model->document, "model");
    if (list != NULL && list->kind == SL_NODE_MAP) {
        bool decodes = index >= model->encoder_count;
        list = sl_node_find(list, decodes ? "decoder" : "encoder");
        index -= decodes ? model->encoder_count : 0;
    }
    return list != NULL && list->kind == SL_NODE_LIST && index < list->count ? list->items[index] : NULL;
}

const char *sl_model_find_word(const struct sl_model *model, const struct sl_layer *layer, const char *path)
{
    const struct sl_node *node =
        layer != NULL ? find_layer_node(model, (size_t)(layer - model->layers)) : model->document;
    char key[64];
    for (; node != NULL && *path != 0; path += *path == '.') {
        size_t length = strcspn(path, ".");
        if (length >= sizeof key)
            return NULL;
        memcpy(key, path, length);
        key[length] = 0;
        path += length;
        node = sl_node_find(node, key);
    }
    if (node != NULL && node->kind == SL_NODE_MAP)
        node = sl_node_find(node, "type");
    return node != NULL && node->kind == SL_NODE_SCALAR && !sl_node_is_null(node) ? node->text : NULL;
}

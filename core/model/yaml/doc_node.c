/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a document tree: making, finding, copying. */
#include <string.h>

#include "base/memory/arena.h"
#include "model/yaml/doc.h"

struct sl_pair *sl_node_find_pair(const struct sl_node *map, const char *key)
{
    if (map == NULL || map->kind != SL_NODE_MAP)
        return NULL;
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->pairs[i].key, key) == 0)
            return &map->pairs[i];
    return NULL;
}

struct sl_node *sl_node_find(const struct sl_node *map, const char *key)
{
    const struct sl_pair *pair = sl_node_find_pair(map, key);
    return pair ? pair->value : NULL;
}

bool sl_node_is_null(const struct sl_node *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (node->kind != SL_NODE_SCALAR || node->quoted)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(node->text, words[i]) == 0)
            return true;
    return false;
}

const char *sl_node_kind_get_name(enum sl_node_kind kind)
{
    return kind == SL_NODE_MAP ? "a map" : kind == SL_NODE_LIST ? "a list" : "a single value";
}

struct sl_node *sl_node_create(struct sl_arena *arena, enum sl_node_kind kind, struct sl_place place,
                               const char *folder)
{
    struct sl_node *node = SL_ARENA_NEW(arena, struct sl_node);
    if (node == NULL)
        return NULL;
    node->kind = kind;
    node->place = place;
    node->folder = folder;
    node->text = "";
    return node;
}

struct sl_node *sl_node_create_scalar(struct sl_arena *arena, struct sl_place place, const char *folder,
                                      const char *text)
{
    struct sl_node *node = sl_node_create(arena, SL_NODE_SCALAR, place, folder);
    const char *copy = sl_arena_strdup(arena, text);
    if (node == NULL || copy == NULL)
        return NULL;
    node->text = copy;
    return node;
}

/* Room for one more element of `element_bytes`; the old array stays in the arena. */
static bool make_room(struct sl_arena *arena, struct sl_node *node, void **array, size_t element_bytes)
{
    if (node->count < node->capacity)
        return true;
    size_t larger = node->capacity ? 2 * node->capacity : 4;
    void *moved = sl_arena_alloc_array(arena, larger, element_bytes);
    if (moved == NULL)
        return false;
    if (node->count > 0)
        memcpy(moved, *array, node->count * element_bytes);
    *array = moved;
    node->capacity = larger;
    return true;
}

bool sl_node_append_item(struct sl_arena *arena, struct sl_node *list, struct sl_node *item)
{
    void *items = list->items;
    if (item == NULL || !make_room(arena, list, &items, sizeof(struct sl_node *)))
        return false;
    list->items = items;
    list->items[list->count++] = item;
    return true;
}

bool sl_node_append_pair(struct sl_arena *arena, struct sl_node *map, const char *key, struct sl_place key_place,
                         struct sl_node *value)
{
    void *pairs = map->pairs;
    if (value == NULL || key == NULL || !make_room(arena, map, &pairs, sizeof(struct sl_pair)))
        return false;
    map->pairs = pairs;
    map->pairs[map->count++] = (struct sl_pair){key, key_place, value};
    return true;
}

void sl_node_remove(struct sl_node *map, const char *key)
{
    struct sl_pair *pair = sl_node_find_pair(map, key);
    if (pair == NULL)
        return;
    size_t at = (size_t)(pair - map->pairs);
    memmove(pair, pair + 1, (map->count - at - 1) * sizeof *pair);
    map->count--;
}

struct sl_node *sl_node_copy(struct sl_arena *arena, const struct sl_node *node)
{
    struct sl_node *copy = sl_node_create(arena, node->kind, node->place, node->folder);
    if (copy == NULL)
        return NULL;
    copy->quoted = node->quoted;
    copy->is_default = node->is_default;
    copy->text = node->text;
    for (size_t i = 0; i < node->count; i++) {
        bool done;
        if (node->kind == SL_NODE_MAP)
            done = sl_node_append_pair(arena, copy, node->pairs[i].key, node->pairs[i].place,
                                       sl_node_copy(arena, node->pairs[i].value));
        else
            done = sl_node_append_item(arena, copy, sl_node_copy(arena, node->items[i]));
        if (!done)
            return NULL;
    }
    return copy;
}

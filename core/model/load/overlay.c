/* SPDX-License-Identifier: Apache-2.0 */
/* Merging by the option tables. */
#include "model/load/overlay.h"

#include <string.h>

const struct sl_site sl_site_top = {.map = &sl_section_top};

static int find_variant(const struct sl_section *section, const struct sl_node *map)
{
    const struct sl_node *type = sl_node_find(map, "type");
    const struct sl_word *word =
        type != NULL && section->variants != NULL ? sl_word_find(section->variants, type->text) : NULL;
    return word != NULL ? word->value : -1;
}

static const struct sl_option *find_option(const struct sl_section *section, const char *key, int variant)
{
    const struct sl_option *option = sl_option_find(section, key, variant);
    return option == NULL && section->spread != NULL ? sl_option_find(section->spread, key, -1) : option;
}

struct sl_site sl_site_find(struct sl_site site, const struct sl_node *const maps[2], const char *key)
{
    struct sl_site found = {0};
    if (site.map == NULL)
        return found;
    int variant = find_variant(site.map, maps[1]);
    const struct sl_option *option =
        find_option(site.map, key, variant >= 0 ? variant : find_variant(site.map, maps[0]));
    if (option != NULL && option->kind == SL_VALUE_SECTION)
        found.map = option->section;
    else if (option != NULL)
        found = (struct sl_site){option->map, option->items, option->lone_words};
    return found;
}

struct sl_site sl_site_find_item(struct sl_site site)
{
    return (struct sl_site){.map = site.items};
}

/* Whether the key belongs to one of the forms of a map, such as `split`. */
static bool is_of_form(const struct sl_section *section, const char *key)
{
    for (const struct sl_form *form = section->forms; form != NULL && form->key != NULL; form++) {
        if (strcmp(form->key, key) == 0)
            return true;
        for (size_t j = 0; j < 3 && form->displaces[j] != NULL; j++)
            if (strcmp(form->displaces[j], key) == 0)
                return true;
    }
    return false;
}

bool sl_site_has_key(struct sl_site site, const char *key)
{
    return site.map == NULL || find_option(site.map, key, -1) != NULL || is_of_form(site.map, key) ||
           (strcmp(key, "type") == 0 && (site.map->variants != NULL || site.map->spread != NULL));
}

/* The key that a bare word stands for; NULL: none. */
static const char *find_word_key(struct sl_site site, const char *word)
{
    for (const char *const *lone = site.lone_words; lone != NULL && *lone != NULL; lone++)
        if (strcmp(*lone, word) == 0)
            return NULL;
    if (site.map == NULL || site.map->bare_key != NULL)
        return site.map ? site.map->bare_key : NULL;
    return site.map->variants != NULL ? "type" : NULL;
}

struct sl_node *sl_overlay_expand(struct sl_arena *arena, struct sl_site site, struct sl_node *word)
{
    struct sl_node *map = sl_node_create(arena, SL_NODE_MAP, word->place, word->folder);
    const char *key = find_word_key(site, word->text);
    if (map == NULL || key == NULL || sl_node_append_pair(arena, map, key, word->place, word))
        return map;
    return NULL;
}

/* Where `type` selects the options, those of another one do not stay. */
static bool has_other_type(struct sl_site site, const struct sl_node *base, const struct sl_node *over)
{
    const struct sl_node *a = sl_node_find(base, "type"), *b = sl_node_find(over, "type");
    const struct sl_section *section = site.map != NULL && site.map->spread ? site.map->spread : site.map;
    bool selects = section != NULL && section->variants != NULL && section->bare_key == NULL;
    return selects && a != NULL && b != NULL && strcmp(a->text, b->text) != 0;
}

static bool is_displaced(const struct sl_form *form, const char *key)
{
    if (form->displaces[0][0] == '*' && strcmp(key, form->key) != 0)
        return true;
    for (size_t j = 0; j < 3 && form->displaces[j] != NULL; j++)
        if (strcmp(form->displaces[j], key) == 0)
            return true;
    return false;
}

/* The rest of the form, if something goes on there and neither map says it; NULL: nothing does, or no memory. */
static struct sl_node *make_rest(struct sl_arena *arena, const struct sl_form *form, const struct sl_node *map,
                                 const struct sl_node *over)
{
    bool any = false;
    for (size_t i = 0; i < map->count; i++)
        any = any || is_displaced(form, map->pairs[i].key);
    if (!any || form->rest == NULL || sl_node_find(map, form->rest) != NULL ||
        (over != NULL && sl_node_find(over, form->rest) != NULL))
        return NULL;
    return sl_node_create(arena, SL_NODE_MAP, map->place, map->folder);
}

static bool displace(struct sl_arena *arena, const struct sl_form *form, struct sl_node *map,
                     const struct sl_node *over)
{
    struct sl_node *rest = make_rest(arena, form, map, over);
    for (size_t i = 0; i < map->count;) {
        const struct sl_pair old = map->pairs[i];
        if (!is_displaced(form, old.key) || (over != NULL && sl_node_find(over, old.key) != NULL)) {
            i++;
            continue;
        }
        if (rest != NULL && !sl_node_append_pair(arena, rest, old.key, old.place, old.value))
            return false;
        sl_node_remove(map, old.key);
    }
    return rest == NULL || sl_node_append_pair(arena, map, form->rest, rest->place, rest);
}

bool sl_overlay_displace(struct sl_arena *arena, struct sl_site site, struct sl_node *map, const char *key,
                         const struct sl_node *over)
{
    for (const struct sl_form *form = site.map ? site.map->forms : NULL; form != NULL && form->key != NULL; form++)
        if (strcmp(form->key, key) == 0 && !displace(arena, form, map, over))
            return false;
    return true;
}

static bool overlay_pair(struct sl_arena *arena, struct sl_site site, struct sl_node *base, const struct sl_node *over,
                         const struct sl_pair *pair)
{
    const struct sl_node *const maps[2] = {base, over};
    if (sl_node_is_null(pair->value)) {
        sl_node_remove(base, pair->key);
        return true;
    }
    struct sl_pair *old = sl_node_find_pair(base, pair->key);
    if (old == NULL)
        return sl_node_append_pair(arena, base, pair->key, pair->place, pair->value);
    old->value = sl_doc_overlay(arena, sl_site_find(site, maps, pair->key), old->value, pair->value);
    old->place = pair->place;
    return old->value != NULL;
}

struct sl_node *sl_doc_overlay(struct sl_arena *arena, struct sl_site site, struct sl_node *base, struct sl_node *over)
{
    if (base == NULL || over->kind != SL_NODE_MAP || base->kind == SL_NODE_LIST || over->count == 0)
        return over;
    if (base->kind == SL_NODE_SCALAR) {
        if (sl_node_is_null(base))
            return over;
        base = sl_overlay_expand(arena, site, base);
        if (base == NULL || base->count == 0)
            return base ? over : NULL;
    }
    if (has_other_type(site, base, over))
        return over;
    for (size_t i = 0; i < over->count; i++)
        if (!sl_node_is_null(over->pairs[i].value) && !sl_overlay_displace(arena, site, base, over->pairs[i].key, over))
            return NULL;
    for (size_t i = 0; i < over->count; i++)
        if (!overlay_pair(arena, site, base, over, &over->pairs[i]))
            return NULL;
    return base;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lays one tree on another, by the option tables.
 *
 * Maps merge key by key; lists and single values replace. A map with another `type` than the one below replaces it, and
 * so does a map of another form (`{file: …}` on `{split: 0.1}`); of an activation for both directions, `{forward:
 * relu}` replaces one. A map laid on a bare word keeps the word under the key that it stands for (`type`, or the
 * `bare_key` of the section); a word that stands for no key (`class_weight: balanced`) is replaced. `~` removes a key,
 * and `{}` all keys of a map.
 */
#ifndef SL_MODEL_LOAD_OVERLAY_H
#define SL_MODEL_LOAD_OVERLAY_H

#include "model/schema/schema_table.h"
#include "model/yaml/doc.h"

/* What the tables say about a value of the file; all NULL where they say nothing. */
struct sl_site {
    const struct sl_section *map, *items; /* it may be a map of this section, or a list of such maps */
    const char *const *lone_words;        /* bare words that are no `type` of the map */
};

extern const struct sl_site sl_site_top; /* the whole file */

/* The site of `key` of a map; `maps` are the ones that are merged there, of which one may have the `type`. */
struct sl_site sl_site_find(struct sl_site site, const struct sl_node *const maps[2], const char *key);
struct sl_site sl_site_find_item(struct sl_site site);

/* Whether a map of this site may have the key; true where the tables say nothing. */
bool sl_site_has_key(struct sl_site site, const char *key);

/* The map that a bare word stands for: `{type: adam}`, `{decay: 0.9}`; an empty one for a word that stands for no key.
 * NULL: no memory. */
struct sl_node *sl_overlay_expand(struct sl_arena *arena, struct sl_site site, struct sl_node *word);

/* Takes away from `map` what `key` displaces, except the keys of `over` (NULL: none). False: no memory. */
bool sl_overlay_displace(struct sl_arena *arena, struct sl_site site, struct sl_node *map, const char *key,
                         const struct sl_node *over);

/* Merges `over` into `base` (either may be changed or become part of the result; base may be NULL) and returns the
 * result; NULL: no memory. */
struct sl_node *sl_doc_overlay(struct sl_arena *arena, struct sl_site site, struct sl_node *base, struct sl_node *over);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML file as a tree in which every node knows its place, before values get their types.
 *
 * Scalars stay text; the schema gives them their type. Anchors, aliases and merge keys (`<<`) are
 * resolved by copying; `!tags`, duplicate keys, keys that are not scalars and second documents are
 * errors. Depth, nodes and bytes are limited, so that no file can exhaust the machine.
 *
 * Invariants:
 * 1. All nodes and texts live in the arena that was given; a node has one parent.
 * 2. Keys of a map are distinct, and in the order of the file.
 */
#ifndef SL_MODEL_YAML_DOC_H
#define SL_MODEL_YAML_DOC_H

#include <stdbool.h>
#include <stddef.h>

#include <seqlstm/status.h>

#include "model/doc_limits.h"
#include "model/place.h"

struct sl_arena;
struct sl_diagnostics;
struct sl_node;

enum sl_node_kind { SL_NODE_SCALAR, SL_NODE_LIST, SL_NODE_MAP };

struct sl_pair {
    const char *key;
    struct sl_place place; /* of the key */
    struct sl_node *value;
};

struct sl_node {
    enum sl_node_kind kind;
    bool quoted;     /* a scalar in quotes or a block: text, never a number or a YAML keyword */
    bool is_default; /* added by the schema, not given by the user */
    bool refused;    /* reading it, or what is in it, has reported an error */
    struct sl_place place;
    const char *folder;     /* what relative paths in it are relative to; NULL: the current folder */
    const char *text;       /* scalar, NUL-terminated, holds no NUL */
    struct sl_pair *pairs;  /* map */
    struct sl_node **items; /* list */
    size_t count, capacity;
};

/* Reads one document. Errors in the text go to `diagnostics`, and then *out is NULL with SEQLSTM_OK;
 * a status other than SEQLSTM_OK means no memory. `file` and `folder` are kept by reference. */
seqlstm_status sl_doc_parse(struct sl_arena *arena, const char *file, const char *folder, const char *text,
                            size_t text_bytes, struct sl_diagnostics *diagnostics, struct sl_node **out,
                            struct seqlstm_error *err);

/* The value of `key` in a map, or NULL; also NULL if the node is not a map. */
struct sl_node *sl_node_find(const struct sl_node *map, const char *key);
struct sl_pair *sl_node_find_pair(const struct sl_node *map, const char *key);

/* True for a plain `~`, `null` or nothing at all. */
bool sl_node_is_null(const struct sl_node *node);

/* "a word or number", "a list", "a map": for messages. Static. */
const char *sl_node_kind_get_name(enum sl_node_kind kind);

/* All of these return NULL (or false) when memory runs out. */
struct sl_node *sl_node_create(struct sl_arena *arena, enum sl_node_kind kind, struct sl_place place,
                               const char *folder);
struct sl_node *sl_node_create_scalar(struct sl_arena *arena, struct sl_place place, const char *folder,
                                      const char *text);
struct sl_node *sl_node_copy(struct sl_arena *arena, const struct sl_node *node);
bool sl_node_append_item(struct sl_arena *arena, struct sl_node *list, struct sl_node *item);
bool sl_node_append_pair(struct sl_arena *arena, struct sl_node *map, const char *key, struct sl_place key_place,
                         struct sl_node *value);
void sl_node_remove(struct sl_node *map, const char *key);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a document tree into structs by the option tables, and reports every error.
 *
 * Reading changes the tree: defaults are added (marked is_default), bare words become maps, paths become absolute.
 * Afterwards it is the effective configuration, which sl_model_write_config prints and which loads to the same structs.
 *
 * Invariants:
 * 1. After an error the field holds its default, or zero; reading continues, so that all errors are reported.
 * 2. Out of memory sets `no_memory` and is not reported: the caller checks it at the end.
 */
#ifndef SL_MODEL_READ_READER_H
#define SL_MODEL_READ_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "model/yaml/diagnostics.h"
#include "model/yaml/doc.h"
#include "model/layer.h"
#include "model/read/synonyms.h"
#include "model/schema/schema_table.h"

struct sl_arena;
struct sl_memory_data;

/* What `init:` sets for parameters without an initializer of their own. */
enum sl_init_set { SL_INIT_KERAS, SL_INIT_PYTORCH, SL_INIT_CUSTOM };

struct sl_reader {
    struct sl_arena *arena;
    struct sl_diagnostics *diagnostics;
    bool no_memory;
    size_t errors;
    enum sl_init_set init;
    const struct sl_node *init_node; /* SL_INIT_CUSTOM: the initializer */
    /* The configuration of a run, which contains every default of the version that wrote it: keys without effect in it
     * are dropped, not refused. NULL: no file is one. */
    const char *saved;
    const struct sl_memory_data *memory; /* as in struct sl_model_request */
    size_t memory_count;
};

/* Reads a map (or bare word) by its table into the zeroed struct `out`. */
void sl_reader_read_section(struct sl_reader *reader, const struct sl_section *section, struct sl_node *node,
                            void *out);

/* Reads one value into `field`, as the option describes it. */
void sl_reader_read_value(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);

/* Appends `key: text` to a map as a default, unless it has the key. Returns the value's node. */
struct sl_node *sl_reader_set_default(struct sl_reader *reader, struct sl_node *map, const char *key, const char *text);
/* The same with a copy of `value` and what is below it. */
struct sl_node *sl_reader_set_default_copy(struct sl_reader *reader, struct sl_node *map, const char *key,
                                           const struct sl_node *value);

/* Puts a bare word into a map under `type` (or `key`), in place; maps stay as they are. */
bool sl_reader_expand(struct sl_reader *reader, struct sl_node *node, const char *key);

/* Whether the user gave `key` in this map. */
bool sl_reader_was_said(const struct sl_node *map, const char *key);

/* Whether the value of `key` in this map could not be read: what depends on it is then not another error. */
bool sl_reader_was_refused(const struct sl_node *map, const char *key);

/* Whether this map has a key of another framework, or a misspelt one, that means `key`: then a missing `key` is not
 * another error. */
bool sl_reader_is_misspelt(const struct sl_section *section, const struct sl_node *map, const char *key);

/* Whether the place is in the saved configuration of a run. */
bool sl_reader_is_saved(const struct sl_reader *reader, struct sl_place place);

/* The place of a key of this map, or the map's. */
struct sl_place sl_reader_get_place(const struct sl_node *map, const char *key);

/* Adds an error (or, with a W code, a warning). `help` and `note` may be NULL. E0205, a key without effect, is no error
 * in the saved configuration of a run. */
void sl_reader_report(struct sl_reader *reader, const char *code, struct sl_place place, const char *help,
                      const char *note, const char *format, ...) SEQLSTM_PRINTF(6, 7);

/* Text in the reader's arena; "" and no_memory if there is no memory. */
const char *sl_reader_printf(struct sl_reader *reader, const char *format, ...) SEQLSTM_PRINTF(2, 3);

/* "E0401": `what` is not available in this version. */
void sl_reader_refuse_later(struct sl_reader *reader, struct sl_place place, const char *what);

/* "`epochs` takes an integer, not a list". */
void sl_reader_report_type(struct sl_reader *reader, const struct sl_option *option, const struct sl_node *node,
                           const char *wanted);

/* Does the node begin as a number does? What does not is reported with the words that stand beside numbers. */
bool sl_reader_may_be_number(const struct sl_node *node);

void *sl_reader_alloc(struct sl_reader *reader, size_t count, size_t element_bytes);

/* Data in memory: the path of `memory:NAME`, which is itself if that data was not given; NULL: this is another path. */
const char *sl_reader_find_memory(struct sl_reader *reader, const struct sl_node *node);

/* reader_path.c: the text of a path with ${VAR} and ${VAR:-default} replaced, absolute if `absolute`;
 * NULL after a report. */
const char *sl_reader_resolve_path(struct sl_reader *reader, const struct sl_node *node, bool absolute);

#endif

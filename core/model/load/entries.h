/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration as a list: "train.optimizer.type" → "adam", "model[1].units" → "64".
 *
 * It is read from the text that sl_model_write_config writes (one key a line, indented by two spaces a level, "- " for
 * elements of a list), so that it costs little and needs no data. Any other text gives some list, never an error: a
 * run folder may come from another person.
 */
#ifndef SL_MODEL_LOAD_ENTRIES_H
#define SL_MODEL_LOAD_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>

struct sl_arena;

struct sl_config_entry {
    const char *path, *value;
};

struct sl_config_entries {
    struct sl_config_entry *items; /* in the order of the text */
    size_t count;
};

/* Splits `text`, which is changed. What `out` holds lives in the arena. False: no memory. [any thread] */
bool sl_config_entries_read(struct sl_arena *arena, char *text, struct sl_config_entries *out);

/* The value at a path, as it is written in the configuration; NULL: none. */
const char *sl_config_entries_find(const struct sl_config_entries *entries, const char *path);

/* Are two values the same, or the same number? */
bool sl_config_entries_is_same(const char *a, const char *b);

#endif

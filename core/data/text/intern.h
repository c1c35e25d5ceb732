/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct texts numbered in the order of their first appearance. Private to core/data.
 *
 * Failure is sticky, as in base/buf.h: after an allocation failed sl_intern_add always returns -1. [one thread at a
 * time] */
#ifndef SL_DATA_TEXT_INTERN_H
#define SL_DATA_TEXT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/value/buf.h"

struct sl_intern_slot {
    uint32_t hash;
    int32_t id; /* -1: free */
};

struct sl_intern {
    struct sl_buf text;    /* the texts, each followed by a NUL */
    struct sl_buf offsets; /* int64 per id: where its text begins */
    struct sl_intern_slot *slots;
    size_t slot_count;     /* a power of two, or 0 */
    int32_t byte_ids[256]; /* id + 1 of each text of one byte, most characters; 0: unknown */
    int32_t count;
    bool failed;
};

void sl_intern_init(struct sl_intern *intern);
void sl_intern_deinit(struct sl_intern *intern);

/* The id of the text, new or known; -1 when memory ran out. */
int32_t sl_intern_add(struct sl_intern *intern, const char *text, size_t bytes);
/* The id of a known text, or -1. */
int32_t sl_intern_find(const struct sl_intern *intern, const char *text, size_t bytes);
/* Text of an id, NUL-terminated, borrowed until the next add. */
const char *sl_intern_get(const struct sl_intern *intern, int32_t id, size_t *out_bytes);

#endif

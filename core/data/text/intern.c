/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear steps; the table is at most two thirds full. Texts of one byte (most tokens of a
 * character model) are looked up by that byte. */
#include "data/text/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/hash.h"

void sl_intern_init(struct sl_intern *intern)
{
    memset(intern, 0, sizeof *intern);
}

void sl_intern_deinit(struct sl_intern *intern)
{
    sl_buf_deinit(&intern->text);
    sl_buf_deinit(&intern->offsets);
    free(intern->slots);
    memset(intern, 0, sizeof *intern);
}

static int64_t offset_of(const struct sl_intern *intern, int32_t id)
{
    int64_t offset;
    memcpy(&offset, intern->offsets.data + (size_t)id * sizeof offset, sizeof offset);
    return offset;
}

const char *sl_intern_get(const struct sl_intern *intern, int32_t id, size_t *out_bytes)
{
    int64_t begin = offset_of(intern, id);
    if (out_bytes) {
        int64_t end = id + 1 < intern->count ? offset_of(intern, id + 1) : (int64_t)intern->text.length_bytes;
        *out_bytes = (size_t)(end - begin) - 1;
    }
    return intern->text.data + begin;
}

/* The slot that holds the text, or the free one where it belongs. */
static size_t find_slot(const struct sl_intern *intern, const char *text, size_t bytes, uint32_t hash)
{
    size_t mask = intern->slot_count - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        const struct sl_intern_slot *slot = &intern->slots[i];
        if (slot->id < 0)
            return i;
        if (slot->hash == hash) {
            size_t length;
            const char *known = sl_intern_get(intern, slot->id, &length);
            if (length == bytes && memcmp(known, text, bytes) == 0)
                return i;
        }
    }
}

static bool grow(struct sl_intern *intern)
{
    size_t count = intern->slot_count ? intern->slot_count * 2 : 64;
    struct sl_intern_slot *slots = malloc(count * sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < count; i++)
        slots[i].id = -1;
    for (size_t i = 0; i < intern->slot_count; i++) {
        if (intern->slots[i].id < 0)
            continue;
        size_t at = intern->slots[i].hash & (count - 1);
        while (slots[at].id >= 0)
            at = (at + 1) & (count - 1);
        slots[at] = intern->slots[i];
    }
    free(intern->slots);
    intern->slots = slots;
    intern->slot_count = count;
    return true;
}

int32_t sl_intern_find(const struct sl_intern *intern, const char *text, size_t bytes)
{
    if (intern->slot_count == 0)
        return -1;
    if (bytes == 1)
        return intern->byte_ids[(unsigned char)*text] - 1;
    uint32_t hash = (uint32_t)sl_hash_bytes(text, bytes, 0);
    return intern->slots[find_slot(intern, text, bytes, hash)].id;
}

int32_t sl_intern_add(struct sl_intern *intern, const char *text, size_t bytes)
{
    if (intern->failed)
        return -1;
    if (bytes == 1 && intern->byte_ids[(unsigned char)*text] != 0)
        return intern->byte_ids[(unsigned char)*text] - 1;
    if ((size_t)intern->count * 3 >= intern->slot_count * 2 && !grow(intern)) {
        intern->failed = true;
        return -1;
    }
    uint32_t hash = (uint32_t)sl_hash_bytes(text, bytes, 0);
    struct sl_intern_slot *slot = &intern->slots[find_slot(intern, text, bytes, hash)];
    if (slot->id >= 0)
        return slot->id;
    int64_t offset = (int64_t)intern->text.length_bytes;
    sl_buf_append(&intern->text, text, bytes);
    sl_buf_append_char(&intern->text, '\0');
    sl_buf_append(&intern->offsets, &offset, sizeof offset);
    if (intern->text.failed || intern->offsets.failed || intern->count == INT32_MAX) {
        intern->failed = true;
        return -1;
    }
    slot->hash = hash;
    slot->id = intern->count++;
    if (bytes == 1)
        intern->byte_ids[(unsigned char)*text] = slot->id + 1;
    return slot->id;
}

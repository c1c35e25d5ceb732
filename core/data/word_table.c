/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear steps; the table is at most half full. */
#include "data/word_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FIRST_SLOTS_LOG 12

void
sl_word_table_init(struct sl_word_table *table)
{
    memset(table, 0, sizeof *table);
}

void
sl_word_table_deinit(struct sl_word_table *table)
{
    free(table->slots);
    sl_buf_deinit(&table->text);
    sl_buf_deinit(&table->begins);
    sl_buf_deinit(&table->wraps);
    memset(table, 0, sizeof *table);
}

/* A key with this bit is a hash: words with the same one are compared. Without it the key is the word. */
#define HASHED (UINT64_C(1) << 63)

uint64_t
sl_word_table_key(const char *word, size_t bytes, bool padded)
{
    uint64_t key = 0;
    if (bytes > 8 || (bytes == 8 && (unsigned char)word[7] >= 0x80))
        return sl_hash_bytes(word, bytes, 0) | HASHED;
    if (padded && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
        memcpy(&key, word, sizeof key);
        return bytes == 8 ? key : key & ((UINT64_C(1) << 8 * bytes) - 1);
    }
    for (size_t i = 0; i < bytes; i++)
        key |= (uint64_t)(unsigned char)word[i] << 8 * i;
    return key;
}

static size_t
place_of(uint64_t key, int shift)
{
    return (size_t)(((key ^ key >> 29) * UINT64_C(0x9E3779B97F4A7C15)) >> shift);
}

void
sl_word_table_prefetch(const struct sl_word_table *table, uint64_t key)
{
    if (table->slots)
        __builtin_prefetch(&table->slots[place_of(key, table->shift)], 1);
}

static bool
grow(struct sl_word_table *table)
{
    int log = table->slots ? 64 - table->shift + 1 : FIRST_SLOTS_LOG;
    size_t count = (size_t)1 << log, old = table->slots ? count / 2 : 0;
    struct sl_word_slot *slots = malloc(count * sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < count; i++)
        slots[i].number = -1;
    for (size_t i = 0; i < old; i++) {
        if (table->slots[i].number < 0)
            continue;
        size_t at = place_of(table->slots[i].key, 64 - log);
        while (slots[at].number >= 0)
            at = (at + 1) & (count - 1);
        slots[at] = table->slots[i];
    }
    free(table->slots);
    table->slots = slots;
    table->shift = 64 - log;
    return true;
}

const char *
sl_word_table_get(const struct sl_word_table *table, int32_t number, size_t *out_bytes)
{
    int64_t ends[2] = {0, (int64_t)table->text.length_bytes};
    size_t known = number + 1 < table->count ? sizeof ends : sizeof ends[0];
    memcpy(ends, table->begins.data + (size_t)number * sizeof ends[0], known);
    *out_bytes = (size_t)(ends[1] - ends[0]);
    return table->text.data + ends[0];
}

static int32_t
fail(struct sl_word_table *table)
{
    table->failed = true;
    return -1;
}

static int32_t
add_new(struct sl_word_table *table, struct sl_word_slot *slot, uint64_t key, const char *word, size_t bytes)
{
    int64_t begin = (int64_t)table->text.length_bytes;
    sl_buf_append(&table->text, word, bytes);
    sl_buf_append(&table->begins, &begin, sizeof begin);
    if (table->text.failed || table->begins.failed || table->count == INT32_MAX)
        return fail(table);
    *slot = (struct sl_word_slot){key, table->count, 1};
    return table->count++;
}

static bool
is_word(const struct sl_word_table *table, int32_t number, const char *word, size_t bytes)
{
    size_t known_bytes;
    const char *known = sl_word_table_get(table, number, &known_bytes);
    return known_bytes == bytes && memcmp(known, word, bytes) == 0;
}

int32_t
sl_word_table_add(struct sl_word_table *table, uint64_t key, const char *word, size_t bytes)
{
    if (table->failed)
        return -1;
    if ((!table->slots || (size_t)table->count * 2 >= (size_t)1 << (64 - table->shift)) && !grow(table))
        return fail(table);
    size_t mask = ((size_t)1 << (64 - table->shift)) - 1;
    for (size_t at = place_of(key, table->shift);; at = (at + 1) & mask) {
        struct sl_word_slot *slot = &table->slots[at];
        if (slot->number < 0)
            return add_new(table, slot, key, word, bytes);
        if (slot->key != key || ((key & HASHED) && !is_word(table, slot->number, word, bytes)))
            continue;
        if (++slot->count == 0)
            sl_buf_append(&table->wraps, &slot->number, sizeof slot->number);
        return table->wraps.failed ? fail(table) : slot->number;
    }
}

void
sl_word_table_read_counts(const struct sl_word_table *table, int64_t *counts)
{
    memset(counts, 0, (size_t)table->count * sizeof *counts);
    for (size_t i = 0; table->slots && i < (size_t)1 << (64 - table->shift); i++)
        if (table->slots[i].number >= 0)
            counts[table->slots[i].number] = table->slots[i].count;
    for (size_t at = 0; at < table->wraps.length_bytes; at += sizeof(int32_t)) {
        int32_t number;
        memcpy(&number, table->wraps.data + at, sizeof number);
        counts[number] += INT64_C(1) << 32;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear steps; the table is at most half full. */
#include "data/text/word_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

#define FIRST_SLOTS_LOG 12

void sl_word_table_init(struct sl_word_table *table)
{
    memset(table, 0, sizeof *table);
}

void sl_word_table_deinit(struct sl_word_table *table)
{
    sl_memory_free(NULL, table->slots);
    sl_buf_deinit(&table->text);
    sl_buf_deinit(&table->begins);
    sl_buf_deinit(&table->wraps);
    memset(table, 0, sizeof *table);
}

/* What a slot is found by. */
struct key {
    uint64_t head, tail;
};

/* A tail with this bit: the head is a hash, so words with the same head are compared. */
#define LONG (UINT64_C(1) << 63)

static uint64_t load(const char *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* More than 8 bytes, the last 8 of them once more. Only the order of a table depends on it, no number. */
static struct key hash_long(const char *word, size_t bytes)
{
    uint64_t hash = bytes;
    for (size_t at = 0; at + 8 < bytes; at += 8) {
        hash = (hash ^ load(word + at)) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    hash = (hash ^ load(word + bytes - 8)) * UINT64_C(0xD6E8FEB86659FD93);
    return (struct key){hash ^ hash >> 29, LONG};
}

static inline struct key key_of_medium(const char *word, size_t bytes)
{
    uint64_t last = load(word + bytes - 8);
    uint64_t tail = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? last >> (8 * (16 - bytes)) : 0;
    return tail == 0 || tail & LONG ? hash_long(word, bytes) : (struct key){load(word), tail};
}

static struct key key_of(const char *word, size_t bytes)
{
    uint64_t head = 0;
    if (bytes > 16)
        return hash_long(word, bytes);
    if (bytes > 8)
        return key_of_medium(word, bytes);
    memcpy(&head, word, bytes);
    return (struct key){head, 0};
}

/* The same where 8 bytes may be read. */
static inline struct key key_of_padded(const char *word, size_t bytes)
{
    if (bytes > 8 || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return key_of(word, bytes);
    return (struct key){load(word) & (~UINT64_C(0) >> (64 - 8 * bytes)), 0};
}

static size_t place_of(struct key key, int shift)
{
    uint64_t mixed = key.head ^ (key.tail ^ key.tail >> 31) * UINT64_C(0xD6E8FEB86659FD93);
    return (size_t)(((mixed ^ mixed >> 29) * UINT64_C(0x9E3779B97F4A7C15)) >> shift);
}

static bool grow(struct sl_word_table *table)
{
    int log = table->slots ? 64 - table->shift + 1 : FIRST_SLOTS_LOG;
    size_t count = (size_t)1 << log, old = table->slots ? count / 2 : 0;
    struct sl_word_slot *slots = sl_memory_alloc(NULL, count * sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < count; i++)
        slots[i].number = -1;
    for (size_t i = 0; i < old; i++) {
        if (table->slots[i].number < 0)
            continue;
        size_t at = place_of((struct key){table->slots[i].head, table->slots[i].tail}, 64 - log);
        while (slots[at].number >= 0)
            at = (at + 1) & (count - 1);
        slots[at] = table->slots[i];
    }
    sl_memory_free(NULL, table->slots);
    table->slots = slots;
    table->shift = 64 - log;
    return true;
}

const char *sl_word_table_get(const struct sl_word_table *table, int32_t number, size_t *out_bytes)
{
    int64_t ends[2] = {0, (int64_t)table->text.length_bytes};
    size_t known = number + 1 < table->count ? sizeof ends : sizeof ends[0];
    memcpy(ends, table->begins.data + (size_t)number * sizeof ends[0], known);
    *out_bytes = (size_t)(ends[1] - ends[0]);
    return table->text.data + ends[0];
}

static int32_t fail(struct sl_word_table *table)
{
    table->failed = true;
    return -1;
}

static int32_t add_new(struct sl_word_table *table, struct sl_word_slot *slot, struct key key, const char *word,
                       size_t bytes)
{
    int64_t begin = (int64_t)table->text.length_bytes;
    sl_buf_append(&table->text, word, bytes);
    sl_buf_append(&table->begins, &begin, sizeof begin);
    if (table->text.failed || table->begins.failed || table->count == INT32_MAX)
        return fail(table);
    *slot = (struct sl_word_slot){key.head, key.tail, table->count, 1};
    return table->count++;
}

static bool is_word(const struct sl_word_table *table, int32_t number, const char *word, size_t bytes)
{
    size_t known_bytes;
    const char *known = sl_word_table_get(table, number, &known_bytes);
    return known_bytes == bytes && memcmp(known, word, bytes) == 0;
}

/* Half of the slots are free after so many words were added. */
static bool make_room(struct sl_word_table *table, int count)
{
    while (!table->failed &&
           (!table->slots || ((size_t)table->count + (size_t)count) * 2 > (size_t)1 << (64 - table->shift)))
        table->failed = !grow(table);
    return !table->failed;
}

/* With room for one more. */
static inline int32_t add_at(struct sl_word_table *table, size_t at, struct key key, const char *word, size_t bytes)
{
    size_t mask = ((size_t)1 << (64 - table->shift)) - 1;
    for (;; at = (at + 1) & mask) {
        struct sl_word_slot *slot = &table->slots[at];
        if (slot->number < 0)
            return add_new(table, slot, key, word, bytes);
        if (slot->head != key.head || slot->tail != key.tail ||
            ((key.tail & LONG) && !is_word(table, slot->number, word, bytes)))
            continue;
        if (++slot->count == 0)
            sl_buf_append(&table->wraps, &slot->number, sizeof slot->number);
        return table->wraps.failed ? fail(table) : slot->number;
    }
}

int32_t sl_word_table_add(struct sl_word_table *table, const char *word, size_t bytes)
{
    struct key key = key_of(word, bytes);
    return make_room(table, 1) ? add_at(table, place_of(key, table->shift), key, word, bytes) : -1;
}

bool sl_word_table_add_many(struct sl_word_table *table, const char *text, const size_t *at, int count, uint32_t *out)
{
    struct key keys[SL_WORD_TABLE_MANY];
    if (!make_room(table, count))
        return false;
    for (int i = 0; i < count; i++) {
        keys[i] = key_of_padded(text + at[2 * i], at[2 * i + 1] - at[2 * i]);
        const struct sl_word_slot *slot = &table->slots[place_of(keys[i], table->shift)];
        __builtin_prefetch(slot, 1);
        __builtin_prefetch(&slot->count, 1); /* which may be in the next line */
    }
    for (int i = 0; i < count; i++)
        out[i] = (uint32_t)add_at(table, place_of(keys[i], table->shift), keys[i], text + at[2 * i],
                                  at[2 * i + 1] - at[2 * i]);
    return !table->failed;
}

void sl_word_table_read_counts(const struct sl_word_table *table, int64_t *counts)
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

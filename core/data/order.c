/* SPDX-License-Identifier: Apache-2.0 */
/* shuffle records -> sort inside pools -> cut -> shuffle batches -> count pieces. */
#include "data/order.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

/* A record on its way; `place` makes the sort stable. */
struct item {
    int64_t record, place;
    int32_t length;
};

static int
longest_first(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->length != b->length)
        return a->length < b->length ? 1 : -1;
    return (a->place > b->place) - (a->place < b->place);
}

/* A number in [0, count) without bias worth speaking of: 64 bits against count < 2^53. */
static int64_t
below(uint64_t key, uint64_t draw, int64_t count)
{
    uint32_t counter[4] = {(uint32_t)draw, (uint32_t)(draw >> 32), 0x6f726472u, 0}, word[4];
    seqlstm_philox4x32(counter, key, word);
    uint64_t value = (uint64_t)word[0] << 32 | word[1];
    return (int64_t)(value % (uint64_t)count);
}

static void
shuffle_items(struct item *items, int64_t count, uint64_t key)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t k = below(key, (uint64_t)i, i + 1);
        struct item item = items[i];
        items[i] = items[k];
        items[k] = item;
    }
}

static void
sort_items(struct item *items, int64_t count)
{
    bool sorted = true;
    for (int64_t i = 0; i < count; i++) {
        items[i].place = i;
        sorted = sorted && (i == 0 || items[i - 1].length >= items[i].length);
    }
    if (!sorted)
        qsort(items, (size_t)count, sizeof *items, longest_first);
}

/* Ends of the batches in items: batch b is [first[b], first[b + 1]). */
static int64_t
cut(const struct sl_order_rule *rule, const struct item *items, int64_t *first)
{
    int64_t window = rule->pools && rule->pool > 0 && rule->pool < INT64_MAX / rule->batch_size
                         ? rule->pool * rule->batch_size
                         : rule->records;
    int64_t batches = 0, rows = 0, size = 0;
    for (int64_t i = 0; i < rule->records; i++) {
        bool full = size == rule->batch_size ||
                    (rule->max_tokens > 0 && size > 0 && rows + items[i].length > rule->max_tokens) ||
                    (rule->pools && i % window == 0);
        if (i == 0 || full) {
            first[batches++] = i;
            rows = size = 0;
        }
        rows += items[i].length;
        size++;
    }
    first[batches] = rule->records;
    return batches;
}

/* sequence[b]: which of the batches cut comes at place b. */
static void
order_batches(const struct sl_order_rule *rule, const struct item *items, const int64_t *first, int64_t batches,
              int64_t *sequence)
{
    int64_t largest = 0, most = -1;
    for (int64_t b = 0; b < batches; b++)
        sequence[b] = b;
    for (int64_t b = batches - 1; rule->shuffle && b > 0; b--) {
        int64_t k = below(rule->key, (uint64_t)b | UINT64_C(1) << 62, b + 1), other = sequence[k];
        sequence[k] = sequence[b];
        sequence[b] = other;
    }
    if (!rule->largest_first)
        return;
    for (int64_t b = 0; b < batches; b++) {
        int64_t rows = 0;
        for (int64_t i = first[sequence[b]]; i < first[sequence[b] + 1]; i++)
            rows += items[i].length;
        if (rows > most) {
            most = rows;
            largest = b;
        }
    }
    int64_t chosen = sequence[largest];
    memmove(sequence + 1, sequence, (size_t)largest * sizeof *sequence);
    sequence[0] = chosen;
}

static int64_t
pieces_of(const struct sl_order_rule *rule, int64_t longest)
{
    return rule->bptt > 0 && longest > rule->bptt ? (longest + rule->bptt - 1) / rule->bptt : 1;
}

seqlstm_status
sl_order_make(const struct sl_order_rule *rule, struct sl_order *out, struct seqlstm_error *err)
{
    size_t n = (size_t)rule->records + 1;
    struct sl_order order = {0};
    struct item *items = malloc(n * sizeof *items);
    int64_t *first = malloc(n * sizeof *first), *sequence = malloc(n * sizeof *sequence);
    order.records = malloc(n * sizeof *order.records);
    order.first = malloc(n * sizeof *order.first);
    order.pieces_before = malloc(n * sizeof *order.pieces_before);
    if (!items || !first || !sequence || !order.records || !order.first || !order.pieces_before) {
        free(items);
        free(first);
        free(sequence);
        sl_order_deinit(&order);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to order %lld records", (long long)rule->records);
    }
    for (int64_t r = 0; r < rule->records; r++)
        items[r] = (struct item){r, r, rule->lengths[r]};
    if (rule->shuffle)
        shuffle_items(items, rule->records, rule->key);
    if (rule->pools && rule->pool > 0) {
        int64_t window = rule->pool < INT64_MAX / rule->batch_size ? rule->pool * rule->batch_size : rule->records;
        for (int64_t at = 0; at < rule->records; at += window)
            sort_items(items + at, rule->records - at < window ? rule->records - at : window);
    }
    order.batches = cut(rule, items, first);
    order_batches(rule, items, first, order.batches, sequence);
    int64_t filled = 0;
    for (int64_t b = 0; b < order.batches; b++) {
        int64_t begin = first[sequence[b]], count = first[sequence[b] + 1] - begin;
        sort_items(items + begin, count);
        order.first[b] = filled;
        order.pieces_before[b] = order.pieces;
        for (int64_t i = 0; i < count; i++)
            order.records[filled++] = items[begin + i].record;
        order.pieces += pieces_of(rule, items[begin].length);
    }
    order.first[order.batches] = filled;
    order.pieces_before[order.batches] = order.pieces;
    free(items);
    free(first);
    free(sequence);
    sl_order_deinit(out);
    *out = order;
    return SEQLSTM_OK;
}

void
sl_order_deinit(struct sl_order *order)
{
    free(order->records);
    free(order->first);
    free(order->pieces_before);
    memset(order, 0, sizeof *order);
}

void
sl_order_find(const struct sl_order *order, int64_t ordinal, int64_t *out_batch, int64_t *out_piece)
{
    int64_t low = 0, high = order->batches; /* pieces_before[low] <= ordinal < pieces_before[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (order->pieces_before[middle] <= ordinal)
            low = middle;
        else
            high = middle;
    }
    *out_batch = low;
    *out_piece = ordinal - order->pieces_before[low];
}

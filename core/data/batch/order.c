/* SPDX-License-Identifier: Apache-2.0 */
/* shuffle records -> into buckets, or sort inside pools -> cut -> shuffle batches -> count segments.
 *
 * For pairs the lengths of both sides decide which records share a batch: a pool is sorted by the target's length, and
 * among equal ones by the source's, upwards and downwards in turn, so that a batch of two lengths has similar
 * sources; a bucket, which holds several lengths of the target, by the source's.
 *
 * Records are 4-byte numbers throughout and lengths are looked up, so that an epoch of many millions of records stays
 * small. */
#include "data/batch/order.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "data/batch/buckets.h"

/* Longest first: records of equal length with the longer source first, or with the longer and the shorter first in
 * turn, from length to length; or by the source alone. Without sources the first two are the same. */
enum sorting { DOWNWARDS, IN_TURN, BY_SOURCE };

/* What exists only while an order is made. */
struct making {
    const struct sl_order_rule *rule;
    uint32_t *item, *scratch; /* [records] */
    int64_t *wall;            /* where a new batch must begin, ascending */
    int64_t walls;
    int64_t *first;    /* [batches + 1] into item */
    int64_t *sequence; /* [batches] which batch comes at a place */
    int64_t batches;
};

/* A number in [0, count); the bias is negligible (64 bits against count < 2^53). */
static int64_t below(uint64_t key, uint64_t draw, int64_t count)
{
    uint32_t counter[4] = {(uint32_t)draw, (uint32_t)(draw >> 32), 0x6f726472u, 0}, word[4];
    seqlstm_philox4x32(counter, key, word);
    uint64_t value = (uint64_t)word[0] << 32 | word[1];
    return (int64_t)(value % (uint64_t)count);
}

static void shuffle_items(uint32_t *items, int64_t count, uint64_t key)
{
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t k = below(key, (uint64_t)i, i + 1);
        uint32_t item = items[i];
        items[i] = items[k];
        items[k] = item;
    }
}

/* Records in ascending order of this number are sorted. */
static uint64_t rank_of(const struct sl_order_rule *rule, enum sorting by, uint32_t record)
{
    const uint32_t source = rule->source ? (uint32_t)rule->source[record] : 0;
    if (by == BY_SOURCE)
        return ~source;
    const uint32_t length = (uint32_t)rule->lengths[record];
    const bool down = by == DOWNWARDS || length % 2 != 0;
    return (uint64_t)~length << 32 | (down ? ~source : source);
}

/* Rows of both sides. */
static int64_t rows_of(const struct sl_order_rule *rule, uint32_t record)
{
    return (int64_t)rule->lengths[record] + (rule->source ? rule->source[record] : 0);
}

/* Stable; linear in the records: by each byte of the ranks that is not the same in all, the lowest first. */
static void sort_items(const struct making *m, enum sorting by, int64_t begin, int64_t count)
{
    const struct sl_order_rule *rule = m->rule;
    uint32_t *from = m->item + begin, *to = m->scratch + begin;
    uint64_t varying = 0, last = count > 0 ? rank_of(rule, by, from[0]) : 0;
    bool sorted = true;
    for (int64_t i = 1; i < count; i++) {
        const uint64_t rank = rank_of(rule, by, from[i]);
        sorted = sorted && last <= rank;
        varying |= last ^ rank;
        last = rank;
    }
    for (int shift = 0; !sorted && shift < 64; shift += 8) {
        if ((varying >> shift & 255) == 0)
            continue;
        int64_t at[257] = {0};
        for (int64_t i = 0; i < count; i++)
            at[(rank_of(rule, by, from[i]) >> shift & 255) + 1]++;
        for (int value = 0; value < 255; value++)
            at[value + 1] += at[value];
        for (int64_t i = 0; i < count; i++)
            to[at[rank_of(rule, by, from[i]) >> shift & 255]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != m->item + begin)
        memcpy(m->item + begin, from, (size_t)count * sizeof *from);
}

/* Records, bucket after bucket. Within a bucket the order is kept, except for pairs. */
static void put_into_buckets(struct making *m)
{
    const struct sl_order_rule *rule = m->rule;
    int64_t *at = m->wall;
    memset(at, 0, ((size_t)rule->edge_count + 1) * sizeof *at);
    for (int64_t r = 0; r < rule->records; r++)
        at[sl_edges_find(rule->edges, rule->edge_count, rule->lengths[r]) + 1]++;
    for (int64_t b = 0; b < rule->edge_count; b++)
        at[b + 1] += at[b];
    /* at[b] runs from the bucket's begin to its end, which is where the next one begins. */
    for (int64_t i = 0; i < rule->records; i++) {
        uint32_t record = m->item[i];
        m->scratch[at[sl_edges_find(rule->edges, rule->edge_count, rule->lengths[record])]++] = record;
    }
    memcpy(m->item, m->scratch, (size_t)rule->records * sizeof *m->item);
    m->walls = rule->edge_count;
    for (int64_t b = 0; b < rule->edge_count && rule->source; b++) {
        int64_t begin = b > 0 ? at[b - 1] : 0;
        sort_items(m, BY_SOURCE, begin, at[b] - begin);
    }
}

/* About how many sequences a batch has. */
static int64_t usual_batch(const struct sl_order_rule *rule)
{
    int64_t size = rule->batch_size > 0 ? rule->batch_size : rule->records, rows = 0;
    for (int64_t r = 0; r < rule->records; r++)
        rows += rows_of(rule, (uint32_t)r);
    if (rule->batch_size == 0 && rule->max_tokens > 0 && rows > 0)
        size = (int64_t)((double)rule->max_tokens * (double)rule->records / (double)rows);
    return size > 1 ? size : 1;
}

static void sort_pools(struct making *m)
{
    const struct sl_order_rule *rule = m->rule;
    int64_t size = usual_batch(rule);
    int64_t window = rule->pool < rule->records / size + 1 ? rule->pool * size : rule->records;
    for (int64_t at = 0; at < rule->records; at += window) {
        sort_items(m, IN_TURN, at, rule->records - at < window ? rule->records - at : window);
        m->wall[m->walls++] = at;
    }
}

/* The length that a batch is padded to, when `longest` is that of its sequences. */
static int64_t pad(const struct sl_order_rule *rule, int64_t longest)
{
    if (rule->padding == SL_PADDING_LONGEST)
        return rule->longest > longest ? rule->longest : longest;
    if (rule->padding == SL_PADDING_BUCKET && rule->edge_count > 0) {
        int64_t edge = rule->edges[sl_edges_find(rule->edges, rule->edge_count, longest)];
        edge = edge < rule->longest ? edge : rule->longest;
        return edge > longest ? edge : longest;
    }
    return longest;
}

/* Ends of the batches: batch b is [first[b], first[b + 1]). */
static void cut(struct making *m)
{
    const struct sl_order_rule *rule = m->rule;
    int64_t rows = 0, size = 0, longest = 0, wall = 0;
    for (int64_t i = 0; i < rule->records; i++) {
        int64_t length = rule->lengths[m->item[i]], most = length > longest ? length : longest;
        bool at_wall = false;
        for (; wall < m->walls && m->wall[wall] <= i; wall++)
            at_wall = true;
        int64_t with = (size + 1) * pad(rule, most);
        if (rule->padding == SL_PADDING_NONE)
            with = rows + rows_of(rule, m->item[i]);
        if (i == 0 || at_wall || size == rule->batch_size ||
            (rule->max_tokens > 0 && size > 0 && with > rule->max_tokens)) {
            m->first[m->batches++] = i;
            rows = size = longest = 0;
        }
        longest = length > longest ? length : longest;
        rows += rows_of(rule, m->item[i]);
        size++;
    }
    m->first[m->batches] = rule->records;
}

/* Rows that a batch computes. */
static int64_t count_rows(const struct making *m, int64_t batch)
{
    int64_t rows = 0, longest = 0;
    for (int64_t i = m->first[batch]; i < m->first[batch + 1]; i++) {
        int64_t length = m->rule->lengths[m->item[i]];
        rows += rows_of(m->rule, m->item[i]);
        longest = length > longest ? length : longest;
    }
    bool padded = m->rule->padding != SL_PADDING_NONE;
    return padded ? (m->first[batch + 1] - m->first[batch]) * pad(m->rule, longest) : rows;
}

static void order_batches(struct making *m)
{
    const struct sl_order_rule *rule = m->rule;
    int64_t largest = 0, most = -1, *sequence = m->sequence;
    for (int64_t b = 0; b < m->batches; b++)
        sequence[b] = b;
    for (int64_t b = m->batches - 1; rule->shuffle && b > 0; b--) {
        int64_t k = below(rule->key, (uint64_t)b | UINT64_C(1) << 62, b + 1), other = sequence[k];
        sequence[k] = sequence[b];
        sequence[b] = other;
    }
    if (!rule->largest_first || m->batches == 0)
        return;
    for (int64_t b = 0; b < m->batches; b++) {
        int64_t rows = count_rows(m, sequence[b]);
        if (rows > most) {
            most = rows;
            largest = b;
        }
    }
    int64_t chosen = sequence[largest];
    memmove(sequence + 1, sequence, (size_t)largest * sizeof *sequence);
    sequence[0] = chosen;
}

static int64_t segments_of(const struct sl_order_rule *rule, int64_t steps)
{
    return rule->bptt > 0 && steps > rule->bptt ? (steps + rule->bptt - 1) / rule->bptt : 1;
}

/* The batches in their order, each sorted. */
static void lay_out(struct making *m, struct sl_order *order)
{
    int64_t filled = 0;
    for (int64_t b = 0; b < m->batches; b++) {
        int64_t begin = m->first[m->sequence[b]], count = m->first[m->sequence[b] + 1] - begin;
        sort_items(m, DOWNWARDS, begin, count);
        int64_t steps = pad(m->rule, m->rule->lengths[m->item[begin]]);
        if (order->padded)
            order->padded[b] = (int32_t)steps;
        order->first[b] = filled;
        order->segments_before[b] = order->segments;
        memcpy(order->records + filled, m->item + begin, (size_t)count * sizeof *order->records);
        filled += count;
        order->segments += segments_of(m->rule, steps);
    }
    order->batches = m->batches;
    order->first[m->batches] = filled;
    order->segments_before[m->batches] = order->segments;
}

static void making_deinit(struct making *m)
{
    free(m->item);
    free(m->scratch);
    free(m->wall);
    free(m->first);
    free(m->sequence);
}

/* Records, shuffled, grouped and cut. */
static seqlstm_status make_batches(const struct sl_order_rule *rule, struct making *m, struct seqlstm_error *err)
{
    size_t n = (size_t)rule->records + 1;
    if (rule->records >= (int64_t)UINT32_MAX)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%lld sequences, at most %lld can be batched", (long long)rule->records,
                     (long long)UINT32_MAX - 1);
    m->rule = rule;
    m->item = malloc(n * sizeof *m->item);
    m->scratch = malloc(n * sizeof *m->scratch);
    size_t walls = rule->edge_count > 0 ? (size_t)rule->edge_count : n / (size_t)(rule->pool > 0 ? rule->pool : 1);
    m->wall = calloc(walls + 2, sizeof *m->wall);
    if (!m->item || !m->scratch || !m->wall)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to order %lld records", (long long)rule->records);
    for (int64_t r = 0; r < rule->records; r++)
        m->item[r] = (uint32_t)r;
    if (rule->shuffle)
        shuffle_items(m->item, rule->records, rule->key);
    if (rule->edge_count > 0)
        put_into_buckets(m);
    else if (rule->pools && rule->pool > 0)
        sort_pools(m);
    /* One batch at each place at most; with a batch size far fewer. */
    int64_t most = rule->max_tokens > 0 ? rule->records
                                        : rule->records / (rule->batch_size > 0 ? rule->batch_size : 1) + m->walls + 1;
    most = most < rule->records ? most : rule->records;
    m->first = malloc(((size_t)most + 2) * sizeof *m->first);
    m->sequence = malloc(((size_t)most + 2) * sizeof *m->sequence);
    if (!m->first || !m->sequence)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to order %lld records", (long long)rule->records);
    cut(m);
    return SEQLSTM_OK;
}

seqlstm_status sl_order_make(const struct sl_order_rule *rule, struct sl_order *out, struct seqlstm_error *err)
{
    struct making m = {0};
    struct sl_order order = {0};
    seqlstm_status status = make_batches(rule, &m, err);
    if (status == SEQLSTM_OK) {
        size_t batches = (size_t)m.batches;
        order.records = malloc(((size_t)rule->records + 1) * sizeof *order.records);
        order.first = malloc((batches + 1) * sizeof *order.first);
        order.segments_before = malloc((batches + 1) * sizeof *order.segments_before);
        if (rule->padding != SL_PADDING_NONE)
            order.padded = malloc((batches + 1) * sizeof *order.padded);
        if (!order.records || !order.first || !order.segments_before ||
            (rule->padding != SL_PADDING_NONE && !order.padded))
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory to order %lld records",
                                       (long long)rule->records);
    }
    if (status == SEQLSTM_OK) {
        order_batches(&m);
        lay_out(&m, &order);
        sl_order_deinit(out);
        *out = order;
    } else {
        sl_order_deinit(&order);
    }
    making_deinit(&m);
    return status;
}

void sl_order_deinit(struct sl_order *order)
{
    free(order->records);
    free(order->first);
    free(order->segments_before);
    free(order->padded);
    memset(order, 0, sizeof *order);
}

void sl_order_find(const struct sl_order *order, int64_t ordinal, int64_t *out_batch, int64_t *out_segment)
{
    int64_t low = 0, high = order->batches; /* segments_before[low] <= ordinal < segments_before[high] */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (order->segments_before[middle] <= ordinal)
            low = middle;
        else
            high = middle;
    }
    *out_batch = low;
    *out_segment = ordinal - order->segments_before[low];
}

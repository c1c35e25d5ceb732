/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of random records under random rules against a plain model, which says what batcher.h says and sorts by
 * insertion; and what holds for shuffled ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "oom.h"
#include "data/batch/order.h"

enum { CASES = 600, MOST = 40, EDGES = 3 };

struct order_case {
    uint64_t seed, draws;
    struct sl_order_rule rule;
    int32_t lengths[MOST], source[MOST];
    int64_t edges[EDGES];
};

/* Batches as the model makes them: record numbers, and where batches begin. */
struct plain {
    int count, batches;
    int items[MOST], first[MOST + 1];
};

static int64_t draw(struct order_case *c, int64_t least, int64_t most)
{
    return least + (int64_t)((double)seqlstm_uniform(c->seed, c->draws++, 3, 0) * (double)(most - least + 1));
}

static void draw_case(struct order_case *c, uint64_t seed)
{
    *c = (struct order_case){.seed = seed};
    struct sl_order_rule *r = &c->rule;
    r->records = draw(c, 1, MOST);
    r->lengths = c->lengths;
    r->source = draw(c, 0, 2) == 0 ? c->source : NULL;
    for (int i = 0; i < r->records; i++) {
        c->lengths[i] = (int32_t)draw(c, 0, 9);
        c->source[i] = (int32_t)draw(c, 1, 6);
        r->longest = c->lengths[i] > r->longest ? c->lengths[i] : r->longest;
    }
    r->batch_size = draw(c, 0, 3) ? draw(c, 1, 6) : 0;
    r->max_tokens = r->batch_size == 0 || draw(c, 0, 2) == 0 ? draw(c, 5, 30) : 0;
    r->bptt = draw(c, 0, 1) ? draw(c, 1, 4) : 0;
    r->largest_first = draw(c, 0, 1);
    r->padding = r->source ? SL_PADDING_NONE : (enum sl_padding)draw(c, 0, 3);
    if (draw(c, 0, 1)) {
        for (int e = 0; e < EDGES; e++)
            c->edges[e] = 2 + 3 * e + draw(c, 0, 1);
        r->edges = c->edges;
        r->edge_count = EDGES;
    } else if (draw(c, 0, 2)) {
        r->pools = true;
        r->pool = draw(c, 1, 4);
    }
    r->shuffle = draw(c, 0, 3) == 0;
    r->key = seed;
}

/* ---- the model -------------------------------------------------------------------------------------- */

static int find_bucket(const struct sl_order_rule *r, int64_t length)
{
    int b = 0;
    while (b + 1 < r->edge_count && length > r->edges[b])
        b++;
    return b;
}

static int get_source(const struct sl_order_rule *r, int item)
{
    return r->source ? r->source[item] : 0;
}

/* Longest first; of equal ones the longest source first, or `in_turn` the shortest for even lengths. */
static int compare_lengths(const struct sl_order_rule *r, int a, int b, bool in_turn)
{
    if (r->lengths[a] != r->lengths[b])
        return r->lengths[b] - r->lengths[a];
    int order = get_source(r, b) - get_source(r, a);
    return in_turn && r->lengths[a] % 2 == 0 ? -order : order;
}

enum by { LENGTHS, TURNS, BUCKETS };

static int compare(const struct sl_order_rule *r, int a, int b, enum by by)
{
    if (by != BUCKETS)
        return compare_lengths(r, a, b, by == TURNS);
    int order = find_bucket(r, r->lengths[a]) - find_bucket(r, r->lengths[b]);
    return order ? order : get_source(r, b) - get_source(r, a);
}

static void sort(const struct sl_order_rule *r, int *items, int count, enum by by)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && compare(r, items[k - 1], items[k], by) > 0; k--) {
            int item = items[k];
            items[k] = items[k - 1];
            items[k - 1] = item;
        }
}

/* Records of a pool; 0: no pools. */
static int find_window(const struct sl_order_rule *r)
{
    int64_t rows = 0, size = r->batch_size > 0 ? r->batch_size : r->records;
    for (int i = 0; i < r->records; i++)
        rows += r->lengths[i] + get_source(r, i);
    if (r->batch_size == 0 && rows > 0)
        size = r->max_tokens * r->records / rows;
    size = size > 1 ? size : 1;
    return !r->pools ? 0 : r->pool * size > r->records ? (int)r->records : (int)(r->pool * size);
}

/* Steps of every sequence of a padded batch. */
static int64_t find_steps(const struct sl_order_rule *r, int64_t longest)
{
    if (r->padding == SL_PADDING_LONGEST)
        return r->longest;
    if (r->padding != SL_PADDING_BUCKET || r->edge_count == 0)
        return longest;
    int64_t edge = r->edges[find_bucket(r, longest)];
    edge = edge < r->longest ? edge : r->longest;
    return edge > longest ? edge : longest;
}

/* Rows that a batch of these records computes. */
static int64_t count_rows(const struct sl_order_rule *r, const int *items, int count)
{
    int64_t rows = 0, longest = 0;
    for (int i = 0; i < count; i++) {
        rows += r->lengths[items[i]] + get_source(r, items[i]);
        longest = r->lengths[items[i]] > longest ? r->lengths[items[i]] : longest;
    }
    return r->padding == SL_PADDING_NONE ? rows : count * find_steps(r, longest);
}

static void move_largest(const struct sl_order_rule *r, struct plain *p)
{
    int largest = 0;
    for (int b = 1; b < p->batches; b++)
        if (count_rows(r, p->items + p->first[b], p->first[b + 1] - p->first[b]) >
            count_rows(r, p->items + p->first[largest], p->first[largest + 1] - p->first[largest]))
            largest = b;
    const int begin = p->first[largest], size = p->first[largest + 1] - begin;
    int chosen[MOST];
    memcpy(chosen, p->items + begin, (size_t)size * sizeof *chosen);
    memmove(p->items + size, p->items, (size_t)begin * sizeof *chosen);
    memcpy(p->items, chosen, (size_t)size * sizeof *chosen);
    for (int b = largest; b > 0; b--)
        p->first[b] = p->first[b - 1] + size;
}

static void make_plain(const struct sl_order_rule *r, struct plain *p)
{
    const int window = find_window(r);
    *p = (struct plain){.count = (int)r->records};
    for (int i = 0; i < p->count; i++)
        p->items[i] = i;
    if (r->edge_count > 0)
        sort(r, p->items, p->count, BUCKETS);
    for (int at = 0; window && at < p->count; at += window)
        sort(r, p->items + at, p->count - at < window ? p->count - at : window, TURNS);
    for (int i = 0; i < p->count; i++) {
        const int begin = p->batches ? p->first[p->batches - 1] : 0, size = i - begin;
        bool wall = window && i % window == 0;
        if (i > 0 && r->edge_count > 0)
            wall = find_bucket(r, r->lengths[p->items[i]]) != find_bucket(r, r->lengths[p->items[i - 1]]);
        if (i == 0 || wall || size == r->batch_size ||
            (r->max_tokens > 0 && count_rows(r, p->items + begin, size + 1) > r->max_tokens))
            p->first[p->batches++] = i;
    }
    p->first[p->batches] = p->count;
    if (r->largest_first)
        move_largest(r, p);
    for (int b = 0; b < p->batches; b++)
        sort(r, p->items + p->first[b], p->first[b + 1] - p->first[b], LENGTHS);
}

/* ---- the comparison --------------------------------------------------------------------------------- */

/* Each ordinal is found in its batch and segment. */
static void check_segments(const struct order_case *c, const struct sl_order *order)
{
    int64_t ordinal = 0;
    for (int64_t b = 0; b < order->batches; b++) {
        const int64_t longest = c->lengths[order->records[order->first[b]]];
        const int64_t steps = find_steps(&c->rule, longest), bptt = c->rule.bptt;
        const int64_t segments = bptt > 0 && steps > bptt ? (steps + bptt - 1) / bptt : 1;
        assert_true(c->rule.padding == SL_PADDING_NONE || order->padded[b] == steps);
        for (int64_t s = 0; s < segments; s++) {
            int64_t batch = -1, segment = -1;
            sl_order_find(order, ordinal++, &batch, &segment);
            assert_true(batch == b && segment == s);
        }
    }
    assert_int_equal(order->segments, ordinal);
}

static void check_plain(const struct order_case *c, const struct sl_order *order)
{
    struct plain p;
    make_plain(&c->rule, &p);
    if (order->batches != p.batches)
        fail_msg("case %d: %d batches, expected %d", (int)c->seed, (int)order->batches, p.batches);
    for (int b = 0; b <= p.batches; b++)
        assert_int_equal(order->first[b], p.first[b]);
    for (int i = 0; i < p.count; i++)
        if ((int)order->records[i] != p.items[i])
            fail_msg("case %d: record %d at place %d, expected %d", (int)c->seed, (int)order->records[i], i,
                     p.items[i]);
}

/* Each record once, in batches within their limits, of one bucket. */
static void check_shuffled(const struct order_case *c, const struct sl_order *order)
{
    const struct sl_order_rule *r = &c->rule;
    bool seen[MOST] = {false};
    int64_t first_rows = 0, most_rows = 0;
    for (int64_t b = 0; b < order->batches; b++) {
        const int size = (int)(order->first[b + 1] - order->first[b]);
        int items[MOST];
        for (int i = 0; i < size; i++) {
            items[i] = (int)order->records[order->first[b] + i];
            assert_false(seen[items[i]]);
            seen[items[i]] = true;
            assert_true(i == 0 || compare(r, items[i - 1], items[i], LENGTHS) <= 0);
            assert_int_equal(find_bucket(r, r->lengths[items[i]]), find_bucket(r, r->lengths[items[0]]));
        }
        const int64_t rows = count_rows(r, items, size);
        assert_true(size > 0 && (r->batch_size == 0 || size <= r->batch_size));
        assert_true(size == 1 || r->max_tokens == 0 || rows <= r->max_tokens);
        first_rows = b == 0 ? rows : first_rows;
        most_rows = rows > most_rows ? rows : most_rows;
    }
    for (int i = 0; i < r->records; i++)
        assert_true(seen[i]);
    assert_true(!r->largest_first || first_rows == most_rows);
}

static void test_random_rules(void **state)
{
    (void)state;
    struct sl_order order = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct order_case c;
        draw_case(&c, seed);
        if (sl_order_make(&c.rule, &order, &err) != SEQLSTM_OK)
            fail_msg("case %d: %s", (int)seed, err.message);
        if (!c.rule.shuffle)
            check_plain(&c, &order);
        check_shuffled(&c, &order);
        check_segments(&c, &order);
    }
    sl_order_deinit(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_rules),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

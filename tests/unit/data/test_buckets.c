/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of buckets: the dynamic program against exhaustive search, with and without a measured cost, against the known
 * numbers of the greedy generator, and what lists become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "oom.h"
#include "data/batch/buckets.h"

#define LENGTHS 9

static struct sl_histogram make_histogram(const int32_t *lengths, const int32_t *sources, int64_t count)
{
    struct sl_histogram h;
    assert_int_equal(sl_histogram_make(lengths, sources, count, &h, NULL), SEQLSTM_OK);
    return h;
}

/* Price of the edges that the bits of `set` choose among the lengths; the longest is always one. */
static double price_of(const struct sl_histogram *h, const struct sl_bucket_rule *rule, unsigned set,
                       int64_t *out_count)
{
    double price = 0;
    int64_t first = 0;
    *out_count = 0;
    for (int64_t i = 0; i < h->count; i++) {
        if (i + 1 < h->count && !(set >> i & 1))
            continue;
        price += sl_bucket_price(rule, h, first, i + 1);
        ++*out_count;
        first = i + 1;
    }
    return price;
}

static void compare_with_all(const struct sl_histogram *h, const struct sl_bucket_rule *rule)
{
    double best[LENGTHS + 1], best_auto = -1;
    struct sl_edges edges;
    for (int k = 0; k <= LENGTHS; k++)
        best[k] = -1;
    for (unsigned set = 0; set < 1u << (h->count - 1); set++) {
        int64_t count;
        double price = price_of(h, rule, set, &count);
        double with_shapes = price + (double)count * (rule->cost ? rule->cost->shape_ns : 0);
        best[count] = best[count] < 0 || price < best[count] ? price : best[count];
        best_auto = best_auto < 0 || with_shapes < best_auto ? with_shapes : best_auto;
    }
    for (int64_t k = 1; k <= h->count; k++) {
        assert_int_equal(sl_edges_best(h, rule, k, &edges, NULL), SEQLSTM_OK);
        assert_int_equal(edges.count, k);
        assert_true(edges.cost <= best[k] * (1 + 1e-12) && edges.cost >= best[k] * (1 - 1e-12));
        assert_int_equal(edges.lengths[k - 1], h->length[h->count - 1]);
        sl_edges_deinit(&edges);
    }
    assert_int_equal(sl_edges_best(h, rule, 50, &edges, NULL), SEQLSTM_OK);
    assert_int_equal(edges.count, h->count);
    sl_edges_deinit(&edges);
    assert_int_equal(sl_edges_auto(h, rule, &edges, NULL), SEQLSTM_OK);
    double found = edges.cost + (double)edges.count * (rule->cost ? rule->cost->shape_ns : 0);
    assert_true(found <= best_auto * (1 + 1e-12) && found >= best_auto * (1 - 1e-12));
    sl_edges_deinit(&edges);
}

static void test_best_is_exhaustive_search(void **state)
{
    (void)state;
    static const struct sl_step_cost flat = {.count = 2, .points = {{1, 900}, {64, 950}}, .shape_ns = 9000};
    static const struct sl_step_cost bent = {
        .count = 4, .points = {{1, 100}, {2, 130}, {8, 150}, {16, 420}}, .batch_ns = 500, .shape_ns = 100};
    const struct sl_step_cost *const costs[] = {NULL, &flat, &bent};
    for (uint32_t round = 0; round < 120; round++) {
        int32_t lengths[200], sources[200];
        int64_t n = 0;
        for (uint32_t i = 0; i < LENGTHS; i++) {
            uint32_t counter[4] = {i, round, 0, 0}, word[4];
            seqlstm_philox4x32(counter, 99, word);
            for (uint32_t c = 0; c < 1 + word[0] % 20; c++)
                lengths[n++] = (int32_t)(i * 3 + word[1] % 3 + 1);
        }
        for (int64_t r = 0; r < n; r++)
            sources[r] = (int32_t)((lengths[r] + r * r * 7 % 11) % 24);
        struct sl_histogram h = make_histogram(lengths, round % 2 ? sources : NULL, n); /* pairs every other time */
        assert_int_equal(h.count, LENGTHS);
        for (int c = 0; c < 3; c++)
            for (int padded = 0; padded < 2; padded++)
                for (int tokens = 0; tokens < 2; tokens++) {
                    struct sl_bucket_rule rule = {.batch_size = 1 + round % 12,
                                                  .max_tokens = tokens ? 40 : 0,
                                                  .padded = padded != 0,
                                                  .cost = costs[c]};
                    compare_with_all(&h, &rule);
                }
        sl_histogram_deinit(&h);
    }
}

/* More lengths than the program looks at one by one are joined; nothing is lost and it still ends at the longest. */
static void check_many(const int32_t *lengths, const int32_t *sources, int64_t n)
{
    struct sl_edges edges;
    struct sl_histogram h = make_histogram(lengths, sources, n);
    assert_true(h.count > SL_BUCKET_LENGTHS_MOST && h.source_count == (sources ? SL_BUCKET_LENGTHS_MOST : 0));
    struct sl_bucket_rule rule = {.batch_size = 8};
    double before = -1;
    for (int64_t k = 1; k <= 32; k *= 2) {
        assert_int_equal(sl_edges_best(&h, &rule, k, &edges, NULL), SEQLSTM_OK);
        assert_int_equal(edges.count, k);
        assert_int_equal(edges.lengths[k - 1], h.length[h.count - 1]);
        for (int64_t i = 1; i < k; i++)
            assert_true(edges.lengths[i] > edges.lengths[i - 1]);
        assert_true(before < 0 || edges.cost < before);
        before = edges.cost;
        sl_edges_deinit(&edges);
    }
    sl_histogram_deinit(&h);
}

static void test_many_lengths(void **state)
{
    (void)state;
    int64_t n = 5000;
    int32_t *lengths = malloc((size_t)n * sizeof *lengths), *sources = malloc((size_t)n * sizeof *sources);
    assert_true(lengths && sources);
    for (int64_t i = 0; i < n; i++) {
        lengths[i] = (int32_t)(i * i % 30011);
        sources[i] = lengths[i] + (int32_t)(i % 17);
    }
    check_many(lengths, NULL, n);
    check_many(lengths, sources, n);
    /* all sources alike: in one bucket, joined lengths cost what each by itself does */
    for (int64_t i = 0; i < n; i++)
        sources[i] = 7;
    struct sl_histogram h = make_histogram(lengths, sources, n);
    struct sl_edges edges;
    const struct sl_bucket_rule rule = {.batch_size = 8};
    assert_int_equal(h.source_count, 1);
    assert_int_equal(sl_edges_best(&h, &rule, 1, &edges, NULL), SEQLSTM_OK);
    assert_true(edges.cost == sl_bucket_price(&rule, &h, 0, h.count));
    sl_edges_deinit(&edges);
    sl_histogram_deinit(&h);
    free(lengths);
    free(sources);
}

static void test_greedy_and_lists(void **state)
{
    (void)state;
    static const int32_t lengths[] = {1, 1, 1, 2, 3, 3, 3, 3, 7, 9};
    static const int64_t said[] = {2, 5, 6, 8};
    struct sl_histogram h = make_histogram(lengths, NULL, 10);
    struct sl_bucket_rule rule = {.batch_size = 4};
    struct sl_edges edges;
    assert_int_equal(sl_edges_greedy(&h, &rule, &edges, NULL), SEQLSTM_OK);
    assert_int_equal(edges.count, 3); /* 1 and 2: four; 3: four; 7 and 9: what is left */
    assert_int_equal(edges.lengths[0], 2);
    assert_int_equal(edges.lengths[1], 3);
    assert_int_equal(edges.lengths[2], 9);
    assert_true(edges.cost == 2 + 3 + 9);
    sl_edges_deinit(&edges);
    struct sl_bucketing list = {.kind = SL_BUCKETING_LENGTHS, .edges = said, .edge_count = 4};
    assert_int_equal(sl_edges_make(&list, &h, &rule, &edges, NULL), SEQLSTM_OK);
    assert_int_equal(edges.count, 4); /* 6 holds nothing; the longest is added */
    assert_int_equal(edges.lengths[2], 8);
    assert_int_equal(edges.lengths[3], 9);
    assert_true(edges.cost == 2 + 3 + 7 + 9);
    assert_int_equal(sl_edges_find(edges.lengths, 4, 1), 0);
    assert_int_equal(sl_edges_find(edges.lengths, 4, 3), 1);
    assert_int_equal(sl_edges_find(edges.lengths, 4, 9), 3);
    assert_int_equal(sl_edges_find(edges.lengths, 4, 99), 3);
    sl_edges_deinit(&edges);
    sl_histogram_deinit(&h);
    h = make_histogram(lengths, NULL, 0);
    assert_int_equal(sl_edges_greedy(&h, &rule, &edges, NULL), SEQLSTM_OK);
    assert_int_equal(edges.count, 0);
    sl_edges_deinit(&edges);
    sl_histogram_deinit(&h);
}

/* Lines between the points and beyond; what noise did is mended. */
static void test_step_cost(void **state)
{
    (void)state;
    static const struct sl_step_cost cost = {.count = 3, .points = {{1, 100}, {4, 130}, {8, 170}}};
    assert_true(sl_step_cost_at(NULL, 7) == 1 && sl_step_cost_at(NULL, 0.25) == 0.25);
    assert_true(sl_step_cost_at(&cost, 1) == 100 && sl_step_cost_at(&cost, 4) == 130);
    assert_true(sl_step_cost_at(&cost, 6) == 150 && sl_step_cost_at(&cost, 16) == 250);
    assert_true(sl_step_cost_at(&cost, 0.5) == 50);
    struct sl_step_cost noisy = {.count = 4, .points = {{1, 10}, {2, 90}, {4, 80}, {8, 400}}};
    sl_step_cost_smooth(&noisy);
    assert_true(noisy.points[3].step_ns == 400 && noisy.points[2].step_ns == 200);
    assert_true(noisy.points[1].step_ns == 100 && noisy.points[0].step_ns == 50);
    struct sl_step_cost falling = {.count = 2, .points = {{1, 100}, {4, 80}}};
    sl_step_cost_smooth(&falling);
    assert_true(falling.points[0].step_ns == 100 && falling.points[1].step_ns == 100);
}

/* Two lengths, one bucket: while both run a step costs both, then the half that is longer. */
static void test_packed_price(void **state)
{
    (void)state;
    static const struct sl_step_cost cost = {.count = 3, .points = {{1, 100}, {2, 110}, {4, 130}}, .batch_ns = 7};
    static const int32_t lengths[] = {3, 3, 3, 3, 5, 5, 5, 5};
    struct sl_histogram h = make_histogram(lengths, NULL, 8);
    struct sl_bucket_rule rule = {.batch_size = 4, .cost = &cost};
    assert_true(sl_bucket_price(&rule, &h, 0, 2) == 2 * (3 * 130 + 2 * 110 + 7));
    assert_true(sl_bucket_price(&rule, &h, 1, 2) == 5 * 130 + 7);
    rule.padded = true;
    assert_true(sl_bucket_price(&rule, &h, 0, 2) == 2 * (5 * 130 + 7));
    rule.cost = NULL;
    assert_true(sl_bucket_price(&rule, &h, 0, 2) == 2 * 5);
    sl_histogram_deinit(&h);
}

static int descending(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a < b) - (a > b);
}

/* Each bucket of pairs costs its edge and its longest source for each batch: counted one by one. */
static void test_price_of_pairs(void **state)
{
    (void)state;
    static const struct sl_step_cost cost = {
        .count = 1, .points = {{4, 77}}, .source_count = 2, .source_points = {{1, 100}, {4, 130}}};
    static const int32_t lengths[] = {2, 2, 2, 2, 2, 3, 3, 5, 5, 5, 5};
    static const int32_t sources[] = {9, 1, 4, 0, 7, 2, 8, 3, 3, 6, 11};
    struct sl_histogram h = make_histogram(lengths, sources, 11);
    static const int64_t begins[] = {0, 5, 7, 11};
    for (int64_t size = 1; size < 6; size++)
        for (int64_t first = 0; first < h.count; first++)
            for (int64_t last = first + 1; last <= h.count; last++) {
                int32_t sorted[11];
                int64_t held = begins[last] - begins[first], steps = 0;
                double price = 0;
                memcpy(sorted, sources + begins[first], (size_t)held * sizeof *sorted);
                qsort(sorted, (size_t)held, sizeof *sorted, descending);
                for (int64_t at = 0; at < held; at += size) {
                    steps += h.length[last - 1] + sorted[at];
                    price += sorted[at] * sl_step_cost_source_at(&cost, (double)(held - at < size ? held - at : size));
                }
                struct sl_bucket_rule rule = {.batch_size = size};
                assert_true(sl_bucket_price(&rule, &h, first, last) == (double)steps);
                rule.cost = &cost;
                struct sl_histogram alone = h;
                alone.source_count = 0;
                double found = sl_bucket_price(&rule, &h, first, last) - sl_bucket_price(&rule, &alone, first, last);
                assert_true(found > price - 1e-6 && found < price + 1e-6);
            }
    sl_histogram_deinit(&h);
}

/* `max_tokens` counts both sides of a pair: the edge, and the mean of the sources. */
static void test_tokens_of_pairs(void **state)
{
    (void)state;
    static const int32_t lengths[] = {2, 2, 4}, sources[] = {1, 3, 5};
    static const struct {
        int64_t max_tokens;
        double price; /* of steps, in batches of one, two or three */
    } cases[] = {{6, 12 + 9}, {12, 12 + 9}, {14, 8 + 6}, {20, 8 + 6}, {21, 4 + 5}};
    struct sl_histogram h = make_histogram(lengths, sources, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_bucket_rule rule = {.max_tokens = cases[i].max_tokens};
        assert_true(sl_bucket_price(&rule, &h, 0, 2) == cases[i].price);
    }
    sl_histogram_deinit(&h);
}

/* Twice as many lengths as are looked at one by one, each as often: neighbours are joined, under the longer one. */
static void test_neighbours_are_joined(void **state)
{
    (void)state;
    enum { MANY = 2 * SL_BUCKET_LENGTHS_MOST };
    int32_t lengths[MANY], ones[MANY];
    for (int32_t i = 0; i < MANY; i++) {
        lengths[i] = MANY - i;
        ones[i] = 1;
    }
    struct sl_histogram h = make_histogram(ones, lengths, MANY);
    assert_int_equal(h.source_count, SL_BUCKET_LENGTHS_MOST);
    for (int64_t s = 0; s < h.source_count; s++) {
        assert_int_equal(h.source_length[s], 2 * (s + 1));
        assert_int_equal(h.below[h.source_count + s], 2);
    }
    sl_histogram_deinit(&h);
    h = make_histogram(lengths, NULL, MANY);
    struct sl_edges edges;
    const struct sl_bucket_rule rule = {.batch_size = MANY / 4};
    assert_int_equal(sl_edges_best(&h, &rule, 4, &edges, NULL), SEQLSTM_OK);
    for (int64_t k = 0; k < 4; k++)
        assert_int_equal(edges.lengths[k], (k + 1) * MANY / 4);
    sl_edges_deinit(&edges);
    sl_histogram_deinit(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_is_exhaustive_search),
        cmocka_unit_test(test_many_lengths),
        cmocka_unit_test(test_greedy_and_lists),
        cmocka_unit_test(test_step_cost),
        cmocka_unit_test(test_packed_price),
        cmocka_unit_test(test_price_of_pairs),
        cmocka_unit_test(test_tokens_of_pairs),
        cmocka_unit_test(test_neighbours_are_joined),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

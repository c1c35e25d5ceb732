/* SPDX-License-Identifier: Apache-2.0 */
/* The order of an epoch: where batches begin and end, which comes first, and which records are together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "data/batch/order.h"

static struct sl_order make(struct sl_order_rule rule)
{
    struct sl_order order = {0};
    assert_int_equal(sl_order_make(&rule, &order, NULL), SEQLSTM_OK);
    return order;
}

/* The records of all batches in order; a batch ends at each -1. */
static void expect_batches(struct sl_order_rule rule, const int64_t *expected)
{
    struct sl_order order = make(rule);
    int64_t at = 0;
    for (int64_t b = 0; b < order.batches; b++) {
        for (int64_t i = order.first[b]; i < order.first[b + 1]; i++)
            assert_int_equal(order.records[i], expected[at++]);
        assert_int_equal(expected[at++], -1);
    }
    assert_int_equal(at > 0 ? order.first[order.batches] : 0, rule.records);
    sl_order_deinit(&order);
}

static void test_batches_are_cut_at_their_limits(void **state)
{
    (void)state;
    static const int32_t lengths[] = {3, 1, 2, 5, 2, 4};
    struct sl_order_rule rule = {.records = 6, .lengths = lengths, .longest = 5};
    rule.batch_size = 4;
    expect_batches(rule, (const int64_t[]){3, 0, 2, 1, -1, 5, 4, -1});
    rule.batch_size = 0;
    rule.max_tokens = 6; /* 3 + 1 + 2 fit exactly */
    expect_batches(rule, (const int64_t[]){0, 2, 1, -1, 3, -1, 5, 4, -1});
    rule.max_tokens = 4; /* 5 is a batch alone */
    expect_batches(rule, (const int64_t[]){0, 1, -1, 2, -1, 3, -1, 4, -1, 5, -1});
    rule.max_tokens = 8; /* padded to the longest of the batch: 2 * 3, 2, 5, 2 * 4 */
    rule.padding = SL_PADDING_BATCH;
    expect_batches(rule, (const int64_t[]){0, 1, -1, 2, -1, 3, -1, 5, 4, -1});
}

static void test_pools_and_buckets(void **state)
{
    (void)state;
    static const int32_t lengths[] = {3, 1, 2, 5, 2, 4};
    static const int64_t edges[] = {2, 4};
    struct sl_order_rule rule = {.records = 6, .lengths = lengths, .longest = 5, .batch_size = 2};
    rule.pools = true;
    rule.pool = 2; /* four records are sorted, then two */
    expect_batches(rule, (const int64_t[]){3, 0, -1, 2, 1, -1, 5, 4, -1});
    rule.pools = false;
    rule.edges = edges;
    rule.edge_count = 2; /* up to 2; the rest, also 5, in the last */
    expect_batches(rule, (const int64_t[]){2, 1, -1, 4, -1, 3, 0, -1, 5, -1});
    rule.padding = SL_PADDING_BUCKET;
    struct sl_order order = make(rule);
    static const int32_t padded[] = {2, 2, 5, 4};
    assert_memory_equal(order.padded, padded, sizeof padded);
    sl_order_deinit(&order);
}

/* Of pairs with targets of one length, sources are alike: upwards for even lengths, downwards for odd ones. */
static void test_pairs_are_sorted_by_both_sides(void **state)
{
    (void)state;
    static const int32_t lengths[] = {2, 3, 2, 3, 2, 3}, source[] = {7, 1, 5, 9, 6, 4};
    struct sl_order_rule rule = {
        .records = 6, .lengths = lengths, .source = source, .longest = 3, .batch_size = 3, .pools = true, .pool = 2};
    expect_batches(rule, (const int64_t[]){3, 5, 1, -1, 0, 4, 2, -1});
    rule.pools = false;
    rule.batch_size = 0;
    rule.max_tokens = 13; /* both sides count */
    expect_batches(rule, (const int64_t[]){1, 0, -1, 2, -1, 3, -1, 4, -1, 5, -1});
}

/* The batch with most rows comes first, of equal ones the one that is first anyway; the others keep their order. */
static void test_the_largest_batch_comes_first(void **state)
{
    (void)state;
    static const int32_t equal[] = {2, 2, 2, 2, 2, 2, 2, 2}, one[] = {2, 2, 2, 2, 2, 7, 2, 2};
    for (uint64_t key = 1; key < 20; key++) {
        struct sl_order_rule rule = {
            .records = 8, .lengths = equal, .longest = 2, .batch_size = 1, .shuffle = true, .key = key};
        struct sl_order plain = make(rule);
        rule.largest_first = true;
        struct sl_order equals = make(rule);
        rule.lengths = one;
        struct sl_order order = make(rule);
        assert_memory_equal(plain.records, equals.records, 8 * sizeof *plain.records);
        assert_int_equal(order.records[0], 5);
        for (int64_t i = 0, at = 1; i < 8; i++)
            if (plain.records[i] != 5)
                assert_int_equal(order.records[at++], plain.records[i]);
        sl_order_deinit(&plain);
        sl_order_deinit(&equals);
        sl_order_deinit(&order);
    }
}

/* Each place sees each record about as often as any other. */
static void test_shuffling_is_even(void **state)
{
    (void)state;
    enum { RECORDS = 5, EPOCHS = 4000 };
    static const int32_t lengths[RECORDS] = {1, 1, 1, 1, 1};
    int seen[RECORDS][RECORDS] = {{0}};
    for (uint64_t key = 0; key < EPOCHS; key++) {
        struct sl_order order = make((struct sl_order_rule){
            .records = RECORDS, .lengths = lengths, .longest = 1, .batch_size = 1, .shuffle = true, .key = key});
        unsigned all = 0;
        for (int64_t i = 0; i < RECORDS; i++) {
            seen[i][order.records[i]]++;
            all |= 1u << order.records[i];
        }
        assert_int_equal(all, 31);
        sl_order_deinit(&order);
    }
    for (int place = 0; place < RECORDS; place++)
        for (int record = 0; record < RECORDS; record++)
            assert_in_range(seen[place][record], 800 - 127, 800 + 127); /* 5 deviations of a share of 1 / 5 */
}

static void test_segments(void **state)
{
    (void)state;
    static const int32_t lengths[] = {4, 5, 1, 8};
    struct sl_order order =
        make((struct sl_order_rule){.records = 4, .lengths = lengths, .longest = 8, .batch_size = 1, .bptt = 4});
    static const int64_t batches[] = {0, 1, 1, 2, 3, 3}, segments[] = {0, 0, 1, 0, 0, 1};
    assert_int_equal(order.segments, 6);
    for (int64_t ordinal = 0; ordinal < 6; ordinal++) {
        int64_t batch, segment;
        sl_order_find(&order, ordinal, &batch, &segment);
        assert_int_equal(batch, batches[ordinal]);
        assert_int_equal(segment, segments[ordinal]);
    }
    sl_order_deinit(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_are_cut_at_their_limits),
        cmocka_unit_test(test_pools_and_buckets),
        cmocka_unit_test(test_pairs_are_sorted_by_both_sides),
        cmocka_unit_test(test_the_largest_batch_comes_first),
        cmocka_unit_test(test_shuffling_is_even),
        cmocka_unit_test(test_segments),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

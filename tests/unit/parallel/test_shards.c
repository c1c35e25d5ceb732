/* SPDX-License-Identifier: Apache-2.0 */
/* Shards, the tree over them, and sums in its order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "parallel/shards.h"
#include "parallel/tree_sum.h"
#include "oom.h"

static const struct sl_rank_group alone = {.ranks = 1};

enum { SHARDS = 40 };

static void push(struct sl_shard_stack *stack, struct sl_shard_block block)
{
    sl_shard_stack_push(stack, block);
    while (sl_shard_stack_merge(stack))
        ;
}

static void every_shard_belongs_to_one_rank(void **state)
{
    (void)state;
    for (int32_t shards = 1; shards <= SHARDS; shards++)
        for (int32_t ranks = 1; ranks <= shards; ranks++) {
            assert_int_equal(sl_shards_get_first(shards, ranks, 0), 0);
            assert_int_equal(sl_shards_get_first(shards, ranks, ranks), shards);
            for (int32_t r = 0; r < ranks; r++) {
                const int32_t own = sl_shards_get_first(shards, ranks, r + 1) - sl_shards_get_first(shards, ranks, r);
                assert_in_range(own, shards / ranks, (shards + ranks - 1) / ranks);
            }
        }
}

/* The blocks of all ranks, one after the other, become one. */
static void blocks_of_all_ranks_make_the_tree(void **state)
{
    (void)state;
    for (int32_t shards = 1; shards <= SHARDS; shards++)
        for (int32_t ranks = 1; ranks <= shards; ranks++) {
            struct sl_shard_stack all = {.shards = shards};
            for (int32_t r = 0; r < ranks; r++) {
                struct sl_shard_stack own;
                sl_shards_get_blocks(shards, ranks, r, &own);
                assert_true(own.count >= 1);
                for (int32_t b = 0; b < own.count; b++)
                    push(&all, own.blocks[b]);
            }
            assert_int_equal(all.count, 1);
        }
}

/* Equal powers of two leave one block on each rank: the least that can be exchanged. */
static void even_splits_leave_one_block(void **state)
{
    (void)state;
    for (int32_t ranks = 1; ranks <= 16; ranks *= 2) {
        struct sl_shard_stack own;
        sl_shards_get_blocks(16, ranks, ranks - 1, &own);
        assert_int_equal(own.count, 1);
    }
}

/* ((a + b) + (c + d)) + e, and no other order: the values tell the order by what is rounded away. */
static void sums_follow_the_tree(void **state)
{
    (void)state;
    const float leaves[5] = {1e8f, 3.0f, -1e8f, 5.0f, 7.0f};
    float sum = 0;
    struct sl_tree_sum *tree = NULL;
    assert_int_equal(sl_tree_sum_create(&alone, 5, 1, false, NULL, &tree, NULL), SEQLSTM_OK);
    for (int repetition = 0; repetition < 2; repetition++) {
        for (int k = 0; k < 5; k++)
            assert_int_equal(sl_tree_sum_add(tree, &leaves[k], NULL), SEQLSTM_OK);
        assert_int_equal(sl_tree_sum_finish(tree, &sum, NULL), SEQLSTM_OK);
        const float left = leaves[0] + leaves[1], right = leaves[2] + leaves[3], both = left + right;
        const float expected = both + leaves[4];
        assert_memory_equal(&sum, &expected, sizeof sum);
    }
    sl_tree_sum_destroy(tree);
}

static void mistakes_of_the_caller_are_errors(void **state)
{
    (void)state;
    const double leaf = 1;
    double sum;
    struct sl_tree_sum *tree = NULL;
    assert_int_equal(sl_tree_sum_create(&alone, 0, 1, true, NULL, &tree, NULL), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(sl_tree_sum_create(&alone, 1, 1, true, NULL, &tree, NULL), SEQLSTM_OK);
    assert_int_equal(sl_tree_sum_finish(tree, &sum, NULL), SEQLSTM_INTERNAL);
    assert_int_equal(sl_tree_sum_add(tree, &leaf, NULL), SEQLSTM_OK);
    assert_int_equal(sl_tree_sum_add(tree, &leaf, NULL), SEQLSTM_INTERNAL);
    assert_int_equal(sl_tree_sum_finish(tree, &sum, NULL), SEQLSTM_OK);
    assert_true(sum == 1);
    assert_int_equal(sl_tree_sum_finish(tree, &sum, NULL), SEQLSTM_INTERNAL); /* the leaf of before is gone */
    sl_tree_sum_destroy(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shard_belongs_to_one_rank),   cmocka_unit_test(blocks_of_all_ranks_make_the_tree),
        cmocka_unit_test(even_splits_leave_one_block),       cmocka_unit_test(sums_follow_the_tree),
        cmocka_unit_test(mistakes_of_the_caller_are_errors),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

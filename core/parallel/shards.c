/* SPDX-License-Identifier: Apache-2.0 */
/* See shards.h. */
#include "parallel/shards.h"

#include <stdbool.h>

int32_t sl_shards_get_first(int32_t shards, int32_t ranks, int32_t rank)
{
    return (int32_t)((int64_t)shards * rank / ranks);
}

static int64_t get_end(const struct sl_shard_stack *stack, struct sl_shard_block block)
{
    const int64_t end = ((int64_t)block.index + 1) << block.level;
    return end < stack->shards ? end : stack->shards;
}

/* A left half without a right one counts as the block above. */
static void promote(const struct sl_shard_stack *stack, struct sl_shard_block *block)
{
    while (block->index > 0 && block->index % 2 == 0 && get_end(stack, *block) == stack->shards) {
        block->index /= 2;
        block->level++;
    }
}

void sl_shard_stack_push(struct sl_shard_stack *stack, struct sl_shard_block block)
{
    promote(stack, &block);
    stack->blocks[stack->count++] = block;
}

bool sl_shard_stack_merge(struct sl_shard_stack *stack)
{
    if (stack->count < 2)
        return false;
    struct sl_shard_block *left = &stack->blocks[stack->count - 2];
    const struct sl_shard_block *right = left + 1;
    if (left->level != right->level || left->index % 2 != 0 || right->index != left->index + 1)
        return false;
    left->level++;
    left->index /= 2;
    stack->count--;
    promote(stack, left);
    return true;
}

void sl_shards_get_blocks(int32_t shards, int32_t ranks, int32_t rank, struct sl_shard_stack *out)
{
    *out = (struct sl_shard_stack){.shards = shards};
    for (int32_t s = sl_shards_get_first(shards, ranks, rank); s < sl_shards_get_first(shards, ranks, rank + 1); s++) {
        sl_shard_stack_push(out, (struct sl_shard_block){0, s});
        while (sl_shard_stack_merge(out))
            ;
    }
}

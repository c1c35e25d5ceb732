/* SPDX-License-Identifier: Apache-2.0 */
/* Shards: fixed slices of each batch, and the ranks that compute them.
 *
 * The S shards of a batch are computed by N <= S ranks; each rank has shards that lie side by side. What the shards
 * yield is added as a binary tree over all S, so that the sum has the same bits for every N:
 *
 *   S = 5:  ((0 + 1) + (2 + 3)) + 4      a block of level l begins at a multiple of 2^l; one without a right half
 *                                        counts as its left half
 *
 * A rank adds the blocks that lie within its shards; what is left is added when all ranks have exchanged theirs.
 */
#ifndef SL_PARALLEL_SHARDS_H
#define SL_PARALLEL_SHARDS_H

#include <stdint.h>

/* The first shard of a rank; that of rank + 1 is the end of its shards. */
int32_t sl_shards_get_first(int32_t shards, int32_t ranks, int32_t rank);

/* A block of the tree: shards [index << level, …), as far as there are shards. */
struct sl_shard_block {
    int32_t level, index;
};

enum { SL_SHARD_LEVELS = 32, SL_SHARDS_MOST = 65536 };

/* Blocks beside each other, from left to right; as few as possible. */
struct sl_shard_stack {
    int32_t shards;
    int32_t count;
    struct sl_shard_block blocks[2 * SL_SHARD_LEVELS];
};

/* Puts the next block behind the others. Then call sl_shard_stack_merge until it returns false: each time that it
 * returns true, the two last blocks have become one, and the caller adds the right one's values to the left one's. */
void sl_shard_stack_push(struct sl_shard_stack *stack, struct sl_shard_block block);
_Bool sl_shard_stack_merge(struct sl_shard_stack *stack);

/* The blocks that a rank has when it has added what it can. */
void sl_shards_get_blocks(int32_t shards, int32_t ranks, int32_t rank, struct sl_shard_stack *out);

#endif

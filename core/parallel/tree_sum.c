/* SPDX-License-Identifier: Apache-2.0 */
/* See tree_sum.h. */
#include "parallel/tree_sum.h"

#include <stdlib.h>
#include <string.h>

#include "parallel/shards.h"

enum { EXCHANGED_BYTES = 64 << 10, BLOCKS_MOST = 2 * SL_SHARD_LEVELS };

struct sl_tree_sum {
    struct sl_rank_group group;
    struct sl_memory *memory;
    int32_t shards, ranks, rank;
    int64_t elems;
    bool wide;
    int32_t next, end;           /* of this rank's shards */
    struct sl_shard_stack stack; /* what this rank has added */
    void *kept[BLOCKS_MOST];     /* the vector of each block; made when first needed */
    const void *last;            /* in place of the last block's kept vector; NULL: that one is used */
    int32_t blocks_most;         /* of a rank */
    char *gathered;              /* one range of all blocks of all ranks */
};

static size_t elem_bytes(const struct sl_tree_sum *sum)
{
    return sum->wide ? sizeof(double) : sizeof(float);
}

static int64_t range_elems(const struct sl_tree_sum *sum)
{
    return EXCHANGED_BYTES / (int64_t)elem_bytes(sum);
}

/* to = left + right */
static void add(const struct sl_tree_sum *sum, void *to, const void *left, const void *right, int64_t elems)
{
    if (sum->wide) {
        double *t = to;
        const double *l = left, *r = right;
        for (int64_t i = 0; i < elems; i++)
            t[i] = l[i] + r[i];
    } else {
        float *t = to;
        const float *l = left, *r = right;
        for (int64_t i = 0; i < elems; i++)
            t[i] = l[i] + r[i];
    }
}

static void begin(struct sl_tree_sum *sum)
{
    sum->stack = (struct sl_shard_stack){.shards = sum->shards};
    sum->next = sl_shards_get_first(sum->shards, sum->ranks, sum->rank);
    sum->last = NULL;
}

seqlstm_status sl_tree_sum_create(const struct sl_rank_group *group, int32_t shards, int64_t elems, bool wide,
                                  struct sl_memory *memory, struct sl_tree_sum **out_sum, struct seqlstm_error *err)
{
    const int32_t ranks = group->ranks;
    if (shards < ranks || shards > SL_SHARDS_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%d shards for %d ranks", shards, ranks);
    struct sl_tree_sum *sum = calloc(1, sizeof *sum);
    if (!sum)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a sum over shards");
    sum->group = *group;
    sum->memory = memory;
    sum->shards = shards;
    sum->ranks = ranks;
    sum->rank = group->rank;
    sum->elems = elems;
    sum->wide = wide;
    sum->end = sl_shards_get_first(shards, ranks, sum->rank + 1);
    for (int32_t r = 0; r < ranks; r++) {
        struct sl_shard_stack blocks;
        sl_shards_get_blocks(shards, ranks, r, &blocks);
        sum->blocks_most = blocks.count > sum->blocks_most ? blocks.count : sum->blocks_most;
    }
    begin(sum);
    if (ranks > 1) {
        sum->gathered = sl_memory_alloc(memory, (size_t)ranks * (size_t)sum->blocks_most * EXCHANGED_BYTES);
        if (!sum->gathered) {
            sl_tree_sum_destroy(sum);
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a sum over shards");
        }
    }
    *out_sum = sum;
    return SEQLSTM_OK;
}

void sl_tree_sum_destroy(struct sl_tree_sum *sum)
{
    if (!sum)
        return;
    for (int32_t k = 0; k < BLOCKS_MOST; k++)
        sl_memory_free(sum->memory, sum->kept[k]);
    sl_memory_free(sum->memory, sum->gathered);
    free(sum);
}

seqlstm_status sl_tree_sum_add(struct sl_tree_sum *sum, const void *values, struct seqlstm_error *err)
{
    struct sl_shard_stack *stack = &sum->stack;
    if (sum->next >= sum->end)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "rank %d has no shard %d", sum->rank, sum->next);
    sl_shard_stack_push(stack, (struct sl_shard_block){0, sum->next++});
    const void *right = values;
    while (sl_shard_stack_merge(stack)) {
        void *left = sum->kept[stack->count - 1];
        add(sum, left, left, right, sum->elems);
        right = left;
    }
    if (right != values)
        return SEQLSTM_OK;
    if (sum->next == sum->end) {
        sum->last = values;
        return SEQLSTM_OK;
    }
    void **kept = &sum->kept[stack->count - 1];
    if (!*kept)
        *kept = sl_memory_alloc(sum->memory, (size_t)sum->elems * elem_bytes(sum));
    if (!*kept)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of a shard");
    memcpy(*kept, values, (size_t)sum->elems * elem_bytes(sum));
    return SEQLSTM_OK;
}

static const char *get_block(const struct sl_tree_sum *sum, int32_t block)
{
    return block + 1 == sum->stack.count && sum->last ? sum->last : sum->kept[block];
}

/* Adds one range of all blocks: `gathered` holds those of rank r from r * blocks_most ranges on. */
static void fold(const struct sl_tree_sum *sum, void *to, int64_t elems)
{
    const size_t stride = (size_t)elems * elem_bytes(sum);
    struct sl_shard_stack stack = {.shards = sum->shards};
    char *rows[BLOCKS_MOST + SL_SHARD_LEVELS];
    for (int32_t r = 0; r < sum->ranks; r++) {
        struct sl_shard_stack own;
        sl_shards_get_blocks(sum->shards, sum->ranks, r, &own);
        for (int32_t b = 0; b < own.count; b++) {
            char *row = sum->gathered + ((size_t)r * (size_t)sum->blocks_most + (size_t)b) * stride;
            sl_shard_stack_push(&stack, own.blocks[b]);
            rows[stack.count - 1] = row;
            while (sl_shard_stack_merge(&stack))
                add(sum, rows[stack.count - 1], rows[stack.count - 1], rows[stack.count], elems);
        }
    }
    memcpy(to, rows[0], stride);
}

static seqlstm_status exchange(struct sl_tree_sum *sum, int64_t at, int64_t elems, void *to, struct seqlstm_error *err)
{
    const size_t stride = (size_t)elems * elem_bytes(sum);
    char *own = sum->gathered + (size_t)sum->rank * (size_t)sum->blocks_most * stride;
    for (int32_t b = 0; b < sum->blocks_most; b++) {
        if (b < sum->stack.count)
            memcpy(own + (size_t)b * stride, get_block(sum, b) + (size_t)at * elem_bytes(sum), stride);
        else
            memset(own + (size_t)b * stride, 0, stride);
    }
    const struct seqlstm_exchange gather = {
        .kind = SEQLSTM_COLLECTIVE_ALL_GATHER,
        .dtype = sum->wide ? SEQLSTM_DTYPE_FLOAT64 : SEQLSTM_DTYPE_FLOAT32,
        .elems = elems * sum->blocks_most,
        .from = own,
        .to = sum->gathered,
    };
    SEQLSTM_TRY(sl_rank_group_run(&sum->group, gather, err));
    fold(sum, (char *)to + (size_t)at * elem_bytes(sum), elems);
    return SEQLSTM_OK;
}

seqlstm_status sl_tree_sum_finish(struct sl_tree_sum *sum, void *to, struct seqlstm_error *err)
{
    if (sum->next != sum->end)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "rank %d has not added shard %d", sum->rank, sum->next);
    const int64_t most = range_elems(sum);
    if (sum->ranks == 1 && to != get_block(sum, 0))
        memcpy(to, get_block(sum, 0), (size_t)sum->elems * elem_bytes(sum));
    for (int64_t at = 0; sum->ranks > 1 && at < sum->elems; at += most)
        SEQLSTM_TRY(exchange(sum, at, sum->elems - at < most ? sum->elems - at : most, to, err));
    begin(sum);
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the vectors of all shards in the order of the tree (shards.h): the sum has the same bits for any number of
 * ranks. The ranks exchange with all_gather only, since the reductions of plugins promise no order. */
#ifndef SL_PARALLEL_TREE_SUM_H
#define SL_PARALLEL_TREE_SUM_H

#include <seqlstm/status.h>

#include "base/memory/memory.h"
#include "parallel/rank_group.h"

struct sl_tree_sum;

/* Vectors of `elems` floats, or of doubles with `wide`. A group of one rank has all shards. INVALID_ARGUMENT:
 * fewer shards than ranks, or too many. */
seqlstm_status sl_tree_sum_create(const struct sl_rank_group *group, int32_t shards, int64_t elems, bool wide,
                                  struct sl_memory *memory, struct sl_tree_sum **out_sum, struct seqlstm_error *err);
void sl_tree_sum_destroy(struct sl_tree_sum *sum);

/* Adds the vector of this rank's next shard. The last one must stay as it is until `finish` has returned. */
seqlstm_status sl_tree_sum_add(struct sl_tree_sum *sum, const void *values, struct seqlstm_error *err);

/* When the vectors of all its shards are added: all ranks get the sum in `to`, which may be the last one's vector. The
 * sum begins anew. Errors: those of exchanges. */
seqlstm_status sl_tree_sum_finish(struct sl_tree_sum *sum, void *to, struct seqlstm_error *err);

#endif

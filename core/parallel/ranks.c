/* SPDX-License-Identifier: Apache-2.0 */
/* See ranks.h. */
#include "parallel/ranks.h"

#include <string.h>

#include "base/system/clock.h"

/* What a rank says at an agreement. */
struct word {
    int32_t stop, save;
    int64_t now_ns;
};

enum { GROUP_ALL, GROUP_REPLICAS, GROUP_PIPELINE };

/* The group of ranks first, first + stride, …; all ranks, where it has them. */
static seqlstm_status open_group(struct sl_ranks *ranks, uint32_t number, int32_t first, int32_t stride, int32_t count,
                                 struct sl_rank_group *out, struct seqlstm_error *err)
{
    int32_t members[SL_RANKS_MOST];
    *out = (struct sl_rank_group){.ranks = count, .rank = (ranks->rank - first) / stride};
    if (count == 1)
        return SEQLSTM_OK;
    out->connection = ranks->connection;
    if (count == ranks->ranks)
        return SEQLSTM_OK;
    out->number = number;
    for (int32_t k = 0; k < count; k++)
        members[k] = first + k * stride;
    return sl_connection_add_group(ranks->connection, number, members, count, err);
}

seqlstm_status sl_ranks_init(struct sl_ranks *ranks, struct sl_connection *connection,
                             const struct sl_parallel_config *config, struct sl_interrupt *own,
                             struct seqlstm_error *err)
{
    memset(ranks, 0, sizeof *ranks);
    ranks->connection = connection;
    ranks->rank = connection ? sl_connection_get_rank(connection) : 0;
    ranks->ranks = connection ? sl_connection_get_ranks(connection) : 1;
    ranks->stages = connection && config->pipeline > 1 ? (int32_t)config->pipeline : 1;
    ranks->stage = ranks->rank % ranks->stages;
    ranks->ordered = config->shards > 0;
    const int32_t replicas = ranks->ranks / ranks->stages;
    ranks->shards = ranks->ordered ? (int32_t)config->shards : replicas;
    ranks->reduce = &config->reduce;
    ranks->compress_rank = sl_parallel_get_compress_rank(config);
    ranks->own = own;
    SEQLSTM_TRY(open_group(ranks, GROUP_REPLICAS, ranks->stage, ranks->stages, replicas, &ranks->replicas, err));
    return open_group(ranks, GROUP_PIPELINE, ranks->rank - ranks->stage, 1, ranks->stages, &ranks->pipeline, err);
}

seqlstm_status sl_ranks_exchange(void *context, bool after, bool sends, float *values, int64_t elems,
                                 struct seqlstm_error *err)
{
    const struct sl_ranks *ranks = context;
    struct seqlstm_exchange e = {.kind = sends ? SEQLSTM_COLLECTIVE_SEND : SEQLSTM_COLLECTIVE_RECEIVE,
                                 .dtype = SEQLSTM_DTYPE_FLOAT32,
                                 .peer = ranks->pipeline.rank + (after ? 1 : -1),
                                 .elems = elems};
    if (sends)
        e.from = values;
    else
        e.to = values;
    return sl_rank_group_run(&ranks->pipeline, e, err);
}

seqlstm_status sl_ranks_gather(const struct sl_ranks *ranks, const void *bytes, int64_t count, void *out_all,
                               struct seqlstm_error *err)
{
    const struct seqlstm_exchange all = {.kind = SEQLSTM_COLLECTIVE_ALL_GATHER,
                                         .dtype = SEQLSTM_DTYPE_UINT8,
                                         .elems = count,
                                         .from = bytes,
                                         .to = out_all};
    if (ranks->connection)
        return sl_connection_run(ranks->connection, 0, all, err);
    memcpy(out_all, bytes, (size_t)count);
    return SEQLSTM_OK;
}

seqlstm_status sl_ranks_agree(struct sl_ranks *ranks, struct seqlstm_error *err)
{
    struct word words[SL_RANKS_MOST];
    const struct word own = {
        .stop = sl_interrupt_get_stop(ranks->own), .save = sl_interrupt_take_save(ranks->own), .now_ns = sl_clock_ns()};
    SEQLSTM_TRY(sl_ranks_gather(ranks, &own, (int64_t)sizeof own, words, err));
    int32_t stop = 0, save = 0;
    for (int32_t r = 0; r < ranks->ranks; r++) {
        stop = stop ? stop : words[r].stop;
        save |= words[r].save;
    }
    atomic_store(&ranks->agreed.stop, stop);
    if (save)
        atomic_store(&ranks->agreed.save, 1);
    ranks->now_ns = words[0].now_ns;
    return SEQLSTM_OK;
}

int64_t sl_ranks_read_clock(void *ranks)
{
    return ((const struct sl_ranks *)ranks)->now_ns;
}

seqlstm_status sl_ranks_broadcast(const struct sl_ranks *ranks, int32_t from, void *bytes, int64_t count,
                                  struct seqlstm_error *err)
{
    const struct sl_rank_group all = {.connection = ranks->connection};
    return sl_rank_group_broadcast(&all, from, bytes, count, err);
}

/* ---- gradients -------------------------------------------------------------------------------------------------- */

static seqlstm_status add_at_rank_0(const struct sl_ranks *ranks, float *grads, int64_t elems, float *scratch,
                                    struct seqlstm_error *err)
{
    struct seqlstm_exchange e = {.dtype = SEQLSTM_DTYPE_FLOAT32, .elems = elems, .from = grads, .to = scratch};
    e.kind = ranks->replicas.rank == 0 ? SEQLSTM_COLLECTIVE_RECEIVE : SEQLSTM_COLLECTIVE_SEND;
    if (ranks->replicas.rank > 0)
        return sl_rank_group_run(&ranks->replicas, e, err);
    for (e.peer = 1; e.peer < ranks->replicas.ranks; e.peer++) {
        SEQLSTM_TRY(sl_rank_group_run(&ranks->replicas, e, err));
        for (int64_t i = 0; i < elems; i++)
            grads[i] += scratch[i];
    }
    return SEQLSTM_OK;
}

/* Rounded to nearest even; NaN stays NaN. */
static uint16_t round_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static seqlstm_status add_rounded(const struct sl_ranks *ranks, float *grads, int64_t elems, float *scratch,
                                  struct seqlstm_error *err)
{
    uint16_t *narrow = (uint16_t *)scratch;
    for (int64_t i = 0; i < elems; i++)
        narrow[i] = round_bits(grads[i]);
    const struct seqlstm_exchange sum = {.kind = SEQLSTM_COLLECTIVE_ALL_REDUCE,
                                         .dtype = SEQLSTM_DTYPE_BFLOAT16,
                                         .elems = elems,
                                         .from = narrow,
                                         .to = narrow};
    SEQLSTM_TRY(sl_rank_group_run(&ranks->replicas, sum, err));
    for (int64_t i = 0; i < elems; i++) {
        const uint32_t bits = (uint32_t)narrow[i] << 16;
        memcpy(&grads[i], &bits, sizeof bits);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_ranks_add(const struct sl_ranks *ranks, float *grads, int64_t elems, float *scratch,
                            struct seqlstm_error *err)
{
    const struct seqlstm_exchange sum = {.kind = SEQLSTM_COLLECTIVE_ALL_REDUCE,
                                         .dtype = SEQLSTM_DTYPE_FLOAT32,
                                         .elems = elems,
                                         .from = grads,
                                         .to = grads};
    if (!ranks->replicas.connection)
        return SEQLSTM_OK;
    if (ranks->reduce->how == SL_REDUCE_CENTRAL)
        return add_at_rank_0(ranks, grads, elems, scratch, err);
    return ranks->reduce->dtype == SL_REDUCE_BFLOAT16 ? add_rounded(ranks, grads, elems, scratch, err)
                                                      : sl_rank_group_run(&ranks->replicas, sum, err);
}

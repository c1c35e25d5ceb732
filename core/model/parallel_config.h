/* SPDX-License-Identifier: Apache-2.0 */
/* The section `parallel`: how a training is divided among ranks. */
#ifndef SL_MODEL_PARALLEL_CONFIG_H
#define SL_MODEL_PARALLEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_RANKS_MOST = 4096 };

enum sl_reduce_kind { SL_REDUCE_ALL, SL_REDUCE_CENTRAL };

enum sl_reduce_dtype { SL_REDUCE_FLOAT32, SL_REDUCE_BFLOAT16 };

struct sl_reduce_config {
    enum sl_reduce_kind how;
    enum sl_reduce_dtype dtype;
};

enum sl_compress_kind { SL_COMPRESS_NONE, SL_COMPRESS_POWERSGD };

struct sl_compress_config {
    enum sl_compress_kind kind;
    int64_t rank; /* of the factors; 0: the usual one */
};

struct sl_parallel_config {
    int64_t data;     /* ranks, or with a pipeline groups of ranks, that share each batch; 1: it is not shared */
    int64_t pipeline; /* ranks that share the layers; 1: they are not shared */
    int64_t pieces;   /* of the steps of each batch; 0: none, or in a pipeline as many as are fast */
    int64_t shards;   /* of each batch; 0: one for each rank, and the order of sums is that of the collectives */
    struct sl_reduce_config reduce;
    struct sl_compress_config compress;
};

/* Is a training with it divided, though it may be on one rank? */
static inline bool sl_parallel_is_divided(const struct sl_parallel_config *config)
{
    return config->data > 1 || config->pipeline > 1 || config->shards > 0 || config->pieces > 0;
}

/* Into how many shards is each batch cut? 1: it is not. */
static inline int32_t sl_parallel_count_shards(const struct sl_parallel_config *config)
{
    return (int32_t)(config->shards > 0 ? config->shards : config->data);
}

/* Of the factors of compressed gradients; 0: they are not compressed. */
static inline int64_t sl_parallel_get_compress_rank(const struct sl_parallel_config *config)
{
    return config->compress.kind == SL_COMPRESS_NONE ? 0 : config->compress.rank > 0 ? config->compress.rank : 4;
}

/* Ranks that `run` starts. */
static inline int32_t sl_parallel_count_ranks(const struct sl_parallel_config *config)
{
    return (int32_t)(config->data * config->pipeline);
}

/* Are the steps of each batch cut into pieces? */
static inline bool sl_parallel_has_pieces(const struct sl_parallel_config *config)
{
    return config->pipeline > 1 || config->pieces > 0;
}

/* Must the bits not depend on the number of ranks? Then each computes with one thread. */
static inline bool sl_parallel_keeps_bits(const struct sl_parallel_config *config)
{
    return config->shards > 0 || config->pieces > 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The section `parallel`: how a training is divided among ranks. */
#ifndef SL_MODEL_PARALLEL_CONFIG_H
#define SL_MODEL_PARALLEL_CONFIG_H

#include <stdint.h>

enum sl_reduce_kind { SL_REDUCE_ALL, SL_REDUCE_CENTRAL };

enum sl_reduce_dtype { SL_REDUCE_FLOAT32, SL_REDUCE_BFLOAT16 };

struct sl_reduce_config {
    enum sl_reduce_kind how;
    enum sl_reduce_dtype dtype;
};

struct sl_parallel_config {
    int64_t data;   /* ranks that `run` starts; 1: it computes alone */
    int64_t shards; /* of each batch; 0: one for each rank, and the order of sums is that of the collectives */
    struct sl_reduce_config reduce;
};

#endif

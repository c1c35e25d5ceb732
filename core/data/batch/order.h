/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of one epoch as lists of records. Private to core/data. */
#ifndef SL_DATA_BATCH_ORDER_H
#define SL_DATA_BATCH_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "model/data_config.h"

/* How batches are made of records: with buckets (edge_count > 0), with pools, or with neither. */
struct sl_order_rule {
    int64_t records;        /* fewer than 2^32 */
    const int32_t *lengths; /* [records] */
    const int32_t *source;  /* [records] steps of the encoder's side of pairs: they count in max_tokens, and decide, as
                               `lengths` do, which records share a batch (order.c); NULL: none */
    bool shuffle;           /* the records, and the batches afterwards */
    bool pools;             /* sort inside windows of pool * batch_size records */
    int64_t pool;
    const int64_t *edges; /* ascending; a length above the last one goes into the last bucket */
    int64_t edge_count;
    int64_t batch_size; /* 0: no limit but max_tokens */
    int64_t max_tokens; /* most rows computed; 0: no limit. A longer record is a batch alone */
    enum sl_padding padding;
    int64_t longest; /* of the lengths; padding never goes beyond */
    int64_t bptt;    /* 0: whole sequences */
    bool largest_first;
    uint64_t key; /* of the epoch's random numbers */
};

struct sl_order {
    int64_t batches;
    int64_t segments;         /* of all batches */
    uint32_t *records;        /* record numbers, batch after batch, longest first inside each */
    int64_t *first;           /* [batches + 1] into records */
    int64_t *segments_before; /* [batches + 1] */
    int32_t *padded;          /* [batches] steps of every sequence of the batch; NULL: without padding */
};

/* *out is zeroed or an order made before, which is replaced. Errors: NO_MEMORY. */
seqlstm_status sl_order_make(const struct sl_order_rule *rule, struct sl_order *out, struct seqlstm_error *err);
void sl_order_deinit(struct sl_order *order);

/* Batch and segment of number `ordinal` < segments. */
void sl_order_find(const struct sl_order *order, int64_t ordinal, int64_t *out_batch, int64_t *out_segment);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of one epoch as lists of records. Private to core/data. */
#ifndef SL_DATA_ORDER_H
#define SL_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

/* How batches are made of records. */
struct sl_order_rule {
    int64_t records;
    const int32_t *lengths; /* [records] */
    bool shuffle;           /* the records, and the batches afterwards */
    bool pools;             /* sort inside windows of pool * batch_size records */
    int64_t pool;
    int64_t batch_size;
    int64_t max_tokens; /* 0: none */
    int64_t bptt;       /* 0: whole sequences */
    bool largest_first;
    uint64_t key; /* of the epoch's random numbers */
};

struct sl_order {
    int64_t batches;
    int64_t pieces;         /* of all batches */
    int64_t *records;       /* record numbers, batch after batch, longest first inside each */
    int64_t *first;         /* [batches + 1] into records */
    int64_t *pieces_before; /* [batches + 1] */
};

/* *out is zeroed or an order made before, which is replaced. Errors: NO_MEMORY. */
seqlstm_status sl_order_make(const struct sl_order_rule *rule, struct sl_order *out, struct seqlstm_error *err);
void sl_order_deinit(struct sl_order *order);

/* Batch and piece of number `ordinal` < pieces. */
void sl_order_find(const struct sl_order *order, int64_t ordinal, int64_t *out_batch, int64_t *out_piece);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One batch in the making: which rows of the store, and the batch that they become. Private to core/data. */
#ifndef SL_DATA_BATCH_PIECE_H
#define SL_DATA_BATCH_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/batch/batch.h"

struct sl_dataset;

/* Sequence k is rows first[k] .. first[k] + real[k] - 1 of the store, and padding behind them. */
struct sl_piece {
    int64_t sequences;
    int64_t *first;
    int32_t *length; /* steps computed, not increasing */
    int32_t *real;   /* of them real ones, at the beginning */
    int64_t *record;
    int64_t offset;   /* steps of the records before this piece */
    bool last;        /* no later piece continues it */
    uint64_t ordinal; /* of the batch in its epoch */
};

/* The batch is the caller's. Padded steps have the id -1 or zeros as input, no target and no weight. Errors:
 * NO_MEMORY. [any thread] */
seqlstm_status sl_piece_fill(const struct sl_dataset *dataset, const struct sl_piece *piece,
                             struct sl_batch **out_batch, struct seqlstm_error *err);

#endif

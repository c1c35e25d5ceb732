/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a dataset make the next batch, and the batch that they make. Private to core/data. */
#ifndef SL_DATA_BATCH_BATCH_ROWS_H
#define SL_DATA_BATCH_BATCH_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/batch/batch.h"

struct sl_dataset;

/* Sequence k is the dataset's rows first[k] .. first[k] + real[k] - 1, followed by padding. */
struct sl_batch_rows {
    int64_t sequences;
    int64_t *first;
    int32_t *length; /* steps computed, longest first */
    int32_t *real;   /* of these the real ones, which come first */
    int64_t *record;
    int64_t offset;   /* steps of the records before this segment */
    bool last;        /* no later segment continues these sequences */
    uint64_t ordinal; /* of the batch in its epoch */
};

/* Makes a batch, which the caller destroys. Padded steps have the id -1 or zeros as input, no target and no weight.
 * Errors: NO_MEMORY. [any thread] */
seqlstm_status sl_batch_rows_gather(const struct sl_dataset *dataset, const struct sl_batch_rows *rows,
                                    struct sl_batch **out_batch, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the graph and the plan may know of the data: widths, kinds, sizes; never a value.
 *
 * Made by the data layer when a dataset is opened, stored in a run, and read by the graph (shapes), the plan (envelope)
 * and the explanation. A saved model is rebuilt from its facts without its data.
 */
#ifndef SL_BASE_BATCH_DATA_FACTS_H
#define SL_BASE_BATCH_DATA_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/batch/batch.h"

/* One column. `classes`: size of the vocabulary or number of classes of an IDS field, else 0. */
struct sl_field_facts {
    enum sl_field_kind kind;
    bool on_steps;
    int64_t features;
    int64_t classes;
};

/* The largest batch that the batcher will make; the plan sizes buffers for it. */
struct sl_envelope {
    int64_t sequences;    /* B, with zero-length ones */
    int64_t steps;        /* T */
    int64_t rows;         /* R */
    int64_t source_steps; /* T and R of the encoder's side */
    int64_t source_rows;
    bool uniform; /* every batch has one length for all its sequences */
    bool stream;  /* unit: stream */
};

struct sl_data_facts {
    struct sl_field_facts input;
    struct sl_field_facts target;
    struct sl_field_facts source; /* what the encoder reads; kind NONE: the model has no encoder */
    bool has_weight;
    bool has_steps;
    int64_t records;        /* sequences of the training split */
    int64_t rows;           /* their real steps */
    int64_t longest;        /* steps */
    int64_t source_rows;    /* real steps of the encoder's side */
    int64_t source_longest; /* steps */
    struct sl_envelope envelope;
};

/* Real rows of an epoch, as sl_batch_count_real_rows counts those of its batches. */
static inline int64_t sl_data_facts_count_real_rows(const struct sl_data_facts *facts)
{
    if (!facts->has_steps && facts->source.kind == SL_FIELD_NONE)
        return facts->records;
    return (facts->has_steps ? facts->rows : 0) + facts->source_rows;
}

#endif

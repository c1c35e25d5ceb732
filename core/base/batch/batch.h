/* SPDX-License-Identifier: Apache-2.0 */
/* A packed batch: what the data layer makes and the executor consumes.
 *
 * base/batch: what the layers above know of the data. A batch (this file), facts of a whole data set (data_facts.h),
 * and shapes that measurements run on (profile.h).
 *
 * Sequences are sorted by length, longest first, so that the batch's order *is* the order of its steps axis;
 * zero-length sequences come last and lie outside the axis. There is no padding (unless `pad_to` asks for it, for
 * comparisons): a field on the steps axis has axis.rows rows, one on the sequences axis has `sequences` rows.
 *
 * Invariants (sl_batch_check verifies the first two and the axis):
 *  1. axis.sequences <= sequences; sequences axis.sequences .. sequences-1 have length zero.
 *  2. axis.steps == 0 exactly for data without a steps axis (feed-forward models): then has_steps is false.
 *  3. sample[k] tells which record of the data set sequence k came from; each batch of an epoch holds records that no
 *     other batch of the epoch holds (unit: sequence).
 *  4. Everything a batch points to lives in its one allocation and is freed by sl_batch_destroy.
 *  5. With a source: place and sequence are inverse permutations; without decoder steps they are the identity.
 */
#ifndef SL_BASE_BATCH_BATCH_H
#define SL_BASE_BATCH_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

/* What a column of data holds. */
enum sl_field_kind {
    SL_FIELD_NONE = 0, /* the batch has no such field */
    SL_FIELD_IDS,      /* int32, one per row: token ids or classes; negative: none (ignored, padded) */
    SL_FIELD_VALUES    /* float32, `features` per row */
};

/* One column of a batch. Borrowed from the batch. */
struct sl_field {
    enum sl_field_kind kind;
    bool on_steps;    /* true: axis.rows rows in packed order; false: `sequences` rows */
    int64_t features; /* values per row; 1 for ids */
    union {
        const int32_t *ids;
        const float *values;
    };
};

/* The encoder's side of a batch of pairs, in an order of its own. */
struct sl_source_side {
    bool present;
    struct seqlstm_axis axis; /* source steps, packed in the source's own order, without zero-length ones */
    int64_t sequences;        /* = those of the batch, zero-length ones included */
    struct sl_field input;    /* on the source's steps */
    const int32_t *place;     /* [sequences] place among the source's sequences of the batch's sequence k */
    const int32_t *sequence;  /* [sequences] the inverse: the batch's sequence at the source's place j */
};

struct sl_batch {
    struct seqlstm_axis axis; /* the steps axis, without zero-length sequences */
    bool has_steps;
    int64_t sequences; /* B with zero-length ones */
    struct sl_field input;
    struct sl_field target;       /* kind NONE when predicting */
    struct sl_field weight;       /* VALUES with one feature, on the target's axis; NONE: all 1 */
    struct sl_source_side source; /* the encoder's side; not present for models without one */
    const int64_t *sample;        /* [sequences] index of the record in the data set, input order */
    const int64_t *sample_step;   /* [sequences] step of the record at which this segment begins; 0 if whole */
    bool carry_state;             /* states continue from the batch before (stream, or a later BPTT segment) */
    bool last_segment;            /* no later segment continues these sequences */
    uint64_t ordinal;             /* number of the batch in its epoch, from 0 */
    int64_t padded_rows;          /* rows that `pad_to` added: computed, without target or weight */
    void *storage;                /* the one allocation */
};

/* Shape of a batch to be made. */
struct sl_batch_shape {
    int64_t sequences;      /* B with zero-length ones */
    const int32_t *lengths; /* [sequences], not increasing; NULL: no steps axis */
    enum sl_field_kind input_kind, target_kind;
    int64_t input_features, target_features;
    bool input_on_steps, target_on_steps;
    bool has_weight;
    const int32_t *source_lengths; /* [sequences] in the batch's order, any; NULL: no source. Without a steps axis they
                                    * must not increase */
    enum sl_field_kind source_kind;
    int64_t source_features;
};

/* Makes a batch of the given shape with axis arrays computed, fields allocated (zeroed), ids and positions zero. The
 * caller fills the fields through the pointers (cast away const: they are its own until it hands the batch on). Errors:
 * NO_MEMORY, INVALID_ARGUMENT (lengths increase or are negative). [any] With source lengths the source's axis and the
 * two permutations are computed too; equal lengths keep the batch's order. */
seqlstm_status sl_batch_create(const struct sl_batch_shape *shape, struct sl_batch **out_batch,
                               struct seqlstm_error *err);
void sl_batch_destroy(struct sl_batch *batch);

/* For tests and for data that came from outside: axis arrays that agree with each other and with the lengths. INTERNAL:
 * the message names what does not agree. [any] */
seqlstm_status sl_batch_check(const struct sl_batch *batch, struct seqlstm_error *err);

/* Steps that are computed for the batch, those of the source included; sequences for models without steps. */
static inline int64_t sl_batch_count_computed_rows(const struct sl_batch *batch)
{
    return batch->has_steps || batch->source.present ? batch->axis.rows + batch->source.axis.rows : batch->sequences;
}

/* Without those that `pad_to` added. */
static inline int64_t sl_batch_count_real_rows(const struct sl_batch *batch)
{
    return sl_batch_count_computed_rows(batch) - batch->padded_rows;
}

/* Row of (sequence k, step t) on the steps axis. t < lengths[k]. */
static inline int64_t sl_batch_row(const struct sl_batch *batch, int64_t sequence, int64_t step)
{
    return batch->axis.row_offsets[step] + sequence;
}

/* Row of (the batch's sequence k, step t) on the source's steps axis. t < source length of k. */
static inline int64_t sl_batch_source_row(const struct sl_batch *batch, int64_t sequence, int64_t step)
{
    return batch->source.axis.row_offsets[step] + batch->source.place[sequence];
}

#endif

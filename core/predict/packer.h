/* SPDX-License-Identifier: Apache-2.0 */
/* A packed batch of an input in memory that is filled again and again without an allocation. */
#ifndef SL_PREDICT_PACKER_H
#define SL_PREDICT_PACKER_H

#include "base/batch/batch.h"
#include "base/batch/data_facts.h"
#include "data/dataset/state.h"

struct sl_packer {
    struct sl_batch batch;          /* the packed one */
    int64_t sequences, steps, rows; /* room */
    int32_t *order;                 /* [sequences] the input's number of the batch's sequence k */
    int64_t *begins;                /* [sequences] the first row in the input of the input's sequence i */
    int32_t *lengths, *batch_sizes, *counts;
    int64_t *row_offsets, *samples;
    uint64_t *ids;
    uint32_t *positions;
    void *input;
};

/* Room for a batch of the envelope, with the input of the facts. A zeroed struct may be deinited. NO_MEMORY. */
seqlstm_status sl_packer_init(struct sl_packer *packer, const struct sl_data_facts *facts,
                              const struct sl_envelope *envelope, struct seqlstm_error *err);
void sl_packer_deinit(struct sl_packer *packer);

/* Lays out `count` sequences, the longest first, those of equal length in the order of the input. Everything fits.
 * `lengths` NULL: rows without steps. */
void sl_packer_lay_out(struct sl_packer *packer, const int64_t *lengths, int64_t count);

/* Fills the input of the layout from x, which holds all steps of the sequences one after the other, scaled as the state
 * says. INVALID_ARGUMENT: an id that does not exist. */
seqlstm_status sl_packer_fill(struct sl_packer *packer, const struct sl_data_state *state, const void *x,
                              struct seqlstm_error *err);

#endif

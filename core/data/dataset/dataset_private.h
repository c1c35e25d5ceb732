/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset's stores: rows of inputs, targets, and records as ranges of rows. Private to core/data. */
#ifndef SL_DATA_DATASET_DATASET_PRIVATE_H
#define SL_DATA_DATASET_DATASET_PRIVATE_H

#include "data/dataset/dataset.h"
#include "data/read/raw.h"
#include "data/dataset/state_private.h"

/* What the encoder reads, record by record. */
struct sl_dataset_source {
    bool present;
    int64_t *start;  /* [records] first id */
    int32_t *length; /* [records] steps */
    int32_t *ids;
};

struct sl_dataset {
    const struct sl_model *model;
    const struct sl_data_state *state;
    struct sl_data_facts facts;

    int64_t records;
    int64_t *start;      /* [records] first row */
    int32_t *length;     /* [records] steps; 1 without a steps axis */
    int64_t *target_row; /* [records]; SL_TARGET_RECORD: row of the target store; else NULL */
    bool stream;         /* one record, to be cut into parts */

    struct sl_dataset_source source; /* pairs */

    const int32_t *input_ids; /* one of the three: rows of ids, or of facts.input.features values, or a file of … */
    const float *input_values;
    struct sl_token_file *token_file; /* … numbers, of which id_map makes ids */
    int32_t *id_map;
    enum sl_target_form form; /* NONE: predicting */
    int64_t target_columns;   /* values per row of the target store */
    const int32_t *target_ids;
    const float *target_values;

    int32_t *own_input_ids, *own_target_ids;
    float *own_input_values, *own_target_values;
    struct sl_file_map map;
    char *text;
    int64_t *text_offset, *text_bytes; /* [records], or NULL */
    char *target_text;                 /* the same of the target side of pairs */
    int64_t *target_text_offset, *target_text_bytes;
    char **files;
    size_t file_count;
    struct sl_data_counts counts;
};

/* Applies the state to a sliced raw and cuts records; takes what it can out of the raw. */
seqlstm_status sl_dataset_assemble(const struct sl_model *model, const struct sl_data_state *state, struct sl_raw *raw,
                                   bool predicting, struct sl_dataset **out_dataset, struct seqlstm_error *err);

/* records.c: the list of records of `raw` into dataset. */
seqlstm_status sl_dataset_cut_records(struct sl_dataset *dataset, struct sl_raw *raw, struct seqlstm_error *err);

/* split_pairs.c: pairs of one text of which a side would have more than `longest` steps become pairs of its parts, each
 * as long as it can be. */
seqlstm_status sl_raw_split_pairs(struct sl_raw *raw, const struct sl_data_config *config, int64_t longest,
                                  struct seqlstm_error *err);

/* The line of a row of the file, or 0. */
int64_t sl_raw_find_line(const struct sl_raw *raw, int64_t series, int64_t row);

#endif

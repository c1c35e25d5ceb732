/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset's stores: rows of inputs, targets, and records as ranges of rows. Private to core/data. */
#ifndef SL_DATA_DATASET_DATASET_PRIVATE_H
#define SL_DATA_DATASET_DATASET_PRIVATE_H

#include "base/batch/data_facts.h"
#include "base/system/file.h"
#include "data/dataset/state_private.h"
#include "data/read/input.h"
#include "data/read/token_file.h"
#include "data/read/passed.h"
#include "data/text/intern.h"
#include "model/model.h"

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
    int64_t *start;          /* [records] first row */
    int32_t *length;         /* [records] steps; 1 without a steps axis */
    int64_t *target_row;     /* [records]; SL_TARGET_RECORD: row of the target store; else NULL */
    bool *no_prediction;     /* [records] inputs that need a row without values; NULL: none */
    int32_t *step;           /* [rows] inputs: the step of the file that a row is; NULL: no row was left out */
    int32_t *steps;          /* [records] with `step`: steps of the record in the file */
    int64_t *row_line;       /* [rows] inputs with `passed`: the line of each row; NULL: not known */
    struct sl_passed passed; /* inputs: columns that are passed on */
    bool stream;             /* one record, to be cut into parts */

    struct sl_dataset_source source; /* pairs */

    const int32_t *input_ids; /* one of the three: rows of ids, or of facts.input.features values, or a file of … */
    const float *input_values;
    struct sl_token_file *token_file; /* … numbers, of which id_map makes ids */
    int32_t *id_map;
    enum sl_target_form form; /* NONE: predicting */
    int64_t target_columns;   /* values per row of the target store */
    const int32_t *target_ids;
    const float *target_values;

    bool learns; /* the training split: all of its labels are known */
    struct sl_intern unknown_labels;
    int64_t first_unknown_line; /* where the first of them stands; 0: not known */

    int32_t *own_input_ids, *own_target_ids;
    float *own_input_values, *own_target_values;
    struct sl_file_map map;
    char *text;
    int64_t *text_offset, *text_bytes; /* [records], or NULL */
    char *target_text;                 /* the same of the target side of pairs */
    int64_t *target_text_offset, *target_text_bytes;
    char **files;
    size_t file_count;
    char *cache_problem;
    struct sl_data_counts counts;
};

#endif

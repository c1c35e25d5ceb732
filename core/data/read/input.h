/* SPDX-License-Identifier: Apache-2.0 */
/* What to read in place of the model's own files, and what reading counts. */
#ifndef SL_DATA_READ_INPUT_H
#define SL_DATA_READ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/data_config.h"

/* Inputs to predict, in place of the files of a split. */
struct sl_input_request {
    const char *path; /* "-": standard input, to its end; NULL: `data` */
    const void *data; /* in UTF-8; borrowed for the call */
    size_t data_bytes;
    bool lines;                           /* each line is a record, whatever the files of the model are */
    const char *name;                     /* of `data` in messages; NULL: "input" */
    const struct sl_string_list *columns; /* tables: columns that are passed on; NULL: none */
    const char *lengths;                  /* npy: a file with the real steps of each sequence; NULL: all */
};

/* What was done to the data besides reading them. */
struct sl_data_counts {
    int64_t dropped_records; /* on_overflow: drop */
    int64_t dropped_rows;
    int64_t truncated_records; /* on_overflow: truncate */
    int64_t truncated_rows;
    int64_t split_records;      /* on_overflow: split */
    int64_t parts;              /* what they became */
    int64_t missing_values;     /* filled in, ignored, or their rows dropped */
    int64_t filled_targets;     /* of them, targets with something in their place */
    int64_t dropped_table_rows; /* missing: drop */
    int64_t no_predictions;     /* inputs: records that need a dropped row, or reach over a gap */
    int64_t unknown_tokens;     /* became <unk> */
    int64_t unknown_labels;     /* targets whose label the training split lacks */
    int64_t tokens;             /* of the text, <eos> included */
    int64_t constant_targets;   /* train: columns of targets whose value is always the same */
    int64_t whole_groups; /* `split`: groups that were taken whole, where a series of time might have been meant */
    int64_t short_groups; /* series shorter than one window */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a data state holds. Private to core/data. */
#ifndef SL_DATA_DATASET_STATE_PRIVATE_H
#define SL_DATA_DATASET_STATE_PRIVATE_H

#include <stdbool.h>

#include "data/dataset/state.h"
#include "data/text/pieces.h"

#define SL_DATA_SCHEMA "seqlstm.data/1"

/* Where the target of a step or record is among the stored targets. */
enum sl_target_form {
    SL_TARGET_NONE,
    SL_TARGET_NEXT,   /* the input id of the next row */
    SL_TARGET_RECORD, /* one per record */
    SL_TARGET_LAST,   /* that of the record's last row */
    SL_TARGET_STEP,   /* that of the step's row */
    SL_TARGET_AHEAD   /* those of the `ahead` rows behind the record */
};

struct sl_data_state {
    struct sl_data_facts facts;
    enum sl_source_type source;
    enum sl_tokenizer_type tokenizer;
    bool lowercase;
    struct sl_pieces *pieces;        /* of the tokenizer sentencepiece; else NULL */
    struct sl_pieces *source_pieces; /* pairs: of the source; NULL: none, or they are those of both (shared) */
    enum sl_target_form form;
    int64_t ahead;
    struct sl_vocabulary *tokens;  /* NULL: no text */
    struct sl_vocabulary *classes; /* NULL: none, or they are the tokens */
    bool classes_are_tokens;
    struct sl_vocabulary *source_tokens; /* pairs: of the source; NULL: none, or they are the tokens (shared) */
    enum sl_tokenizer_type source_tokenizer;
    bool source_lowercase;
    bool binary_values; /* a class label is the value 0 or 1 */
    int32_t ignore_id;  /* the target that does not count in the loss; -1: none */
    char *ignore_label; /* the same as text; NULL: none */
    enum sl_scale_type scale;
    int64_t input_columns, target_columns;
    double *input_offset, *input_factor;             /* [input_columns]; NULL: not scaled */
    double *target_offset, *target_factor;           /* [target_columns] */
    double *input_fill, *target_fill;                /* for missing values; NULL: none */
    double *target_naive;                            /* [target_columns]; NULL: targets are no series */
    char **input_names, **target_names;              /* NULL: no names */
    struct sl_scaling input_scaling, target_scaling; /* views of the above */
};

/* What the source of pairs is cut with, or NULL. */
const struct sl_pieces *sl_data_state_find_source_pieces(const struct sl_data_state *state);

/* Sets the scaling views after the arrays were filled. */
void sl_data_state_set_views(struct sl_data_state *state);

#endif

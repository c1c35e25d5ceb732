/* SPDX-License-Identifier: Apache-2.0 */
/* A source as it was read: rows in file order (grouped ones gathered), cut into series, before anything learned is
 * applied to it. Private to core/data.
 *
 * data/read: from files to a raw. One reader per `type:` of a model file (raw_text.c, raw_npy.c, …; that of tables is
 * in data/table), the file formats below them (npy.h), and the cache for large texts (token_*.c). What happens to a
 * raw:
 *
 *   read (raw_*.c) -> slice (`split:`) -> fit (fit.c, train only) -> assemble (assemble.c) -> dataset
 *
 * Invariants:
 * 1. Series are adjacent and ascending: start[s] + length[s] <= start[s + 1]; a slice only narrows the list of series,
 *    the rows stay.
 * 2. A missing number is a NaN in `values` or `target_values`, a missing label a -1 in `target_ids`; there is no other
 *    NaN.
 */
#ifndef SL_DATA_READ_RAW_H
#define SL_DATA_READ_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/batch/batch.h"
#include "base/system/file.h"
#include "data/no_memory.h"
#include "data/read/input.h"
#include "data/read/token_file.h"
#include "data/text/intern.h"
#include "data/read/passed.h"
#include "data/text/pieces.h"
#include "model/model.h"

/* What to read, and how. */
struct sl_read {
    const struct sl_model *model;
    const struct sl_source *source;
    enum sl_split split; /* generators draw other numbers for each */
    const struct sl_string_list
        *inputs; /* tables: the columns that were learned; NULL while the state is being learned */
    const struct sl_input_request *input; /* predict: instead of the source's files; else NULL */
    const struct sl_pieces *pieces; /* what text is cut with: while the state is being learned, then the state's */
    const struct sl_pieces *source_pieces; /* the same for the source of pairs; may equal `pieces` */
    bool whole;                            /* without the token cache */
};

struct sl_raw {
    const struct sl_source *source;
    char *name; /* the file, for messages */
    struct sl_raw *
        pair; /* pairs: what the encoder reads, as many series in the same order; this one is what the decoder writes */

    int64_t rows;
    enum sl_field_kind input_kind;
    int64_t input_features;
    bool has_steps;
    int32_t *ids;                     /* [rows]; numbers of `tokens`, or final ids where known_ids > 0 */
    struct sl_token_file *token_file; /* in place of ids: they are read from it when needed */
    struct sl_intern tokens;
    const struct sl_pieces *pieces; /* what text is cut with, in place of the tokenizer's own way; or NULL */
    int64_t known_ids;              /* ids are final and below this; 0: they are numbers of `tokens` */
    double *values;                 /* [rows, input_features] */
    float *values32;                /* the same in float32, instead of `values` */
    const float *mapped;            /* the same, in the file itself */
    struct sl_file_map map;

    enum sl_field_kind target_kind; /* NONE: none, or the next token */
    bool target_per_row;            /* else per series */
    int64_t target_features;
    int32_t *target_ids; /* numbers of `labels`, or final where known_classes > 0 */
    struct sl_intern labels;
    int64_t known_classes;
    double *target_values; /* [rows or series, target_features] */
    int64_t ahead;         /* > 0: the target is that many rows of target_values behind a record */
    bool ahead_in_series;  /* a series holds `ahead` rows more than it has steps (no windows) */

    int64_t series;
    int64_t *start;
    int64_t *length;
    int64_t *line;     /* of the first row in the file, from 1; NULL: the source has no lines */
    int64_t *row_line; /* [rows], the same for each row; NULL: not known */
    int32_t *missing;  /* [rows], values that were missing in each; NULL: none was */
    int32_t *filled;   /* [rows], of those the targets that were filled in; NULL: none was */
    /* Inputs: each row of the file keeps its place in the output, though `missing: drop` leaves it out here. */
    bool *blank;     /* [rows] such rows that stay, with zeros: a record that needs one has no prediction; NULL: none */
    bool *after_gap; /* [rows] a window may not begin before this row and end behind it; NULL: none */
    int32_t *step;   /* [rows] the row's step in the series of the file; NULL: no row was left out */
    int32_t *steps;  /* [series] with `step`: steps of the series in the file */

    struct sl_passed passed; /* inputs: columns to pass on */
    char *text;              /* the file; NULL where the source is no text */
    int64_t *text_offset;    /* [series], -1: none */
    int64_t *text_bytes;

    char **input_names; /* [input_features], or NULL */
    char **target_names;
    int64_t first_target; /* per-series targets: series 0 has this one (after a slice) */
    char *cache_problem;  /* why the text is not in the token cache; NULL: it is, or was not to be */
    struct sl_data_counts counts;
};

/* Reads the source of `read`; *out is zeroed before. On failure nothing need be freed. */
seqlstm_status sl_raw_read(const struct sl_read *read, struct sl_raw *out, struct seqlstm_error *err);
void sl_raw_deinit(struct sl_raw *raw);

/* Records that row `row` of `rows` has a missing value; for a row that is dropped, the next row that stays.
 * `target_filled`: it is a target, and something is put in its place. NO_MEMORY. */
seqlstm_status sl_raw_note_missing(struct sl_raw *raw, int64_t row, int64_t rows, bool target_filled,
                                   struct seqlstm_error *err);

/* The line of a row of the file, which is of that series; 0: it is not known. */
int64_t sl_raw_find_line(const struct sl_raw *raw, int64_t series, int64_t row);

/* The part of a text of CONLL that holds `rows` rows after `skip` others: narrows [*offset, *offset + *bytes). */
void sl_raw_cut_text(const struct sl_raw *raw, int64_t skip, int64_t rows, int64_t *offset, int64_t *bytes);

/* Keeps the share [from, to) of the rows (streams, windows over one series) or of the series. */
seqlstm_status sl_raw_slice(struct sl_raw *raw, double from, double to, bool by_rows, struct seqlstm_error *err);

/* The readers, one per source. */
seqlstm_status sl_raw_read_text(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err);
seqlstm_status sl_raw_read_tokens(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err);
seqlstm_status sl_raw_read_conll(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err);
seqlstm_status sl_raw_read_table(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err);
seqlstm_status sl_raw_read_npy(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err);
seqlstm_status sl_raw_read_pairs(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err);
seqlstm_status sl_raw_read_generator(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err);

/* ---- help for readers ---- */

/* counts[number of `tokens`] over the rows of the series. Freed by the caller. NO_MEMORY, IO. */
seqlstm_status sl_raw_count_ids(const struct sl_raw *raw, int64_t **out_counts, struct seqlstm_error *err);

/* raw_cached.c: a large text from the token cache. *out_done is false where the text must be read whole instead: it is
 * small, an input of predict, or not UTF-8, or there is no folder for caches. */
seqlstm_status sl_raw_read_cached(const struct sl_read *read, struct sl_raw *raw, bool *out_done,
                                  struct seqlstm_error *err);

/* Whether records of this model have steps. */
bool sl_model_wants_steps(const struct sl_model *model);
/* Whether a missing target is left out of the loss, in any of the splits. */
bool sl_model_ignores_missing_targets(const struct sl_model *model);
/* Whether the targets belong to each step and not to the sequence. */
bool sl_model_wants_step_targets(const struct sl_model *model);

/* Larger ids and classes are taken for corrupt data: no model has a softmax over so many. */
#define SL_DATA_MOST_IDS     16777216
#define SL_DATA_MOST_CLASSES 1000000

#endif

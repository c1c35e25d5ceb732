/* SPDX-License-Identifier: Apache-2.0 */
/* A split of the data in memory: records (sequences, rows or windows) with inputs and targets.
 *
 * data/dataset: from a raw to a dataset. The training split teaches the state (fit*.c: vocabularies, classes, scaling);
 * the state turns any raw into a dataset (assemble.c, records.c); states are stored as JSON (state_write.c,
 * state_read.c).
 *
 * What a record is follows from the source, the task and the model:
 *
 *   text              unit: sequence: one line; unit: stream: all of it is one stream
 *   lines, tokens     one line
 *   conll             the lines between two blank ones
 *   csv, tsv          `text`: one row; `group`: the rows of one value; `window`: each window (inside
 *                     its group); otherwise one row without steps for a model without recurrent
 *                     layers, else the whole table is one sequence
 *   npy               one entry of the first axis; [N, F] is N vectors without steps
 *   generator         one example
 *
 * Of pairs (an encoder and a decoder) a record is a source and a target: a line of each of two files, two columns of a
 * row, or one text that is both. Input and target are the decoder's, <bos> y1 .. yn and y1 .. yn <eos>.
 *
 * Invariants:
 * 1. Immutable once open; any number of batchers and threads may read it.
 * 2. The model and the state given at open outlive it.
 * 3. Record numbers are the order of the file (after `split`, `rows` and on_overflow; parts of a sequence are
 *    neighbours).
 */
#ifndef SL_DATA_DATASET_DATASET_H
#define SL_DATA_DATASET_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/batch/data_facts.h"
#include "data/dataset/state.h"
#include "data/read/input.h"
#include "model/model.h"

struct sl_dataset;

/* Reads the training split and learns the state from it. Errors: CORRUPT_DATA (the content; the message begins with
 * file:line), NOT_FOUND, IO, NO_MEMORY, INVALID_CONFIG (what only the data can show: a column that does not exist, a
 * target that does not fit the loss). Close the dataset before the state is destroyed. [any thread] */
seqlstm_status sl_dataset_open_train(const struct sl_model *model, struct sl_dataset **out_dataset,
                                     struct sl_data_state **out_state, struct seqlstm_error *err);

/* Reads a split with a state that was learned before (train too: resume). NOT_FOUND when the model has no such split
 * (sl_dataset_has_split). */
seqlstm_status sl_dataset_open(const struct sl_model *model, enum sl_split split, const struct sl_data_state *state,
                               struct sl_dataset **out_dataset, struct seqlstm_error *err);

bool sl_dataset_has_split(const struct sl_model *model, enum sl_split split);
/* The split that is evaluated by default: test, else valid, else train. */
enum sl_split sl_dataset_choose_split(const struct sl_model *model);

/* Inputs without targets, in the format of the training split: text and lines: one text per line, no label; generated
 * pairs: sources, one per line; tables: the input columns, others are ignored; npy: x; tokens: ids. Every window of a
 * series counts, also the last, whose horizon is unknown. What cannot be predicted keeps its number: a row that
 * `missing: drop` drops, a window that holds one or reaches over a gap in time. Errors as above. */
seqlstm_status sl_dataset_open_input(const struct sl_model *model, const struct sl_data_state *state,
                                     const struct sl_input_request *request, struct sl_dataset **out_dataset,
                                     struct seqlstm_error *err);

void sl_dataset_close(struct sl_dataset *dataset);

/* The facts of this split: records, rows, longest and envelope are its own, the rest is the state's. */
const struct sl_data_facts *sl_dataset_get_facts(const struct sl_dataset *dataset);
const struct sl_data_state *sl_dataset_get_state(const struct sl_dataset *dataset);
const struct sl_model *sl_dataset_get_model(const struct sl_dataset *dataset);

int64_t sl_dataset_get_records(const struct sl_dataset *dataset);
/* Steps of a record; 0 without a steps axis. */
int64_t sl_dataset_get_length(const struct sl_dataset *dataset, int64_t record);
/* Of a record of tokens: the steps of the line after that of `step`, <eos> included; after the last line comes the
 * first. 0: lines are not known, as without <eos>. */
int64_t sl_dataset_get_next_line(const struct sl_dataset *dataset, int64_t record, int64_t step);

/* Of an input: the steps of a record in the file, those that `missing: drop` leaves out included. */
int64_t sl_dataset_get_file_steps(const struct sl_dataset *dataset, int64_t record);
/* Of an input: which of them step `step` of the record is. */
int64_t sl_dataset_get_file_step(const struct sl_dataset *dataset, int64_t record, int64_t step);
/* Of an input: false where there is no prediction for the record, since `missing: drop` drops a row that it needs or a
 * gap in time is in its window. */
bool sl_dataset_has_prediction(const struct sl_dataset *dataset, int64_t record);

/* Of an input with columns to pass on: a cell of the row of the file that is step `step` of the record there; where the
 * record has one prediction, its last step is meant. Not NUL-terminated. NULL: the row was left out. */
const char *sl_dataset_find_cell(const struct sl_dataset *dataset, int64_t record, int64_t step, size_t column,
                                 size_t *out_bytes);

/* Steps that the encoder reads of a record; 0 where there is no encoder. */
int64_t sl_dataset_get_source_length(const struct sl_dataset *dataset, int64_t record);

/* The line as it stood in the file (of pairs: the source), for predict --with-input; NULL where the source is no text.
 * Not NUL-terminated. */
const char *sl_dataset_find_text(const struct sl_dataset *dataset, int64_t record, size_t *out_bytes);

/* The target's line as it stood in the file, with which the decoder's output is compared; NULL where there is none. */
const char *sl_dataset_find_target_text(const struct sl_dataset *dataset, int64_t record, size_t *out_bytes);

/* Labels of a valid or test split that the training split lacks. The class target of label k is SL_CLASS_UNKNOWN - k:
 * negative, so it is not in the loss, but no answer is right. */
enum { SL_CLASS_UNKNOWN = -2 };
int32_t sl_dataset_count_unknown_labels(const struct sl_dataset *dataset);
const char *sl_dataset_get_unknown_label(const struct sl_dataset *dataset, int32_t k);
/* The line where the first of them stands; 0: not known. */
int64_t sl_dataset_get_unknown_line(const struct sl_dataset *dataset);

/* What opening did to the data besides reading it; a caller reports what is not 0. */
const struct sl_data_counts *sl_dataset_get_counts(const struct sl_dataset *dataset);

/* Why the token cache could not be used for a large text, so that it is cut into tokens anew each time and held in
 * memory; NULL: it was used, or was not needed. */
const char *sl_dataset_find_cache_problem(const struct sl_dataset *dataset);

/* The files that were read, absolute. Borrowed. */
struct sl_string_list sl_dataset_get_files(const struct sl_dataset *dataset);

#endif

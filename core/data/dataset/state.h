/* SPDX-License-Identifier: Apache-2.0 */
/* What was learned from the training split and belongs to the model from then on: vocabulary, classes, scaling,
 * fill-ins for missing values, the columns and their order, and the facts. Saved with the run as JSON, so that eval,
 * predict and generate need no training data.
 *
 * Invariants:
 * 1. Immutable once made; any number of datasets and threads may share it. It must outlive them.
 * 2. Writing depends on its value alone: equal states give equal bytes.
 */
#ifndef SL_DATA_DATASET_STATE_H
#define SL_DATA_DATASET_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/batch/data_facts.h"
#include "data/text/vocabulary.h"
#include "model/data_config.h"

struct sl_buf;
struct sl_data_state;

/* value = stored * factor + offset, per column. */
struct sl_scaling {
    int64_t columns;
    const double *offset; /* standard: mean; minmax: minimum */
    const double *factor; /* standard: deviation (over n); minmax: range; 1 where that is 0 */
};

const struct sl_data_facts *sl_data_state_get_facts(const struct sl_data_state *state);

/* Of the input tokens, or NULL where the input is no text. */
const struct sl_vocabulary *sl_data_state_find_vocabulary(const struct sl_data_state *state);

/* Of what the encoder reads, which may be the same; NULL where there is no encoder. */
const struct sl_vocabulary *sl_data_state_find_source_vocabulary(const struct sl_data_state *state);

/* Of the target: class names; the tokens of a language model; NULL where targets are values (but a binary cross-entropy
 * with a class label has values 0 and 1 and two names). */
const struct sl_vocabulary *sl_data_state_find_classes(const struct sl_data_state *state);

/* NULL where nothing was scaled. */
const struct sl_scaling *sl_data_state_find_input_scaling(const struct sl_data_state *state);
const struct sl_scaling *sl_data_state_find_target_scaling(const struct sl_data_state *state);

/* Per target column, the mean absolute change from one step to the next in the training split, in the units of the
 * file: the error of the naive forecast. NULL where the targets are no series of values. */
const double *sl_data_state_find_naive_error(const struct sl_data_state *state, int64_t *out_columns);

/* Names of the target columns (headers), or an empty list. A target row of a window holds them `horizon` times: all
 * columns of the first row, then of the second. */
struct sl_string_list sl_data_state_get_target_names(const struct sl_data_state *state);
struct sl_string_list sl_data_state_get_input_names(const struct sl_data_state *state);

/* rows x facts.target.features predictions, in place, back to the units of the file. */
void sl_data_state_undo_targets(const struct sl_data_state *state, float *values, int64_t rows);

/* Text as ids of the input vocabulary, as a record would be (lowercase, <bos>; <eos> only where `whole`). For prompts.
 * *out_ids is freed with free(); at least one element is allocated. Errors: CORRUPT_DATA (not UTF-8, or an unknown
 * token without <unk>), INVALID_ARGUMENT (no vocabulary), NO_MEMORY. */
seqlstm_status sl_data_state_encode(const struct sl_data_state *state, const char *text, size_t bytes, bool whole,
                                    int32_t **out_ids, int64_t *out_count, struct seqlstm_error *err);

/* Appends ids as text (sl_tokens_join with the state's own tokenizer). */
void sl_data_state_decode(const struct sl_data_state *state, const int32_t *ids, int64_t count, struct sl_buf *out);

/* Appends JSON, one object with "schema": "seqlstm.data/1", ending in a newline. */
seqlstm_status sl_data_state_write(const struct sl_data_state *state, struct sl_buf *out, struct seqlstm_error *err);

/* `name` is what messages call the text. Errors: CORRUPT_DATA, NO_MEMORY. */
seqlstm_status sl_data_state_read(const char *name, const char *text, size_t bytes, struct sl_data_state **out_state,
                                  struct seqlstm_error *err);

/* Checks a state that was read against the model that it belongs to: every index and count in it is one that training
 * this model could have made. CORRUPT_DATA; the message names the key of the file `name`. */
struct sl_model;
seqlstm_status sl_data_state_check(struct sl_data_state *state, const struct sl_model *model, const char *name,
                                   struct seqlstm_error *err);

void sl_data_state_destroy(struct sl_data_state *state);

#endif

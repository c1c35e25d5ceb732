/* SPDX-License-Identifier: Apache-2.0 */
/* Learning the vocabularies: tokens and classes. Private to core/data. */
#ifndef SL_DATA_DATASET_FIT_VOCABULARY_H
#define SL_DATA_DATASET_FIT_VOCABULARY_H

#include "data/read/raw.h"
#include "data/text/vocabulary.h"

/* The tokens of `raw`, and of `other` too where it is not NULL (pairs that share a vocabulary). */
seqlstm_status sl_fit_tokens(const struct sl_tokenizer *config, const struct sl_raw *raw, const struct sl_raw *other,
                             struct sl_vocabulary **out, struct seqlstm_error *err);
/* The classes in ascending order: as numbers when all are whole numbers, else byte by byte. `ignore` (may be NULL) is a
 * label that is no class. */
seqlstm_status sl_fit_classes(const struct sl_raw *raw, const char *ignore, struct sl_vocabulary **out,
                              struct seqlstm_error *err);
/* "0" .. "count - 1". */
seqlstm_status sl_fit_numbers(int64_t count, struct sl_vocabulary **out, struct seqlstm_error *err);

#endif

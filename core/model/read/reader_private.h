/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share. */
#ifndef SL_MODEL_READ_READER_PRIVATE_H
#define SL_MODEL_READ_READER_PRIVATE_H

#include "model/read/reader.h"

/* "an lstm layer", "the optimizer `adam`", "the batching". */
const char *sl_reader_describe(struct sl_reader *reader, const struct sl_section *section, int variant);

/* "relu, tanh or sigmoid". */
const char *sl_reader_list_words(struct sl_reader *reader, const struct sl_word *words);

/* Reads a value that is neither a section nor read by a function of its own. */
void sl_reader_read_scalar(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field);

/* Reports every key of the map that this variant of the section does not have. */
void sl_reader_check_keys(struct sl_reader *reader, const struct sl_section *section, const struct sl_node *map,
                          int variant);

#endif

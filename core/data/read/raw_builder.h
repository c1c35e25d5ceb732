/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a raw series by series: the arrays grow as tokens and labels are added. Private to core/data. */
#ifndef SL_DATA_READ_RAW_BUILDER_H
#define SL_DATA_READ_RAW_BUILDER_H

#include "base/value/buf.h"
#include "data/read/raw.h"
#include "data/text/vocabulary.h"

struct sl_raw_builder {
    struct sl_raw *raw;
    struct sl_buf ids, start, length, line, text_offset, text_bytes, target_ids, target_values;
    struct sl_buf scratch;
    int64_t row_count;
    const struct sl_tokenizer *tokenizer;
    int32_t specials[SL_SPECIAL_COUNT]; /* numbers of `tokens`, or a negative mark (raw_builder.c) */
};
void sl_raw_builder_init(struct sl_raw_builder *builder, struct sl_raw *raw, const struct sl_tokenizer *tokenizer);
void sl_raw_builder_begin(struct sl_raw_builder *builder, int64_t line, int64_t text_offset, int64_t text_bytes);
void sl_raw_builder_add_token(struct sl_raw_builder *builder, const char *token, size_t bytes);
void sl_raw_builder_add_special(struct sl_raw_builder *builder, enum sl_special special);
void sl_raw_builder_add_text(struct sl_raw_builder *builder, const char *text, size_t bytes);
void sl_raw_builder_end(struct sl_raw_builder *builder);
seqlstm_status sl_raw_builder_add_label(struct sl_raw_builder *builder, enum sl_label_type type, const char *text,
                                        size_t bytes, int64_t line, const char *column, struct seqlstm_error *err);
/* Moves the arrays into the raw. The builder is empty afterwards, also on failure. */
seqlstm_status sl_raw_builder_finish(struct sl_raw_builder *builder, struct seqlstm_error *err);
void sl_raw_builder_deinit(struct sl_raw_builder *builder);

/* Whether the model file asks for the special, by its name or its token. */
bool sl_tokenizer_has(const struct sl_tokenizer *config, enum sl_special special);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs on their way to a raw source: the target's raw, with the source's as its `pair`. Private to core/data. */
#ifndef SL_DATA_READ_RAW_PAIRS_H
#define SL_DATA_READ_RAW_PAIRS_H

#include "data/read/raw.h"
#include "data/read/raw_builder.h"

/* Both sides in the making; each side's text is in its raw before records of it are added. */
struct sl_pair_builder {
    struct sl_raw_builder source, target;
    bool predicting; /* there are no targets */
};

/* Errors: NO_MEMORY. Then sl_pair_builder_finish is called whatever happens. */
seqlstm_status sl_pair_builder_init(struct sl_pair_builder *builder, const struct sl_read *read, struct sl_raw *raw,
                                    struct seqlstm_error *err);
void sl_pair_builder_add(struct sl_pair_builder *builder, const char *source, size_t source_bytes, int64_t source_line,
                         const char *target, size_t target_bytes, int64_t target_line);
/* Hands the arrays over if `status` is OK, which it returns unless memory runs out. */
seqlstm_status sl_pair_builder_finish(struct sl_pair_builder *builder, seqlstm_status status,
                                      struct seqlstm_error *err);

/* raw_generator_pairs.c: both texts, line by line, into the raws. */
seqlstm_status sl_generate_pairs(const struct sl_read *read, struct sl_raw *source, size_t *out_source_bytes,
                                 struct sl_raw *target, size_t *out_target_bytes, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Building pairs as a raw source: the target's raw, with the source's as its `pair`. Private to core/data. */
#ifndef SL_DATA_READ_RAW_PAIRS_H
#define SL_DATA_READ_RAW_PAIRS_H

#include "data/read/raw.h"
#include "data/read/raw_builder.h"

/* Both sides while they are built; each side's text is in its raw before records are added. */
struct sl_pair_builder {
    struct sl_raw_builder source, target;
    bool predicting; /* there are no targets */
};

/* Errors: NO_MEMORY. sl_pair_builder_finish must be called afterwards, also on failure. */
seqlstm_status sl_pair_builder_init(struct sl_pair_builder *builder, const struct sl_read *read, struct sl_raw *raw,
                                    struct seqlstm_error *err);
void sl_pair_builder_add(struct sl_pair_builder *builder, const char *source, size_t source_bytes, int64_t source_line,
                         const char *target, size_t target_bytes, int64_t target_line);
/* Transfers the arrays if `status` is OK, and returns `status` unless memory runs out. */
seqlstm_status sl_pair_builder_finish(struct sl_pair_builder *builder, seqlstm_status status,
                                      struct seqlstm_error *err);

/* raw_generator_pairs.c: both texts, line by line, into the raws. */
seqlstm_status sl_generate_pairs(const struct sl_read *read, struct sl_raw *source, size_t *out_source_bytes,
                                 struct sl_raw *target, size_t *out_target_bytes, struct seqlstm_error *err);

#endif

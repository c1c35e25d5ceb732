/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of core/data with pairs: records as texts. */
#ifndef SL_TESTS_DATA_PAIRS_FIXTURE_H
#define SL_TESTS_DATA_PAIRS_FIXTURE_H

#include "data_fixture.h"

/* The record of sequence k as text: "source|input|target". */
static inline void data_spell(const struct sl_data_state *state, const struct sl_batch *batch, int64_t k,
                              struct sl_buf *out)
{
    const struct sl_vocabulary *from = sl_data_state_find_source_vocabulary(state);
    sl_buf_truncate(out, 0);
    for (int64_t t = 0; t < batch->source.axis.lengths[batch->source.place[k]]; t++)
        sl_buf_printf(out, "%s ",
                      sl_vocabulary_get_text(from, batch->source.input.ids[sl_batch_source_row(batch, k, t)], NULL));
    sl_buf_append_text(out, "|");
    for (int64_t t = 0; batch->has_steps && t < batch->axis.lengths[k]; t++)
        sl_buf_printf(out, "%s ", data_token(state, batch->input.ids[sl_batch_row(batch, k, t)]));
    sl_buf_append_text(out, "|");
    for (int64_t t = 0; batch->has_steps && t < batch->axis.lengths[k]; t++)
        sl_buf_printf(out, "%s ", data_token(state, batch->target.ids[sl_batch_row(batch, k, t)]));
}

/* All records in one batch of prediction order; `expected[record]`. */
static inline void expect_records(const struct sl_data_state *state, const struct sl_dataset *d,
                                  const char *const *expected, int64_t count)
{
    struct sl_batcher *batcher = data_batcher(d, SL_BATCHING_PREDICT, 1, count, 0);
    struct sl_batch *batch = data_next(batcher);
    struct sl_buf text = {0};
    assert_int_equal(sl_dataset_get_records(d), count);
    assert_int_equal(batch->sequences, count);
    assert_int_equal(sl_batch_check(batch, NULL), SEQLSTM_OK);
    for (int64_t k = 0; k < count; k++) {
        data_spell(state, batch, k, &text);
        assert_string_equal(sl_buf_text(&text), expected[batch->sample[k]]);
        assert_int_equal(batch->source.axis.sequence_id[batch->source.place[k]], batch->sample[k]);
    }
    sl_buf_deinit(&text);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
}

#endif

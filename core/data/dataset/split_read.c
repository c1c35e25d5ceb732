/* SPDX-License-Identifier: Apache-2.0 */
/* Where a split comes from: a source of its own, or a share of the training split. */
#include "data/dataset/split_read.h"

const struct sl_source *sl_split_find_source(const struct sl_model *model, enum sl_split split)
{
    const struct sl_source *source = &model->data.splits[split];
    return source->origin == SL_SOURCE_FROM_TRAIN ? &model->data.splits[SL_SPLIT_TRAIN] : source;
}

/* The shares of train's records that a split is: train, then valid, then test. */
static void find_shares(const struct sl_model *model, enum sl_split split, double *out_from, double *out_to)
{
    const struct sl_source *splits = model->data.splits;
    double valid = splits[SL_SPLIT_VALID].origin == SL_SOURCE_FROM_TRAIN ? splits[SL_SPLIT_VALID].split : 0;
    double test = splits[SL_SPLIT_TEST].origin == SL_SOURCE_FROM_TRAIN ? splits[SL_SPLIT_TEST].split : 0;
    double train_end = test > 0 ? 1 - valid - test : 1 - valid, valid_end = 1 - test;
    *out_from = split == SL_SPLIT_TRAIN ? 0 : split == SL_SPLIT_VALID ? train_end : valid_end;
    *out_to = split == SL_SPLIT_TRAIN ? train_end : split == SL_SPLIT_VALID ? valid_end : 1;
}

seqlstm_status sl_split_read(const struct sl_read *what, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_model *model = what->model;
    enum sl_split split = what->split;
    struct sl_read read = *what;
    read.source = sl_split_find_source(model, split);
    double from, to;
    bool is_cut = split == SL_SPLIT_TRAIN || model->data.splits[split].origin == SL_SOURCE_FROM_TRAIN;
    if (model->data.splits[split].origin == SL_SOURCE_NONE)
        SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND, "the model has no split `%s`", sl_split_get_name(split));
    if (model->data.splits[split].origin == SL_SOURCE_FROM_TRAIN)
        read.split = SL_SPLIT_TRAIN; /* generators: the same numbers as train's */
    SEQLSTM_TRY(sl_raw_read(&read, raw, err));
    find_shares(model, split, &from, &to);
    if (!is_cut || (from <= 0 && to >= 1))
        return SEQLSTM_OK;
    bool by_rows = raw->has_steps && (model->data.batching.unit == SL_UNIT_STREAM ||
                                      (raw->series == 1 && raw->target_per_row && !raw->ahead_in_series));
    seqlstm_status status = sl_raw_slice(raw, from, to, by_rows, err);
    if (status == SEQLSTM_OK && split != SL_SPLIT_TRAIN && !by_rows && raw->source->group &&
        raw->source->window.length > 0)
        raw->counts.whole_groups = raw->series;
    if (status != SEQLSTM_OK)
        sl_raw_deinit(raw);
    return status;
}

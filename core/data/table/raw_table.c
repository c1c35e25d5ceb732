/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of tables: a text column with its label, or columns of numbers as series. */
#include "data/table/table_read.h"

#include <stdlib.h>
#include <string.h>

#include "data/read/load_text.h"
#include "data/read/raw_builder.h"
#include "data/read/raw_pairs.h"
#include "data/table/table_passed.h"

/* Series: rows without steps; else runs of one group, cut at gaps. */
static seqlstm_status make_series(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    size_t n = (size_t)t->kept + 1;
    raw->start = calloc(n, sizeof *raw->start);
    raw->length = calloc(n, sizeof *raw->length);
    raw->line = calloc(n, sizeof *raw->line);
    raw->row_line = calloc(n, sizeof *raw->row_line);
    if (!raw->start || !raw->length || !raw->line || !raw->row_line)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; i < t->kept; i++) {
        raw->row_line[i] = t->table.lines[t->order[i]];
        bool begins = i == 0 || t->breaks[i] || !raw->has_steps || (t->groups && t->groups[i] != t->groups[i - 1]);
        if (begins) {
            raw->start[raw->series] = i;
            raw->line[raw->series++] = raw->row_line[i];
        }
        raw->length[raw->series - 1]++;
    }
    return SEQLSTM_OK;
}

/* A whole sequence has one class: its rows must agree, as far as they say one. */
static seqlstm_status check_classes(const struct sl_table_read *t, struct seqlstm_error *err)
{
    const struct sl_raw *raw = t->raw;
    bool per_series = raw->target_ids && raw->has_steps && t->source->window.length == 0 &&
                      !sl_model_wants_step_targets(t->read->model);
    for (int64_t s = 0; per_series && s < raw->series; s++) {
        int32_t *ids = raw->target_ids + raw->start[s], known = -1;
        for (int64_t i = 0; i < raw->length[s]; i++) {
            if (known >= 0 && ids[i] >= 0 && ids[i] != known)
                SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                             "%s:%lld: the label changes from \"%s\" to \"%s\" inside one sequence (column `%s`)",
                             SL_TABLE_LINE(t, raw->start[s] + i), sl_intern_get(&raw->labels, known, NULL),
                             sl_intern_get(&raw->labels, ids[i], NULL), t->source->label.column);
            known = ids[i] >= 0 ? ids[i] : known;
        }
        for (int64_t i = 0; i < raw->length[s]; i++)
            ids[i] = known;
    }
    return SEQLSTM_OK;
}

/* What the columns hold, and room for it. */
static seqlstm_status prepare_numbers(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    const struct sl_source *source = t->source;
    const struct sl_model *model = t->read->model;
    size_t n = (size_t)t->kept + 1;
    bool classes = !t->read->input && t->label >= 0 && source->label.type == SL_LABEL_CLASS;
    bool values = !t->read->input && !classes && t->target_count > 0;
    raw->input_kind = SL_FIELD_VALUES;
    raw->has_steps = t->group >= 0 || source->window.length > 0 || sl_model_wants_steps(model) ||
                     model->data.batching.unit == SL_UNIT_STREAM;
    raw->target_kind = classes ? SL_FIELD_IDS : values ? SL_FIELD_VALUES : SL_FIELD_NONE;
    raw->target_per_row = true;
    raw->ahead = values && source->window.length > 0 ? source->window.horizon : 0;
    if (!t->read->input && raw->target_kind == SL_FIELD_NONE)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: nothing to learn: say `targets` or `label`", t->table.file);
    raw->values = calloc(n * (size_t)raw->input_features, sizeof *raw->values);
    if (classes)
        raw->target_ids = calloc(n, sizeof *raw->target_ids);
    if (values)
        raw->target_values = calloc(n * (size_t)raw->target_features, sizeof *raw->target_values);
    t->keep = malloc(n);
    t->breaks = calloc(n, sizeof *t->breaks);
    if (!raw->values || (classes && !raw->target_ids) || (values && !raw->target_values) || !t->keep || !t->breaks)
        return SL_DATA_NO_MEMORY(err);
    memset(t->keep, true, n);
    return SEQLSTM_OK;
}

/* Inputs of predict: no row of the file loses its place. */
static seqlstm_status make_input_series(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    bool drop = t->source->missing.type == SL_MISSING_DROP, windows = t->source->window.length > 0;
    SEQLSTM_TRY(sl_table_check_gaps(t, NULL, err));
    raw->rows = t->kept;
    if (drop && (windows || !raw->has_steps))
        SEQLSTM_TRY(sl_table_mark_rows(t, err));
    if (windows) { /* one series per group: its windows are numbered through */
        raw->after_gap = t->breaks;
        t->breaks = calloc((size_t)t->kept + 1, sizeof *t->breaks);
        if (!t->breaks)
            return SL_DATA_NO_MEMORY(err);
    }
    SEQLSTM_TRY(make_series(t, err));
    return drop && !raw->blank ? sl_table_thin_series(t, err) : SEQLSTM_OK;
}

static seqlstm_status read_numbers(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    SEQLSTM_TRY(prepare_numbers(t, err));
    SEQLSTM_TRY(sl_table_check_order(t, err));
    SEQLSTM_TRY(sl_table_parse_numbers(t, t->inputs, t->input_count, raw->input_names, false, raw->values, err));
    if (raw->target_values)
        SEQLSTM_TRY(
            sl_table_parse_numbers(t, t->targets, t->target_count, raw->target_names, true, raw->target_values, err));
    if (raw->target_ids)
        SEQLSTM_TRY(sl_table_parse_classes(t, raw->target_ids, err));
    if (t->read->input)
        return make_input_series(t, err);
    if (t->source->missing.type == SL_MISSING_DROP)
        SEQLSTM_TRY(sl_table_drop_rows(t, err));
    else
        SEQLSTM_TRY(sl_table_check_gaps(t, NULL, err));
    raw->rows = t->kept;
    SEQLSTM_TRY(make_series(t, err));
    return check_classes(t, err);
}

static seqlstm_status read_texts(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    const struct sl_source *source = t->source;
    struct sl_raw_builder builder;
    seqlstm_status status = SEQLSTM_OK;
    bool labelled = !t->read->input && t->label >= 0 && t->read->model->train.task != SL_TASK_LANGUAGE_MODEL;
    raw->input_kind = SL_FIELD_IDS;
    raw->input_features = 1;
    raw->target_features = 1;
    raw->has_steps = true;
    if (labelled)
        raw->target_kind = source->label.type == SL_LABEL_CLASS ? SL_FIELD_IDS : SL_FIELD_VALUES;
    sl_raw_builder_init(&builder, raw, &t->read->model->data.tokenizer);
    for (int64_t i = 0; status == SEQLSTM_OK && i < t->kept; i++) {
        const struct sl_cell *cell = sl_table_cell(&t->table, t->order[i], t->text);
        int64_t line = t->table.lines[t->order[i]];
        if (labelled) {
            const struct sl_cell *label = sl_table_cell(&t->table, t->order[i], t->label);
            status = sl_raw_builder_add_label(&builder, source->label.type, label->text, label->bytes, line,
                                              source->label.column, err);
        }
        sl_raw_builder_begin(&builder, line, cell->text - raw->text, (int64_t)cell->bytes);
        sl_raw_builder_add_special(&builder, SL_SPECIAL_BOS);
        sl_raw_builder_add_text(&builder, cell->text, cell->bytes);
        sl_raw_builder_add_special(&builder, SL_SPECIAL_EOS);
        sl_raw_builder_end(&builder);
    }
    if (status == SEQLSTM_OK)
        return sl_raw_builder_finish(&builder, err);
    sl_raw_builder_deinit(&builder);
    return status;
}

/* Two texts of a row; `text` alone is both. */
static seqlstm_status read_pairs(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    struct sl_pair_builder b;
    int64_t from = t->pair_source >= 0 ? t->pair_source : t->text, to = t->pair_target >= 0 ? t->pair_target : t->text;
    SEQLSTM_TRY(sl_pair_builder_init(&b, t->read, raw, err));
    raw->pair->text = raw->text; /* for the offsets of its cells; transferred below */
    for (int64_t i = 0; i < t->kept; i++) {
        const struct sl_cell *source = sl_table_cell(&t->table, t->order[i], from);
        const struct sl_cell *target = to < 0 ? source : sl_table_cell(&t->table, t->order[i], to);
        int64_t line = t->table.lines[t->order[i]];
        sl_pair_builder_add(&b, source->text, source->bytes, line, target->text, target->bytes, line);
    }
    raw->pair->text = NULL;
    seqlstm_status status = SEQLSTM_OK;
    raw->pair->name = strdup(raw->name);
    raw->pair->text = malloc(t->text_bytes + 1);
    if (raw->pair->name && raw->pair->text)
        memcpy(raw->pair->text, raw->text, t->text_bytes + 1);
    else
        status = SL_DATA_NO_MEMORY(err);
    return sl_pair_builder_finish(&b, status, err);
}

/* An input that lacks a column is wrong; the model, which names it, was right for the training data. */
static seqlstm_status find_columns(struct sl_table_read *t, struct seqlstm_error *err)
{
    seqlstm_status status = sl_table_find_columns(t, err);
    if (status != SEQLSTM_INVALID_CONFIG || !t->read->input)
        return status;
    if (err)
        err->code = SEQLSTM_CORRUPT_DATA;
    return SEQLSTM_CORRUPT_DATA;
}

struct sl_table_form sl_table_make_form(const struct sl_source *source, bool blank_rows)
{
    const bool csv = source->type == SL_SOURCE_CSV;
    return (struct sl_table_form){.delimiter = source->delimiter ? source->delimiter
                                               : csv             ? ","
                                                                 : "\t",
                                  .quotes = csv,
                                  .header = source->header,
                                  .columns = source->columns,
                                  .blank_rows = blank_rows};
}

seqlstm_status sl_raw_read_table(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_source *source = read->source;
    struct sl_table_read t = {
        .read = read, .source = source, .raw = raw, .label = -1, .group = -1, .time = -1, .text = -1};
    t.pair_source = t.pair_target = -1;
    bool texts = source->text || read->model->data.pairs;
    const struct sl_table_form form = sl_table_make_form(source, read->input || !texts);
    size_t bytes;
    SEQLSTM_TRY(sl_load_text(read, &raw->text, &bytes, &raw->name, err));
    seqlstm_status status = sl_table_parse(raw->name, raw->text, bytes, &form, &t.table, err);
    if (status == SEQLSTM_OK && read->input && read->input->columns)
        status = sl_table_keep_passed(&t.table, read->input->columns, &raw->passed, err);
    if (status == SEQLSTM_OK)
        status = find_columns(&t, err);
    if (status == SEQLSTM_OK)
        status = sl_table_choose_rows(&t, err);
    t.text_bytes = bytes;
    if (status == SEQLSTM_OK)
        status = read->model->data.pairs ? read_pairs(&t, err)
                 : t.text >= 0           ? read_texts(&t, err)
                                         : read_numbers(&t, err);
    sl_table_deinit(&t.table);
    free(t.inputs);
    free(t.targets);
    free(t.order);
    free(t.groups);
    free(t.moments);
    free(t.keep);
    free(t.breaks);
    return status;
}

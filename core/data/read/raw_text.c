/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of plain text: `text`, `lines` and `tokens`.
 *
 *   text, unit: stream     all lines one after the other; newline is <eos> (whitespace, word; if the
 *                          tokenizer has it) or the character itself (char)
 *   text, unit: sequence   one record per line that is not blank
 *   lines                  one record per line, with a label before the first or behind the last delimiter
 *   tokens                 one record per line of integers
 */
#include "data/read/raw.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/read/load_text.h"
#include "data/read/raw_builder.h"
#include "data/text/tokenizer.h"

static bool is_blank_line(const char *line, size_t bytes)
{
    sl_trim(&line, &bytes);
    return bytes == 0;
}

/* Cuts a line into text and label, which point into it. False when there is no delimiter. */
static bool cut_label(const struct sl_source *source, const char *line, size_t bytes, const char **out_text,
                      size_t *out_text_bytes, const char **out_label, size_t *out_label_bytes)
{
    const char *delimiter = source->delimiter ? source->delimiter : "\t";
    size_t width = strlen(delimiter);
    bool first = strcmp(source->label.column, "last") != 0;
    const char *found = NULL;
    if (width == 0 || bytes < width)
        return false;
    for (size_t i = 0; i + width <= bytes; i++) {
        size_t at = first ? i : bytes - width - i;
        if (memcmp(line + at, delimiter, width) == 0) {
            found = line + at;
            break;
        }
    }
    if (!found)
        return false;
    const char *rest = found + width;
    *out_label = first ? line : rest;
    *out_label_bytes = first ? (size_t)(found - line) : (size_t)(line + bytes - rest);
    *out_text = first ? rest : line;
    *out_text_bytes = first ? (size_t)(line + bytes - rest) : (size_t)(found - line);
    return true;
}

/* What every reader here starts with: the whole text, kept in the raw. */
static seqlstm_status load(const struct sl_read *read, struct sl_raw *raw, size_t *out_bytes, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_load_text(read, &raw->text, out_bytes, &raw->name, err));
    raw->input_kind = SL_FIELD_IDS;
    raw->input_features = 1;
    raw->has_steps = true;
    return SEQLSTM_OK;
}

static bool has_label(const struct sl_read *read)
{
    return read->source->label.column && !read->input && read->source->type != SL_SOURCE_TEXT;
}

static void expect_label(const struct sl_read *read, struct sl_raw *raw)
{
    if (!has_label(read) || read->model->train.task == SL_TASK_LANGUAGE_MODEL)
        return;
    raw->target_kind = read->source->label.type == SL_LABEL_CLASS ? SL_FIELD_IDS : SL_FIELD_VALUES;
    raw->target_features = 1;
}

/* Splits label from text where there is one and stores the label. */
static seqlstm_status take_label(const struct sl_read *read, struct sl_raw_builder *builder, const char **line,
                                 size_t *bytes, int64_t number, struct seqlstm_error *err)
{
    const char *label;
    size_t label_bytes;
    if (!has_label(read))
        return SEQLSTM_OK;
    if (!cut_label(read->source, *line, *bytes, line, bytes, &label, &label_bytes))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s:%lld: no label: the line has no delimiter \"%s\" (label: {column: %s})", builder->raw->name,
                     (long long)number, read->source->delimiter ? read->source->delimiter : "\\t",
                     read->source->label.column);
    if (builder->raw->target_kind == SL_FIELD_NONE)
        return SEQLSTM_OK;
    return sl_raw_builder_add_label(builder, read->source->label.type, label, label_bytes, number,
                                    read->source->label.column, err);
}

static seqlstm_status read_stream(struct sl_raw_builder *builder, size_t bytes)
{
    struct sl_raw *raw = builder->raw;
    struct sl_line_cursor cursor = {raw->text, raw->text + bytes, 0};
    const char *line;
    size_t line_bytes;
    if (builder->tokenizer->type == SL_TOKENIZER_CHAR) {
        if (bytes == 0)
            return SEQLSTM_OK;
        sl_raw_builder_begin(builder, 1, 0, (int64_t)bytes);
        sl_raw_builder_add_text(builder, raw->text, bytes);
        sl_raw_builder_end(builder);
        return SEQLSTM_OK;
    }
    while (sl_line_next(&cursor, &line, &line_bytes)) {
        sl_raw_builder_begin(builder, cursor.number, line - raw->text, (int64_t)line_bytes);
        sl_raw_builder_add_special(builder, SL_SPECIAL_BOS);
        sl_raw_builder_add_text(builder, line, line_bytes);
        sl_raw_builder_add_special(builder, SL_SPECIAL_EOS);
        sl_raw_builder_end(builder);
    }
    return SEQLSTM_OK;
}

static seqlstm_status read_lines(const struct sl_read *read, struct sl_raw_builder *builder, size_t bytes,
                                 struct seqlstm_error *err)
{
    struct sl_raw *raw = builder->raw;
    struct sl_line_cursor cursor = {raw->text, raw->text + bytes, 0};
    bool skip_blank = read->source->type == SL_SOURCE_TEXT && !read->input;
    const char *line;
    size_t line_bytes;
    while (sl_line_next(&cursor, &line, &line_bytes)) {
        if (skip_blank && is_blank_line(line, line_bytes))
            continue;
        SEQLSTM_TRY(take_label(read, builder, &line, &line_bytes, cursor.number, err));
        sl_raw_builder_begin(builder, cursor.number, line - raw->text, (int64_t)line_bytes);
        sl_raw_builder_add_special(builder, SL_SPECIAL_BOS);
        sl_raw_builder_add_text(builder, line, line_bytes);
        sl_raw_builder_add_special(builder, SL_SPECIAL_EOS);
        sl_raw_builder_end(builder);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_raw_read_text(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    struct sl_raw_builder builder;
    size_t bytes;
    bool done;
    seqlstm_status status = sl_raw_read_cached(read, raw, &done, err);
    if (status != SEQLSTM_OK || done)
        return status;
    SEQLSTM_TRY(load(read, raw, &bytes, err));
    expect_label(read, raw);
    sl_raw_builder_init(&builder, raw, &read->model->data.tokenizer);
    if (read->model->data.batching.unit == SL_UNIT_STREAM && !has_label(read))
        status = read_stream(&builder, bytes);
    else
        status = read_lines(read, &builder, bytes, err);
    if (status == SEQLSTM_OK)
        return sl_raw_builder_finish(&builder, err);
    sl_raw_builder_deinit(&builder);
    return status;
}

static seqlstm_status add_ids(struct sl_raw_builder *builder, const char *line, size_t bytes, int64_t number,
                              struct seqlstm_error *err)
{
    struct sl_token_cursor cursor;
    const char *word;
    size_t word_bytes;
    sl_token_cursor_init(&cursor, SL_TOKENIZER_WHITESPACE, line, bytes);
    while (sl_token_cursor_next(&cursor, &word, &word_bytes)) {
        int64_t value;
        if (!sl_text_parse_int64(word, word_bytes, &value) || value < 0 || value >= SL_DATA_MOST_IDS)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                         "%s:%lld: \"%.*s\" is not a token id, expected an integer from 0 to %d", builder->raw->name,
                         (long long)number, (int)(word_bytes > 80 ? 80 : word_bytes), word, SL_DATA_MOST_IDS - 1);
        int32_t id = (int32_t)value;
        if (id >= builder->raw->known_ids)
            builder->raw->known_ids = (int64_t)id + 1;
        sl_buf_append(&builder->ids, &id, sizeof id);
        builder->row_count++;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_raw_read_tokens(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    struct sl_raw_builder builder;
    size_t bytes, line_bytes;
    const char *line;
    seqlstm_status status = SEQLSTM_OK;
    SEQLSTM_TRY(load(read, raw, &bytes, err));
    expect_label(read, raw);
    raw->known_ids = 1;
    sl_raw_builder_init(&builder, raw, &read->model->data.tokenizer);
    struct sl_line_cursor cursor = {raw->text, raw->text + bytes, 0};
    while (status == SEQLSTM_OK && sl_line_next(&cursor, &line, &line_bytes)) {
        if (!read->input && is_blank_line(line, line_bytes))
            continue;
        status = take_label(read, &builder, &line, &line_bytes, cursor.number, err);
        if (status != SEQLSTM_OK)
            break;
        sl_raw_builder_begin(&builder, cursor.number, line - raw->text, (int64_t)line_bytes);
        status = add_ids(&builder, line, line_bytes, cursor.number, err);
        sl_raw_builder_end(&builder);
    }
    if (status == SEQLSTM_OK)
        return sl_raw_builder_finish(&builder, err);
    sl_raw_builder_deinit(&builder);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of column files: one token per line with its tag, a blank line ends a sequence. */
#include "data/read/raw.h"

#include <string.h>

#include "data/read/conll_line.h"
#include "data/read/load_text.h"
#include "data/read/raw_builder.h"

struct conll {
    const struct sl_read *read;
    struct sl_raw_builder builder;
    struct sl_conll_columns columns;
    bool want_label;
};

static seqlstm_status add_line(struct conll *conll, const char *line, size_t bytes, int64_t number,
                               struct seqlstm_error *err)
{
    const struct sl_source *source = conll->read->source;
    const struct sl_conll_columns *columns = &conll->columns;
    struct sl_raw *raw = conll->builder.raw;
    const char *part;
    size_t part_bytes;
    const bool is_one = memmem(line, bytes, columns->delimiter, strlen(columns->delimiter)) == NULL;
    const char *hint = !columns->by_blanks && memchr(line, ' ', bytes) && is_one
                           ? " (`delimiter: \" \"` separates the columns by blanks)"
                           : "";
    if (!sl_conll_find_part(columns, line, bytes, columns->text, &part, &part_bytes) || part_bytes == 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the line has no token in %s%s%s", raw->name,
                     (long long)number, columns->text < 0 ? "its last column" : "column ",
                     columns->text < 0 ? ""
                     : source->text    ? source->text
                                       : "1",
                     hint);
    sl_raw_builder_add_token(&conll->builder, part, part_bytes);
    if (!conll->want_label)
        return SEQLSTM_OK;
    const char *token = part;
    const bool last = !source->label.column || strcmp(source->label.column, "last") == 0;
    if (!sl_conll_find_part(columns, line, bytes, columns->label, &part, &part_bytes) || part == token)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the line has no tag: expected %s%s after \"%.*s\"%s",
                     raw->name, (long long)number, last ? "another column" : "column ",
                     last ? "" : source->label.column, (int)(part_bytes > 80 ? 80 : part_bytes), part, hint);
    return sl_raw_builder_add_label(&conll->builder, source->label.type, part, part_bytes, number,
                                    source->label.column ? source->label.column : "last", err);
}

static seqlstm_status read_all(struct conll *conll, size_t bytes, struct seqlstm_error *err)
{
    struct sl_raw *raw = conll->builder.raw;
    size_t line_bytes;
    struct sl_line_cursor cursor = {raw->text, raw->text + bytes, 0};
    const char *line, *end_of_record = raw->text;
    bool open = false;
    int64_t begin_offset = 0;
    while (sl_line_next(&cursor, &line, &line_bytes)) {
        const char *trimmed = line;
        size_t trimmed_bytes = line_bytes;
        sl_trim(&trimmed, &trimmed_bytes);
        if (trimmed_bytes == 0) {
            if (open)
                sl_raw_builder_end(&conll->builder);
            open = false;
            continue;
        }
        if (sl_conll_is_comment(conll->read->source, line, line_bytes))
            continue;
        if (!open) {
            begin_offset = line - raw->text;
            sl_raw_builder_begin(&conll->builder, cursor.number, begin_offset, 0);
        }
        open = true;
        SEQLSTM_TRY(add_line(conll, line, line_bytes, cursor.number, err));
        end_of_record = line + line_bytes;
        int64_t text_bytes = end_of_record - raw->text - begin_offset;
        if (!conll->builder.text_bytes.failed)
            memcpy(conll->builder.text_bytes.data + conll->builder.text_bytes.length_bytes - sizeof text_bytes,
                   &text_bytes, sizeof text_bytes);
    }
    if (open)
        sl_raw_builder_end(&conll->builder);
    return SEQLSTM_OK;
}

seqlstm_status sl_raw_read_conll(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_source *source = read->source;
    struct conll conll = {.read = read};
    size_t bytes;
    SEQLSTM_TRY(sl_conll_columns_init(&conll.columns, source, err));
    SEQLSTM_TRY(sl_load_text(read, &raw->text, &bytes, &raw->name, err));
    raw->input_kind = SL_FIELD_IDS;
    raw->input_features = 1;
    raw->has_steps = true;
    conll.want_label = !read->input && read->model->train.task != SL_TASK_LANGUAGE_MODEL;
    if (conll.want_label) {
        raw->target_kind = source->label.type == SL_LABEL_CLASS ? SL_FIELD_IDS : SL_FIELD_VALUES;
        raw->target_features = 1;
        raw->target_per_row = true;
    }
    sl_raw_builder_init(&conll.builder, raw, &read->model->data.tokenizer);
    seqlstm_status status = read_all(&conll, bytes, err);
    if (status == SEQLSTM_OK)
        return sl_raw_builder_finish(&conll.builder, err);
    sl_raw_builder_deinit(&conll.builder);
    return status;
}

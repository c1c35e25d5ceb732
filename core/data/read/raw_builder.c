/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, and how tokens and labels get into them. */
#include "data/read/raw_builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/read/load_text.h"
#include "data/text/tokenizer.h"

bool sl_tokenizer_has(const struct sl_tokenizer *config, enum sl_special special)
{
    for (size_t i = 0; i < config->specials.count; i++) {
        const char *item = config->specials.items[i];
        if (strcmp(item, sl_special_get_name(special)) == 0 || strcmp(item, sl_special_get_token(special)) == 0)
            return true;
    }
    return false;
}

/* In place of a special's number. */
enum { NOT_WANTED = -2, NOT_SEEN = -1 };

void sl_raw_builder_init(struct sl_raw_builder *builder, struct sl_raw *raw, const struct sl_tokenizer *tokenizer)
{
    memset(builder, 0, sizeof *builder);
    builder->raw = raw;
    builder->tokenizer = tokenizer;
    for (int special = 0; special < SL_SPECIAL_COUNT; special++)
        builder->specials[special] = sl_tokenizer_has(tokenizer, (enum sl_special)special) ? NOT_SEEN : NOT_WANTED;
}

void sl_raw_builder_begin(struct sl_raw_builder *builder, int64_t line, int64_t text_offset, int64_t text_bytes)
{
    sl_buf_append(&builder->start, &builder->row_count, sizeof builder->row_count);
    sl_buf_append(&builder->line, &line, sizeof line);
    sl_buf_append(&builder->text_offset, &text_offset, sizeof text_offset);
    sl_buf_append(&builder->text_bytes, &text_bytes, sizeof text_bytes);
}

void sl_raw_builder_end(struct sl_raw_builder *builder)
{
    int64_t start = 0;
    if (builder->start.failed || builder->start.length_bytes < sizeof start)
        return;
    memcpy(&start, builder->start.data + builder->start.length_bytes - sizeof start, sizeof start);
    int64_t length = builder->row_count - start;
    sl_buf_append(&builder->length, &length, sizeof length);
}

static void add_ids(struct sl_raw_builder *builder, const int32_t *ids, int64_t count)
{
    sl_buf_append(&builder->ids, ids, (size_t)count * sizeof *ids);
    builder->row_count += count;
}

static int32_t find_number(struct sl_raw_builder *builder, const char *token, size_t bytes)
{
    if (builder->tokenizer->lowercase) {
        sl_buf_truncate(&builder->scratch, 0);
        sl_buf_append(&builder->scratch, token, bytes);
        if (!builder->scratch.failed) {
            sl_text_lower(builder->scratch.data, bytes);
            token = builder->scratch.data;
        }
    }
    return sl_intern_add(&builder->raw->tokens, token, bytes);
}

void sl_raw_builder_add_token(struct sl_raw_builder *builder, const char *token, size_t bytes)
{
    int32_t number = find_number(builder, token, bytes);
    add_ids(builder, &number, 1);
}

/* Specials keep their spelling whatever `lowercase` says. */
void sl_raw_builder_add_special(struct sl_raw_builder *builder, enum sl_special special)
{
    int32_t *number = &builder->specials[special];
    if (*number == NOT_WANTED)
        return;
    if (*number == NOT_SEEN) {
        const char *token = sl_special_get_token(special);
        *number = sl_intern_add(&builder->raw->tokens, token, strlen(token));
    }
    add_ids(builder, number, 1);
}

static void add_piece(void *builder, const char *piece, uint64_t bytes)
{
    sl_raw_builder_add_token(builder, piece, (size_t)bytes);
}

void sl_raw_builder_add_text(struct sl_raw_builder *builder, const char *text, size_t bytes)
{
    if (builder->raw->pieces) {
        if (sl_pieces_cut(builder->raw->pieces, text, bytes, add_piece, builder, NULL) != SEQLSTM_OK)
            builder->ids.failed = true; /* only memory can be the reason: the text is valid */
        return;
    }
    struct sl_token_cursor cursor;
    const char *token;
    size_t token_bytes;
    int32_t numbers[64]; /* many at a time: a single character is little work */
    int64_t count = 0, room = sizeof numbers / sizeof numbers[0];
    sl_token_cursor_init(&cursor, builder->tokenizer->type, text, bytes);
    while (sl_token_cursor_next(&cursor, &token, &token_bytes)) {
        numbers[count++] = find_number(builder, token, token_bytes);
        if (count == room) {
            add_ids(builder, numbers, count);
            count = 0;
        }
    }
    add_ids(builder, numbers, count);
}

seqlstm_status sl_raw_builder_add_label(struct sl_raw_builder *builder, enum sl_label_type type, const char *text,
                                        size_t bytes, int64_t line, const char *column, struct seqlstm_error *err)
{
    struct sl_raw *raw = builder->raw;
    sl_trim(&text, &bytes);
    if (bytes == 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the label (column `%s`) is empty", raw->name, (long long)line,
                     column);
    if (type == SL_LABEL_CLASS) {
        int32_t id = sl_intern_add(&raw->labels, text, bytes);
        sl_buf_append(&builder->target_ids, &id, sizeof id);
        return SEQLSTM_OK;
    }
    double value;
    if (!sl_text_parse_float64(text, bytes, &value) || !isfinite(value))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the label (column `%s`) is \"%.*s\", expected a number",
                     raw->name, (long long)line, column, (int)(bytes > 80 ? 80 : bytes), text);
    sl_buf_append(&builder->target_values, &value, sizeof value);
    return SEQLSTM_OK;
}

/* Transfers the memory; an empty array becomes a few bytes, so that NULL means failure. */
static void *take(struct sl_buf *buf, bool *ok)
{
    void *array = NULL;
    if (!buf->failed)
        array = buf->data ? (void *)sl_buf_take(buf, NULL) : calloc(1, sizeof(int64_t));
    *ok = *ok && array;
    return array;
}

seqlstm_status sl_raw_builder_finish(struct sl_raw_builder *builder, struct seqlstm_error *err)
{
    struct sl_raw *raw = builder->raw;
    raw->rows = builder->row_count;
    raw->series = (int64_t)(builder->start.length_bytes / sizeof(int64_t));
    bool ok = !raw->tokens.failed && !raw->labels.failed && !builder->scratch.failed;
    raw->ids = take(&builder->ids, &ok);
    raw->start = take(&builder->start, &ok);
    raw->length = take(&builder->length, &ok);
    raw->line = take(&builder->line, &ok);
    raw->text_offset = take(&builder->text_offset, &ok);
    raw->text_bytes = take(&builder->text_bytes, &ok);
    if (raw->target_kind == SL_FIELD_IDS)
        raw->target_ids = take(&builder->target_ids, &ok);
    if (raw->target_kind == SL_FIELD_VALUES)
        raw->target_values = take(&builder->target_values, &ok);
    sl_raw_builder_deinit(builder);
    return ok ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
}

void sl_raw_builder_deinit(struct sl_raw_builder *builder)
{
    struct sl_buf *bufs[] = {&builder->ids,        &builder->start,         &builder->length,
                             &builder->line,       &builder->text_offset,   &builder->text_bytes,
                             &builder->target_ids, &builder->target_values, &builder->scratch};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        sl_buf_deinit(bufs[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of text share: loading as UTF-8, lines, and arrays that grow. */
#include "data/read/raw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/text/tokenizer.h"

static int64_t line_of(const char *text, size_t offset)
{
    int64_t line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static seqlstm_status check_text(const char *name, const char *text, size_t bytes, struct seqlstm_error *err)
{
    size_t bad = 0;
    if (bytes >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:1: the text is UTF-16, expected UTF-8: convert it (iconv -t UTF-8)",
                     name);
    if (!sl_text_is_utf8(text, bytes, &bad))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s:%lld: byte 0x%02x at offset %zu is not valid UTF-8 (`encoding: latin-1` reads ISO 8859-1)",
                     name, (long long)line_of(text, bad), (unsigned)(unsigned char)text[bad], bad);
    const char *nul = memchr(text, '\0', bytes);
    if (nul)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: a NUL byte at offset %zu: this is no text file", name,
                     (long long)line_of(text, (size_t)(nul - text)), (size_t)(nul - text));
    return SEQLSTM_OK;
}

static seqlstm_status from_latin_1(char **text, size_t *bytes, struct seqlstm_error *err)
{
    struct sl_buf out;
    sl_buf_init(&out);
    sl_buf_append_text(&out, "");
    for (size_t i = 0; i < *bytes; i++) {
        char encoded[4];
        size_t length = sl_text_utf8_encode(encoded, (unsigned char)(*text)[i]);
        sl_buf_append(&out, encoded, length);
    }
    size_t length = out.length_bytes;
    char *converted = out.failed ? NULL : sl_buf_take(&out, NULL);
    if (!converted) {
        sl_buf_deinit(&out);
        return SL_DATA_NO_MEMORY(err);
    }
    free(*text);
    *text = converted;
    *bytes = length;
    return SEQLSTM_OK;
}

static char *copy_bytes(const void *data, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    if (copy) {
        if (bytes > 0)
            memcpy(copy, data, bytes);
        copy[bytes] = '\0';
    }
    return copy;
}

seqlstm_status sl_load_text(const struct sl_read *read, char **out_text, size_t *out_bytes, char **out_name,
                            struct seqlstm_error *err)
{
    const struct sl_input_request *input = read->input;
    seqlstm_status status = SEQLSTM_OK;
    char *text = NULL;
    size_t bytes = 0;
    const char *path = input ? input->path : read->source->file;
    const char *name = path ? path : input && input->name ? input->name : "input";
    if (path && strcmp(path, "-") == 0) {
        path = "/dev/stdin";
        name = "standard input";
    }
    char *own_name = strdup(name);
    if (!own_name)
        return SL_DATA_NO_MEMORY(err);
    if (path) {
        status = sl_file_read(path, SIZE_MAX / 4, &text, &bytes, err);
    } else {
        text = copy_bytes(input->data, input->data_bytes);
        bytes = input->data_bytes;
        if (!text)
            status = SL_DATA_NO_MEMORY(err);
    }
    if (status == SEQLSTM_OK && bytes == 0 && !input)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__, "%s: the file is empty", own_name);
    if (status == SEQLSTM_OK && read->source->encoding == SL_ENCODING_LATIN_1)
        status = from_latin_1(&text, &bytes, err);
    if (status == SEQLSTM_OK && bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        bytes -= 3;
        memmove(text, text + 3, bytes + 1);
    }
    if (status == SEQLSTM_OK)
        status = check_text(own_name, text, bytes, err);
    if (status != SEQLSTM_OK) {
        free(text);
        free(own_name);
        return status;
    }
    *out_text = text;
    *out_bytes = bytes;
    *out_name = own_name;
    return SEQLSTM_OK;
}

bool sl_line_next(struct sl_line_cursor *cursor, const char **out_line, size_t *out_bytes)
{
    if (cursor->next >= cursor->end)
        return false;
    const char *begin = cursor->next;
    const char *end = memchr(begin, '\n', (size_t)(cursor->end - begin));
    cursor->next = end ? end + 1 : cursor->end;
    end = end ? end : cursor->end;
    if (end > begin && end[-1] == '\r')
        end--;
    cursor->number++;
    *out_line = begin;
    *out_bytes = (size_t)(end - begin);
    return true;
}

bool sl_tokenizer_has(const struct sl_tokenizer *config, enum sl_special special)
{
    for (size_t i = 0; i < config->specials.count; i++) {
        const char *item = config->specials.items[i];
        if (strcmp(item, sl_special_get_name(special)) == 0 || strcmp(item, sl_special_get_token(special)) == 0)
            return true;
    }
    return false;
}

void sl_trim(const char **text, size_t *bytes)
{
    while (*bytes > 0 && ((*text)[0] == ' ' || (*text)[0] == '\t' || (*text)[0] == '\r')) {
        (*text)++;
        (*bytes)--;
    }
    while (*bytes > 0 && ((*text)[*bytes - 1] == ' ' || (*text)[*bytes - 1] == '\t' || (*text)[*bytes - 1] == '\r'))
        (*bytes)--;
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
            builder->ids.failed = true; /* it can only be memory: the text is valid */
        return;
    }
    struct sl_token_cursor cursor;
    const char *token;
    size_t token_bytes;
    int32_t numbers[64]; /* many at a time: a character's way is short */
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

/* One line into `text`, which may stay empty; false at the end. */
static bool take_line(struct sl_raw_lines *lines)
{
    if (lines->series == lines->raw->series && lines->then)
        *lines = (struct sl_raw_lines){.raw = lines->then, .text = lines->text};
    const struct sl_raw *raw = lines->raw;
    if (lines->series == raw->series)
        return false;
    int32_t eos = sl_intern_find(&raw->tokens, sl_special_get_token(SL_SPECIAL_EOS), 5);
    int64_t end = raw->length[lines->series];
    const int32_t *ids = raw->ids + raw->start[lines->series];
    for (; lines->at < end && ids[lines->at] != eos; lines->at++) {
        size_t bytes;
        const char *word = sl_intern_get(&raw->tokens, ids[lines->at], &bytes);
        if (lines->text.length_bytes > 0)
            sl_buf_append_char(&lines->text, ' ');
        sl_buf_append(&lines->text, word, bytes);
    }
    if (lines->at < end) {
        lines->at++; /* behind <eos> */
    } else {
        lines->series++;
        lines->at = 0;
    }
    return true;
}

const char *sl_raw_lines_next(void *context, uint64_t *out_bytes)
{
    struct sl_raw_lines *lines = context;
    sl_buf_truncate(&lines->text, 0);
    while (lines->text.length_bytes == 0 && take_line(lines)) {
    }
    *out_bytes = lines->text.length_bytes;
    return lines->text.length_bytes > 0 && !lines->text.failed ? lines->text.data : NULL;
}

/* Hands the memory over; an empty array becomes a few bytes, so that NULL means failure. */
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

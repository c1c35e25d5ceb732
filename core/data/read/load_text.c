/* SPDX-License-Identifier: Apache-2.0 */
/* Text files as UTF-8, line by line. */
#include "data/read/load_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "base/value/text.h"

static int64_t line_of(const char *text, size_t offset)
{
    int64_t line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n' || (text[i] == '\r' && text[i + 1] != '\n');
    return line;
}

size_t sl_text_unify_lines(char *text, size_t bytes)
{
    char *from = memchr(text, '\r', bytes), *to = from, *end = text + bytes;
    while (from && from < end) {
        if (*from == '\r') {
            from += from + 1 < end && from[1] == '\n';
            *from = '\n';
        }
        *to++ = *from++;
    }
    return to ? (size_t)(to - text) : bytes;
}

const char *sl_text_find_other_mark(const char *bytes, size_t count)
{
    static const struct {
        const char *mark, *name;
        size_t bytes;
    } marks[] = {{"\xFF\xFE\0", "UTF-32", 4},
                 {"\0\0\xFE\xFF", "UTF-32", 4},
                 {"\xFF\xFE", "UTF-16", 2},
                 {"\xFE\xFF", "UTF-16", 2}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (count >= marks[i].bytes && memcmp(bytes, marks[i].mark, marks[i].bytes) == 0)
            return marks[i].name;
    return NULL;
}

/* `skipped` bytes of the file are before the text, here and below: those of a byte order mark. */
static seqlstm_status check_utf8(const char *name, const char *text, size_t bytes, size_t skipped,
                                 struct seqlstm_error *err)
{
    size_t bad = 0;
    const char *other = sl_text_find_other_mark(text, bytes);
    if (other)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:1: the text is %s, expected UTF-8: convert it (iconv -t UTF-8)",
                     name, other);
    if (!sl_text_is_utf8(text, bytes, &bad))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s:%lld: byte 0x%02x at offset %zu is not valid UTF-8 (`encoding: latin-1` reads ISO 8859-1)",
                     name, (long long)line_of(text, bad), (unsigned)(unsigned char)text[bad], skipped + bad);
    return SEQLSTM_OK;
}

static seqlstm_status check_nul(const char *name, const char *text, size_t bytes, size_t skipped,
                                struct seqlstm_error *err)
{
    const char *nul = memchr(text, '\0', bytes);
    const size_t at = nul ? (size_t)(nul - text) : 0;
    if (nul && at < 2) /* the first letter of UTF-16 without a mark */
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s:1: a NUL byte at offset %zu: this is not a text file in UTF-8 (if it is UTF-16: iconv -f "
                     "UTF-16%s -t UTF-8)",
                     name, skipped + at, at == 0 ? "BE" : "LE");
    if (nul)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: a NUL byte at offset %zu: this is not a text file", name,
                     (long long)line_of(text, at), skipped + at);
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

/* Makes it UTF-8 without a byte order mark, if it is a text. */
static seqlstm_status decode(const char *name, bool is_latin_1, char **text, size_t *bytes, struct seqlstm_error *err)
{
    const size_t skipped = !is_latin_1 && *bytes >= 3 && memcmp(*text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    *bytes -= skipped;
    memmove(*text, *text + skipped, *bytes + 1);
    if (!is_latin_1)
        SEQLSTM_TRY(check_utf8(name, *text, *bytes, skipped, err));
    SEQLSTM_TRY(check_nul(name, *text, *bytes, skipped, err));
    return is_latin_1 ? from_latin_1(text, bytes, err) : SEQLSTM_OK;
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
    const bool is_latin_1 = path && read->source->encoding == SL_ENCODING_LATIN_1;
    if (status == SEQLSTM_OK)
        status = decode(own_name, is_latin_1, &text, &bytes, err);
    if (status != SEQLSTM_OK) {
        free(text);
        free(own_name);
        return status;
    }
    if (read->source->type != SL_SOURCE_CSV && read->source->type != SL_SOURCE_TSV) {
        bytes = sl_text_unify_lines(text, bytes);
        text[bytes] = '\0';
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

void sl_trim(const char **text, size_t *bytes)
{
    while (*bytes > 0 && ((*text)[0] == ' ' || (*text)[0] == '\t' || (*text)[0] == '\r')) {
        (*text)++;
        (*bytes)--;
    }
    while (*bytes > 0 && ((*text)[*bytes - 1] == ' ' || (*text)[*bytes - 1] == '\t' || (*text)[*bytes - 1] == '\r'))
        (*bytes)--;
}

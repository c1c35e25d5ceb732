/* SPDX-License-Identifier: Apache-2.0 */
/* Reads word vectors line by line: such files may be larger than the memory. */
#include "data/text/word_vectors.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/text.h"

/* Where the last `dim` fields of a line begin; NULL: the line has fewer. A word may contain blanks. */
static const char *find_numbers(const char *line, size_t bytes, int64_t dim)
{
    const char *p = line + bytes;
    for (int64_t k = 0; k < dim; k++) {
        while (p > line && p[-1] != ' ' && p[-1] != '\t')
            p--;
        if (p == line)
            return NULL;
        if (k + 1 < dim)
            p--;
    }
    return p;
}

static int64_t count_fields(const char *line)
{
    int64_t count = 0;
    for (line += strspn(line, " \t"); *line; line += strspn(line, " \t"), count++)
        line += strcspn(line, " \t");
    return count;
}

static bool is_header(const char *line)
{
    return count_fields(line) == 2 && strspn(line, "0123456789 \t") == strlen(line);
}

static seqlstm_status read_numbers(const char *path, int64_t number, const char *text, int64_t dim, float *row,
                                   struct seqlstm_error *err)
{
    for (int64_t k = 0; k < dim; k++) {
        size_t length = strcspn(text, " \t");
        double value;
        if (!sl_text_parse_float64(text, length, &value) || !isfinite((float)value))
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: `%.*s` is not a number", path, (long long)number,
                         (int)(length < 40 ? length : 40), text);
        row[k] = (float)value;
        text += length + 1;
    }
    return SEQLSTM_OK;
}

static seqlstm_status take_line(const char *path, int64_t number, char *line, const struct sl_vocabulary *vocabulary,
                                int64_t dim, float *table, float *scratch, bool *seen, struct seqlstm_error *err)
{
    size_t bytes = strlen(line);
    while (bytes > 0 && strchr(" \t\r\n", line[bytes - 1]))
        line[--bytes] = 0;
    if (bytes == 0 || (number == 1 && is_header(line)))
        return SEQLSTM_OK;
    const char *numbers = find_numbers(line, bytes, dim);
    if (numbers == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: a word and %lld number%s, expected `dim: %lld` of them", path,
                     (long long)number, (long long)(count_fields(line) - 1), count_fields(line) == 2 ? "" : "s",
                     (long long)dim);
    int32_t id = sl_vocabulary_find(vocabulary, line, (size_t)(numbers - line) - 1);
    if (id < 0 || seen[id])
        return SEQLSTM_OK;
    SEQLSTM_TRY(read_numbers(path, number, numbers, dim, table ? table + id * dim : scratch, err));
    seen[id] = true;
    return SEQLSTM_OK;
}

/* The first line gives the width: in a file with more numbers per line the surplus would pass for words with blanks. */
static seqlstm_status check_width(const char *path, int64_t number, const char *line, int64_t dim,
                                  struct seqlstm_error *err)
{
    int64_t width = count_fields(line) - 1;
    if (width > dim)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: a word and %lld number%s, expected `dim: %lld` of them", path,
                     (long long)number, (long long)width, width == 1 ? "" : "s", (long long)dim);
    return SEQLSTM_OK;
}

seqlstm_status sl_word_vectors_load(const char *path, const struct sl_vocabulary *vocabulary, int64_t dim, float *table,
                                    int64_t *out_found, struct seqlstm_error *err)
{
    int64_t size = sl_vocabulary_get_size(vocabulary), number = 0;
    if (sl_file_exists(path) && !sl_file_is_regular(path) && !sl_file_is_folder(path))
        SEQLSTM_FAIL(err, SEQLSTM_IO, "cannot read `%s`: it is read more than once, and is no regular file", path);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        SEQLSTM_FAIL(err, errno == ENOENT ? SEQLSTM_NOT_FOUND : SEQLSTM_IO, "cannot open `%s`: %s", path,
                     strerror(errno));
    bool *seen = calloc((size_t)size + 1, sizeof *seen), width_known = false;
    float *scratch = table ? NULL : malloc((size_t)dim * sizeof *scratch);
    char *line = NULL;
    size_t capacity = 0;
    seqlstm_status status = SEQLSTM_OK;
    if (seen == NULL || (table == NULL && scratch == NULL))
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for `%s`", path);
    while (status == SEQLSTM_OK && getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\r\n")] = 0;
        number++;
        if (!width_known && !(number == 1 && is_header(line))) {
            status = check_width(path, number, line, dim, err);
            width_known = true;
        }
        if (status == SEQLSTM_OK)
            status = take_line(path, number, line, vocabulary, dim, table, scratch, seen, err);
    }
    if (status == SEQLSTM_OK && ferror(file))
        status = seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "cannot read `%s`: %s", path, strerror(errno));
    if (status == SEQLSTM_OK && number == 0)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__, "`%s` is empty", path);
    int64_t found = 0;
    for (int64_t id = 0; status == SEQLSTM_OK && id < size; id++)
        found += seen[id];
    fclose(file);
    free(line);
    free(scratch);
    free(seen);
    if (status == SEQLSTM_OK)
        *out_found = found;
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A large text as a raw source: its tokens stay in their file; only the beginnings of the sequences are in memory. */
#include "data/read/raw.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/value/text.h"
#include "data/read/token_cache.h"

#define BLOCK 65536

/* Texts of at least so many bytes are cached. */
static int64_t find_limit(void)
{
    const char *said = getenv("SEQLSTM_CACHE_LEAST");
    int64_t bytes;
    return said && sl_text_parse_int64(said, strlen(said), &bytes) && bytes >= 0 ? bytes : SL_TOKEN_CACHE_LEAST_BYTES;
}

static bool is_large(const struct sl_read *read)
{
    struct stat status;
    const struct sl_source *source = read->source;
    return !read->input && !read->whole && read->model->data.tokenizer.type != SL_TOKENIZER_SENTENCEPIECE &&
           source->type == SL_SOURCE_TEXT && source->encoding == SL_ENCODING_UTF_8 && source->file &&
           stat(source->file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= find_limit();
}

/* All of it is one series. */
static seqlstm_status make_stream(struct sl_raw *raw, struct seqlstm_error *err)
{
    raw->start = calloc(1, sizeof *raw->start);
    raw->length = calloc(1, sizeof *raw->length);
    if (!raw->start || !raw->length)
        return SL_DATA_NO_MEMORY(err);
    raw->series = 1;
    raw->length[0] = raw->rows;
    return SEQLSTM_OK;
}

/* A series for each line that has tokens. */
static seqlstm_status make_lines(struct sl_raw *raw, int64_t lines, struct seqlstm_error *err)
{
    int64_t *begin = malloc((BLOCK + 1) * sizeof *begin);
    raw->start = malloc(((size_t)lines + 1) * sizeof *raw->start);
    raw->length = malloc(((size_t)lines + 1) * sizeof *raw->length);
    seqlstm_status status = begin && raw->start && raw->length ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
    for (int64_t at = 0; status == SEQLSTM_OK && at < lines; at += BLOCK) {
        int64_t count = lines - at < BLOCK ? lines - at : BLOCK;
        status = sl_token_file_read_lines(raw->token_file, at, count + 1, begin, err);
        for (int64_t i = 0; status == SEQLSTM_OK && i < count; i++) {
            if (begin[i + 1] <= begin[i])
                continue;
            raw->start[raw->series] = begin[i];
            raw->length[raw->series++] = begin[i + 1] - begin[i];
        }
    }
    free(begin);
    return status;
}

seqlstm_status sl_raw_read_cached(const struct sl_read *read, struct sl_raw *raw, bool *out_done,
                                  struct seqlstm_error *err)
{
    struct sl_token_cache_request request = {
        .text_path = read->source->file,
        .tokenizer = &read->model->data.tokenizer,
        .stream = read->model->data.batching.unit == SL_UNIT_STREAM,
    };
    *out_done = false;
    if (!is_large(read))
        return SEQLSTM_OK;
    struct seqlstm_error problem = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_token_cache_open(&request, &raw->token_file, &problem);
    if (status == SEQLSTM_IO || status == SEQLSTM_NOT_FOUND) { /* reading the text itself will say if it is to blame */
        raw->cache_problem = strdup(problem.message);
        return raw->cache_problem ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
    }
    if (status != SEQLSTM_OK && err)
        *err = problem;
    SEQLSTM_TRY(status);
    if (!raw->token_file)
        return SEQLSTM_OK;
    const struct sl_token_header *header = sl_token_file_get_header(raw->token_file);
    raw->name = strdup(read->source->file);
    if (!raw->name)
        return SL_DATA_NO_MEMORY(err);
    raw->input_kind = SL_FIELD_IDS;
    raw->input_features = 1;
    raw->has_steps = true;
    raw->rows = header->tokens;
    SEQLSTM_TRY(sl_token_file_read_texts(raw->token_file, &raw->tokens, err));
    SEQLSTM_TRY(request.stream ? make_stream(raw, err) : make_lines(raw, header->lines, err));
    *out_done = true;
    return SEQLSTM_OK;
}

/* Adds the ids of a range of rows of the file. */
static seqlstm_status count_range(const struct sl_raw *raw, int64_t first, int64_t last, int32_t *block,
                                  int64_t *counts, struct seqlstm_error *err)
{
    for (int64_t at = first; at < last; at += BLOCK) {
        int64_t count = last - at < BLOCK ? last - at : BLOCK;
        SEQLSTM_TRY(sl_token_file_read(raw->token_file, at, count, block, err));
        for (int64_t i = 0; i < count; i++)
            counts[block[i]]++;
    }
    return SEQLSTM_OK;
}

/* The file holds the counts of all its tokens. */
static seqlstm_status count_file(const struct sl_raw *raw, int64_t *counts, struct seqlstm_error *err)
{
    int64_t rows = 0;
    for (int64_t s = 0; s < raw->series; s++)
        rows += raw->length[s];
    if (rows == raw->rows)
        return sl_token_file_read_counts(raw->token_file, counts, err);
    int32_t *block = malloc(BLOCK * sizeof *block);
    seqlstm_status status = block ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
    /* Adjacent series are one range. */
    for (int64_t s = 0; status == SEQLSTM_OK && s < raw->series;) {
        int64_t first = raw->start[s], last = first;
        for (; s < raw->series && raw->start[s] == last; s++)
            last += raw->length[s];
        status = count_range(raw, first, last, block, counts, err);
    }
    free(block);
    return status;
}

seqlstm_status sl_raw_count_ids(const struct sl_raw *raw, int64_t **out_counts, struct seqlstm_error *err)
{
    int64_t *counts = calloc((size_t)raw->tokens.count + 1, sizeof *counts);
    seqlstm_status status = counts ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
    if (status == SEQLSTM_OK && raw->token_file)
        status = count_file(raw, counts, err);
    for (int64_t s = 0; status == SEQLSTM_OK && !raw->token_file && s < raw->series; s++)
        for (int64_t i = raw->start[s]; i < raw->start[s] + raw->length[s]; i++)
            counts[raw->ids[i]]++;
    if (status != SEQLSTM_OK) {
        free(counts);
        return status;
    }
    *out_counts = counts;
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, validates and cuts chunks of a text. */
#include "data/read/token_build_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file_error.h"
#include "base/value/text.h"
#include "data/read/load_text.h"
#include "data/read/raw.h"
#include "data/read/raw_builder.h"
#include "data/text/tokenizer.h"
#include "data/text/word_edges.h"

#define CHUNK_BYTES ((int64_t)4 << 20)
#define LOOK_BYTES  4096

/* ---- tokens ------------------------------------------------------------------------------------------- */

static seqlstm_status no_memory(struct sl_token_worker *w)
{
    return seqlstm_error_set(&w->error, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory to cut %s into tokens",
                             w->builder->request->text_path);
}

static seqlstm_status flush(struct sl_token_worker *w)
{
    size_t bytes = (size_t)w->blocked * sizeof *w->block;
    SEQLSTM_TRY(sl_token_write_at(w->spill, w->builder->out_path, w->block, bytes, w->spill_bytes, &w->error));
    w->spill_bytes += (int64_t)bytes;
    w->blocked = 0;
    return SEQLSTM_OK;
}

static seqlstm_status add(struct sl_token_worker *w, const char *token, size_t bytes)
{
    int32_t id = sl_word_table_add(&w->words, token, bytes);
    if (id < 0)
        return no_memory(w);
    if (w->blocked == SL_SPILL_BLOCK)
        SEQLSTM_TRY(flush(w));
    w->block[w->blocked++] = (uint32_t)id;
    w->tokens++;
    return SEQLSTM_OK;
}

static seqlstm_status add_special(struct sl_token_worker *w, enum sl_special special)
{
    const char *token = sl_special_get_token(special);
    return w->builder->has[special] ? add(w, token, strlen(token)) : SEQLSTM_OK;
}

/* Between blanks, as sl_token_cursor cuts them. */
static seqlstm_status add_words(struct sl_token_worker *w, const char *text, size_t bytes)
{
    struct sl_word_edges edges;
    sl_word_edges_init(&edges, text, bytes);
    for (int count; (count = sl_word_edges_next(&edges)) > 0;) {
        if (w->blocked + count > SL_SPILL_BLOCK)
            SEQLSTM_TRY(flush(w));
        if (!sl_word_table_add_many(&w->words, text, edges.at, count, w->block + w->blocked))
            return no_memory(w);
        w->blocked += count;
        w->tokens += count;
    }
    return SEQLSTM_OK;
}

static seqlstm_status add_text(struct sl_token_worker *w, const char *text, size_t bytes)
{
    const struct sl_tokenizer *tokenizer = w->builder->request->tokenizer;
    struct sl_token_cursor cursor;
    const char *token;
    size_t token_bytes;
    if (tokenizer->type == SL_TOKENIZER_WHITESPACE && !tokenizer->lowercase)
        return add_words(w, text, bytes);
    sl_token_cursor_init(&cursor, tokenizer->type, text, bytes);
    while (sl_token_cursor_next(&cursor, &token, &token_bytes)) {
        if (tokenizer->lowercase) {
            sl_buf_truncate(&w->scratch, 0);
            sl_buf_append(&w->scratch, token, token_bytes);
            if (w->scratch.failed)
                return no_memory(w);
            sl_text_lower(w->scratch.data, token_bytes);
            token = w->scratch.data;
        }
        SEQLSTM_TRY(add(w, token, token_bytes));
    }
    return SEQLSTM_OK;
}

static seqlstm_status begin_line(struct sl_token_worker *w)
{
    if (w->line_count == w->line_room) {
        int64_t room = w->line_room ? 2 * w->line_room : 4096;
        uint32_t *lines = realloc(w->lines, (size_t)room * sizeof *lines);
        if (!lines)
            return no_memory(w);
        w->lines = lines;
        w->line_room = room;
    }
    w->lines[w->line_count++] = (uint32_t)w->tokens;
    return SEQLSTM_OK;
}

/* One line, or the part of one that is in the chunk, with what marks its begin and its end. */
static seqlstm_status add_line(struct sl_token_worker *w, const char *line, size_t bytes, bool begins, bool ends)
{
    const struct sl_token_build *request = w->builder->request;
    if (begins)
        SEQLSTM_TRY(begin_line(w));
    if (request->tokenizer->type == SL_TOKENIZER_CHAR && request->stream)
        return add_text(w, line, bytes);
    if (ends && bytes > 0 && line[bytes - 1] == '\n')
        bytes--;
    const char *rest = line;
    size_t rest_bytes = bytes;
    sl_trim(&rest, &rest_bytes);
    if (!request->stream && rest_bytes == 0)
        return SEQLSTM_OK;
    if (begins)
        SEQLSTM_TRY(add_special(w, SL_SPECIAL_BOS));
    SEQLSTM_TRY(add_text(w, line, bytes));
    return ends ? add_special(w, SL_SPECIAL_EOS) : SEQLSTM_OK;
}

/* ---- chunks ------------------------------------------------------------------------------------------- */

static bool is_border(const struct sl_token_build *request, char before, char behind)
{
    if (before == '\r' && behind == '\n')
        return false;
    if (!request->stream)
        return before == '\n' || before == '\r';
    if (request->tokenizer->type == SL_TOKENIZER_CHAR)
        return ((unsigned char)behind & 0xC0) != 0x80;
    return before == ' ' || (before >= '\t' && before <= '\r');
}

/* The first place at or after the chunk's nominal beginning at which no token would be cut in two. */
static seqlstm_status find_border(struct sl_token_worker *w, int64_t chunk, int64_t *out)
{
    const struct sl_token_builder *b = w->builder;
    char bytes[LOOK_BYTES];
    int64_t at = b->begin + chunk * b->chunk_bytes;
    if (chunk == 0 || at >= b->size) {
        *out = chunk == 0 ? b->begin : b->size;
        return SEQLSTM_OK;
    }
    for (; at < b->size; at += LOOK_BYTES - 1) {
        int64_t rest = b->size - (at - 1), count = rest < LOOK_BYTES ? rest : LOOK_BYTES;
        SEQLSTM_TRY(sl_token_read_at(b->text_fd, b->request->text_path, bytes, (size_t)count, at - 1, &w->error));
        for (int64_t i = 1; i < count; i++)
            if (is_border(b->request, bytes[i - 1], bytes[i])) {
                *out = at - 1 + i;
                return SEQLSTM_OK;
            }
    }
    *out = b->size;
    return SEQLSTM_OK;
}

/* Lines of the text before `offset`, plus one. Reads the text again: only one message needs it. */
static int64_t line_of(const struct sl_token_builder *b, int64_t offset)
{
    char bytes[LOOK_BYTES], before = 0;
    int64_t line = 1;
    for (int64_t at = b->begin; at < offset; at += LOOK_BYTES) {
        int64_t count = offset - at < LOOK_BYTES ? offset - at : LOOK_BYTES;
        if (sl_token_read_at(b->text_fd, "", bytes, (size_t)count, at, NULL) != SEQLSTM_OK)
            return line;
        for (int64_t i = 0; i < count; i++) {
            line += bytes[i] == '\r' || (bytes[i] == '\n' && before != '\r');
            before = bytes[i];
        }
    }
    return line;
}

static seqlstm_status check_text(struct sl_token_worker *w, const char *text, int64_t bytes, int64_t offset)
{
    const char *path = w->builder->request->text_path, *nul;
    size_t bad;
    if (!sl_text_is_utf8(text, (size_t)bytes, &bad)) {
        w->error_offset = offset + (int64_t)bad;
        return seqlstm_error_set(&w->error, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                 "%s:%lld: byte 0x%02x at offset %lld is not valid UTF-8 (`encoding: latin-1` reads "
                                 "ISO 8859-1)",
                                 path, (long long)line_of(w->builder, w->error_offset),
                                 (unsigned)(unsigned char)text[bad], (long long)w->error_offset);
    }
    if ((nul = memchr(text, '\0', (size_t)bytes)) != NULL) {
        w->error_offset = offset + (nul - text);
        return seqlstm_error_set(&w->error, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                 "%s:%lld: a NUL byte at offset %lld: this is not a text file", path,
                                 (long long)line_of(w->builder, w->error_offset), (long long)w->error_offset);
    }
    return SEQLSTM_OK;
}

/* Reads [from, to) and the byte before it; *out_text points to `from`, *out_bytes are left when line ends are \n. */
static seqlstm_status load(struct sl_token_worker *w, int64_t from, int64_t to, const char **out_text,
                           size_t *out_bytes)
{
    const struct sl_token_builder *b = w->builder;
    int64_t before = from > b->begin, bytes = to - from + before;
    if (bytes > w->text_room) {
        char *text = realloc(w->text, (size_t)bytes + SL_WORD_EDGES_BEHIND);
        if (!text)
            return no_memory(w);
        w->text = text;
        w->text_room = bytes;
    }
    SEQLSTM_TRY(sl_token_read_at(b->text_fd, b->request->text_path, w->text, (size_t)bytes, from - before, &w->error));
    *out_text = w->text + before;
    SEQLSTM_TRY(check_text(w, *out_text, to - from, from));
    *out_bytes = sl_text_unify_lines(w->text + before, (size_t)(to - from));
    memset(w->text + before + *out_bytes, 0, SL_WORD_EDGES_BEHIND);
    return SEQLSTM_OK;
}

static seqlstm_status cut_chunk(struct sl_token_worker *w, int64_t number)
{
    struct sl_token_builder *b = w->builder;
    int64_t from, to;
    const char *text = NULL;
    size_t bytes = 0;
    w->error_offset = b->begin + number * b->chunk_bytes;
    SEQLSTM_TRY(find_border(w, number, &from));
    SEQLSTM_TRY(find_border(w, number + 1, &to));
    b->chunks[number] = (struct sl_token_chunk){.worker = w->number, .spill_offset = w->spill_bytes};
    if (from >= to)
        return SEQLSTM_OK;
    SEQLSTM_TRY(load(w, from, to, &text, &bytes));
    w->tokens = w->line_count = 0;
    bool begins = from == b->begin || text[-1] == '\n' || text[-1] == '\r';
    for (const char *p = text, *end = text + bytes; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *next = newline ? newline + 1 : end;
        SEQLSTM_TRY(add_line(w, p, (size_t)(next - p), begins, newline != NULL || to == b->size));
        begins = newline != NULL;
        p = next;
    }
    SEQLSTM_TRY(flush(w));
    size_t line_bytes = (size_t)w->line_count * sizeof *w->lines;
    SEQLSTM_TRY(sl_token_write_at(w->spill, b->out_path, w->lines, line_bytes, w->spill_bytes, &w->error));
    w->spill_bytes += (int64_t)line_bytes;
    b->chunks[number].tokens = w->tokens;
    b->chunks[number].lines = w->line_count;
    return SEQLSTM_OK;
}

static void cut_chunks(struct sl_token_worker *w)
{
    for (int64_t chunk; w->status == SEQLSTM_OK && (chunk = sl_token_builder_take(w->builder)) >= 0;)
        w->status = cut_chunk(w, chunk);
}

/* ---- threads ------------------------------------------------------------------------------------------ */

/* ---- life --------------------------------------------------------------------------------------------- */

static void builder_deinit(struct sl_token_builder *b)
{
    for (int i = 0; b->workers && i < b->worker_count; i++) {
        struct sl_token_worker *w = &b->workers[i];
        sl_word_table_deinit(&w->words);
        sl_buf_deinit(&w->scratch);
        free(w->text);
        free(w->lines);
        free(w->final_id);
        if (w->spill >= 0)
            close(w->spill);
    }
    free(b->workers);
    free(b->chunks);
    free(b->tokens_before);
    free(b->lines_before);
    if (b->text_fd >= 0)
        close(b->text_fd);
    if (b->out_fd >= 0)
        close(b->out_fd);
    pthread_mutex_destroy(&b->mutex);
}

/* Finds the byte order mark; those of other encodings are refused. */
static seqlstm_status look_at_begin(struct sl_token_builder *b, struct seqlstm_error *err)
{
    char mark[4] = {0};
    size_t bytes = b->size < 4 ? (size_t)b->size : 4;
    SEQLSTM_TRY(sl_token_read_at(b->text_fd, b->request->text_path, mark, bytes, 0, err));
    const char *other = sl_text_find_other_mark(mark, bytes);
    if (other)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:1: the text is %s, expected UTF-8: convert it (iconv -t UTF-8)",
                     b->request->text_path, other);
    b->begin = memcmp(mark, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    return SEQLSTM_OK;
}

static seqlstm_status open_files(struct sl_token_builder *b, struct seqlstm_error *err)
{
    struct stat status;
    b->text_fd = open(b->request->text_path, O_RDONLY | O_CLOEXEC);
    if (b->text_fd < 0 || fstat(b->text_fd, &status) != 0)
        return sl_file_fail(err, errno, "cannot read", b->request->text_path);
    b->size = status.st_size;
    b->out_fd = open(b->out_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (b->out_fd < 0)
        return sl_file_fail(err, errno, "cannot make the token cache (SEQLSTM_CACHE moves it)", b->out_path);
    for (int i = 0; i < b->worker_count; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s-%d", b->out_path, i) < 0)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        seqlstm_status made = SEQLSTM_OK;
        if (fd < 0)
            made = sl_file_fail(err, errno, "cannot make the token cache (SEQLSTM_CACHE moves it)", path);
        else
            unlink(path);
        free(path);
        SEQLSTM_TRY(made);
        b->workers[i].spill = fd;
    }
    return look_at_begin(b, err);
}

/* The text must be at the end what it was at the beginning. */
static seqlstm_status check_unchanged(const struct sl_token_builder *b, struct seqlstm_error *err)
{
    struct stat status;
    const struct sl_token_source *source = &b->request->source;
    if (fstat(b->text_fd, &status) != 0)
        return sl_file_fail(err, errno, "cannot read", b->request->text_path);
    if (status.st_size != source->size_bytes ||
        (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec != source->mtime_ns)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the file changed while it was read (%lld bytes then, %lld now)",
                     b->request->text_path, (long long)source->size_bytes, (long long)status.st_size);
    return SEQLSTM_OK;
}

static seqlstm_status build(struct sl_token_builder *b, struct seqlstm_error *err)
{
    SEQLSTM_TRY(open_files(b, err));
    b->chunk_count = (b->size - b->begin + b->chunk_bytes - 1) / b->chunk_bytes;
    b->chunks = calloc((size_t)b->chunk_count + 1, sizeof *b->chunks);
    if (!b->chunks)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to cut %s into tokens", b->request->text_path);
    SEQLSTM_TRY(sl_token_builder_work(b, cut_chunks, err));
    SEQLSTM_TRY(check_unchanged(b, err));
    return sl_token_merge(b, err);
}

seqlstm_status sl_token_build(const struct sl_token_build *request, const char *out_path, struct seqlstm_error *err)
{
    struct sl_token_builder b = {.request = request,
                                 .out_path = out_path,
                                 .text_fd = -1,
                                 .out_fd = -1,
                                 .worker_count = request->threads,
                                 .chunk_bytes = request->chunk_bytes > 0 ? request->chunk_bytes : CHUNK_BYTES};
    pthread_mutex_init(&b.mutex, NULL);
    for (int special = 0; special < SL_SPECIAL_COUNT; special++)
        b.has[special] = sl_tokenizer_has(request->tokenizer, (enum sl_special)special);
    b.workers = calloc((size_t)request->threads, sizeof *b.workers);
    for (int i = 0; b.workers && i < request->threads; i++) {
        b.workers[i] = (struct sl_token_worker){.builder = &b, .number = i, .spill = -1};
        b.workers[i].error = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        sl_word_table_init(&b.workers[i].words);
    }
    seqlstm_status status = b.workers ? build(&b, err)
                                      : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                                          "no memory to cut %s into tokens", request->text_path);
    if (status != SEQLSTM_OK && b.out_fd >= 0)
        unlink(out_path);
    builder_deinit(&b);
    return status;
}

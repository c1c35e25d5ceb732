/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of several workers become one; chunks get their final ids and their places in the file. */
#include "data/read/token_build_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file_error.h"
#include "base/value/hash.h"

/* A token of the whole text. */
struct type {
    const char *text;
    size_t bytes;
    int64_t count;
    int32_t number; /* in the joined table */
};

static int most_frequent(const void *left, const void *right)
{
    const struct type *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    int order = memcmp(a->text, b->text, a->bytes < b->bytes ? a->bytes : b->bytes);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static seqlstm_status no_memory(const struct sl_token_builder *b, struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the vocabulary of %s", b->request->text_path);
}

/* Adds every worker's texts to `all`; final_id holds their numbers until rank replaces them by the final ids. */
static seqlstm_status join(struct sl_token_builder *b, struct sl_intern *all, struct seqlstm_error *err)
{
    for (int i = 0; i < b->worker_count; i++) {
        struct sl_token_worker *w = &b->workers[i];
        w->final_id = malloc(((size_t)w->words.count + 1) * sizeof *w->final_id);
        if (!w->final_id)
            return no_memory(b, err);
        for (int32_t id = 0; id < w->words.count; id++) {
            size_t bytes;
            const char *text = sl_word_table_get(&w->words, id, &bytes);
            if ((w->final_id[id] = sl_intern_add(all, text, bytes)) < 0)
                return no_memory(b, err);
        }
    }
    return SEQLSTM_OK;
}

/* Counts, the order by them, and final ids in the workers' tables. */
static seqlstm_status rank(struct sl_token_builder *b, const struct sl_intern *all, struct type *types,
                           struct seqlstm_error *err)
{
    int32_t *final_id = malloc(((size_t)all->count + 1) * sizeof *final_id);
    int64_t *counts = malloc(((size_t)all->count + 1) * sizeof *counts);
    if (!final_id || !counts) {
        free(final_id);
        free(counts);
        return no_memory(b, err);
    }
    for (int32_t n = 0; n < all->count; n++) {
        types[n].number = n;
        types[n].text = sl_intern_get(all, n, &types[n].bytes);
    }
    for (int i = 0; i < b->worker_count; i++) {
        const struct sl_token_worker *w = &b->workers[i];
        sl_word_table_read_counts(&w->words, counts);
        for (int32_t id = 0; id < w->words.count; id++)
            types[w->final_id[id]].count += counts[id];
    }
    qsort(types, (size_t)all->count, sizeof *types, most_frequent);
    for (int32_t n = 0; n < all->count; n++)
        final_id[types[n].number] = n;
    for (int i = 0; i < b->worker_count; i++)
        for (int32_t id = 0; id < b->workers[i].words.count; id++)
            b->workers[i].final_id[id] = final_id[b->workers[i].final_id[id]];
    free(final_id);
    free(counts);
    return SEQLSTM_OK;
}

/* ---- chunks ------------------------------------------------------------------------------------------- */

static seqlstm_status place_chunks(struct sl_token_builder *b, struct seqlstm_error *err)
{
    b->tokens_before = calloc((size_t)b->chunk_count + 1, sizeof *b->tokens_before);
    b->lines_before = calloc((size_t)b->chunk_count + 1, sizeof *b->lines_before);
    if (!b->tokens_before || !b->lines_before)
        return no_memory(b, err);
    for (int64_t c = 0; c < b->chunk_count; c++) {
        b->tokens_before[c + 1] = b->tokens_before[c] + b->chunks[c].tokens;
        b->lines_before[c + 1] = b->lines_before[c] + b->chunks[c].lines;
    }
    return SEQLSTM_OK;
}

/* A block of numbers into ids of the file. */
static seqlstm_status move_ids(struct sl_token_worker *w, const struct sl_token_chunk *chunk, int64_t from,
                               int64_t count, int64_t to)
{
    const struct sl_token_builder *b = w->builder;
    const struct sl_token_worker *owner = &b->workers[chunk->worker];
    SEQLSTM_TRY(sl_token_read_at(owner->spill, b->out_path, w->block, (size_t)count * 4, chunk->spill_offset + 4 * from,
                                 &w->error));
    for (int64_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)owner->final_id[w->block[i]];
        uint16_t narrow = (uint16_t)id;
        if (b->header.id_bytes == 2)
            memcpy((char *)w->block + 2 * i, &narrow, sizeof narrow); /* behind what has been read */
        else
            w->block[i] = id;
    }
    return sl_token_write_at(b->out_fd, b->out_path, w->block, (size_t)count * b->header.id_bytes,
                             b->layout.ids + (to + from) * b->header.id_bytes, &w->error);
}

static seqlstm_status move_lines(struct sl_token_worker *w, const struct sl_token_chunk *chunk, int64_t number)
{
    const struct sl_token_builder *b = w->builder;
    int64_t begins[1024], before = b->tokens_before[number];
    uint32_t inside[1024];
    for (int64_t at = 0; at < chunk->lines; at += 1024) {
        int64_t count = chunk->lines - at < 1024 ? chunk->lines - at : 1024;
        SEQLSTM_TRY(sl_token_read_at(b->workers[chunk->worker].spill, b->out_path, inside, (size_t)count * 4,
                                     chunk->spill_offset + 4 * (chunk->tokens + at), &w->error));
        for (int64_t i = 0; i < count; i++)
            begins[i] = before + inside[i];
        SEQLSTM_TRY(sl_token_write_at(b->out_fd, b->out_path, begins, (size_t)count * 8,
                                      b->layout.line_begin + 8 * (b->lines_before[number] + at), &w->error));
    }
    return SEQLSTM_OK;
}

static void move_chunks(struct sl_token_worker *w)
{
    const struct sl_token_builder *b = w->builder;
    for (int64_t number; w->status == SEQLSTM_OK && (number = sl_token_builder_take(w->builder)) >= 0;) {
        const struct sl_token_chunk *chunk = &b->chunks[number];
        for (int64_t from = 0; w->status == SEQLSTM_OK && from < chunk->tokens; from += SL_SPILL_BLOCK) {
            int64_t rest = chunk->tokens - from, count = rest < SL_SPILL_BLOCK ? rest : SL_SPILL_BLOCK;
            w->status = move_ids(w, chunk, from, count, b->tokens_before[number]);
        }
        if (w->status == SEQLSTM_OK)
            w->status = move_lines(w, chunk, number);
    }
}

/* ---- the rest of the file ----------------------------------------------------------------------------- */

static seqlstm_status write_types(const struct sl_token_builder *b, const struct type *types, struct seqlstm_error *err)
{
    size_t count = (size_t)b->header.types;
    int64_t *numbers = malloc((count + 1) * sizeof *numbers), at = 0;
    char *texts = calloc((size_t)b->header.text_bytes + 8, 1);
    seqlstm_status status = numbers && texts ? SEQLSTM_OK : no_memory(b, err);
    for (size_t t = 0; status == SEQLSTM_OK && t < count; t++)
        numbers[t] = types[t].count;
    if (status == SEQLSTM_OK)
        status = sl_token_write_at(b->out_fd, b->out_path, numbers, count * 8, b->layout.count, err);
    for (size_t t = 0; status == SEQLSTM_OK && t < count; t++) {
        numbers[t] = at;
        memcpy(texts + at, types[t].text, types[t].bytes);
        at += (int64_t)types[t].bytes;
    }
    if (status == SEQLSTM_OK) {
        numbers[count] = at;
        status = sl_token_write_at(b->out_fd, b->out_path, numbers, (count + 1) * 8, b->layout.text_begin, err);
    }
    if (status == SEQLSTM_OK)
        status = sl_token_write_at(b->out_fd, b->out_path, texts, (size_t)(b->layout.size_bytes - b->layout.text),
                                   b->layout.text, err);
    free(numbers);
    free(texts);
    return status;
}

static seqlstm_status write_header(struct sl_token_builder *b, struct seqlstm_error *err)
{
    struct sl_token_header *h = &b->header;
    char *block = (char *)b->workers[0].block;
    int64_t most = (int64_t)sizeof b->workers[0].block;
    for (int64_t at = b->layout.ids; at < b->layout.size_bytes; at += most) {
        int64_t rest = b->layout.size_bytes - at, bytes = rest < most ? rest : most;
        SEQLSTM_TRY(sl_token_read_at(b->out_fd, b->out_path, block, (size_t)bytes, at, err));
        h->body_crc64 = sl_crc64(h->body_crc64, block, (size_t)bytes);
    }
    h->header_crc64 = sl_crc64(0, h, sizeof *h - sizeof h->header_crc64);
    SEQLSTM_TRY(sl_token_write_at(b->out_fd, b->out_path, h, sizeof *h, 0, err));
    if (fsync(b->out_fd) != 0)
        return sl_file_fail(err, errno, "cannot write the token cache (SEQLSTM_CACHE moves it)", b->out_path);
    return SEQLSTM_OK;
}

static seqlstm_status write_file(struct sl_token_builder *b, const struct sl_intern *all, const struct type *types,
                                 struct seqlstm_error *err)
{
    struct sl_token_header *h = &b->header;
    *h = (struct sl_token_header){.magic = SL_TOKEN_MAGIC,
                                  .version = SL_TOKEN_VERSION,
                                  .byte_order = 0x01020304u,
                                  .id_bytes = all->count <= 65536 ? 2 : 4,
                                  .source = b->request->source,
                                  .tokens = b->tokens_before[b->chunk_count],
                                  .lines = b->lines_before[b->chunk_count],
                                  .types = all->count};
    for (int32_t t = 0; t < all->count; t++)
        h->text_bytes += (int64_t)types[t].bytes;
    if (!sl_token_layout_make(h, &b->layout))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: too large for a token file", b->request->text_path);
    if (ftruncate(b->out_fd, b->layout.size_bytes) != 0)
        return sl_file_fail(err, errno, "cannot write the token cache (SEQLSTM_CACHE moves it)", b->out_path);
    SEQLSTM_TRY(sl_token_builder_work(b, move_chunks, err));
    SEQLSTM_TRY(sl_token_write_at(b->out_fd, b->out_path, &h->tokens, 8, b->layout.line_begin + 8 * h->lines, err));
    SEQLSTM_TRY(write_types(b, types, err));
    return write_header(b, err);
}

seqlstm_status sl_token_merge(struct sl_token_builder *b, struct seqlstm_error *err)
{
    struct sl_intern all;
    struct type *types = NULL;
    sl_intern_init(&all);
    seqlstm_status status = join(b, &all, err);
    if (status == SEQLSTM_OK) {
        types = calloc((size_t)all.count + 1, sizeof *types);
        status = types ? rank(b, &all, types, err) : no_memory(b, err);
    }
    if (status == SEQLSTM_OK)
        status = place_chunks(b, err);
    if (status == SEQLSTM_OK)
        status = write_file(b, &all, types, err);
    free(types);
    sl_intern_deinit(&all);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by token_build.c (text to spilled numbers), token_merge.c (spilled numbers to the file) and token_worker.c
 * (the threads of both). */
#ifndef SL_DATA_READ_TOKEN_BUILD_PRIVATE_H
#define SL_DATA_READ_TOKEN_BUILD_PRIVATE_H

#include <pthread.h>

#include "data/read/token_build.h"
#include "data/text/vocabulary.h"
#include "data/text/word_table.h"

enum { SL_SPILL_BLOCK = 1 << 16 /* numbers written at once */ };

/* Where the numbers of a chunk are: `tokens` uint32 of the worker's table, then `lines` uint32, the tokens of this
 * chunk before each line that begins in it. */
struct sl_token_chunk {
    int worker;
    int64_t spill_offset;
    int64_t tokens, lines;
};

struct sl_token_builder;

struct sl_token_worker {
    struct sl_token_builder *builder;
    int number;
    pthread_t thread;
    struct sl_word_table words;
    int spill; /* descriptor of a file without a name */
    int64_t spill_bytes;
    char *text; /* of a chunk, with the byte before it and SL_WORD_EDGES_BEHIND behind it */
    int64_t text_room;
    uint32_t block[SL_SPILL_BLOCK];
    int blocked;
    uint32_t *lines; /* of the chunk at hand */
    int64_t line_count, line_room, tokens;
    struct sl_buf scratch;
    int32_t *final_id; /* token_merge.c: by number in words */
    seqlstm_status status;
    struct seqlstm_error error;
    int64_t error_offset; /* in the text */
};

struct sl_token_builder {
    const struct sl_token_build *request;
    const char *out_path;
    bool has[SL_SPECIAL_COUNT];
    int text_fd, out_fd;
    int64_t begin, size; /* of the text, without a byte order mark */
    int64_t chunk_bytes, chunk_count;
    struct sl_token_chunk *chunks;
    pthread_mutex_t mutex;
    int64_t next; /* chunk to be taken */
    bool stop;
    int worker_count;
    struct sl_token_worker *workers;
    struct sl_token_header header;
    struct sl_token_layout layout;
    int64_t *tokens_before, *lines_before; /* [chunk_count + 1] */
};

/* The next chunk, or -1 when there is none or a worker has failed. */
int64_t sl_token_builder_take(struct sl_token_builder *builder);
/* Runs `run` on every worker's thread; returns the failure that comes first in the text. */
seqlstm_status sl_token_builder_work(struct sl_token_builder *builder, void (*run)(struct sl_token_worker *worker),
                                     struct seqlstm_error *err);
/* Joins the tables, renumbers the chunks and writes everything into out_fd. */
seqlstm_status sl_token_merge(struct sl_token_builder *builder, struct seqlstm_error *err);

seqlstm_status sl_token_write_at(int fd, const char *path, const void *data, size_t bytes, int64_t offset,
                                 struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A text as a file of token ids: what the token cache holds, in place of the text.
 *
 *   header (128 bytes) | ids, 2 or 4 bytes each | line_begin[lines + 1] | count[types] | text_begin[types + 1] | texts
 *
 * Sections begin at multiples of 8 bytes. Ids count from 0, most frequent token first, ties by bytes: they depend
 * neither on how many threads made the file, nor on vocab_size, min_count or specials, which are applied when ids are
 * read. line_begin[l] is the number of tokens before line l (lines counted from 0). Integers have the byte order of the
 * machine, which the header tells.
 *
 * Ids are read with pread, not mapped: the pages of a map would count as the program's memory, and reading the map of a
 * file that was truncated ends the program, while a short read is an error.
 *
 * Invariants: a file that open accepts is whole, its checksums are right and its ids are below `types`.
 */
#ifndef SL_DATA_READ_TOKEN_FILE_H
#define SL_DATA_READ_TOKEN_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "data/text/intern.h"

#define SL_TOKEN_MAGIC   "seqlstm tokens\n"
#define SL_TOKEN_VERSION 2u /* since each line end is \n */

/* What the text was when it was read. */
struct sl_token_source {
    int64_t size_bytes;
    int64_t mtime_ns;
    uint64_t ends_crc64; /* of its first and last 64 KiB */
    uint64_t options;    /* hash of everything that decides how it is cut into tokens */
};

struct sl_token_header {
    char magic[16];
    uint32_t version;
    uint32_t byte_order; /* 0x01020304 */
    uint32_t id_bytes;
    uint32_t reserved;
    struct sl_token_source source;
    int64_t tokens, lines, types, text_bytes;
    uint64_t body_crc64;
    uint64_t spare[2];
    uint64_t header_crc64; /* of the bytes before */
};

struct sl_token_file;

/* Where the sections begin, and the size of the whole file. False: no file has such numbers. */
struct sl_token_layout {
    int64_t ids, line_begin, count, text_begin, text, size_bytes;
};
bool sl_token_layout_make(const struct sl_token_header *header, struct sl_token_layout *out);

/* With `prove` reads the whole file once to check the checksum; without, for a file just made. Errors: NOT_FOUND, IO,
 * NO_MEMORY, CORRUPT_DATA (anything wrong; the file must be made anew). */
seqlstm_status sl_token_file_open(const char *path, bool prove, struct sl_token_file **out_file,
                                  struct seqlstm_error *err);
void sl_token_file_close(struct sl_token_file *file);

const struct sl_token_header *sl_token_file_get_header(const struct sl_token_file *file);

/* Texts in the order of their ids into an empty table. NO_MEMORY, IO, CORRUPT_DATA. */
seqlstm_status sl_token_file_read_texts(const struct sl_token_file *file, struct sl_intern *out,
                                        struct seqlstm_error *err);
/* count[types]: how often each id stands in the whole file. */
seqlstm_status sl_token_file_read_counts(const struct sl_token_file *file, int64_t *out, struct seqlstm_error *err);
/* line_begin[first .. first + count - 1] */
seqlstm_status sl_token_file_read_lines(const struct sl_token_file *file, int64_t first, int64_t count, int64_t *out,
                                        struct seqlstm_error *err);
/* Ids of the tokens first .. first + count - 1. Errors: IO (also where the file was truncated). [any thread] */
seqlstm_status sl_token_file_read(const struct sl_token_file *file, int64_t first, int64_t count, int32_t *out,
                                  struct seqlstm_error *err);
/* The line of a token, from 1; 0 where it cannot be read. */
int64_t sl_token_file_find_line(const struct sl_token_file *file, int64_t token);

/* pread of exactly so many bytes. */
seqlstm_status sl_token_read_at(int fd, const char *path, void *out, size_t bytes, int64_t offset,
                                struct seqlstm_error *err);

#endif

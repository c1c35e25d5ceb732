/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a token file of a text, on several threads, in memory that does not depend on the size of the text.
 *
 *   text ─ chunks of 4 MiB ─ a worker each: validate, cut, number ─ spill ─ merge the numbers ─ renumber ─ token file
 *
 * Workers take the next chunk when they are done with one, number the tokens in tables of their own, and write the
 * numbers to an unnamed temporary file beside the result. When all are done the tables are joined, tokens get their
 * final ids (by count, then bytes), and the chunks are renumbered into place. A chunk ends where no token is cut in
 * two: after a newline, in streams of words after any blank, in streams of characters after any character.
 */
#ifndef SL_DATA_READ_TOKEN_BUILD_H
#define SL_DATA_READ_TOKEN_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "data/read/token_file.h"
#include "model/data_config.h"

struct sl_token_build {
    const char *text_path;
    const struct sl_tokenizer *tokenizer;
    bool stream;                   /* one text; else a sequence per line, where blank lines hold nothing */
    struct sl_token_source source; /* goes into the header; size and time are compared at the end */
    int threads;                   /* 1 .. SL_TOKEN_THREADS_MOST */
    int64_t chunk_bytes;           /* 0: 4 MiB */
};

enum { SL_TOKEN_THREADS_MOST = 16 };

/* Writes `out_path` (not atomically: the caller renames). On failure nothing is left there. Errors: CORRUPT_DATA (bytes
 * that are not UTF-8, with file and line; a text that changes while it is read), IO (a full disk), NO_MEMORY. */
seqlstm_status sl_token_build(const struct sl_token_build *build, const char *out_path, struct seqlstm_error *err);

#endif

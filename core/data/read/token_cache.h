/* SPDX-License-Identifier: Apache-2.0 */
/* The user's cache of token files: one for each text and way of cutting it, in $SEQLSTM_CACHE/tokens, else
 * $XDG_CACHE_HOME/seqlstm/tokens, else ~/.cache/seqlstm/tokens.
 *
 * Invariants:
 * 1. A file of the cache is only ever replaced by rename: a process that has the old one open keeps it.
 * 2. One process at a time makes a file (flock on NAME.lock); the others wait and use the result.
 * 3. A file that is damaged, of another version, or of a text that has changed is made anew; all of it may be deleted
 *    at any time.
 */
#ifndef SL_DATA_READ_TOKEN_CACHE_H
#define SL_DATA_READ_TOKEN_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "data/read/token_file.h"
#include "model/data_config.h"

/* Smaller texts are cut anew each time: it takes about a tenth of a second. SEQLSTM_CACHE_LEAST is another number of
 * bytes. */
#define SL_TOKEN_CACHE_LEAST_BYTES ((int64_t)16 << 20)

struct sl_token_cache_request {
    const char *text_path;
    const struct sl_tokenizer *tokenizer;
    bool stream;         /* see token_build.h */
    const char *folder;  /* NULL: the user's */
    int threads;         /* 0: as many as there are cores */
    int64_t chunk_bytes; /* 0: as token_build.h says */
};

/* Opens the token file of a text, made now if need be. *out_file is NULL where the environment names no folder for
 * caches. Errors: those of token_build.h. */
seqlstm_status sl_token_cache_open(const struct sl_token_cache_request *request, struct sl_token_file **out_file,
                                   struct seqlstm_error *err);

#endif

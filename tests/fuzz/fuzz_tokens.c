/* SPDX-License-Identifier: Apache-2.0 */
/* Token files and the cutting of text.
 *
 *   first byte even: the rest is a token file; its checksums are put right, so that what lies behind them is reached
 *   first byte odd:  the rest is a text; tokens lie one behind the other inside of it, and the cutter of large texts
 *                    (word_edges.h) finds those of the tokenizer
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/value/hash.h"
#include "base/value/text.h"
#include "data/text/intern.h"
#include "data/read/token_file.h"
#include "data/text/tokenizer.h"
#include "data/text/word_edges.h"
#include "fuzz.h"

/* ---- files ------------------------------------------------------------------------------------------------ */

static void read_all(const struct sl_token_file *file)
{
    const struct sl_token_header *h = sl_token_file_get_header(file);
    struct sl_intern texts = {0};
    int32_t *ids = malloc(((size_t)h->tokens + 1) * sizeof *ids);
    int64_t *counts = malloc(((size_t)h->types + 1) * sizeof *counts);
    int64_t *lines = malloc(((size_t)h->lines + 1) * sizeof *lines);
    fuzz_require(ids && counts && lines);
    seqlstm_status status = sl_token_file_read_texts(file, &texts, NULL);
    fuzz_require(status == SEQLSTM_OK || status == SEQLSTM_CORRUPT_DATA);
    fuzz_require(sl_token_file_read_counts(file, counts, NULL) == SEQLSTM_OK);
    fuzz_require(sl_token_file_read_lines(file, 0, h->lines + 1, lines, NULL) == SEQLSTM_OK);
    fuzz_require(sl_token_file_read(file, 0, h->tokens, ids, NULL) == SEQLSTM_OK); /* open has proven them */
    for (int64_t t = 0; t < h->tokens; t++)
        fuzz_require(ids[t] >= 0 && ids[t] < h->types);
    int64_t line = sl_token_file_find_line(file, h->tokens / 2);
    fuzz_require(line >= 0 && line <= h->lines);
    sl_intern_deinit(&texts);
    free(ids);
    free(counts);
    free(lines);
}

static void try_file(const uint8_t *data, size_t size)
{
    struct sl_token_header header;
    char path[FUZZ_PATH_BYTES];
    uint8_t *bytes = malloc(size + 1);
    fuzz_require(bytes != NULL);
    memcpy(bytes, data, size);
    if (size >= sizeof header) {
        memcpy(&header, bytes, sizeof header);
        memcpy(header.magic, SL_TOKEN_MAGIC, sizeof header.magic);
        header.version = SL_TOKEN_VERSION;
        header.byte_order = 0x01020304u;
        header.body_crc64 = sl_crc64(0, bytes + sizeof header, size - sizeof header);
        header.header_crc64 = sl_crc64(0, &header, sizeof header - sizeof header.header_crc64);
        memcpy(bytes, &header, sizeof header);
    }
    const int fd = fuzz_open_memory(bytes, size, path);
    struct sl_token_file *file = NULL;
    seqlstm_status status = sl_token_file_open(path, true, &file, NULL);
    fuzz_require(status == SEQLSTM_OK || status == SEQLSTM_CORRUPT_DATA);
    if (status == SEQLSTM_OK)
        read_all(file);
    sl_token_file_close(file);
    close(fd);
    free(bytes);
}

/* ---- texts ------------------------------------------------------------------------------------------------ */

static void try_text(const char *data, size_t size)
{
    static const enum sl_tokenizer_type types[] = {SL_TOKENIZER_WHITESPACE, SL_TOKENIZER_WORD, SL_TOKENIZER_CHAR};
    char *text = calloc(size + SL_WORD_EDGES_BEHIND, 1);
    fuzz_require(text != NULL);
    size_t kept = 0; /* the tokenizer's texts are valid UTF-8 */
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code_point;
        length = sl_text_utf8_decode(data + i, size - i, &code_point);
        if (length == 0) {
            length = 1;
            continue;
        }
        memcpy(text + kept, data + i, length);
        kept += length;
    }
    struct sl_word_edges edges;
    int count = 0, at = 0;
    sl_word_edges_init(&edges, text, kept);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        struct sl_token_cursor cursor;
        const char *token, *end = text;
        size_t bytes;
        sl_token_cursor_init(&cursor, types[t], text, kept);
        while (sl_token_cursor_next(&cursor, &token, &bytes)) {
            fuzz_require(bytes > 0 && token >= end && token + bytes <= text + kept);
            end = token + bytes;
            if (types[t] != SL_TOKENIZER_WHITESPACE)
                continue;
            if (at == count) {
                count = sl_word_edges_next(&edges);
                at = 0;
            }
            fuzz_require(at < count && edges.at[2 * at] == (size_t)(token - text) &&
                         edges.at[2 * at + 1] == (size_t)(end - text));
            at++;
        }
    }
    fuzz_require(at == count && sl_word_edges_next(&edges) == 0);
    sl_text_lower(text, kept);
    for (size_t i = 0, length; i < kept; i += length) {
        uint32_t code_point;
        length = sl_text_utf8_decode(text + i, kept - i, &code_point);
        fuzz_require(length > 0);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 2)
        try_text((const char *)data + 1, size - 1);
    else
        try_file(data + 1, size - 1);
    return 0;
}

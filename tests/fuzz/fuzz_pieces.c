/* SPDX-License-Identifier: Apache-2.0 */
/* Models of SentencePiece: the bytes are refused, or give pieces into which a text can be cut. Needs the module
 * (SEQLSTM_MODULE_PATH); the exit status without it is 77. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/text/pieces.h"
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct sl_pieces *pieces = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)argc, (void)argv;
    const seqlstm_status status = sl_pieces_open("", 0, &pieces, &err);
    if (status == SEQLSTM_UNAVAILABLE) {
        fprintf(stderr, "skipped: %s\n", err.message);
        exit(77);
    }
    fuzz_require(status != SEQLSTM_OK);
    return 0;
}

static void emit(void *out, const char *piece, uint64_t bytes)
{
    sl_pieces_join(piece, bytes, 0, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "a quick brown fox \xC3\xA9 1234";
    struct sl_pieces *pieces = NULL;
    struct sl_buf out = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_pieces_open(data, size, &pieces, &err) != SEQLSTM_OK) {
        fuzz_require(err.message[0] != 0);
        return 0;
    }
    for (int64_t i = 0; i < sl_pieces_get_count(pieces); i++) {
        size_t bytes;
        const char *piece = sl_pieces_get(pieces, i, &bytes);
        fuzz_require(bytes == 0 || strnlen(piece, bytes) <= bytes); /* reads all of it */
    }
    fuzz_require(sl_pieces_cut(pieces, text, sizeof text - 1, emit, &out, &err) == SEQLSTM_OK || err.message[0] != 0);
    sl_buf_deinit(&out);
    sl_pieces_close(pieces);
    return 0;
}

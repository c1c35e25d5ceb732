/* SPDX-License-Identifier: Apache-2.0 */
/* Draft: the interface of a module that cuts text into pieces of words, such as libseqlstm_sentencepiece.so.
 *
 * The module is a shared object that exports the table seqlstm_pieces_v0, which is valid as long as the module is
 * mapped. It throws no exceptions and prints nothing. A function that can fail returns a status of status.h and fills
 * the error. Texts are UTF-8, not NUL-terminated. */
#ifndef SEQLSTM_EXT_DRAFT_PIECES_H
#define SEQLSTM_EXT_DRAFT_PIECES_H

#include <stdint.h>

#include <seqlstm/status.h>

#define SEQLSTM_PIECES_SYMBOL "seqlstm_pieces_v0"

#ifdef __cplusplus
extern "C" {
#endif

enum { SEQLSTM_PIECES_BPE = 1, SEQLSTM_PIECES_UNIGRAM = 2 };

struct seqlstm_pieces; /* a loaded model */

struct seqlstm_pieces_training {
    uint32_t struct_size;
    uint32_t method; /* SEQLSTM_PIECES_… */
    int64_t size;    /* number of pieces, including the one for unknown text */
    /* Returns the next line, valid until the next call; NULL at the end. */
    const char *(*next)(void *context, uint64_t *out_bytes);
    void *context;
};

struct seqlstm_pieces_module {
    uint32_t struct_size;
    uint32_t reserved;
    /* Learns a model and returns its bytes, which `release` frees. CORRUPT_DATA: the text is too short; NO_MEMORY. */
    int32_t (*train)(const struct seqlstm_pieces_training *training, void **out_model, uint64_t *out_bytes,
                     struct seqlstm_error *err);
    void (*release)(void *model);
    /* Opens a model, which may be used from any thread. CORRUPT_DATA: these bytes are not a model. */
    int32_t (*open)(const void *model, uint64_t bytes, struct seqlstm_pieces **out, struct seqlstm_error *err);
    void (*close)(struct seqlstm_pieces *pieces);
    int64_t (*count)(const struct seqlstm_pieces *pieces);
    /* Text of a piece, owned by the model; length 0 for a piece without text: unknown, control, unused. */
    const char *(*get)(const struct seqlstm_pieces *pieces, int64_t id, uint64_t *out_bytes);
    /* Calls `emit` for each piece of a text, in order; for unknown text it passes that text itself. */
    int32_t (*cut)(const struct seqlstm_pieces *pieces, const char *text, uint64_t bytes,
                   void (*emit)(void *context, const char *piece, uint64_t bytes), void *context,
                   struct seqlstm_error *err);
};

#ifdef __cplusplus
}
#endif

#endif

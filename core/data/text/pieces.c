/* SPDX-License-Identifier: Apache-2.0 */
/* The module's table, and the model beside it. See pieces.h. */
#include "data/text/pieces.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/ext/draft/pieces.h>

#include "base/value/buf.h"
#include "base/system/file.h"
#include "base/system/module.h"

#define MODEL_MOST ((size_t)256 << 20)
#define BLANK      "\xE2\x96\x81"

struct sl_pieces {
    const struct seqlstm_pieces_module *module;
    struct seqlstm_pieces *opened;
    char *model;
    size_t bytes;
};

static seqlstm_status find_module(const struct seqlstm_pieces_module **out, struct seqlstm_error *err)
{
    const void *table = NULL;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_module_open("sentencepiece", SEQLSTM_PIECES_SYMBOL, &table, &why);
    if (status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, status,
                     "`tokenizer: sentencepiece` needs a module that is not here: %s. Install the package "
                     "libsentencepiece-dev and build again, or use another tokenizer",
                     why.message);
    const struct seqlstm_pieces_module *module = table;
    if (module->struct_size != sizeof *module)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "the module of `tokenizer: sentencepiece` is of another version: build "
                     "and install it with this program");
    *out = module;
    return SEQLSTM_OK;
}

/* Takes the model. */
static seqlstm_status open_with(const struct seqlstm_pieces_module *module, char *model, size_t bytes,
                                struct sl_pieces **out, struct seqlstm_error *err)
{
    struct sl_pieces *pieces = calloc(1, sizeof *pieces);
    if (!pieces) {
        free(model);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for pieces");
    }
    *pieces = (struct sl_pieces){.module = module, .model = model, .bytes = bytes};
    seqlstm_status status = module->open(model, bytes, &pieces->opened, err);
    if (status != SEQLSTM_OK) {
        sl_pieces_close(pieces);
        return status;
    }
    *out = pieces;
    return SEQLSTM_OK;
}

static seqlstm_status copy_model(const void *model, size_t bytes, char **out, struct seqlstm_error *err)
{
    char *copy = malloc(bytes + 1);
    if (!copy)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for pieces");
    memcpy(copy, model, bytes);
    *out = copy;
    return SEQLSTM_OK;
}

seqlstm_status sl_pieces_open(const void *model, size_t bytes, struct sl_pieces **out, struct seqlstm_error *err)
{
    const struct seqlstm_pieces_module *module = NULL;
    char *copy = NULL;
    SEQLSTM_TRY(find_module(&module, err));
    SEQLSTM_TRY(copy_model(model, bytes, &copy, err));
    return open_with(module, copy, bytes, out, err);
}

seqlstm_status sl_pieces_load(const char *path, struct sl_pieces **out, struct seqlstm_error *err)
{
    const struct seqlstm_pieces_module *module = NULL;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    char *model;
    size_t bytes;
    SEQLSTM_TRY(find_module(&module, err));
    SEQLSTM_TRY(sl_file_read(path, MODEL_MOST, &model, &bytes, err));
    seqlstm_status status = open_with(module, model, bytes, out, &why);
    if (status == SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, status, "%s: no memory for the model of sentencepiece", path);
    if (status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, status, "%s: no model of sentencepiece: %s", path, why.message);
    return SEQLSTM_OK;
}

seqlstm_status sl_pieces_train(const struct sl_tokenizer *tokenizer, const char *name,
                               const char *(*next)(void *context, uint64_t *out_bytes), void *context,
                               struct sl_pieces **out, struct seqlstm_error *err)
{
    const struct seqlstm_pieces_module *module = NULL;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    SEQLSTM_TRY(find_module(&module, err));
    struct seqlstm_pieces_training training = {.struct_size = sizeof training,
                                               .method = tokenizer->method == SL_PIECES_UNIGRAM ? SEQLSTM_PIECES_UNIGRAM
                                                                                                : SEQLSTM_PIECES_BPE,
                                               .size = tokenizer->vocab_size - (int64_t)tokenizer->specials.count + 1,
                                               .next = next,
                                               .context = context};
    void *learned = NULL;
    uint64_t bytes = 0;
    char *model = NULL;
    if (training.size < 2)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`vocab_size: %lld` has no room for pieces beside the specials",
                     (long long)tokenizer->vocab_size);
    seqlstm_status status = module->train(&training, &learned, &bytes, &why);
    if (status == SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, status, "%s: no memory for learning pieces", name);
    if (status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, status, "%s: `vocab_size: %lld` cannot be learned from the training split: %s", name,
                     (long long)tokenizer->vocab_size, why.message);
    status = copy_model(learned, bytes, &model, err);
    module->release(learned);
    return status == SEQLSTM_OK ? open_with(module, model, bytes, out, err) : status;
}

void sl_pieces_close(struct sl_pieces *pieces)
{
    if (!pieces)
        return;
    if (pieces->opened)
        pieces->module->close(pieces->opened);
    free(pieces->model);
    free(pieces);
}

const void *sl_pieces_get_model(const struct sl_pieces *pieces, size_t *out_bytes)
{
    *out_bytes = pieces->bytes;
    return pieces->model;
}

int64_t sl_pieces_get_count(const struct sl_pieces *pieces)
{
    return pieces->module->count(pieces->opened);
}

const char *sl_pieces_get(const struct sl_pieces *pieces, int64_t id, size_t *out_bytes)
{
    uint64_t bytes;
    const char *text = pieces->module->get(pieces->opened, id, &bytes);
    *out_bytes = bytes;
    return text;
}

seqlstm_status sl_pieces_cut(const struct sl_pieces *pieces, const char *text, size_t bytes,
                             void (*emit)(void *context, const char *piece, uint64_t bytes), void *context,
                             struct seqlstm_error *err)
{
    return pieces->module->cut(pieces->opened, text, bytes, emit, context, err);
}

static int get_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void sl_pieces_join(const char *piece, size_t bytes, int begins, struct sl_buf *out)
{
    if (bytes == 6 && memcmp(piece, "<0x", 3) == 0 && piece[5] == '>' && get_digit(piece[3]) >= 0 &&
        get_digit(piece[4]) >= 0) {
        sl_buf_append_char(out, (char)(get_digit(piece[3]) * 16 + get_digit(piece[4])));
        return;
    }
    for (size_t at = 0; at < bytes;) {
        if (bytes - at < 3 || memcmp(piece + at, BLANK, 3) != 0) {
            sl_buf_append_char(out, piece[at++]);
            continue;
        }
        if (at > 0 || !begins)
            sl_buf_append_char(out, ' ');
        at += 3;
    }
}

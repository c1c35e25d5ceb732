/* SPDX-License-Identifier: Apache-2.0 */
/* The three tokenizers, and joining tokens to text again. They only cut: nothing but sl_text_lower changes a byte. */
#include "data/text/tokenizer.h"

#include <string.h>

#include "base/value/buf.h"
#include "base/value/text.h"
#include "data/text/pieces.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Letters of every script count: a byte of a multi-byte character is one. */
static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

void sl_token_cursor_init(struct sl_token_cursor *cursor, enum sl_tokenizer_type type, const char *text, size_t bytes)
{
    cursor->type = type;
    cursor->next = text;
    cursor->end = text + bytes;
}

/* Whether the punctuation at p, behind the first letter of a chunk that ends at `end`, joins its neighbours. */
static bool joins(const char *p, const char *end)
{
    if (p + 1 == end)
        return false;
    if (*p == '\'' || *p == '-')
        return is_word(p[-1]) && is_word(p[1]);
    return (*p == '.' || *p == ',') && is_digit(p[-1]) && is_digit(p[1]);
}

static const char *word_end(const char *p, const char *end)
{
    if (!is_word(*p))
        return p + 1;
    while (p < end && !is_blank(*p) && (is_word(*p) || joins(p, end)))
        p++;
    return p;
}

bool sl_token_cursor_next(struct sl_token_cursor *cursor, const char **out_token, size_t *out_bytes)
{
    const char *p = cursor->next, *end = cursor->end;
    if (cursor->type == SL_TOKENIZER_CHAR) {
        if (p >= end)
            return false;
        uint32_t code_point;
        size_t bytes = sl_text_utf8_decode(p, (size_t)(end - p), &code_point);
        bytes = bytes == 0 ? 1 : bytes;
        *out_token = p;
        *out_bytes = bytes;
        cursor->next = p + bytes;
        return true;
    }
    while (p < end && is_blank(*p))
        p++;
    if (p >= end) {
        cursor->next = end;
        return false;
    }
    const char *begin = p;
    if (cursor->type == SL_TOKENIZER_WORD)
        p = word_end(p, end);
    else
        while (p < end && !is_blank(*p))
            p++;
    *out_token = begin;
    *out_bytes = (size_t)(p - begin);
    cursor->next = p;
    return true;
}

/* The lower-case partner, if it has as many bytes (that of İ has not), or the character itself. */
static uint32_t lower(uint32_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c + 32;
    if (c < 0xC0)
        return c;
    if (c <= 0xDE)
        return c == 0xD7 ? c : c + 32;
    if (c == 0x178)
        return 0xFF;
    if ((c >= 0x100 && c <= 0x12F) || (c >= 0x132 && c <= 0x137) || (c >= 0x14A && c <= 0x177))
        return c | 1;
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E))
        return c + (c & 1);
    if (c == 0x386)
        return 0x3AC;
    if (c >= 0x388 && c <= 0x38A)
        return c + 37;
    if (c == 0x38C)
        return 0x3CC;
    if (c == 0x38E || c == 0x38F)
        return c + 63;
    if (c >= 0x391 && c <= 0x3AB && c != 0x3A2)
        return c + 32;
    if (c >= 0x400 && c <= 0x40F)
        return c + 80;
    if (c >= 0x410 && c <= 0x42F)
        return c + 32;
    return c;
}

void sl_text_lower(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes;) {
        uint32_t code_point;
        size_t length = sl_text_utf8_decode(text + i, bytes - i, &code_point);
        if (length == 0)
            return;
        if (length <= 2)
            sl_text_utf8_encode(text + i, lower(code_point));
        i += length;
    }
}

void sl_tokens_join(const struct sl_tokenizer *config, const struct sl_vocabulary *vocabulary, const int32_t *ids,
                    int64_t count, struct sl_buf *out)
{
    int32_t eos = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS);
    int32_t bos = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_BOS);
    int32_t pad = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_PAD);
    bool line_start = true;
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] < 0 || ids[i] >= sl_vocabulary_get_size(vocabulary) || ids[i] == bos || ids[i] == pad)
            continue;
        if (ids[i] == eos) {
            sl_buf_append_char(out, '\n');
            line_start = true;
            continue;
        }
        size_t bytes;
        const char *text = sl_vocabulary_get_text(vocabulary, ids[i], &bytes);
        if (config->type == SL_TOKENIZER_SENTENCEPIECE) {
            sl_pieces_join(text, bytes, line_start, out);
            line_start = false;
            continue;
        }
        if (!line_start && config->type != SL_TOKENIZER_CHAR)
            sl_buf_append_char(out, ' ');
        sl_buf_append(out, text, bytes);
        line_start = false;
    }
}

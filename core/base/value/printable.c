/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes, one character at a time. */
#include "base/value/printable.h"

#include <string.h>

#include "base/value/text.h"

enum { SHOWN_BYTES = 8 };

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Writes the first character as it may be shown, and returns how many bytes of the text it took. */
static size_t show(const char *text, size_t bytes, const char *keep, char out[SHOWN_BYTES], size_t *out_bytes)
{
    uint32_t c = 0;
    size_t taken = sl_text_utf8_decode(text, bytes, &c);
    const char *letter = taken == 1 && c ? strchr("\tt\nn\rr", (int)c) : NULL;
    if (taken && (!is_control(c) || (c && c < 0x80 && strchr(keep, (int)c)))) {
        memcpy(out, text, taken);
        *out_bytes = taken;
    } else if (taken == 1 && letter) {
        *out_bytes = (size_t)sl_text_snprintf(out, SHOWN_BYTES, "\\%c", letter[1]);
    } else if (taken < 2) {
        *out_bytes = (size_t)sl_text_snprintf(out, SHOWN_BYTES, "\\x%02x", (unsigned)(unsigned char)text[0]);
    } else {
        *out_bytes = (size_t)sl_text_snprintf(out, SHOWN_BYTES, "\\u%04x", (unsigned)c);
    }
    return taken ? taken : 1;
}

/* Bytes at the beginning that need no look: printable ASCII. */
static size_t count_plain(const char *text, size_t bytes)
{
    size_t n = 0;
    while (n < bytes && text[n] >= 0x20 && text[n] < 0x7f)
        n++;
    return n;
}

void sl_printable_append(struct sl_buf *out, const char *text, size_t bytes, const char *keep)
{
    for (size_t at = 0; at < bytes;) {
        char shown[SHOWN_BYTES];
        size_t shown_bytes, plain = count_plain(text + at, bytes - at);
        sl_buf_append(out, text + at, plain);
        at += plain;
        if (at == bytes)
            break;
        at += show(text + at, bytes - at, keep, shown, &shown_bytes);
        sl_buf_append(out, shown, shown_bytes);
    }
}

size_t sl_printable_copy(char *out, size_t capacity_bytes, const char *text, size_t bytes, const char *keep)
{
    size_t length = 0;
    for (size_t at = 0; at < bytes;) {
        char shown[SHOWN_BYTES];
        size_t shown_bytes;
        at += show(text + at, bytes - at, keep, shown, &shown_bytes);
        if (length + shown_bytes >= capacity_bytes)
            break;
        memcpy(out + length, shown, shown_bytes);
        length += shown_bytes;
    }
    if (capacity_bytes > 0)
        out[length] = '\0';
    return length;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See base64.h. */
#include "base/value/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void sl_base64_write(const void *data, size_t bytes, struct sl_buf *out)
{
    const unsigned char *from = data;
    for (size_t at = 0; at < bytes; at += 3) {
        size_t count = bytes - at < 3 ? bytes - at : 3;
        uint32_t three = 0;
        char four[4];
        for (size_t i = 0; i < 3; i++)
            three = three << 8 | (i < count ? from[at + i] : 0);
        for (size_t i = 0; i < 4; i++)
            four[i] = i <= count ? digits[three >> (18 - 6 * i) & 63] : '=';
        sl_buf_append(out, four, sizeof four);
    }
}

bool sl_base64_read(const char *text, size_t length, struct sl_buf *out)
{
    if (length % 4 != 0)
        return false;
    for (size_t at = 0; at < length; at += 4) {
        bool last = at + 4 == length;
        size_t pads = !last || text[at + 3] != '=' ? 0 : text[at + 2] != '=' ? 1 : 2;
        uint32_t three = 0;
        for (size_t i = 0; i < 4; i++) {
            const char *digit = i < 4 - pads ? memchr(digits, text[at + i], sizeof digits - 1) : digits;
            if (!digit)
                return false;
            three = three << 6 | (uint32_t)(digit - digits);
        }
        if (three & ((UINT32_C(1) << 8 * pads) - 1))
            return false; /* bits that stand for nothing */
        const char bytes[3] = {(char)(three >> 16), (char)(three >> 8), (char)three};
        sl_buf_append(out, bytes, 3 - pads);
    }
    return true;
}

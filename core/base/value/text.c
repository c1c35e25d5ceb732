/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 and the distance between words: the other half of base/text.h (number.c has the numbers). */
#include "base/value/text.h"

#include <stdio.h>
#include <string.h>

#define WORD_LONGEST 63

size_t sl_text_utf8_decode(const char *text, size_t length, uint32_t *out_code_point)
{
    const unsigned char *s = (const unsigned char *)text;
    if (length == 0)
        return 0;
    if (s[0] < 0x80) {
        *out_code_point = s[0];
        return 1;
    }
    size_t bytes = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || length < bytes)
        return 0;
    uint32_t code_point = s[0] & (0xFFu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code_point = code_point << 6 | (s[i] & 0x3Fu);
    }
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (code_point < smallest[bytes] || code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF))
        return 0;
    *out_code_point = code_point;
    return bytes;
}

size_t sl_text_utf8_encode(char out[4], uint32_t code_point)
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xC0 | code_point >> 6);
        out[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF))
        return 0;
    if (code_point < 0x10000) {
        out[0] = (char)(0xE0 | code_point >> 12);
        out[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code_point >> 18);
    out[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

bool sl_text_is_utf8(const char *text, size_t length, size_t *out_offset)
{
    size_t at = 0;
    while (at < length) {
        uint64_t eight;
        if (length - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                at += sizeof eight;
                continue;
            }
        }
        uint32_t code_point;
        size_t bytes = sl_text_utf8_decode(text + at, length - at, &code_point);
        if (bytes == 0) {
            if (out_offset)
                *out_offset = at;
            return false;
        }
        at += bytes;
    }
    return true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t sl_text_distance(const char *a, const char *b)
{
    /* Three rows of the table of prefix distances: two ago (for the swap), the last, this one. */
    size_t rows[3][WORD_LONGEST + 1];
    size_t a_length = strnlen(a, WORD_LONGEST), b_length = strnlen(b, WORD_LONGEST);
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t cost = a[i - 1] != b[j - 1];
            now[j] = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

/* Lower case, `-` as `_`, cut to the longest word. */
static void fold(const char *word, char out[WORD_LONGEST + 1])
{
    size_t n = 0;
    for (; word[n] && n < WORD_LONGEST; n++) {
        char c = word[n];
        out[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '-' ? '_' : c;
    }
    out[n] = '\0';
}

/* The one name that begins with `word`, which has three letters at least; NULL: none, or several. */
static const char *find_longer(const char *folded, const char *const *names, size_t n_names)
{
    char name[WORD_LONGEST + 1];
    const size_t length = strlen(folded);
    const char *found = NULL;
    for (size_t i = 0; i < n_names && length >= 3; i++) {
        fold(names[i], name);
        if (strncmp(name, folded, length) != 0)
            continue;
        if (found)
            return NULL;
        found = names[i];
    }
    return found;
}

const char *sl_text_closest(const char *word, const char *const *names, size_t n_names)
{
    char folded[WORD_LONGEST + 1], name[WORD_LONGEST + 1];
    fold(word, folded);
    const char *best = NULL;
    size_t best_distance = 0;
    for (size_t i = 0; i < n_names; i++) {
        fold(names[i], name);
        size_t distance = sl_text_distance(folded, name);
        size_t longest = strlen(name) > strlen(folded) ? strlen(name) : strlen(folded);
        if (distance * 3 > longest)
            continue;
        if (!best || distance < best_distance) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best ? best : find_longer(folded, names, n_names);
}

void sl_text_write_seconds(char out[24], double seconds)
{
    int64_t s = (int64_t)(seconds >= 0 && seconds <= 1e9 ? seconds + 0.5 : 0);
    if (!(seconds >= 0) || seconds > 1e9)
        snprintf(out, 24, "?");
    else if (seconds < 9.95)
        sl_text_snprintf(out, 24, "%.1fs", seconds);
    else if (s < 60)
        snprintf(out, 24, "%llds", (long long)s);
    else if (s < 3600)
        snprintf(out, 24, "%lldm%02llds", (long long)(s / 60), (long long)(s % 60));
    else
        snprintf(out, 24, "%lldh%02lldm", (long long)(s / 3600), (long long)(s / 60 % 60));
}

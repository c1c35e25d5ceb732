/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings and numbers: the two-letter escapes where JSON has them, \u00XX for other controls. */
#include "base/value/json_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/value/text.h"

static void append_escape(struct sl_buf *out, unsigned char c)
{
    static const char letters[] = "btnfr";
    static const char controls[] = "\b\t\n\f\r";
    const char *found = c ? strchr(controls, c) : NULL;
    if (c == '"' || c == '\\')
        sl_buf_printf(out, "\\%c", c);
    else if (found != NULL)
        sl_buf_printf(out, "\\%c", letters[found - controls]);
    else
        sl_buf_printf(out, "\\u%04x", c);
}

void sl_json_append_text(struct sl_buf *out, const char *text, size_t bytes)
{
    sl_buf_append_char(out, '"');
    for (size_t i = 0; i < bytes;) {
        unsigned char c = (unsigned char)text[i];
        uint32_t code_point;
        size_t length = sl_text_utf8_decode(text + i, bytes - i, &code_point);
        if (length == 0)
            sl_buf_append_text(out, "\xef\xbf\xbd");
        else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
            append_escape(out, c);
        else
            sl_buf_append(out, text + i, length);
        i += length ? length : 1;
    }
    sl_buf_append_char(out, '"');
}

void sl_json_append_string(struct sl_buf *out, const char *text)
{
    if (text == NULL)
        sl_buf_append_text(out, "null");
    else
        sl_json_append_text(out, text, strlen(text));
}

void sl_json_append_number(struct sl_buf *out, double value)
{
    char text[SL_TEXT_NUMBER_BYTES];
    if (!isfinite(value)) {
        sl_buf_append_text(out, "null");
        return;
    }
    if (value == 0 && signbit(value)) {
        sl_buf_append_text(out, "-0.0");
        return;
    }
    sl_text_print_float64(text, value);
    sl_buf_append_text(out, text);
}

void sl_json_append_exact(struct sl_buf *out, double value)
{
    if (isnan(value))
        sl_buf_append_text(out, "\"nan\"");
    else if (isinf(value))
        sl_buf_append_text(out, value > 0 ? "\"inf\"" : "\"-inf\"");
    else
        sl_json_append_number(out, value);
}

static int append_part(const char *text, size_t bytes, void *out)
{
    sl_buf_append(out, text, bytes);
    return ((struct sl_buf *)out)->failed ? -1 : 0;
}

/* Not with json_dumps, which goes on after a key for which it had no memory (jansson 2.14). */
static bool append_tree(struct sl_buf *out, struct json_t *root, size_t flags)
{
    struct sl_buf text = {0};
    const bool fine = root && json_dump_callback(root, append_part, &text, flags) == 0 && !text.failed;
    json_decref(root);
    if (fine) {
        sl_buf_append(out, text.data, text.length_bytes);
        sl_buf_append_char(out, '\n');
    }
    sl_buf_deinit(&text);
    return fine;
}

bool sl_json_append_tree(struct sl_buf *out, struct json_t *root, size_t flags)
{
    return append_tree(out, root, JSON_INDENT(2) | flags);
}

bool sl_json_append_line(struct sl_buf *out, struct json_t *root)
{
    return append_tree(out, root, JSON_COMPACT);
}

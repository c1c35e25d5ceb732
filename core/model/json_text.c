/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings: the two-letter escapes where JSON has them, \u00XX for other controls. */
#include "model/json_text.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"

static void
append_escape(struct sl_buf *out, unsigned char c)
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

void
sl_json_append_string(struct sl_buf *out, const char *text)
{
    if (text == NULL) {
        sl_buf_append_text(out, "null");
        return;
    }
    size_t length = strlen(text);
    sl_buf_append_char(out, '"');
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        uint32_t code_point;
        size_t bytes = sl_text_utf8_decode(text + i, length - i, &code_point);
        if (bytes == 0)
            sl_buf_append_text(out, "\xef\xbf\xbd");
        else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
            append_escape(out, c);
        else
            sl_buf_append(out, text + i, bytes);
        i += bytes ? bytes : 1;
    }
    sl_buf_append_char(out, '"');
}

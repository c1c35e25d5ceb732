/* SPDX-License-Identifier: Apache-2.0 */
/* JSON texts and numbers. */
#include "interop/json_write.h"

#include <math.h>

#include "base/text.h"

void
sl_json_write_text(struct sl_buf *out, const char *text)
{
    sl_buf_append_char(out, '"');
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            sl_buf_append_char(out, '\\');
            sl_buf_append_char(out, *p);
        } else if (c == '\n') {
            sl_buf_append_text(out, "\\n");
        } else if (c == '\t') {
            sl_buf_append_text(out, "\\t");
        } else if (c < 0x20) {
            sl_buf_printf(out, "\\u%04x", c);
        } else {
            sl_buf_append_char(out, *p);
        }
    }
    sl_buf_append_char(out, '"');
}

void
sl_json_write_number(struct sl_buf *out, double value)
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

void
sl_json_write_exact(struct sl_buf *out, double value)
{
    if (isnan(value))
        sl_buf_append_text(out, "\"nan\"");
    else if (isinf(value))
        sl_buf_append_text(out, value > 0 ? "\"inf\"" : "\"-inf\"");
    else
        sl_json_write_number(out, value);
}

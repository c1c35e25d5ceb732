/* SPDX-License-Identifier: Apache-2.0 */
/* See fields.h. */
#include "cli/output/fields.h"

#include <math.h>

#include "base/value/text.h"

void cli_write_csv_text(struct sl_buf *buf, const char *text, size_t bytes)
{
    bool quote = false;
    for (size_t i = 0; i < bytes; i++)
        quote = quote || text[i] == '"' || text[i] == ',' || text[i] == '\n' || text[i] == '\r';
    if (!quote) {
        sl_buf_append(buf, text, bytes);
        return;
    }
    sl_buf_append_char(buf, '"');
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"')
            sl_buf_append_char(buf, '"');
        sl_buf_append_char(buf, text[i]);
    }
    sl_buf_append_char(buf, '"');
}

void cli_write_number(struct sl_buf *buf, float value)
{
    char number[SL_TEXT_NUMBER_BYTES];
    sl_text_print_float32(number, value);
    sl_buf_append_text(buf, isfinite(value) ? number : isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

void cli_write_json_number(struct sl_buf *buf, float value)
{
    if (isfinite(value))
        cli_write_number(buf, value);
    else
        sl_buf_append_text(buf, "null");
}

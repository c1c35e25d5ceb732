/* SPDX-License-Identifier: Apache-2.0 */
/* See html.h. */
#include "base/value/html.h"

#include <string.h>

#include "base/value/text.h"

static const char shared_style[] =
    ":root{color-scheme:light dark;--ink:#1f2430;--dim:#5d6570;--grid:#e3e6ea;--page:#fff}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--dim:#9aa2ad;--grid:#33383f;--page:#16181c}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:1120px;margin:2rem auto;"
    "padding:0 1rem}\n"
    "h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .4rem}p{color:var(--dim);margin:.2rem 0}\n"
    "table{border-collapse:collapse}td,th{padding:.2rem 1rem .2rem 0;text-align:right;"
    "font-variant-numeric:tabular-nums}\n"
    "th{color:var(--dim);font-weight:500}td:first-child,th:first-child{text-align:left}\n"
    "svg{width:100%;height:auto;display:block}text{font:12px system-ui,sans-serif;fill:var(--dim)}\n"
    ".grid{stroke:var(--grid)}.scroll{overflow-x:auto}\n";

void sl_html_append_bytes(struct sl_buf *out, const char *text, size_t bytes)
{
    for (const char *at = text; at < text + bytes; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c == '<')
            sl_buf_append_text(out, "&lt;");
        else if (c == '>')
            sl_buf_append_text(out, "&gt;");
        else if (c == '&')
            sl_buf_append_text(out, "&amp;");
        else if (c == '"')
            sl_buf_append_text(out, "&quot;");
        else if (c >= 0x20 || c == '\t' || c == '\n' || c == '\r')
            sl_buf_append_char(out, (char)c);
    }
}

void sl_html_append_text(struct sl_buf *out, const char *text)
{
    sl_html_append_bytes(out, text, strlen(text));
}

void sl_html_append_number(struct sl_buf *out, const char *format, double value)
{
    char text[64];
    sl_text_snprintf(text, sizeof text, format, value);
    sl_buf_append_text(out, text);
}

void sl_html_begin_page(struct sl_buf *out, const char *style, const char *title, ...)
{
    struct sl_buf text = {0};
    va_list args;
    va_start(args, title);
    sl_buf_vprintf(&text, title, args);
    va_end(args);
    out->failed = out->failed || text.failed;
    sl_buf_append_text(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                            "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    sl_html_append_text(out, sl_buf_text(&text));
    sl_buf_append_text(out, "</title>\n<style>\n");
    sl_buf_append_text(out, shared_style);
    sl_buf_append_text(out, style);
    sl_buf_append_text(out, "</style>\n</head><body>\n");
    sl_buf_deinit(&text);
}

void sl_html_end_page(struct sl_buf *out)
{
    sl_buf_append_text(out, "</body></html>\n");
}

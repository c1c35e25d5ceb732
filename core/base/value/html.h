/* SPDX-License-Identifier: Apache-2.0 */
/* HTML pages that need neither a network nor a script: escaped text, and one style sheet for all of them.
 *
 * The style sheet sets the colours (--ink, --dim for what is less important, --grid, --page; light and dark), the font,
 * headings, tables of right-aligned numbers, and the classes `grid` (a thin line of a drawing) and `scroll` (a block
 * that may be wider than the window). A page adds rules of its own after it.
 */
#ifndef SL_BASE_VALUE_HTML_H
#define SL_BASE_VALUE_HTML_H

#include "base/value/buf.h"

/* Appends text with & < > and " escaped, so that it may stand between tags and in an attribute in double quotes, in
 * HTML and in XML. Control characters that XML does not allow are left out. */
void sl_html_append_text(struct sl_buf *out, const char *text);
void sl_html_append_bytes(struct sl_buf *out, const char *text, size_t bytes);

/* Appends one number by a printf format for it, with a decimal point in every locale. */
void sl_html_append_number(struct sl_buf *out, const char *format, double value) SEQLSTM_PRINTF(2, 0);

/* Everything up to the beginning of the body. `style`: the page's own rules. The title is printed, then escaped. */
void sl_html_begin_page(struct sl_buf *out, const char *style, const char *title, ...) SEQLSTM_PRINTF(3, 4);
void sl_html_end_page(struct sl_buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Text of unknown origin (files, their names, plugins) made fit to be shown: in a message, in a table, on a terminal.
 */
#ifndef SL_BASE_VALUE_PRINTABLE_H
#define SL_BASE_VALUE_PRINTABLE_H

#include "base/value/buf.h"

/* Appends the text with escapes in place of what a terminal would execute: `\t`, `\n` and `\r`; `\x1b` for any other
 * control character of ASCII and for a byte that is not UTF-8; `\u0085` and `\u202e` for the later control characters
 * and those that turn the direction of writing. The characters in `keep` (control characters of ASCII, such as "\n")
 * stay. Text without any of them is appended unchanged. */
void sl_printable_append(struct sl_buf *out, const char *text, size_t bytes, const char *keep);

/* The same as a string in `out`, cut between two characters where there is no room. Returns its length. */
size_t sl_printable_copy(char *out, size_t capacity_bytes, const char *text, size_t bytes, const char *keep);

#endif

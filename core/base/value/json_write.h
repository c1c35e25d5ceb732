/* SPDX-License-Identifier: Apache-2.0 */
/* JSON written directly: strings with their escapes, numbers that read back as the same bits. Where a whole value is
 * built in memory first, its writer uses jansson instead. */
#ifndef SL_BASE_VALUE_JSON_WRITE_H
#define SL_BASE_VALUE_JSON_WRITE_H

#include <stdbool.h>

#include "base/value/buf.h"

struct json_t;

/* Appends text as a JSON string with its quotes. What is not UTF-8 becomes U+FFFD. */
void sl_json_append_text(struct sl_buf *out, const char *text, size_t bytes);

/* The same up to the zero; NULL as `null`. */
void sl_json_append_string(struct sl_buf *out, const char *text);

/* Appends a finite number; NaN and infinities as null. -0 is written as -0.0, which stays a float. */
void sl_json_append_number(struct sl_buf *out, double value);

/* NaN and infinities as the strings "nan", "inf", "-inf" instead: for what must come back exactly. */
void sl_json_append_exact(struct sl_buf *out, double value);

/* Appends a value that jansson has built, indented, with a line feed, and releases it. `flags`: more of json_dumps, or
 * 0. False: `root` is NULL, since memory ran out, or it runs out now. */
bool sl_json_append_tree(struct sl_buf *out, struct json_t *root, size_t flags);

/* The same in one line, as short as it can be. */
bool sl_json_append_line(struct sl_buf *out, struct json_t *root);

#endif

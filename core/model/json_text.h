/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text by hand: strings with their escapes. What is not UTF-8 becomes U+FFFD. */
#ifndef SL_MODEL_JSON_TEXT_H
#define SL_MODEL_JSON_TEXT_H

struct sl_buf;

/* Appends `text` as a JSON string with its quotes; NULL as `null`. */
void sl_json_append_string(struct sl_buf *out, const char *text);

#endif

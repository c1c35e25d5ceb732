/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of jansson whose memory may end while they are read or built. */
#ifndef SL_BASE_VALUE_JSON_TREE_H
#define SL_BASE_VALUE_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* json_loadb, which damages memory where there is none for a long token. NULL with *out_no_memory: not the text is to
 * blame; jansson calls some of these failures a syntax error. */
json_t *sl_json_load(const char *text, size_t bytes, size_t flags, json_error_t *why, bool *out_no_memory);

/* Take over both values, and give back the first with the second in it. NULL: one of them was NULL or memory ran out,
 * and both are released: what lacks a part is never written. */
json_t *sl_json_add(json_t *array, json_t *value);
json_t *sl_json_put(json_t *object, const char *key, json_t *value);

/* A JSON string, in which what is not UTF-8 becomes U+FFFD: for names of files and what was said elsewhere. NULL gives
 * `null`. NULL: no memory. */
json_t *sl_json_text(const char *text);

#endif

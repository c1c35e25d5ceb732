/* SPDX-License-Identifier: Apache-2.0 */
/* Text that came from a plugin, made fit for terminals, logs and files. */
#ifndef SL_REGISTRY_WATCH_PLUGIN_TEXT_H
#define SL_REGISTRY_WATCH_PLUGIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <seqlstm/status.h>

/* In place: ends the text within its capacity, and writes control characters as escapes (base/value/printable.h); what
 * then has no room is cut. capacity_bytes > 0. [any] */
void sl_plugin_text_clean(char *text, size_t capacity_bytes);

/* Would it stay as it is? */
bool sl_plugin_text_is_clean(const char *text);

/* Cleans the texts of an error, which may be NULL, or shorter than ours: then it stays as it is. */
void sl_plugin_error_clean(struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The place of an error in the user's files, as text: "file:line:column". */
#ifndef SL_BASE_VALUE_ERROR_PLACE_H
#define SL_BASE_VALUE_ERROR_PLACE_H

#include <stddef.h>

#include <seqlstm/status.h>

/* Writes the place; a path which leaves no room loses a part in its middle ("/home/…/runs/a/config.yaml:3:5"), so that
 * the name of the file and the numbers are whole. Characters of UTF-8 are never cut. `file` NULL: as "". `line` 0: the
 * file as a whole, without numbers. */
void sl_error_place_write(const char *file, int line, int column, char *out, size_t capacity_bytes);

/* Sets `err->where`. Nothing for `err` NULL. */
void sl_error_place_set(struct seqlstm_error *err, const char *file, int line, int column);

#endif

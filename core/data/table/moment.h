/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a `time:` column as numbers. Private to core/data. [any thread] */
#ifndef SL_DATA_TABLE_MOMENT_H
#define SL_DATA_TABLE_MOMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Parses the whole text: with `format`, as strptime in the C locale does; without, as ISO 8601 (`2016-07-01`,
 * `2016-07`, `2016-07-01 23:00`, `…T23:00:00.25Z`, `…+02:00`; no zone is UTC), or a number. Seconds since 1970, or the
 * number itself. False when it cannot be read. */
bool sl_moment_parse(const char *text, size_t bytes, const char *format, double *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Where a path leads from the current folder. Returned strings are freed with free(). [any thread] */
#ifndef SL_BASE_SYSTEM_ABSOLUTE_PATH_H
#define SL_BASE_SYSTEM_ABSOLUTE_PATH_H

#include <seqlstm/status.h>

/* The absolute path: relative ones are taken in the current folder; `.`, `..` and double slashes are resolved in the
 * text only; links are not followed, and nothing need exist. */
seqlstm_status sl_path_absolute(const char *path, char **out_path, struct seqlstm_error *err);

/* The path with every link resolved; it must exist. */
seqlstm_status sl_path_real(const char *path, char **out_path, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files. Returned strings are freed with free(). [any thread] */
#ifndef SL_BASE_SYSTEM_PATH_H
#define SL_BASE_SYSTEM_PATH_H

#include <seqlstm/status.h>

/* The absolute path: relative ones are taken in the current folder; `.`, `..` and double slashes are resolved in the
 * text only; links are not followed, and nothing need exist. */
seqlstm_status sl_path_absolute(const char *path, char **out_path, struct seqlstm_error *err);

/* The path with every link resolved; it must exist. */
seqlstm_status sl_path_real(const char *path, char **out_path, struct seqlstm_error *err);

/* "folder/name"; `name` alone when it is absolute or `folder` is "" or NULL. NULL on no memory. */
char *sl_path_join(const char *folder, const char *name);
/* The part before the last slash ("." if none, "/" for the root). NULL on no memory. */
char *sl_path_folder(const char *path);
/* The part after the last slash, borrowed. */
const char *sl_path_name(const char *path);

#endif

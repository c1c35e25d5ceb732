/* SPDX-License-Identifier: Apache-2.0 */
/* The text of paths: nothing is looked up. Returned strings are freed with free(). [any thread] */
#ifndef SL_BASE_VALUE_PATH_H
#define SL_BASE_VALUE_PATH_H

/* "folder/name"; `name` alone when it is absolute or `folder` is "" or NULL. NULL on no memory. */
char *sl_path_join(const char *folder, const char *name);
/* The part before the last slash ("." if none, "/" for the root). NULL on no memory. */
char *sl_path_folder(const char *path);
/* The part after the last slash, borrowed. */
const char *sl_path_name(const char *path);

#endif

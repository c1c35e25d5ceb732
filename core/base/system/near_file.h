/* SPDX-License-Identifier: Apache-2.0 */
/* What may be meant by the path of a file that is not there. */
#ifndef SL_BASE_SYSTEM_NEAR_FILE_H
#define SL_BASE_SYSTEM_NEAR_FILE_H

/* The name of another file in the same folder, to be freed with free(). NULL: none is near enough. [any thread] */
char *sl_near_file_find(const char *path);

#endif

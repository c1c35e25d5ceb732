/* SPDX-License-Identifier: Apache-2.0 */
/* The runs that there are, for messages. */
#ifndef SL_SESSION_RUN_FOLDER_RUN_LIST_H
#define SL_SESSION_RUN_FOLDER_RUN_LIST_H

#include <stddef.h>

enum { SL_RUN_LIST_MOST = 64 };

/* Names that RUN may be, in alphabetical order: subfolders of `folder` ("runs") that hold runs. Returns their number,
 * at most SL_RUN_LIST_MOST; 0: none, or no memory. Each name is freed with free(). */
size_t sl_run_folder_list(const char *folder, char *out_names[SL_RUN_LIST_MOST]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How functions that work on files report a failed system call. For base/file*.c and for what uses descriptors. */
#ifndef SL_BASE_SYSTEM_FILE_ERROR_H
#define SL_BASE_SYSTEM_FILE_ERROR_H

#include <seqlstm/status.h>

/* Fills `err` with "ACTION `PATH`: reason" and errno, and returns the code that fits: NOT_FOUND, NO_MEMORY or IO. Where
 * ACTION is "cannot open", a file of a similar name is named. [any thread] */
seqlstm_status sl_file_fail(struct seqlstm_error *err, int error_number, const char *action, const char *path);

#endif

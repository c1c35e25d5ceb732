/* SPDX-License-Identifier: Apache-2.0 */
/* Can another user have written a file with code (a plugin, a private module)? Then it is not loaded. */
#ifndef SL_BASE_SYSTEM_OWNER_H
#define SL_BASE_SYSTEM_OWNER_H

#include <seqlstm/status.h>

/* OK if `path` (resolved) belongs to root or to this user, and no other user can write to it or replace it. Errors:
 * INVALID_ARGUMENT; the message completes "it …". */
seqlstm_status sl_owner_check(const char *path, struct seqlstm_error *err);

#endif

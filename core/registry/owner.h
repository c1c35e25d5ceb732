/* SPDX-License-Identifier: Apache-2.0 */
/* Can another user have written a plugin's file? Then it is not loaded. */
#ifndef SL_REGISTRY_OWNER_H
#define SL_REGISTRY_OWNER_H

#include <seqlstm/status.h>

/* OK if `path` (resolved) belongs to root or to this user, and no other user can write to it or replace it. Errors:
 * INVALID_ARGUMENT; the message completes "it …". */
seqlstm_status sl_owner_check(const char *path, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* See backend_id.h. */
#include "base/value/backend_id.h"

#include <string.h>

#include <seqlstm/backend.h>

bool sl_backend_id_is_valid(const char *id)
{
    size_t length = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return id[0] >= 'a' && id[0] <= 'z' && id[length] == 0 && length < SEQLSTM_MAX_ID_BYTES;
}

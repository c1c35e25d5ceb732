/* SPDX-License-Identifier: Apache-2.0 */
/* See idle.h. */
#include "dispatch/memory/idle.h"

seqlstm_status sl_idle_check(const struct seqlstm_span *idle, uint32_t count, uint64_t bytes, const char *name,
                             struct seqlstm_error *err)
{
    if (count > SL_IDLE_ROOM)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "it says that calls leave %u parts of %s idle, in room for %d", count, name,
                     SL_IDLE_ROOM);
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (idle[i].begin < end || idle[i].end < idle[i].begin || idle[i].end > bytes)
            SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "it says that calls leave bytes %llu to %llu of %llu bytes of %s idle",
                         (unsigned long long)idle[i].begin, (unsigned long long)idle[i].end, (unsigned long long)bytes,
                         name);
        end = idle[i].end;
    }
    return SEQLSTM_OK;
}

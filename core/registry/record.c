/* SPDX-License-Identifier: Apache-2.0 */
/* See record.h. */
#include "registry/record.h"

#include <stdarg.h>

const char *sl_backend_status_name(enum sl_backend_status status)
{
    static const char *const names[] = {"ok", "unavailable", "refused", "not_found", "shadowed"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

seqlstm_status sl_record_refuse(struct sl_arena *arena, struct sl_backend_record *record, enum sl_backend_status status,
                                struct seqlstm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record->status = status;
    record->reason = sl_arena_vprintf(arena, format, args);
    va_end(args);
    if (!record->reason)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading a backend");
    return SEQLSTM_OK;
}

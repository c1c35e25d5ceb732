/* SPDX-License-Identifier: Apache-2.0 */
/* See record.h. */
#include "registry/record.h"

#include <stdarg.h>

#include "registry/watch/guard.h"

const char *sl_backend_status_name(enum sl_backend_status status)
{
    static const char *const names[] = {"ok", "unavailable", "refused", "not_found", "shadowed"};
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

/* Adds to what the record warns of. */
static SEQLSTM_PRINTF(4, 5) seqlstm_status
    warn(struct sl_arena *arena, struct sl_backend_record *record, struct seqlstm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *warning = sl_arena_vprintf(arena, format, args);
    va_end(args);
    record->warning = warning && record->warning ? sl_arena_printf(arena, "%s; %s", record->warning, warning) : warning;
    if (!record->warning)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading a backend");
    return SEQLSTM_OK;
}

seqlstm_status sl_record_note_change(struct sl_arena *arena, struct sl_backend_record *record, uint32_t changes,
                                     const char *function, const char *change, struct seqlstm_error *err)
{
    if (changes & (SL_CHANGED_MODE | SL_CHANGED_FOLDER | SL_CHANGED_LOCALE | SL_CHANGED_HANDLER | SL_CHANGED_FILE |
                   SL_CHANGED_DESCRIPTOR))
        return sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err, "its %s %s", function, change);
    return warn(arena, record, err, "its %s %s%s", function, change,
                changes & SL_CHANGED_FOR_GOOD ? "" : "; seqlstm undid it");
}

seqlstm_status sl_record_note_output(struct sl_arena *arena, struct sl_backend_record *record, const char *function,
                                     const char *output, struct seqlstm_error *err)
{
    return warn(arena, record, err, "its %s %s", function, output);
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

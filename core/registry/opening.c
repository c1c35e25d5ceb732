/* SPDX-License-Identifier: Apache-2.0 */
/* See opening.h. */
#include "registry/opening.h"

#include "registry/watch/watch.h"

void sl_opening_begin(struct sl_opening *opening, struct sl_arena *arena)
{
    opening->arena = arena;
    sl_mapped_files_begin(&opening->mapped, arena);
    opening->captures = sl_watch_begin_capture();
    sl_process_guard_begin(&opening->guard);
}

static seqlstm_status refuse(const struct sl_opening *opening, seqlstm_status status, const struct seqlstm_error *why,
                             bool has_settings, struct sl_backend_record *record, struct seqlstm_error *err)
{
    const char *text = why->message[0] ? why->message : "it gave no reason";
    record->misconfigured = status == SEQLSTM_INVALID_CONFIG && has_settings;
    return sl_record_refuse(opening->arena, record,
                            status == SEQLSTM_UNAVAILABLE ? SL_BACKEND_UNAVAILABLE : SL_BACKEND_REFUSED, err,
                            status == SEQLSTM_UNAVAILABLE ? "%s" : "it did not open: %s", text);
}

seqlstm_status sl_opening_end(struct sl_opening *opening, const char *id, seqlstm_status status,
                              const struct seqlstm_error *why, bool has_settings, struct sl_backend_record *record,
                              struct seqlstm_error *err)
{
    char change[400], wrote[400];
    const uint32_t changes = sl_process_guard_end(&opening->guard, change, sizeof change);
    if (changes & SL_CHANGED_DESCRIPTOR)
        sl_watch_note_closed(id, SL_FUNCTION_OPEN);
    const bool prints = opening->captures && sl_watch_end_capture(wrote, sizeof wrote);
    if (status == SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening %s: %.500s", id, why->message);
    if (status != SEQLSTM_OK)
        return refuse(opening, status, why, has_settings, record, err);
    SEQLSTM_TRY(sl_mapped_files_end(&opening->mapped, record, err));
    if (prints)
        SEQLSTM_TRY(sl_record_note_output(opening->arena, record, "open", wrote, err));
    return changes ? sl_record_note_change(opening->arena, record, changes, "open", change, err) : SEQLSTM_OK;
}

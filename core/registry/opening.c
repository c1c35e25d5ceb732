/* SPDX-License-Identifier: Apache-2.0 */
/* See opening.h. */
#include "registry/opening.h"

void sl_opening_begin(struct sl_opening *opening, struct sl_arena *arena)
{
    opening->arena = arena;
    sl_mapped_files_begin(&opening->mapped, arena);
    sl_watch_begin_code(&opening->code);
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
    const struct sl_watched_code *code = &opening->code;
    const uint32_t changes = sl_watch_end_code(&opening->code, id, SL_FUNCTION_OPEN);
    if (status == SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening %s: %.500s", id, why->message);
    if (status != SEQLSTM_OK)
        return refuse(opening, status, why, has_settings, record, err);
    SEQLSTM_TRY(sl_mapped_files_end(&opening->mapped, record, err));
    if (code->wrote[0])
        SEQLSTM_TRY(sl_record_note_output(opening->arena, record, "open", code->wrote, err));
    return changes ? sl_record_note_change(opening->arena, record, changes, "open", code->change, err) : SEQLSTM_OK;
}

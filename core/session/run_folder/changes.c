/* SPDX-License-Identifier: Apache-2.0 */
/* See changes.h. */
#include "session/run_folder/changes.h"

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "model/load/entries.h"
#include "session/record/session_record.h"

enum { SHOWN = 20 };

static bool split(struct sl_arena *arena, const struct sl_model *model, struct sl_config_entries *out)
{
    struct sl_buf text = {0};
    bool fine = sl_model_write_config(model, 0, &text, NULL) == SEQLSTM_OK && text.data != NULL &&
                sl_config_entries_read(arena, text.data, out);
    sl_buf_deinit(&text);
    return fine;
}

size_t sl_session_log_changes(const struct sl_session *session, const struct sl_model *before)
{
    struct sl_arena arena;
    struct sl_config_entries old = {0}, new = {0};
    size_t changes = 0;
    sl_arena_init(&arena);
    if (split(&arena, before, &old) && split(&arena, session->model, &new)) {
        for (size_t i = 0; i < new.count; i++) {
            const char *was = sl_config_entries_find(&old, new.items[i].path);
            if ((was && sl_config_entries_is_same(was, new.items[i].value)) || changes++ >= SHOWN)
                continue;
            sl_log_printf(session->options.log, SL_LOG_INFO, "changed %s: %s -> %s", new.items[i].path,
                          was ? was : "(not set)", new.items[i].value);
        }
        for (size_t i = 0; i < old.count; i++)
            if (sl_config_entries_find(&new, old.items[i].path) == NULL && changes++ < SHOWN)
                sl_log_printf(session->options.log, SL_LOG_INFO, "changed %s: %s -> (not set)", old.items[i].path,
                              old.items[i].value);
        if (changes > SHOWN)
            sl_log_printf(session->options.log, SL_LOG_INFO, "and %zu more changes", changes - SHOWN);
    }
    sl_arena_deinit(&arena);
    return changes;
}

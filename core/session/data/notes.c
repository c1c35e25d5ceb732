/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says about the data. */
#include "session/data/notes.h"

#include "base/system/log.h"
#include "data/batch/batcher.h"
#include "session/record/session_record.h"

static const char *const names[SL_SPLIT_COUNT] = {"data.train", "data.valid", "data.test"};

static void note(const struct sl_session *session, enum sl_log_level level, const char *name, int64_t count,
                 const char *what)
{
    if (count > 0)
        sl_log_printf(session->options.log, level, "%s: %lld %s", name, (long long)count, what);
}

void sl_session_note_split(const struct sl_session *session, enum sl_split split, const struct sl_dataset *data)
{
    sl_session_note_data(session, names[split], data);
}

void sl_session_note_data(const struct sl_session *session, const char *name, const struct sl_dataset *data)
{
    const struct sl_data_counts *counts = sl_dataset_get_counts(data);
    note(session, SL_LOG_WARN, name, counts->dropped_records, "sequences dropped (`on_overflow: drop`)");
    note(session, SL_LOG_WARN, name, counts->truncated_records, "sequences cut short (`on_overflow: truncate`)");
    if (counts->split_records > 0)
        sl_log_printf(session->options.log, SL_LOG_WARN,
                      "%s: %lld sequences split into %lld parts (`on_overflow: split`)", name,
                      (long long)counts->split_records, (long long)counts->parts);
    note(session, SL_LOG_WARN, name, counts->short_groups, "series shorter than one window left out");
    note(session, SL_LOG_INFO, name, counts->missing_values, "missing values (treated as `missing:` says)");
    note(session, SL_LOG_INFO, name, counts->unknown_tokens, "unknown tokens read as <unk>");
}

void sl_session_note_batches(const struct sl_session *session, enum sl_split split, const struct sl_batcher *batcher)
{
    note(session, SL_LOG_INFO, names[split], sl_batcher_get_lost_rows(batcher),
         "steps at the end of the text left out: they do not fill the parallel streams");
}

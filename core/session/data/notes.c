/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says about the data. */
#include "session/data/notes.h"

#include "base/system/log.h"
#include "base/value/buf.h"
#include "data/batch/batcher.h"
#include "session/record/session_record.h"

static const char *const names[SL_SPLIT_COUNT] = {"data.train", "data.valid", "data.test"};

/* "data.train: 2 sequences dropped": `what` in the singular, and what happens to it. */
static void note(const struct sl_session *session, enum sl_log_level level, const char *name, int64_t count,
                 const char *what, const char *text)
{
    if (count > 0)
        sl_log_printf(session->options.log, level, "%s: %lld %s%s%s", name, (long long)count, what,
                      count == 1 ? "" : "s", text);
}

void sl_session_note_split(const struct sl_session *session, enum sl_split split, const struct sl_dataset *data)
{
    sl_session_note_data(session, names[split], data);
}

/* Labels that no answer can be: which, and where the first is. */
static void note_labels(const struct sl_session *session, const char *name, const struct sl_dataset *data)
{
    enum { SHOWN = 5 };
    const int32_t labels = sl_dataset_count_unknown_labels(data);
    const int64_t line = sl_dataset_get_unknown_line(data), targets = sl_dataset_get_counts(data)->unknown_labels;
    struct sl_buf list = {0};
    for (int32_t k = 0; k < labels && k < SHOWN; k++)
        sl_buf_printf(&list, "%s`%.60s`", k ? ", " : "", sl_dataset_get_unknown_label(data, k));
    if (line > 0)
        sl_buf_printf(&list, "%s, first in line %lld", labels > SHOWN ? ", …" : "", (long long)line);
    if (labels > 0 && !list.failed)
        sl_log_printf(
            session->options.log, SL_LOG_WARN,
            "%s: %lld target%s with a label that the training split lacks: counted as wrong, outside the loss (%s)",
            name, (long long)targets, targets == 1 ? "" : "s", sl_buf_text(&list));
    sl_buf_deinit(&list);
}

void sl_session_note_data(const struct sl_session *session, const char *name, const struct sl_dataset *data)
{
    const struct sl_data_counts *counts = sl_dataset_get_counts(data);
    const char *problem = sl_dataset_find_cache_problem(data);
    if (problem)
        sl_log_printf(session->options.log, SL_LOG_WARN,
                      "%s: the token cache cannot be used, so the text is tokenized in memory: %s", name, problem);
    note(session, SL_LOG_WARN, name, counts->dropped_records, "sequence", " dropped (`on_overflow: drop`)");
    note(session, SL_LOG_WARN, name, counts->truncated_records, "sequence", " cut short (`on_overflow: truncate`)");
    if (counts->split_records > 0)
        sl_log_printf(
            session->options.log, SL_LOG_WARN, "%s: %lld sequence%s split into %lld parts (`on_overflow: split`)", name,
            (long long)counts->split_records, counts->split_records == 1 ? "" : "s", (long long)counts->parts);
    if (counts->whole_groups > 0) /* one series, two series */
        sl_log_printf(
            session->options.log, SL_LOG_WARN,
            "%s: %lld series: `split` takes whole groups, not the end of each (the same `file` with other `rows` does)",
            name, (long long)counts->whole_groups);
    if (counts->short_groups > 0)
        sl_log_printf(session->options.log, SL_LOG_WARN, "%s: %lld series shorter than one window left out", name,
                      (long long)counts->short_groups);
    note(session, SL_LOG_INFO, name, counts->missing_values, "missing value", " (treated as `missing:` says)");
    note(session, SL_LOG_INFO, name, counts->dropped_table_rows, "row", " left out (`missing: drop`)");
    note(session, SL_LOG_WARN, name, counts->filled_targets, "missing target",
         " filled in as `missing:` says: loss and metrics count what was filled in as if it had been "
         "observed (`missing: {targets: ignore}` leaves it out)");
    note(session, SL_LOG_WARN, name, counts->no_predictions, "record",
         " without a prediction: `missing: drop` drops a row that is needed, or there is a gap in time");
    note(session, SL_LOG_WARN, name, counts->constant_targets, "target column",
         " without any change: a constant predicts that, and nothing is learned");
    note_labels(session, name, data);
    note(session, SL_LOG_INFO, name, counts->unknown_tokens, "unknown token", " read as <unk>");
}

void sl_session_note_batches(const struct sl_session *session, enum sl_split split, const struct sl_batcher *batcher)
{
    note(session, SL_LOG_INFO, names[split], sl_batcher_get_lost_rows(batcher), "step",
         " at the end of the text left out: too few to fill the parallel streams");
}

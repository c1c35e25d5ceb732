/* SPDX-License-Identifier: Apache-2.0 */
/* See timeline.h. */
#include "session/run/timeline.h"

#include <math.h>
#include <stdlib.h>

#include "measure/interval.h"
#include "measure/peak.h"
#include "timeline/print.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run/turn.h"
#include "session/run_folder/run_folder.h"
#include "train/recorder.h"

enum { WARM = 8 };

seqlstm_status sl_session_open_recorder(struct sl_session *session, struct seqlstm_error *err)
{
    const int64_t updates = session->options.profile_updates;
    if (updates <= 0 || session->ranks.rank > 0)
        return SEQLSTM_OK;
    struct sl_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile");
    const seqlstm_status status = sl_recorder_init(recorder, WARM, updates, err);
    if (status != SEQLSTM_OK) {
        free(recorder);
        return status;
    }
    session->recorder = recorder;
    return SEQLSTM_OK;
}

void sl_session_close_recorder(struct sl_session *session)
{
    sl_timeline_destroy(session->timeline);
    session->timeline = NULL;
    if (session->recorder)
        sl_recorder_deinit(session->recorder);
    free(session->recorder);
    session->recorder = NULL;
}

/* By recording, in the blocks of updates that were recorded or not in turn. */
static seqlstm_status find_slowdown(const struct sl_recorder *recorder, enum sl_trace_detail detail,
                                    struct sl_timeline_slowdown *out_slowdown, struct seqlstm_error *err)
{
    struct sl_interval interval;
    int64_t count;
    const double *logs = sl_recorder_get_logs(recorder, detail, &count);
    SEQLSTM_TRY(sl_interval_compute(logs, count, 0.95, 1, &interval, err));
    const bool is_known = interval.rounds >= SL_INTERVAL_ROUNDS_LEAST;
    *out_slowdown = (struct sl_timeline_slowdown){.share = interval.ratio - 1,
                                                  .low = is_known ? interval.low - 1 : (double)NAN,
                                                  .high = is_known ? interval.high - 1 : (double)NAN};
    return SEQLSTM_OK;
}

seqlstm_status sl_session_make_timeline(struct sl_session *session, struct sl_recorder *recorder,
                                        struct sl_timeline **out_timeline, struct seqlstm_error *err)
{
    struct sl_timeline_request request = {
        .trace = sl_recorder_find_trace(recorder, SL_TRACE_CALLS),
        .plan = session->train.plan,
        .optimizer_states = sl_optimizer_states(&session->model->train.optimizer),
        .captured = {.trace = sl_recorder_find_trace(recorder, SL_TRACE_PHASES)},
    };
    if (!request.trace)
        SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND,
                     "the training ended before an update was recorded: the first %lld only warm it up",
                     (long long)recorder->warm);
    SEQLSTM_TRY(find_slowdown(recorder, SL_TRACE_CALLS, &request.slowdown, err));
    SEQLSTM_TRY(find_slowdown(recorder, SL_TRACE_PHASES, &request.captured.slowdown, err));
    request.peaks.gflops = sl_peak_measure(session->pool);
    request.peaks.tiles_gflops = sl_peak_measure_tiles(session->pool);
    SEQLSTM_TRY(sl_peak_measure_bytes(session->pool, &request.peaks.gbytes, err));
    return sl_timeline_create(&request, out_timeline, err);
}

static seqlstm_status write_files(const struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_buf json = {0}, trace = {0};
    sl_timeline_print_json(session->timeline, NULL, &json);
    sl_timeline_print_trace(session->timeline, &trace);
    seqlstm_status status = sl_run_folder_write_buf(session->folder, "profile.json", &json, SEQLSTM_OK, err);
    status = sl_run_folder_write_buf(session->folder, "trace.json", &trace, status, err);
    sl_buf_deinit(&json);
    sl_buf_deinit(&trace);
    return status;
}

void sl_session_note_timeline(struct sl_session *session)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_session_make_timeline(session, session->recorder, &session->timeline, &err);
    if (status == SEQLSTM_OK)
        status = write_files(session, &err);
    if (status != SEQLSTM_OK)
        sl_log_printf(session->options.log, SL_LOG_WARN, "no profile: %s", err.message);
}

const struct sl_timeline *sl_session_find_timeline(const struct sl_session *session)
{
    return session->timeline;
}

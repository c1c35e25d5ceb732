/* SPDX-License-Identifier: Apache-2.0 */
/* See recorder.h. The first update of a block is not timed: in it, threads take their buffers and devices set their
 * clocks. */
#include "train/recorder.h"

#include <math.h>

#include "base/value/median.h"

enum { PER_THREAD = 1 << 19 }; /* activities; pages that are not written take no memory */

static const int64_t compared_ns_most = 1000000000;

seqlstm_status sl_recorder_init(struct sl_recorder *recorder, int64_t warm, int64_t updates, struct seqlstm_error *err)
{
    *recorder = (struct sl_recorder){.warm = warm, .updates = updates};
    if (updates < 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a profile of %lld updates", (long long)updates);
    return SEQLSTM_OK;
}

void sl_recorder_deinit(struct sl_recorder *recorder)
{
    sl_recorder_end(recorder);
    for (int d = 0; d < SL_TRACE_DETAILS; d++)
        sl_trace_deinit(&recorder->traces[d]);
    *recorder = (struct sl_recorder){.updates = 0};
}

static int64_t read_clock(const struct sl_recorder *recorder)
{
    return recorder->clock_ns ? recorder->clock_ns(recorder->clock_context) : sl_clock_ns();
}

static seqlstm_status start(struct sl_recorder *recorder, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_trace_start(recorder->detail, PER_THREAD, err));
    recorder->is_recording = true;
    return SEQLSTM_OK;
}

/* Keeps the recording unless those to be kept have been made, or no update is in it. */
void sl_recorder_end(struct sl_recorder *recorder)
{
    struct sl_trace trace;
    if (!recorder->is_recording)
        return;
    sl_trace_stop(&trace);
    recorder->is_recording = false;
    if (!recorder->has_recorded && recorder->kept_count > 0)
        recorder->traces[recorder->detail] = trace;
    else
        sl_trace_deinit(&trace);
}

seqlstm_status sl_recorder_begin(struct sl_recorder *recorder, bool captures, struct seqlstm_error *err)
{
    recorder->captures = captures;
    recorder->detail = SL_TRACE_CALLS;
    if (recorder->warm == 0)
        SEQLSTM_TRY(start(recorder, err));
    recorder->last_ns = read_clock(recorder);
    return SEQLSTM_OK;
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/* Is the next block to be recorded? Of four, the two in the middle. */
static bool records_next(const struct sl_recorder *recorder)
{
    return recorder->blocks % 4 == 1 || recorder->blocks % 4 == 2;
}

/* Of four blocks to the next; every other time those of captures as they run. */
static void choose_detail(struct sl_recorder *recorder)
{
    recorder->detail = recorder->captures && recorder->blocks / 4 % 2 == 1 ? SL_TRACE_PHASES : SL_TRACE_CALLS;
}

static bool has_compared(const struct sl_recorder *recorder)
{
    const int32_t calls = recorder->pair_counts[SL_TRACE_CALLS], phases = recorder->pair_counts[SL_TRACE_PHASES];
    const int32_t least = recorder->captures && phases < calls ? phases : calls;
    const int64_t most_ns = recorder->captures ? SL_TRACE_DETAILS * compared_ns_most : compared_ns_most;
    return least == SL_RECORDER_PAIRS_MOST ||
           (least >= SL_RECORDER_PAIRS_LEAST && recorder->last_ns - recorder->compared_ns >= most_ns);
}

static void note_pair(struct sl_recorder *recorder)
{
    const enum sl_trace_detail d = recorder->detail;
    if (recorder->medians[0] > 0 && recorder->medians[1] > 0 && recorder->pair_counts[d] < SL_RECORDER_PAIRS_MOST)
        recorder->logs[d][recorder->pair_counts[d]++] = log(recorder->medians[1] / recorder->medians[0]);
}

static seqlstm_status end_block(struct sl_recorder *recorder, struct seqlstm_error *err)
{
    recorder->medians[recorder->is_recording] = sl_median(recorder->block, SL_RECORDER_TIMED);
    recorder->in_block = 0;
    recorder->blocks++;
    if (recorder->blocks % 2 == 0)
        note_pair(recorder);
    recorder->is_done = has_compared(recorder);
    choose_detail(recorder);
    const bool records = records_next(recorder) && !recorder->is_done;
    if (recorder->is_recording && !records)
        sl_recorder_end(recorder);
    return records && !recorder->is_recording ? start(recorder, err) : SEQLSTM_OK;
}

static seqlstm_status note_compared(struct sl_recorder *recorder, double per_row, struct seqlstm_error *err)
{
    if (recorder->in_block++ > 0)
        recorder->block[recorder->in_block - 2] = per_row;
    return recorder->in_block > SL_RECORDER_TIMED ? end_block(recorder, err) : SEQLSTM_OK;
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

static seqlstm_status note_kept(struct sl_recorder *recorder, int64_t now, struct seqlstm_error *err)
{
    recorder->kept_count++;
    if (recorder->kept_count < recorder->updates)
        return SEQLSTM_OK;
    sl_recorder_end(recorder);
    recorder->kept_count = 0;
    recorder->has_recorded = !recorder->captures || recorder->detail == SL_TRACE_PHASES;
    recorder->detail = recorder->has_recorded ? SL_TRACE_CALLS : SL_TRACE_PHASES;
    recorder->compared_ns = now;
    return recorder->has_recorded ? SEQLSTM_OK : start(recorder, err);
}

seqlstm_status sl_recorder_note(struct sl_recorder *recorder, int64_t rows, struct seqlstm_error *err)
{
    const int64_t now = read_clock(recorder);
    seqlstm_status status = SEQLSTM_OK;
    recorder->seen++;
    if (recorder->has_recorded && !recorder->is_done)
        status = note_compared(recorder, (double)(now - recorder->last_ns) / (double)(rows > 0 ? rows : 1), err);
    else if (!recorder->has_recorded && recorder->is_recording)
        status = note_kept(recorder, now, err);
    else if (!recorder->has_recorded && recorder->seen == recorder->warm)
        status = start(recorder, err);
    recorder->last_ns = read_clock(recorder);
    return status;
}

bool sl_recorder_is_done(const struct sl_recorder *recorder)
{
    return recorder->is_done;
}

const struct sl_trace *sl_recorder_find_trace(const struct sl_recorder *recorder, enum sl_trace_detail detail)
{
    return recorder->traces[detail].memory ? &recorder->traces[detail] : NULL;
}

const double *sl_recorder_get_logs(const struct sl_recorder *recorder, enum sl_trace_detail detail, int64_t *out_count)
{
    *out_count = recorder->pair_counts[detail];
    return recorder->logs[detail];
}

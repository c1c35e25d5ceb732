/* SPDX-License-Identifier: Apache-2.0 */
/* See recorder.h. The first update of a block is not timed: in it, threads take their buffers and devices set their
 * clocks. */
#include "train/recorder.h"

#include <math.h>
#include <stdlib.h>

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
    sl_trace_deinit(&recorder->trace);
    *recorder = (struct sl_recorder){.updates = 0};
}

static int64_t read_clock(const struct sl_recorder *recorder)
{
    return recorder->clock_ns ? recorder->clock_ns(recorder->clock_context) : sl_clock_ns();
}

static seqlstm_status start(struct sl_recorder *recorder, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_trace_start(PER_THREAD, err));
    recorder->is_recording = true;
    return SEQLSTM_OK;
}

/* The first recording is kept. */
void sl_recorder_end(struct sl_recorder *recorder)
{
    struct sl_trace dropped;
    if (!recorder->is_recording)
        return;
    sl_trace_stop(recorder->has_recorded ? &dropped : &recorder->trace);
    if (recorder->has_recorded)
        sl_trace_deinit(&dropped);
    recorder->has_recorded = true;
    recorder->is_recording = false;
}

seqlstm_status sl_recorder_begin(struct sl_recorder *recorder, struct seqlstm_error *err)
{
    if (recorder->warm == 0)
        SEQLSTM_TRY(start(recorder, err));
    recorder->last_ns = read_clock(recorder);
    return SEQLSTM_OK;
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double find_median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Is the next block to be recorded? Of four, the two in the middle. */
static bool records_next(const struct sl_recorder *recorder)
{
    return recorder->blocks % 4 == 1 || recorder->blocks % 4 == 2;
}

static seqlstm_status end_block(struct sl_recorder *recorder, struct seqlstm_error *err)
{
    recorder->medians[recorder->is_recording] = find_median(recorder->block, SL_RECORDER_TIMED);
    recorder->in_block = 0;
    recorder->blocks++;
    if (recorder->blocks % 2 == 0 && recorder->medians[0] > 0 && recorder->medians[1] > 0)
        recorder->logs[recorder->pair_count++] = log(recorder->medians[1] / recorder->medians[0]);
    const bool is_long = recorder->last_ns - recorder->compared_ns >= compared_ns_most;
    recorder->is_done =
        recorder->pair_count == SL_RECORDER_PAIRS_MOST || (recorder->pair_count >= SL_RECORDER_PAIRS_LEAST && is_long);
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

static void note_kept(struct sl_recorder *recorder, int64_t now)
{
    recorder->kept_count++;
    if (recorder->kept_count < recorder->updates)
        return;
    sl_recorder_end(recorder);
    recorder->compared_ns = now;
}

seqlstm_status sl_recorder_note(struct sl_recorder *recorder, int64_t rows, struct seqlstm_error *err)
{
    const int64_t now = read_clock(recorder);
    seqlstm_status status = SEQLSTM_OK;
    recorder->seen++;
    if (recorder->has_recorded && !recorder->is_done)
        status = note_compared(recorder, (double)(now - recorder->last_ns) / (double)(rows > 0 ? rows : 1), err);
    else if (!recorder->has_recorded && recorder->is_recording)
        note_kept(recorder, now);
    else if (!recorder->has_recorded && recorder->seen == recorder->warm)
        status = start(recorder, err);
    recorder->last_ns = read_clock(recorder);
    return status;
}

bool sl_recorder_is_done(const struct sl_recorder *recorder)
{
    return recorder->is_done;
}

const struct sl_trace *sl_recorder_find_trace(const struct sl_recorder *recorder)
{
    return recorder->has_recorded && recorder->kept_count > 0 ? &recorder->trace : NULL;
}

const double *sl_recorder_get_logs(const struct sl_recorder *recorder, int64_t *out_count)
{
    *out_count = recorder->pair_count;
    return recorder->logs;
}

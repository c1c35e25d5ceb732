/* SPDX-License-Identifier: Apache-2.0 */
/* See recorder.h. */
#include "train/recorder.h"

#include <stdlib.h>
#include <string.h>

enum { PER_THREAD = 1 << 19 }; /* activities; pages that are not written take no memory */

seqlstm_status sl_recorder_init(struct sl_recorder *recorder, int64_t warm, int64_t updates, struct seqlstm_error *err)
{
    *recorder = (struct sl_recorder){.warm = warm, .updates = updates};
    recorder->recorded = calloc((size_t)updates, sizeof *recorder->recorded);
    recorder->plain = calloc((size_t)updates, sizeof *recorder->plain);
    if (!recorder->recorded || !recorder->plain) {
        sl_recorder_deinit(recorder);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile of %lld updates", (long long)updates);
    }
    return SEQLSTM_OK;
}

void sl_recorder_deinit(struct sl_recorder *recorder)
{
    sl_recorder_end(recorder);
    free(recorder->recorded);
    free(recorder->plain);
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

seqlstm_status sl_recorder_begin(struct sl_recorder *recorder, struct seqlstm_error *err)
{
    if (recorder->warm == 0)
        SEQLSTM_TRY(start(recorder, err));
    recorder->last_ns = read_clock(recorder);
    return SEQLSTM_OK;
}

seqlstm_status sl_recorder_note(struct sl_recorder *recorder, int64_t rows, struct seqlstm_error *err)
{
    const int64_t now = read_clock(recorder);
    const double per_row = (double)(now - recorder->last_ns) / (double)(rows > 0 ? rows : 1);
    recorder->seen++;
    if (recorder->is_recording) {
        recorder->recorded[recorder->recorded_count++] = per_row;
        if (recorder->recorded_count == recorder->updates)
            sl_recorder_end(recorder);
    } else if (recorder->has_recorded && recorder->plain_count < recorder->updates) {
        recorder->plain[recorder->plain_count++] = per_row;
    } else if (!recorder->has_recorded && recorder->seen == recorder->warm) {
        SEQLSTM_TRY(start(recorder, err));
    }
    recorder->last_ns = read_clock(recorder);
    return SEQLSTM_OK;
}

void sl_recorder_end(struct sl_recorder *recorder)
{
    if (!recorder->is_recording)
        return;
    sl_trace_stop(&recorder->trace);
    recorder->is_recording = false;
    recorder->has_recorded = true;
}

const struct sl_trace *sl_recorder_find_trace(const struct sl_recorder *recorder)
{
    return recorder->has_recorded && recorder->recorded_count > 0 ? &recorder->trace : NULL;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double find_median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count > 0 ? (values[(count - 1) / 2] + values[count / 2]) / 2 : 0;
}

double sl_recorder_get_plain(struct sl_recorder *recorder)
{
    return find_median(recorder->plain, recorder->plain_count);
}

double sl_recorder_get_recorded(struct sl_recorder *recorder)
{
    return find_median(recorder->recorded, recorder->recorded_count);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Records some updates of a training (base/system/trace.h), after a few that warm it up, and times as many others that
 * are not recorded. */
#ifndef SL_TRAIN_RECORDER_H
#define SL_TRAIN_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/system/trace.h"

struct sl_recorder {
    int64_t warm, updates;              /* recorded are so many updates, after the first `warm` */
    int64_t (*clock_ns)(void *context); /* NULL: sl_clock_ns */
    void *clock_context;
    /* private */
    int64_t seen, last_ns;
    double *recorded, *plain; /* [updates] nanoseconds per row of each update, while recorded and afterwards */
    int64_t recorded_count, plain_count;
    bool is_recording, has_recorded;
    struct sl_trace trace;
};

/* `updates` is at least 1. NO_MEMORY. */
seqlstm_status sl_recorder_init(struct sl_recorder *recorder, int64_t warm, int64_t updates, struct seqlstm_error *err);
void sl_recorder_deinit(struct sl_recorder *recorder);

/* Before the first update. */
seqlstm_status sl_recorder_begin(struct sl_recorder *recorder, struct seqlstm_error *err);
/* After each update of so many rows. NO_MEMORY. */
seqlstm_status sl_recorder_note(struct sl_recorder *recorder, int64_t rows, struct seqlstm_error *err);
/* The training ends, or has failed. */
void sl_recorder_end(struct sl_recorder *recorder);

/* What was recorded; NULL: nothing, since the training ended before. */
const struct sl_trace *sl_recorder_find_trace(const struct sl_recorder *recorder);
/* Median of the nanoseconds per row of the updates that were not recorded; 0: there were none. */
double sl_recorder_get_plain(struct sl_recorder *recorder);
/* The same of those that were recorded. */
double sl_recorder_get_recorded(struct sl_recorder *recorder);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Records some updates of a training (base/system/trace.h), after a few that warm it up. Then it finds how much
 * recording slows them: short blocks of updates are recorded or not, in the order A B B A, so that neither drift nor
 * the order counts. Of these only the times are kept.
 *
 *   warm │ recorded, kept │ not  rec. │ rec.  not │ not  rec. │ …      each pair of blocks gives one ratio
 *
 * Where steps are launched as captures, updates are recorded in both details: call by call, and then as they run. The
 * blocks, too: two pairs in one detail, two in the other.
 */
#ifndef SL_TRAIN_RECORDER_H
#define SL_TRAIN_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/system/trace.h"

enum {
    SL_RECORDER_TIMED = 4,       /* updates of a block that are timed; one before them is not */
    SL_RECORDER_PAIRS_LEAST = 8, /* of blocks, in each detail */
    SL_RECORDER_PAIRS_MOST = 200,
    SL_RECORDER_COMPARED_MOST = SL_TRACE_DETAILS * 2 * (SL_RECORDER_TIMED + 1) * SL_RECORDER_PAIRS_MOST /* updates */
};

struct sl_recorder {
    int64_t warm, updates;              /* recorded and kept are so many updates, after the first `warm` */
    int64_t (*clock_ns)(void *context); /* NULL: sl_clock_ns */
    void *clock_context;
    /* private */
    int64_t seen, last_ns, compared_ns; /* compared_ns: when the blocks began */
    bool captures;                      /* steps run as captures */
    int64_t kept_count;                 /* updates of the running recording */
    double block[SL_RECORDER_TIMED];    /* nanoseconds per row of the running block's updates */
    int32_t in_block, blocks;           /* updates of it, with the first one; blocks that have ended */
    double medians[2];                  /* of the pair: not recorded, recorded */
    double logs[SL_TRACE_DETAILS][SL_RECORDER_PAIRS_MOST];
    int32_t pair_counts[SL_TRACE_DETAILS];
    bool is_recording, has_recorded, is_done;
    enum sl_trace_detail detail; /* of the running recording, or the next one */
    struct sl_trace traces[SL_TRACE_DETAILS];
};

/* `updates` is at least 1. INVALID_ARGUMENT. */
seqlstm_status sl_recorder_init(struct sl_recorder *recorder, int64_t warm, int64_t updates, struct seqlstm_error *err);
void sl_recorder_deinit(struct sl_recorder *recorder);

/* Before the first update. `captures`: steps may run as captures. */
seqlstm_status sl_recorder_begin(struct sl_recorder *recorder, bool captures, struct seqlstm_error *err);
/* After each update of so many rows. NO_MEMORY. */
seqlstm_status sl_recorder_note(struct sl_recorder *recorder, int64_t rows, struct seqlstm_error *err);
/* Stops a recording: the training ends, or has failed. */
void sl_recorder_end(struct sl_recorder *recorder);
/* Has it recorded and compared all that it wants? After about a second of blocks for each detail, and
 * SL_RECORDER_PAIRS_LEAST pairs. */
bool sl_recorder_is_done(const struct sl_recorder *recorder);

/* What was recorded in this detail; NULL: nothing, since the training ended before, or its steps are not captured and
 * PHASES were asked for. */
const struct sl_trace *sl_recorder_find_trace(const struct sl_recorder *recorder, enum sl_trace_detail detail);
/* Of each pair of blocks, ln(time per row recorded / not recorded); borrowed. */
const double *sl_recorder_get_logs(const struct sl_recorder *recorder, enum sl_trace_detail detail, int64_t *out_count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a run must remember besides arrays: plain values, written to JSON and read from it exactly.
 *
 * Nothing in it depends on time, machine or path (except the numbers, with periods in seconds).
 */
#ifndef SL_TRAIN_CHECKPOINT_TRAIN_STATE_H
#define SL_TRAIN_CHECKPOINT_TRAIN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "model/train_config.h"
#include "train/schedule/loss_scale.h"
#include "train/metrics/metric.h"
#include "train/schedule/monitor.h"
#include "train/schedule/schedule.h"

struct sl_buf;

/* A checkpoint that is kept for its value. */
struct sl_best_entry {
    int64_t update;
    double value;
};

struct sl_train_state {
    int64_t updates; /* made so far, skipped ones included */
    int64_t applied; /* that changed the weights: the optimizer's t */
    int64_t skipped; /* by on_divergence: skip */
    int64_t skipped_in_row;
    struct sl_loss_scale loss_scale; /* of float16 */
    int64_t tokens;
    int64_t epoch;         /* of the next batch */
    int64_t ordinal;       /* index of the next batch in its epoch; 0: between two epochs */
    int64_t epoch_batches; /* of epoch 0: with it the share of an epoch is computed */
    int64_t validations;
    int64_t validated_at;    /* updates made before the last validation; 0: none yet */
    bool validation_pending; /* one was due and did not finish: comes first after resume */

    struct sl_schedule_state schedule;
    struct sl_monitor stopping; /* early stopping, and the best weights of restore_best */
    int64_t best_update;        /* after which those were validated; 0: unknown (an older checkpoint) or none */
    double best_epochs;         /* the epochs done by then */
    struct sl_non_monotone trigger;
    bool averaging;
    int64_t averaged;

    struct sl_metric_sums epoch_sums;      /* of the running epoch */
    struct sl_metric_sums last_epoch_sums; /* of the last whole one */
    struct sl_metric_sums interval_sums;   /* since the last report; zero if reports are periodic in seconds */
    struct sl_metric_sums valid_sums;      /* of the last validation */
    struct sl_metric_sums best_sums;       /* of the validation of the best weights */

    int64_t best_count; /* keep_best: best first */
    struct sl_best_entry best_entries[SL_KEEP_BEST_MOST];
};

/* Appends one JSON object. */
void sl_train_state_write(const struct sl_train_state *state, struct sl_buf *out);

/* CORRUPT_DATA when it is no JSON, or a member is missing, has another type or is out of range. */
seqlstm_status sl_train_state_read(const char *text, size_t bytes, struct sl_train_state *out_state,
                                   struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a training run, and of its updates. */
#ifndef SL_TRAIN_TRAINER_STATE_H
#define SL_TRAIN_TRAINER_STATE_H

#include "base/memory/arena.h"
#include "data/batch/prefetch.h"
#include "train/average.h"
#include "train/checkpoint/checkpoint.h"
#include "train/metrics/metric.h"
#include "train/metrics_log.h"
#include "train/checkpoint/train_state.h"
#include "train/tensorboard_log.h"
#include "train/trainer/request.h"

/* After so many skipped updates in a row the run counts as diverged. */
enum { SL_SKIPS_MOST = 100 };

struct sl_trainer_shards; /* shards.c */
struct sl_trainer_stages; /* stages.c */

/* An update, from its batches to its results. Zeroed, apart from `group` and `capacity`: it has not begun. */
struct sl_update {
    struct sl_batch **group;
    int32_t count, capacity;
    bool epoch_ended;           /* the group is the last of its epoch */
    int64_t rows;               /* of all batches */
    double normaliser;          /* factor of the gradient of the summed loss; 0 when all weights are 0 */
    double rate;                /* learning rate */
    double teacher;             /* probability of the target's tokens; NaN without sampling */
    uint32_t mask_step;         /* of the weight masks of the last step */
    int32_t started, done;      /* steps; those in between are under way on the device */
    struct sl_metric_sums sums; /* of the steps that are done */
    double squares;             /* of the gradients, when all are done */
    struct sl_progress began;   /* the progress at its start, if it was started ahead */
};

struct sl_trainer {
    struct sl_trainer_request request;
    const struct sl_train_config *config;
    struct sl_arena arena; /* texts and paths */
    struct sl_metric_rule train_rule;
    struct sl_metric_rule valid_rule;
    const char *checkpoints; /* folder; NULL: nothing is written */
    const char *metrics_path;
    struct sl_metrics_log *metrics;
    struct sl_tensorboard_log *tensorboard; /* NULL: not wanted */
    struct sl_average average;
    float *best; /* restore_best: as params->values; else NULL */

    struct sl_train_state state;
    struct sl_progress progress; /* when it was last updated; seconds included */
    int64_t start_ns;
    double seconds_before; /* of earlier starts of this run */

    struct sl_prefetch *prefetch;
    struct sl_batch *pending;         /* fetched and not used */
    struct sl_update updates[2];      /* the running one and the next */
    int turn;                         /* which of them runs */
    struct sl_trainer_shards *shards; /* NULL: it computes alone */
    struct sl_trainer_stages *stages; /* NULL: steps do not run in pieces */

    double loss;    /* of the last update */
    double squares; /* of its gradients */
    double gradient_norm;
    double rate;
    double teacher;        /* probability of the target's tokens; NaN without sampling */
    int64_t report_tokens; /* at the last report */
    double report_seconds;
    double validation_seconds; /* since this start */
    bool changed;              /* since the last checkpoint */
    bool restored;
    bool diverged;
    bool warned; /* of a validation without a finite loss */
    char reason[256];
};

/* With bptt in unit: sequence a batch comes in segments, which belong to one update. */
static inline bool sl_update_has_segments(const struct sl_trainer *trainer)
{
    const struct sl_batching *batching = &trainer->request.model->data.batching;
    return batching->unit == SL_UNIT_SEQUENCE && batching->bptt > 0;
}

#endif

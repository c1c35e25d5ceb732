/* SPDX-License-Identifier: Apache-2.0 */
/* What the trainer is made of, shared by the files trainer*.c. */
#ifndef SL_TRAIN_TRAINER_PRIVATE_H
#define SL_TRAIN_TRAINER_PRIVATE_H

#include "base/memory/arena.h"
#include "data/batch/prefetch.h"
#include "train/average.h"
#include "train/checkpoint/checkpoint.h"
#include "train/metrics_log.h"
#include "train/checkpoint/train_state.h"
#include "train/tensorboard_log.h"
#include "train/trainer.h"

/* After so many skipped updates in a row the run counts as diverged. */
enum { SL_SKIPS_MOST = 100 };

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
    struct sl_batch *pending; /* fetched and not used */
    struct sl_batch **group;  /* batches of one update */
    int32_t group_count;
    int32_t group_capacity;
    bool epoch_ended; /* the group was the last of its epoch */

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

/* trainer_step.c. Fetches the batches of the next update; there is at least one. CORRUPT_DATA for an epoch without
 * batches. */
seqlstm_status sl_trainer_fetch(struct sl_trainer *trainer, struct seqlstm_error *err);
/* One update with the fetched group, which is then destroyed. Leaves the state after the update. */
seqlstm_status sl_trainer_step(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_drop_group(struct sl_trainer *trainer);

/* trainer_event.c. Does what is due after an update that led from `before` to trainer->progress. */
seqlstm_status sl_trainer_report(struct sl_trainer *trainer, const struct sl_progress *before, bool epoch_ended,
                                 struct seqlstm_error *err);
/* False, with a `reason`, if the sums of the last measurement ("epoch", "validation") are not those of a sound model.
 */
bool sl_trainer_judge_sums(struct sl_trainer *trainer, const struct sl_metric_rule *rule,
                           const struct sl_metric_sums *sums, const char *measurement);
/* Sets validation_pending instead when interrupted. `*out_kept`: the result is among the best, so a checkpoint is
 * kept. */
seqlstm_status sl_trainer_validate(struct sl_trainer *trainer, bool *out_kept, struct seqlstm_error *err);
seqlstm_status sl_trainer_save(struct sl_trainer *trainer, struct seqlstm_error *err);

/* trainer.c */
void sl_trainer_update_progress(struct sl_trainer *trainer);

#endif

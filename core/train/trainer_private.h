/* SPDX-License-Identifier: Apache-2.0 */
/* What the trainer is made of, shared by the files trainer*.c. */
#ifndef SL_TRAIN_TRAINER_PRIVATE_H
#define SL_TRAIN_TRAINER_PRIVATE_H

#include "base/memory/arena.h"
#include "data/batch/prefetch.h"
#include "train/average.h"
#include "train/checkpoint/checkpoint.h"
#include "train/metrics/metric.h"
#include "train/metrics_log.h"
#include "train/checkpoint/train_state.h"
#include "train/tensorboard_log.h"
#include "train/trainer.h"

/* After so many skipped updates in a row the run counts as diverged. */
enum { SL_SKIPS_MOST = 100 };

struct sl_trainer_shards; /* trainer_shards.c */
struct sl_trainer_stages; /* trainer_stages.c */

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

/* trainer_update.c. Fetches the batches of an update and finds its numbers, which depend on the progress before it.
 * CORRUPT_DATA for an epoch without batches. */
seqlstm_status sl_update_prepare(struct sl_trainer *trainer, struct sl_update *update,
                                 const struct sl_progress *progress, struct seqlstm_error *err);
/* Starts or runs all its steps. Some may still be under way afterwards. */
seqlstm_status sl_update_run(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err);
/* Starts its next step, if the executor can go on without waiting for it. */
seqlstm_status sl_update_start_step(struct sl_trainer *trainer, struct sl_update *update, bool *out_started,
                                    struct seqlstm_error *err);
/* Waits until at most `most` of its steps are under way. */
seqlstm_status sl_update_wait(struct sl_trainer *trainer, struct sl_update *update, int32_t most,
                              struct seqlstm_error *err);
void sl_update_clear(struct sl_update *update);
/* With bptt in unit: sequence a batch comes in segments, which belong to one update. */
static inline bool sl_update_has_segments(const struct sl_trainer *trainer)
{
    const struct sl_batching *batching = &trainer->request.model->data.batching;
    return batching->unit == SL_UNIT_SEQUENCE && batching->bptt > 0;
}

/* trainer_step.c. One update; leaves state and progress after it. The next one may have been started. */
seqlstm_status sl_trainer_step(struct sl_trainer *trainer, bool *out_epoch_ended, struct seqlstm_error *err);
/* Has the update that comes next been started? Then nothing may be due before it. */
bool sl_trainer_is_ahead(const struct sl_trainer *trainer);

/* trainer_shards.c. For request.ranks. */
seqlstm_status sl_trainer_open_shards(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_close_shards(struct sl_trainer *trainer);
/* sl_update_run: computes this rank's shards, and makes the update with the gradients of all. */
seqlstm_status sl_trainer_run_shards(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err);
/* Carried states of all sequences become zero, also without ranks. */
void sl_trainer_reset_states(struct sl_trainer *trainer);
/* INVALID_CONFIG if another rank has begun with other data or weights than rank 0. Also the first agreement. */
seqlstm_status sl_trainer_compare_ranks(struct sl_trainer *trainer, struct seqlstm_error *err);
/* The carried states of the whole batch, as a single rank has them: a checkpoint does not know its ranks. With ranks,
 * `collect` fills them (all ranks call it), and `spread` gives this rank its own. */
seqlstm_status sl_trainer_get_carried(struct sl_trainer *trainer, float **out_carried, int64_t *out_elems,
                                      struct seqlstm_error *err);
seqlstm_status sl_trainer_collect_carried(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_spread_carried(struct sl_trainer *trainer);
/* What the compression of gradients has missed, summed over all ranks, likewise. NULL: there is none. */
float *sl_trainer_get_errors(struct sl_trainer *trainer);
seqlstm_status sl_trainer_collect_errors(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_spread_errors(struct sl_trainer *trainer);

/* trainer_stages.c. For request.owners: this rank trains the parameters of its stage. */
seqlstm_status sl_trainer_open_stages(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_close_stages(struct sl_trainer *trainer);
/* The elements of the gradients that it adds with its replicas. Without stages, or with one: those of all. */
int64_t sl_trainer_count_own(const struct sl_trainer *trainer);
/* Copies them to one vector, which stays as it is until the next call; and back. */
float *sl_trainer_take_own(struct sl_trainer *trainer);
void sl_trainer_put_own(struct sl_trainer *trainer);
seqlstm_status sl_trainer_update_own(struct sl_trainer *trainer, const struct sl_exec_update *update,
                                     double *out_squares, struct seqlstm_error *err);
/* The sums of the loss are in the last stage: all get them. */
seqlstm_status sl_trainer_share_sums(struct sl_trainer *trainer, struct sl_metric_sums *sums,
                                     struct seqlstm_error *err);
bool sl_trainer_is_last_stage(const struct sl_trainer *trainer);
/* Weights, states of the optimizer and averages of all stages, before any of them is read. All ranks call it. */
seqlstm_status sl_trainer_gather_weights(struct sl_trainer *trainer, struct seqlstm_error *err);

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

/* trainer.c. The progress with these numbers of the running epoch, at this time. */
struct sl_progress sl_trainer_make_progress(const struct sl_trainer *trainer, int64_t updates, int64_t ordinal,
                                            int64_t tokens);
void sl_trainer_update_progress(struct sl_trainer *trainer);
/* Do limits of updates or time end the run at this progress, within an epoch? */
bool sl_trainer_ends(const struct sl_trainer *trainer, const struct sl_progress *progress);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop. The caller builds model, data, plans, executors and parameters; the trainer runs them and informs
 * observers. It prints nothing.
 *
 * One update: fetch `accumulate` batches (with bptt in unit: sequence all segments of a batch belong together), compute
 * their weights, run each with the same normaliser, the last one with the update, and update the averages. Then, in
 * this order, where due: report, end of epoch, validation, checkpoint, request to stop.
 *
 * Invariants:
 *  1. The weights after update n are a function of (model, data, plan, n): not of time, nor of interruptions. (Except
 *     with periods in seconds.)
 *  2. A checkpoint is only written between updates, after everything that was due at its update, except a validation
 *     that a request to stop interrupted; that one comes first after resume.
 *  3. After a run that ended by itself (epochs, updates, early stopping) params hold the weights to be saved: the best
 *     ones (restore_best), else the averaged ones if averaging is active, else the last. After any other end they hold
 *     the last weights, or the averaged ones.
 *  4. If a run ended by itself, the loss of its last epoch (unless best weights are restored) and of its last
 * validation is finite; otherwise it has diverged.
 */
#ifndef SL_TRAIN_TRAINER_H
#define SL_TRAIN_TRAINER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/system/file_lock.h"
#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "base/memory/memory.h"
#include "data/batch/batcher.h"
#include "data/dataset/state.h"
#include "exec/exec.h"
#include "exec/owners.h"
#include "exec/params/params.h"
#include "interop/safetensors.h"
#include "model/model.h"
#include "train/metrics/metric.h"
#include "parallel/ranks.h"
#include "train/recorder.h"
#include "train/schedule/progress.h"

struct sl_trainer;

/* Passed to observers. Borrowed for the call. */
struct sl_train_report {
    struct sl_progress progress;
    int64_t epoch;           /* being worked on, or just ended; from 0 */
    int64_t batch;           /* batches done of it */
    int64_t epoch_batches;   /* an estimate of the batches of an epoch */
    int64_t epochs, updates; /* at which the run ends; 0: not limited */
    double learning_rate;
    double teacher_forcing; /* probability of the target's tokens in the last update; NaN where it is always 1 */
    double gradient_norm;
    double loss;                           /* mean loss of the last update; NaN before the first */
    double rows_per_second;                /* since the last report */
    int64_t skipped;                       /* updates skipped by on_divergence: skip, so far */
    bool improved;                         /* on_validation: the value that early stopping watches has improved */
    const struct sl_metric_values *values; /* on_step: NULL; on_report: since the last report; on_epoch: of
                                            * the epoch; on_validation: of valid (train, where there is none) */
    const char *path;                      /* on_checkpoint: of the file; else NULL */
};

/* Each may be NULL. */
struct sl_train_observer {
    void *context;
    void (*on_step)(void *context, const struct sl_train_report *report);
    void (*on_report)(void *context, const struct sl_train_report *report);
    void (*on_epoch)(void *context, const struct sl_train_report *report);
    void (*on_validation)(void *context, const struct sl_train_report *report);
    void (*on_checkpoint)(void *context, const struct sl_train_report *report);
};

struct sl_trainer_request {
    const struct sl_model *model;      /* all of these must outlive the trainer */
    const struct sl_data_state *state; /* scaling of the targets; may be NULL */
    const struct sl_data_facts *facts; /* of the training split: its records and rows */
    struct sl_exec *exec;              /* phase TRAIN */
    struct sl_exec *evaluate;          /* phase EVALUATE, for `valid`; NULL without */
    struct sl_decoder *decoder;        /* for metrics that compare texts, with the weights of `params`; NULL: there are
                                        * none */
    struct sl_sampler *sampler;        /* scheduled sampling, with the weights of `params`; NULL: the decoder always
                                        * reads the target's tokens */
    struct sl_params *params;          /* made for training, initial values drawn; shared by both */
    struct sl_batcher *train;          /* phase TRAIN */
    struct sl_batcher *valid;          /* phase EVALUATE; NULL: no such split */
    bool is_logits;                    /* graph->output_is_logits */
    bool weighted_classes;             /* `exec` was given class weights */
    bool scales_loss;                  /* products in float16: dynamic loss scaling */
    int prefetch;                      /* batches built ahead by a thread; 0: none */
    const char *folder;                /* of the run: metrics.jsonl and checkpoints/; NULL: nothing is written */
    const struct sl_safetensors_text *texts; /* put into every checkpoint: "plan", "config"; copied */
    int32_t text_count;
    const struct sl_owners *owners; /* the steps run in pieces, on this rank's stage; NULL: they do not */
    struct sl_ranks *ranks;       /* with which it shares each batch; NULL: it computes alone. Then `interrupt` is what
                                   * they agreed, and the clock theirs */
    struct sl_recorder *recorder; /* takes a profile; NULL: none is taken */
    struct sl_train_observer observer;
    struct sl_interrupt *interrupt; /* may be NULL, as the next three */
    const struct sl_log *log;
    struct sl_memory *memory;
    const struct sl_file_lock *lock;    /* of `folder`: before each write it must still be there. NULL: not locked */
    int64_t (*clock_ns)(void *context); /* NULL: sl_clock_ns */
    void *clock_context;
};

/* Sets the initial states of the optimizer (adagrad). INVALID_CONFIG for what data or options do not allow; other
 * errors as below. */
seqlstm_status sl_trainer_create(const struct sl_trainer_request *request, struct sl_trainer **out_trainer,
                                 struct seqlstm_error *err);
void sl_trainer_destroy(struct sl_trainer *trainer);

/* Sets trainer, params and carried states to those of the checkpoint (sl_checkpoint_open_latest). Before run.
 * INVALID_CONFIG when it does not fit the model. */
seqlstm_status sl_trainer_restore(struct sl_trainer *trainer, const struct sl_safetensors *checkpoint,
                                  struct seqlstm_error *err);

enum sl_train_end {
    SL_END_EPOCHS,
    SL_END_UPDATES,
    SL_END_EARLY_STOPPING,
    SL_END_TIME,        /* max_time, counted from this start; can be resumed: exit 75 */
    SL_END_INTERRUPTED, /* saved; `signal` asked for it: exit 128 + signal */
    SL_END_DIVERGED     /* nothing was saved since the last checkpoint; `reason` explains: exit 5 */
};

struct sl_train_result {
    enum sl_train_end end;
    int signal;
    struct sl_progress progress;
    int64_t made; /* updates of this call; 0: the run had already ended */
    int64_t skipped;
    int64_t overflows;             /* updates that loss scaling skipped */
    double loss_scale;             /* at the end; 1: no scaling */
    struct sl_metric_values train; /* of the last whole epoch, or of the running one if there was none */
    bool has_valid;
    struct sl_metric_values valid; /* of the last validation; with restore_best that of the weights kept */
    bool restored;                 /* the weights are those of the best validation (restore_best) ... */
    int64_t best_update;           /* ... after this update (0: unknown), ... */
    double best_epochs;            /* ... when so many epochs were done */
    bool averaged;                 /* the weights are averages */
    double spent_seconds;          /* of this call, validation left out */
    double validation_seconds;     /* of this call */
    double wait_seconds;           /* spent waiting for data */
    double wait_share;             /* of the time of training, validation left out */
    char reason[256];              /* DIVERGED */
};

/* Returns IO: the run folder was moved or removed while the run went on. */
seqlstm_status sl_trainer_fail_moved(const char *folder, struct seqlstm_error *err);

/* Runs to one of the ends. Returns at once when the run has already ended. Errors: of data, executor and files; earlier
 * checkpoints stay. A checkpoint is written at every end but DIVERGED (with a folder). */
seqlstm_status sl_trainer_run(struct sl_trainer *trainer, struct sl_train_result *out_result,
                              struct seqlstm_error *err);

/* "epochs", "updates", "early_stopping", "max_time", "interrupted", "diverged"; static. */
const char *sl_train_end_get_name(enum sl_train_end end);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a trainer is made for, and what its observers are told. */
#ifndef SL_TRAIN_TRAINER_REQUEST_H
#define SL_TRAIN_TRAINER_REQUEST_H

#include "base/memory/memory.h"
#include "base/system/file_lock.h"
#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "data/batch/batcher.h"
#include "data/dataset/state.h"
#include "exec/exec.h"
#include "exec/owners.h"
#include "exec/params/params.h"
#include "interop/safetensors.h"
#include "model/model.h"
#include "parallel/ranks.h"
#include "train/metrics/metric.h"
#include "train/recorder.h"
#include "train/schedule/progress.h"

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

#endif

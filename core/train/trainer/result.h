/* SPDX-License-Identifier: Apache-2.0 */
/* How a training run ended. */
#ifndef SL_TRAIN_TRAINER_RESULT_H
#define SL_TRAIN_TRAINER_RESULT_H

#include "train/metrics/metric.h"
#include "train/schedule/progress.h"

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

/* "epochs", "updates", "early_stopping", "max_time", "interrupted", "diverged"; static. */
const char *sl_train_end_get_name(enum sl_train_end end);

#endif

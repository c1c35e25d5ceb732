/* SPDX-License-Identifier: Apache-2.0 */
/* The `train:` section of a model file, resolved. Plain values, owned by the model's arena,
 * immutable. */
#ifndef SL_MODEL_TRAIN_CONFIG_H
#define SL_MODEL_TRAIN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/place.h"

/* Macros, so that messages are made from them. */
#define SL_METRIC_CLASSES 256 /* the most classes that f1 counts separately */
#define SL_KEEP_BEST_MOST 16

/* How often, how long: digits and one unit. `100u`, `3e`, `10Mt` (k, M, G), `90s`, `30m`, `2h`,
 * `1d`. */
enum sl_period_unit {
    SL_PERIOD_NONE, /* not said */
    SL_PERIOD_UPDATES,
    SL_PERIOD_EPOCHS,
    SL_PERIOD_TOKENS, /* real time steps that were trained on */
    SL_PERIOD_SECONDS
};

struct sl_period {
    enum sl_period_unit unit;
    double count; /* in that unit; an integer, except for epochs and seconds */
};

enum sl_task {
    SL_TASK_LANGUAGE_MODEL, /* the target of a step is the next token */
    SL_TASK_CLASSIFY,       /* one class per sequence */
    SL_TASK_TAG,            /* one class per step */
    SL_TASK_REGRESS,        /* values per sequence or per step */
    SL_TASK_SEQ2SEQ         /* another sequence, by encoder and decoder */
};

enum sl_loss_kind { SL_LOSS_MSE, SL_LOSS_MAE, SL_LOSS_HUBER, SL_LOSS_BINARY_CROSS_ENTROPY, SL_LOSS_CROSS_ENTROPY };

/* MEAN: the sum over all weighted steps and target elements, divided by their number (of the steps
 * for the cross-entropies). SEQUENCE_MEAN: the sum over the steps, averaged over the sequences
 * (with unit: stream, over batch_size), as in Zaremba et al. 2014, whose clipping and rate depend
 * on it. It scales the gradient alone; reported losses are always means. */
/* What the gradient is divided by: the weights of an update, its sequences, or the steps of a mean batch. */
enum sl_loss_reduction { SL_REDUCTION_MEAN, SL_REDUCTION_SEQUENCE_MEAN, SL_REDUCTION_STEP_MEAN };

struct sl_loss {
    enum sl_loss_kind kind;
    enum sl_loss_reduction reduction;
    double delta;           /* huber */
    double label_smoothing; /* cross_entropy; 0: off */
    const char *ignore;     /* cross_entropy: targets with this label weigh 0; NULL: none */
};

enum sl_optimizer_kind {
    SL_OPTIMIZER_SGD,
    SL_OPTIMIZER_MOMENTUM,
    SL_OPTIMIZER_NESTEROV,
    SL_OPTIMIZER_ADAM,
    SL_OPTIMIZER_ADAMW,
    SL_OPTIMIZER_RMSPROP,
    SL_OPTIMIZER_ADAGRAD,
    SL_OPTIMIZER_ADADELTA,
    SL_OPTIMIZER_NT_ASGD
};

/* Keras's equations and defaults. Members that the kind does not use are 0. */
struct sl_optimizer {
    enum sl_optimizer_kind kind;
    double learning_rate;
    double momentum; /* momentum, nesterov, rmsprop */
    double beta_1;   /* adam, adamw */
    double beta_2;
    double epsilon;             /* adam, adamw, rmsprop, adagrad: added to the root; adadelta: added under the root */
    bool amsgrad;               /* adam, adamw */
    double rho;                 /* rmsprop, adadelta */
    bool centered;              /* rmsprop */
    double initial_accumulator; /* adagrad */
    int64_t patience;           /* nt_asgd: averaging starts when the monitored value is worse than
                                 * the best of all but the last `patience` validations */
    double weight_decay;        /* decoupled: w -= rate * weight_decay * w; 0: off */
};

/* All of them act on the optimizer's learning_rate; t is the progress, in the unit of the periods.
 * */
enum sl_schedule_kind {
    SL_SCHEDULE_CONSTANT,
    SL_SCHEDULE_STEP,        /* t < start: 1; else factor^(1 + floor((t - start) / every)) */
    SL_SCHEDULE_EXPONENTIAL, /* t < start: 1; else factor^((t - start) / every) */
    SL_SCHEDULE_PLATEAU,     /* times factor after `patience` validations without improvement */
    SL_SCHEDULE_COSINE,      /* from learning_rate to min_learning_rate over `over` */
    SL_SCHEDULE_ONE_CYCLE    /* max/divide_start up to max, then cosine down to max/divide_end */
};

struct sl_schedule {
    enum sl_schedule_kind kind;
    struct sl_period warmup; /* any kind: linear from 0 over this period; NONE: off */
    struct sl_period start;  /* step: default `every`; exponential: default 0 */
    struct sl_period every;
    double factor;         /* or given as divide_by */
    struct sl_period over; /* cosine, one_cycle; NONE: the whole run (epochs or updates) */
    double max;            /* one_cycle: the highest rate */
    double rise;           /* one_cycle: fraction of `over` that goes up */
    double divide_start;
    double divide_end;
    const char *monitor; /* plateau: "valid.loss"; NULL otherwise */
    int64_t patience;
    double min_delta;
    int64_t cooldown;
    double min_learning_rate; /* plateau, cosine */
};

/* The probability that a decoder reads the target's token at a step; train/teacher.h has the equations. */
enum sl_teacher_kind {
    SL_TEACHER_ALWAYS,
    SL_TEACHER_CONSTANT,
    SL_TEACHER_LINEAR,
    SL_TEACHER_EXPONENTIAL,
    SL_TEACHER_INVERSE_SIGMOID
};

/* What it reads otherwise. */
enum sl_own_token { SL_OWN_SAMPLE, SL_OWN_ARGMAX };

struct sl_teacher_forcing {
    enum sl_teacher_kind kind;
    double probability;     /* constant */
    double from, to;        /* linear */
    struct sl_period over;  /* linear; NONE: the whole run */
    double k;               /* exponential: in (0, 1); inverse sigmoid: at least 1 */
    struct sl_period every; /* exponential, inverse sigmoid */
    enum sl_own_token own;
};

enum sl_metric {
    SL_METRIC_LOSS,
    SL_METRIC_ACCURACY,   /* of classes: of the sequences, or of the steps */
    SL_METRIC_PERPLEXITY, /* exp(mean cross-entropy in nats), without label smoothing */
    SL_METRIC_BITS_PER_TOKEN,
    SL_METRIC_MSE,
    SL_METRIC_MAE,
    SL_METRIC_RMSE,
    SL_METRIC_MASE,           /* mean absolute error over that of the naive forecast in train */
    SL_METRIC_F1_SPAN,        /* of the spans that BIO tags mark, as conlleval counts them */
    SL_METRIC_F1_SPAN_STRICT, /* the same, but a span begins only at B- */
    SL_METRIC_F1_MACRO,       /* mean over classes */
    SL_METRIC_F1_MICRO,       /* of all classes together */
    SL_METRIC_EXACT_MATCH,    /* of generated texts, as the next two */
    SL_METRIC_BLEU,
    SL_METRIC_CHRF,
    SL_METRIC_COUNT
};

struct sl_metric_list {
    const enum sl_metric *items;
    size_t count;
};

/* Whether a smaller or a larger value of the monitored metric is better: by the metric unless
 * said. */
enum sl_monitor_mode { SL_MODE_MIN, SL_MODE_MAX };

struct sl_validate {
    struct sl_period every;
    struct sl_metric_list metrics; /* by default those of `train` */
};

struct sl_checkpoint {
    struct sl_period every;
    int64_t keep_last; /* at least 1 */
    int64_t keep_best; /* 0: none */
    const char *monitor;
    enum sl_monitor_mode mode;
};

struct sl_early_stopping {
    bool enabled;
    const char *monitor; /* "valid.loss": split, dot, metric */
    enum sl_monitor_mode mode;
    int64_t patience; /* validations without improvement */
    double min_delta;
    bool restore_best;
    struct sl_period start; /* validations before it do not count; NONE: from the beginning */
};

struct sl_ema {
    bool enabled;
    double decay;
    struct sl_period start; /* NONE: from the beginning */
};

enum sl_on_divergence { SL_DIVERGENCE_STOP, SL_DIVERGENCE_SKIP };

struct sl_class_weight {
    const char *label; /* as it is in the data */
    double weight;
};

struct sl_train_config {
    enum sl_task task; /* inferred from the data and the loss if not given */
    struct sl_loss loss;
    struct sl_optimizer optimizer;
    struct sl_schedule schedule;
    struct sl_teacher_forcing teacher_forcing; /* of a decoder that reads tokens */
    double clip_norm;                          /* global, over all parameters; 0: off */
    double clip_value;                         /* of each element, before clip_norm; 0: off */
    int64_t epochs; /* 0: not given. At least one of the three is given; the first that is reached ends the training. */
    int64_t updates;
    struct sl_period max_time; /* seconds */
    int64_t accumulate;        /* batches per update */
    struct sl_metric_list metrics;
    struct sl_validate validate;
    struct sl_checkpoint checkpoint;
    struct sl_early_stopping early_stopping;
    struct sl_ema ema;
    const char *init_from; /* a run folder or name; NULL: none */
    enum sl_on_divergence on_divergence;
    bool balanced_classes; /* class_weight: balanced */
    const struct sl_class_weight *class_weights;
    size_t class_weight_count;
    struct sl_place place;
};

/* The words of the file; static. [any thread] */
const char *sl_task_get_name(enum sl_task task);
const char *sl_loss_kind_get_name(enum sl_loss_kind kind);
const char *sl_schedule_kind_get_name(enum sl_schedule_kind kind);
const char *sl_metric_get_name(enum sl_metric metric);

/* The direction in which a metric gets better. [any thread] */
enum sl_monitor_mode sl_metric_get_mode(enum sl_metric metric);
/* Whether it compares generated texts, which is possible only on `valid` and `test`. [any thread] */
bool sl_metric_is_of_texts(enum sl_metric metric);

#endif

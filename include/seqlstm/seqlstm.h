/* SPDX-License-Identifier: Apache-2.0 */
/* The framework as a C library: other programs can do what the commands of `seqlstm` do. Predictions that are prepared
 * once and called many times, also step by step, are in predictor.h; what a run holds, such as weights, is in run.h.
 *
 *   struct seqlstm_session *s;
 *   struct seqlstm_error err = SEQLSTM_ERROR_INIT;
 *   if (seqlstm_open_run("runs/quickstart/001", NULL, &s, &err) == SEQLSTM_OK)
 *       seqlstm_predict_values(s, values, lengths, count, on_prediction, NULL, &err);
 *   seqlstm_close(s);
 *
 * Link with `pkg-config --libs seqlstm`. The library prints nothing, installs no signal handler, does not change the
 * locale and never exits. Plugins stay mapped once they are loaded.
 *
 * Threads: one thread at a time may use a session; sessions are independent of each other.
 * Ownership: pointers passed to a callback are valid during that call. Close each session with seqlstm_close.
 */
#ifndef SEQLSTM_SEQLSTM_H
#define SEQLSTM_SEQLSTM_H

#include <stddef.h>
#include <stdint.h>

#include "export.h"
#include "predictor.h"
#include "run.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Text of messages, in `err` and in `log`, is fit for a terminal: control characters that come from files, their names
 * or plugins are escapes such as \x1b. Lines are separated by '\n'. Names that functions return (seqlstm_find_class,
 * seqlstm_get_folder) and generated texts are unchanged. */
struct seqlstm_session;

enum {
    SEQLSTM_OPEN_TRUST = 1u << 0 /* load plugins without checking the owner and mode of
                                         their files, and follow what a run folder names: plugins, links */
};

/* Data in memory. Where the model names the file `memory:NAME`, these bytes are read; they are what a file of that
 * format contains (for `type: npy` with the header of NumPy). Copied when the session is opened. */
struct seqlstm_file {
    const char *name; /* NAME */
    const void *bytes;
    size_t size;
};

/* How to open a session. All zero but struct_size: the defaults. It must stay valid until seqlstm_close. */
struct seqlstm_options {
    uint32_t struct_size;
    uint32_t flags;               /* SEQLSTM_OPEN_… */
    const char *const *overrides; /* "train.epochs=5": dotted key and YAML value */
    uint32_t override_count;
    uint32_t folder_count;
    const char *const *backend_folders; /* where backends are searched first */
    const char *backend;                /* use this backend for every layer that it accepts; NULL: choose */
    const char *out_dir;                /* the run folder; NULL: as the model file says */
    int32_t threads;                    /* 0: all usable cores */
    int32_t reserved0;
    void *context;                                                  /* first argument of log */
    void (*log)(void *context, int32_t level, const char *message); /* 1 error .. 5 trace; NULL: silent */
    const int32_t *stop;              /* once it is non-zero, training saves and ends; may be NULL */
    const struct seqlstm_file *files; /* data in memory */
    uint32_t file_count;
    uint32_t reserved1;
};

#define SEQLSTM_OPTIONS_INIT                                                                                           \
    {                                                                                                                  \
        (uint32_t)sizeof(struct seqlstm_options), 0, NULL, 0, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 0, 0  \
    }

/* Version of the library, "0.1.0". */
SEQLSTM_API const char *seqlstm_get_version(void);

/* Opens a model file, without reading data or loading plugins. INVALID_CONFIG: `err->message` lists all errors in the
 * file, as far as they fit. `options` may be NULL. */
SEQLSTM_API seqlstm_status seqlstm_open_model(const char *path, const struct seqlstm_options *options,
                                              struct seqlstm_session **out_session, struct seqlstm_error *err);

/* The same for a model file in memory, as YAML or JSON. Messages call it `name`, and relative paths in it are relative
 * to the folder of that name: "model" stands for a file of that name in the current folder. */
SEQLSTM_API seqlstm_status seqlstm_open_text(const char *name, const char *text, size_t bytes,
                                             const struct seqlstm_options *options,
                                             struct seqlstm_session **out_session, struct seqlstm_error *err);

/* Opens a run. `run` is its folder, or a name: the latest run of that name below runs/. NOT_FOUND, CORRUPT_DATA. */
SEQLSTM_API seqlstm_status seqlstm_open_run(const char *run, const struct seqlstm_options *options,
                                            struct seqlstm_session **out_session, struct seqlstm_error *err);

/* Closes a session; NULL is allowed. */
SEQLSTM_API void seqlstm_close(struct seqlstm_session *session);

/* The folder of the run, owned by the session; NULL until training has created it. */
SEQLSTM_API const char *seqlstm_get_folder(const struct seqlstm_session *session);

/* The code of an error, "E0203", which `seqlstm explain` explains: that of the first finding, otherwise that of the
 * status. Static. [any] */
SEQLSTM_API const char *seqlstm_find_error_code(const struct seqlstm_error *err);

/* What a code means, in a few lines: "E0203" or "W0001". Static; NULL: there is no such code. [any] */
SEQLSTM_API const char *seqlstm_explain(const char *code);

/* Called about ten times per second during training. Return non-zero to stop and save after this step. */
typedef int32_t (*seqlstm_progress_fn)(void *context, int64_t update, double epoch, double loss);

/* Trains from the start (after seqlstm_open_model), or continues from the newest checkpoint (after seqlstm_open_run).
 * The run folder then holds the same files as after `seqlstm run`; it is locked meanwhile. `progress` may be NULL. IO:
 * another session or process writes into the folder. NUMERIC: training diverged; CANCELLED: it was stopped, and is
 * saved. */
SEQLSTM_API seqlstm_status seqlstm_train(struct seqlstm_session *session, seqlstm_progress_fn progress, void *context,
                                         struct seqlstm_error *err);

/* Computes the metrics of a split ("train", "valid" or "test") with the trained weights. Fills at most `capacity`
 * elements and sets *out_count to the number of metrics. */
SEQLSTM_API seqlstm_status seqlstm_evaluate(struct seqlstm_session *session, const char *split,
                                            struct seqlstm_metric *out_metrics, int32_t capacity, int32_t *out_count,
                                            struct seqlstm_error *err);

/* Receives one prediction: `rows` steps (1 for a model with one output per sequence) of `features` numbers each, which
 * are probabilities of classes or values in the units of the training data. Any status but OK ends the prediction with
 * that status. */
typedef seqlstm_status (*seqlstm_prediction_fn)(void *context, int64_t record, const float *values, int64_t rows,
                                                int64_t features);

/* Predicts for every record of a file in the format of the training data ("-": standard input), in order. */
SEQLSTM_API seqlstm_status seqlstm_predict_file(struct seqlstm_session *session, const char *path,
                                                seqlstm_prediction_fn write, void *context, struct seqlstm_error *err);

/* Predicts for `count` sequences of numbers in memory. Sequence k has lengths[k] >= 0 steps, each with as many features
 * as the model was trained with. `values` holds them one after the other, in the units of the training data. */
SEQLSTM_API seqlstm_status seqlstm_predict_values(struct seqlstm_session *session, const float *values,
                                                  const int64_t *lengths, int64_t count, seqlstm_prediction_fn write,
                                                  void *context, struct seqlstm_error *err);

/* Name of class `index` of a classifier, tagger or language model, owned by the session. NULL: there is none. */
SEQLSTM_API const char *seqlstm_find_class(const struct seqlstm_session *session, int64_t index);

/* Generates text with a language model, token by token. The same seed gives the same text. */
SEQLSTM_API seqlstm_status seqlstm_generate(struct seqlstm_session *session, const char *prompt, int64_t length,
                                            double temperature, uint64_t seed, seqlstm_text_fn write, void *context,
                                            struct seqlstm_error *err);

#ifdef __cplusplus
}
#endif

#endif

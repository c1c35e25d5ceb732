/* SPDX-License-Identifier: Apache-2.0 */
/* The framework as a C library: what the commands of the program do, for other programs.
 *
 *   struct seqlstm_session *s;
 *   struct seqlstm_error err = SEQLSTM_ERROR_INIT;
 *   if (seqlstm_open_run("runs/quickstart/001", NULL, &s, &err) == SEQLSTM_OK)
 *       seqlstm_predict_values(s, values, lengths, count, on_prediction, NULL, &err);
 *   seqlstm_close(s);
 *
 * Link with `pkg-config --libs seqlstm`. The library prints nothing, installs no signal handler, changes no locale and
 * never exits. Plugins stay mapped once they are loaded.
 *
 * Threads: one thread at a time per session; sessions are independent.
 * Ownership: what comes out through a callback is borrowed for that call; sessions end in seqlstm_close.
 */
#ifndef SEQLSTM_SEQLSTM_H
#define SEQLSTM_SEQLSTM_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SEQLSTM_API __attribute__((visibility("default")))
#else
#define SEQLSTM_API
#endif

struct seqlstm_session;

enum { SEQLSTM_OPEN_TRUST = 1u << 0 /* load plugins whatever their owner and mode are */ };

/* How to open. Zero with struct_size set: defaults. Borrowed until seqlstm_close. */
struct seqlstm_options {
    uint32_t struct_size;
    uint32_t flags;               /* SEQLSTM_OPEN_… */
    const char *const *overrides; /* "train.epochs=5": dotted key, YAML value */
    uint32_t override_count;
    uint32_t folder_count;
    const char *const *backend_folders; /* searched first for backends */
    const char *backend;                /* give this backend everything that it accepts; NULL */
    const char *out_dir;                /* the run folder itself; NULL: as the model says */
    int32_t threads;                    /* 0: all usable cores */
    int32_t reserved0;
    void *context;                                                  /* first argument of log */
    void (*log)(void *context, int32_t level, const char *message); /* 1 error .. 5 trace; NULL: silent */
    const int32_t *stop; /* when it becomes non-zero, training saves and ends; NULL */
};

#define SEQLSTM_OPTIONS_INIT                                                                                           \
    {                                                                                                                  \
        (uint32_t)sizeof(struct seqlstm_options), 0, NULL, 0, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL              \
    }

/* Version of the library, "0.1.0". */
SEQLSTM_API const char *seqlstm_get_version(void);

/* Opens a model file. All errors in it are in `err->message` as far as they fit; INVALID_CONFIG. `options` may be NULL.
 * Neither data nor plugins are touched. */
SEQLSTM_API seqlstm_status seqlstm_open_model(const char *path, const struct seqlstm_options *options,
                                              struct seqlstm_session **out_session, struct seqlstm_error *err);

/* Opens a run: its folder, or a name whose latest run below runs/ is meant. NOT_FOUND, CORRUPT_DATA. */
SEQLSTM_API seqlstm_status seqlstm_open_run(const char *run, const struct seqlstm_options *options,
                                            struct seqlstm_session **out_session, struct seqlstm_error *err);

/* NULL is fine. */
SEQLSTM_API void seqlstm_close(struct seqlstm_session *session);

/* The run's folder; NULL before training made one. Borrowed. */
SEQLSTM_API const char *seqlstm_get_folder(const struct seqlstm_session *session);

/* One named number. */
struct seqlstm_metric {
    const char *name; /* "loss", "perplexity"; static */
    double value;
};

/* Called about ten times a second while training. Non-zero: stop after this step, saved. */
typedef int32_t (*seqlstm_progress_fn)(void *context, int64_t update, double epoch, double loss);

/* Trains to the end (open_model), or goes on where the newest checkpoint stands (open_run). The folder then holds what
 * `seqlstm run` leaves. `progress` may be NULL. NUMERIC: diverged; CANCELLED: stopped and saved. */
SEQLSTM_API seqlstm_status seqlstm_train(struct seqlstm_session *session, seqlstm_progress_fn progress, void *context,
                                         struct seqlstm_error *err);

/* Metrics of a split, "train", "valid" or "test", with the trained weights. Fills at most `capacity` and sets
 * *out_count to how many there are. */
SEQLSTM_API seqlstm_status seqlstm_evaluate(struct seqlstm_session *session, const char *split,
                                            struct seqlstm_metric *out_metrics, int32_t capacity, int32_t *out_count,
                                            struct seqlstm_error *err);

/* One prediction: `rows` steps (1 for a model with one output per sequence) of `features` numbers: probabilities of
 * classes, or values in the units of the training data. Non-OK ends the prediction with that status. */
typedef seqlstm_status (*seqlstm_prediction_fn)(void *context, int64_t record, const float *values, int64_t rows,
                                                int64_t features);

/* Predicts for every record of a file in the format of the training data ("-": standard input), in order. */
SEQLSTM_API seqlstm_status seqlstm_predict_file(struct seqlstm_session *session, const char *path,
                                                seqlstm_prediction_fn write, void *context, struct seqlstm_error *err);

/* Predicts for `count` sequences of numbers in memory: sequence k has lengths[k] >= 0 steps of as many features as the
 * model was trained with; `values` holds them one after the other, in the units of the training data. */
SEQLSTM_API seqlstm_status seqlstm_predict_values(struct seqlstm_session *session, const float *values,
                                                  const int64_t *lengths, int64_t count, seqlstm_prediction_fn write,
                                                  void *context, struct seqlstm_error *err);

/* Name of class `index` of a classifier, tagger or language model; NULL beyond the last or where there are none.
 * Borrowed from the session. */
SEQLSTM_API const char *seqlstm_find_class(const struct seqlstm_session *session, int64_t index);

/* Text from a language model, token by token. The same seed gives the same text. */
typedef seqlstm_status (*seqlstm_text_fn)(void *context, const char *text, size_t bytes);
SEQLSTM_API seqlstm_status seqlstm_generate(struct seqlstm_session *session, const char *prompt, int64_t length,
                                            double temperature, uint64_t seed, seqlstm_text_fn write, void *context,
                                            struct seqlstm_error *err);

#ifdef __cplusplus
}
#endif

#endif

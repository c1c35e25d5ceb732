/* SPDX-License-Identifier: Apache-2.0 */
/* A model: the contents of the user's YAML file, its overlays and the command line, checked and resolved.
 *
 * Loading reads everything, reports every error and warning at once into a `struct
 * sl_diagnostics`, and only a description without errors becomes a model. Nothing here has looked
 * at data or backends.
 *
 * Invariants:
 * 1. A model is immutable; all of it, texts too, lives in its own arena, freed by sl_model_destroy.
 * 2. Every option is resolved: there are no unset values but those whose comment says so.
 * 3. `from` and `initial_state` name only earlier layers, so the list is in topological order; the last layer is
 *    the model's output. An encoder's layers come before its decoder's, and take nothing of them.
 * 4. No value in it asks for what this version cannot do.
 */
#ifndef SL_MODEL_MODEL_H
#define SL_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "model/data_config.h"
#include "model/decode_config.h"
#include "model/layer.h"
#include "model/parallel_config.h"
#include "model/place.h"
#include "model/train_config.h"

struct sl_arena;
struct sl_buf;
struct sl_diagnostics;

/* An option of a backend plugin, passed to it as text. */
struct sl_backend_option {
    const char *key;
    const char *value;
    struct sl_place place; /* of the key */
    struct sl_place value_place;
};

struct sl_backend_entry {
    const char *id;   /* looked up on the backend path; NULL if `file` is set */
    const char *file; /* absolute path of a plugin; NULL if `id` is set */
    bool require;     /* true: if it is missing, that is an error, not a note */
    const struct sl_backend_option *options;
    size_t option_count;
    struct sl_place place;
};

enum sl_dispatch_policy { SL_POLICY_MEASURED, SL_POLICY_ESTIMATE, SL_POLICY_ORDER };

enum sl_fallback { SL_FALLBACK_REPORT, SL_FALLBACK_WARN, SL_FALLBACK_ERROR };

struct sl_pin {
    const char *layer;   /* a name of the model */
    const char *backend; /* "id" or "id:variant" */
    struct sl_place place;
};

struct sl_dispatch_config {
    enum sl_dispatch_policy policy;
    enum sl_fallback fallback;
    const struct sl_pin *pins;
    size_t pin_count;
};

/* SL_DEVICE_CUDA + n: CUDA device n. */
enum sl_device { SL_DEVICE_AUTO, SL_DEVICE_CPU, SL_DEVICE_CUDA };
enum { SL_DEVICE_NUMBERS = 1000 };

enum sl_precision { SL_PRECISION_FLOAT32, SL_PRECISION_TF32, SL_PRECISION_BFLOAT16, SL_PRECISION_FLOAT16 };

struct sl_output_config {
    const char *dir;        /* as given, with {name} and {run}; relative to the current directory */
    bool tensorboard;       /* an event file of TensorBoard in the run folder */
    bool weight_histograms; /* in it, after each epoch */
};

struct sl_log_config {
    struct sl_period every; /* seconds or updates between reports */
    bool jsonl;
};

/* Input feeding: layer `reader` reads, behind its input, what `giver` yielded at the step before; at the first step
 * zeros. The layers from one to the other run step by step. */
struct sl_feeding {
    bool present;
    int reader, giver; /* indices in layers, reader <= giver */
};

struct sl_model {
    struct sl_arena *arena;
    int64_t version;  /* 1 */
    const char *path; /* of the file, as typed */
    const char *name; /* given, or the file name without its extension */
    uint64_t seed;
    bool deterministic;

    struct sl_data_config data;
    const struct sl_layer *layers;
    size_t layer_count;
    size_t encoder_count;             /* the number of encoder layers, which come first; 0: a plain list */
    struct sl_feeding feeding;        /* of the decoder */
    const struct sl_layer *embedding; /* what `embed` writes; NULL: not given */
    struct sl_train_config train;
    struct sl_decode_config decode;

    bool all_backends; /* `backends` was not given: all that are found are used, in the order of discovery */
    const struct sl_backend_entry *backends;
    size_t backend_count;
    struct sl_dispatch_config dispatch;
    enum sl_device device;
    enum sl_precision precision;
    struct sl_parallel_config parallel;
    struct sl_output_config output;
    struct sl_log_config log;

    struct sl_place_list places; /* of everything that was given: "train.optimizer.learning_rate", "model[2].units" */
    const void *document;        /* the merged document, for sl_model_write_config */
};

/* One value that is not in a file. `origin` is its name in messages: "--set", "--seed", "SEQLSTM_SEED"; `assignment` is
 * `dotted.path=YAML value`, as in `train.optimizer.learning_rate=1e-3` or `model[2].units=650` (or, by name,
 * `model.lstm_2.units=650`). */
struct sl_override {
    const char *origin;
    const char *assignment;
};

/* Data in memory: where the model names the file `memory:NAME`, it is found at `path`. */
struct sl_memory_data {
    const char *name; /* NAME */
    const char *path;
};

/* What to load; later overlays override earlier ones and the file, and overrides override all of them. */
struct sl_model_request {
    const char *path;
    const char *const *overlays; /* paths of YAML files (`-c`) */
    size_t overlay_count;
    const struct sl_override *overrides;
    size_t override_count;
    const struct sl_memory_data *memory;
    size_t memory_count;
    const char *text; /* in place of the file; NULL: it is read */
    size_t text_bytes;
    bool saved; /* `path` is the configuration of a run, which the program wrote: it includes nothing */
};

/* Loads, merges and checks a model. Errors and warnings of the content go to `diagnostics` (required), sorted by
 * sl_diagnostics_render; when there is any error the result is SEQLSTM_INVALID_CONFIG and `err` says how many. A file
 * that is missing, unreadable or too large is a diagnostic too (E0001), and the result SEQLSTM_NOT_FOUND or SEQLSTM_IO.
 * SEQLSTM_NO_MEMORY is only in `err`. `*out` is owned by the caller and independent of `diagnostics`. [any thread] */
seqlstm_status sl_model_load(const struct sl_model_request *request, struct sl_diagnostics *diagnostics,
                             struct sl_model **out, struct seqlstm_error *err);

/* The same for a text in memory; `name` stands for its path (relative paths inside it are relative
 * to the folder of `name`). */
seqlstm_status sl_model_load_text(const char *name, const char *text, size_t text_bytes,
                                  const struct sl_model_request *request, struct sl_diagnostics *diagnostics,
                                  struct sl_model **out, struct seqlstm_error *err);

void sl_model_destroy(struct sl_model *model);

/* The layer of that name, or NULL. Borrowed. [any thread] */
const struct sl_layer *sl_model_find_layer(const struct sl_model *model, const char *name);

/* Where `path` ("train.optimizer.learning_rate") was said, or the longest said prefix of it, or
 * line 0 where nothing of it was said. [any thread] */
struct sl_place sl_model_find_place(const struct sl_model *model, const char *path);

/* The value at `path` of the effective configuration ("train.loss"), or at a key of the layer ("activation",
 * "dropout"), as it is written there; of a map its `type`. NULL: there is none, or it is another map or a list. [any
 * thread] */
const char *sl_model_find_word(const struct sl_model *model, const struct sl_layer *layer, const char *path);

enum {
    SL_CONFIG_MINIMAL = 1, /* only what was given, not the defaults */
    SL_CONFIG_ORIGIN = 2   /* each value with a comment: file:line, flag or "default" */
};

/* Appends the effective configuration as YAML: one file, no includes, absolute paths, that loads
 * to an equal model. [any thread] */
seqlstm_status sl_model_write_config(const struct sl_model *model, unsigned flags, struct sl_buf *out,
                                     struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a command does, as a library: a model file or a finished run, opened once, on which things are done.
 *
 *   open_model (a YAML file) ─ plan ─ train (makes a run folder) ─ evaluate ─ predict …
 *   open_run   (a run folder) ─ resume, evaluate, predict, generate, inspect
 *
 * A session owns everything between the model file and the backends: data, graphs, plans, executors,
 * parameters, thread pool. It prints nothing: progress goes to observers, notes to the log, errors to the caller.
 * One thread at a time per session; several sessions may live at once.
 */
#ifndef SL_SESSION_SESSION_H
#define SL_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/operation/cost.h"
#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "data/dataset/dataset.h"
#include "dispatch/plan/plan.h"
#include "registry/registry.h"
#include "interop/names.h"
#include "model/yaml/diagnostics.h"
#include "model/model.h"
#include "train/evaluate.h"
#include "train/trainer.h"

struct sl_session;

/* What is common to all commands. Zeroed: defaults. Borrowed for the life of the session. */
struct sl_session_options {
    const struct sl_model_request *model; /* open_model: the file; open_run: path is ignored, overrides apply */
    const char *const *backend_folders;   /* --backend-path */
    uint32_t backend_folder_count;
    const char *forced_backend; /* --backend */
    const char *plan_path;      /* --plan: stored choices */
    const char *out_dir;        /* --out: is the run folder; NULL: the model's output.dir */
    int32_t threads;            /* 0: auto */
    bool threads_said;          /* `threads` wins over the count of a stored plan */
    bool trust;
    const struct sl_log *log;
    struct sl_interrupt *interrupt;
};

/* Loads a model file. Findings go to `diagnostics` (kept: later phases add theirs). No data, no plugin is touched. */
seqlstm_status sl_session_open_model(const struct sl_session_options *options, struct sl_diagnostics *diagnostics,
                                     struct sl_session **out_session, struct seqlstm_error *err);

/* Opens a run: a folder, or a name whose latest run in `runs/` is meant. The saved config and data state are
 * loaded; weights when they are first needed. NOT_FOUND, CORRUPT_DATA. */
seqlstm_status sl_session_open_run(const char *run, const struct sl_session_options *options,
                                   struct sl_diagnostics *diagnostics, struct sl_session **out_session,
                                   struct seqlstm_error *err);
void sl_session_close(struct sl_session *session);

const struct sl_model *sl_session_get_model(const struct sl_session *session);
/* Of the run; NULL before one is made. */
const char *sl_session_get_folder(const struct sl_session *session);

/* ---- steps; each does what it needs of those before, once ----------------------------------------- */

/* Opens the training data (open_model) and learns vocabulary, scaling and facts. */
seqlstm_status sl_session_read_data(struct sl_session *session, struct seqlstm_error *err);

/* Reads every split that the model has, one after the other; the first error that comes up. */
seqlstm_status sl_session_check_data(struct sl_session *session, struct seqlstm_error *err);
const struct sl_dataset *sl_session_find_train_data(const struct sl_session *session);
const struct sl_data_state *sl_session_find_data_state(const struct sl_session *session);

/* Adds a finding for each data file that the model names and that is not there; returns how many. Reads none. */
size_t sl_session_find_missing_files(struct sl_session *session);
/* The same for what is no data. Errors, the first that holds: UNAVAILABLE (the file of a required backend), NOT_FOUND
 * (weights to begin with). */
seqlstm_status sl_session_find_missing_parts(struct sl_session *session, struct seqlstm_error *err);

/* Loads the plugins. */
seqlstm_status sl_session_load_backends(struct sl_session *session, struct seqlstm_error *err);
const struct sl_registry *sl_session_find_registry(const struct sl_session *session);

/* The training split; NULL before sl_session_read_data. */
const struct sl_dataset *sl_session_find_train_data(const struct sl_session *session);

/* A registry beside the session's own, with its folders, trust and log: `first`, then with `listed` what the model
 * lists, then the reference. Entries of an id or file that came before are left out. The session outlives it. */
seqlstm_status sl_session_open_registry(const struct sl_session *session, const struct sl_registry_entry *first,
                                        uint32_t first_count, bool listed, struct sl_registry **out_registry,
                                        struct seqlstm_error *err);

/* The plan of a phase; NULL before it is made. */
const struct sl_plan *sl_session_find_plan(const struct sl_session *session, enum sl_phase phase);

/* How many state buffers the model's optimizer keeps. */
int32_t sl_optimizer_states(const struct sl_optimizer *optimizer);

/* Plans training (and evaluation). Borrowed until close. */
seqlstm_status sl_session_make_plan(struct sl_session *session, const struct sl_plan **out_plan,
                                    struct seqlstm_error *err);

/* The plan as JSON, with what was measured for the batches: "batching". */
struct sl_buf;
seqlstm_status sl_session_write_plan_json(const struct sl_session *session, const struct sl_plan *plan,
                                          struct sl_buf *out, struct seqlstm_error *err);
/* The plan as a table (dispatch/explain.h). */
void sl_session_write_plan_table(const struct sl_session *session, const struct sl_plan *plan, bool brief,
                                 struct sl_buf *out);

/* What a step of training costs on the planned backends: from the stored plan, or measured now (about a second).
 * NULL for data without steps. Borrowed until close. Before training only: it runs the executor. */
seqlstm_status sl_session_find_step_cost(struct sl_session *session, const struct sl_step_cost **out_cost,
                                         struct seqlstm_error *err);

/* ---- training ------------------------------------------------------------------------------------- */

struct sl_run_result {
    struct sl_train_result train;
    const char *folder; /* of the run; borrowed */
    bool has_test;
    struct sl_metric_values test;
    double seconds;
};

/* Called when the run folder and the plan exist, before the first step. */
struct sl_run_observer {
    struct sl_train_observer train;
    void (*on_start)(void *context, const struct sl_session *session, const struct sl_plan *plan, const char *folder);
};

/* Makes the run folder, trains, evaluates, saves. For open_run: resumes where the newest checkpoint stands (or at
 * the beginning). The result is complete on OK whatever the end was. Errors: all that can go wrong; what was saved
 * stays. */
seqlstm_status sl_session_run(struct sl_session *session, const struct sl_run_observer *observer,
                              struct sl_run_result *out_result, struct seqlstm_error *err);

/* ---- a trained model ------------------------------------------------------------------------------- */

/* Metrics of a split with the run's final weights. */
seqlstm_status sl_session_evaluate(struct sl_session *session, enum sl_split split,
                                   struct sl_evaluation *out_evaluation, struct seqlstm_error *err);

/* The plan by which a split is evaluated, without the evaluation. Borrowed until the next one is made, or close. */
seqlstm_status sl_session_plan_evaluation(struct sl_session *session, enum sl_split split,
                                          const struct sl_plan **out_plan, struct seqlstm_error *err);

/* What int8 did to a layer. */
struct sl_quantized_report {
    const char *name; /* of the layer's operation; borrowed */
    double low, high; /* range of what it reads and hands on, over the validation data */
    float scale, shift;
    bool accepted;                 /* false: it stays as it was */
    const char *backend, *variant; /* that ran it in the second evaluation */
    double before_ns, after_ns;    /* time of its calls in both evaluations */
    const char *reason;            /* why it was not accepted; "" */
};

struct sl_quantize_result {
    struct sl_metric_values before, after; /* of the validation data */
    struct sl_quantized_report *layers;    /* freed with free() */
    int32_t count;
};

/* Measures the ranges of recurrent layers on the validation data, evaluates the run as it is and with those layers in
 * int8, and writes RUN/quantization.json, which evaluate, predict, embed and generate follow from then on.
 * INVALID_CONFIG: no validation data or no recurrent layer; UNSUPPORTED: no backend runs any of them in int8 (nothing
 * is written). */
seqlstm_status sl_session_quantize(struct sl_session *session, struct sl_quantize_result *out_result,
                                   struct seqlstm_error *err);

/* What the tokens of a text looked at. Borrowed with it. */
struct sl_prediction_attention {
    const char *const *source; /* [source_count] tokens that the encoder read, as its vocabulary has them */
    int64_t source_count;
    const char *const *target; /* [target_count] tokens that were written, with the end where it was */
    int64_t target_count;
    const char *const *layers; /* [layer_count] names of the attention layers */
    int32_t layer_count;
    const float *weights; /* [layer_count, target_count, source_count]; a row sums to 1 */
};

/* What a decoder wrote. Not NUL-terminated. */
struct sl_prediction_text {
    const char *text;
    size_t bytes;
    double score;                             /* decode/beam.h */
    struct sl_prediction_attention attention; /* layer_count 0: was not asked for */
};

/* One prediction, in input order. Borrowed for the call. */
struct sl_prediction {
    int64_t record;
    const char *input; /* the line as it stood in the file; NULL where there is none */
    size_t input_bytes;
    int64_t rows; /* steps, or 1 */
    int64_t features;
    const float *values;                    /* [rows, features]: probabilities, or values in the units of the file */
    const struct sl_vocabulary *classes;    /* NULL: values */
    const struct sl_prediction_text *texts; /* of a decoder, best first, in place of values; NULL: none */
    int32_t text_count;
};

typedef seqlstm_status sl_prediction_fn(void *context, const struct sl_prediction *prediction,
                                        struct seqlstm_error *err);

/* Runs the model over the input and hands out one record after the other. `attention`: texts with what they looked at.
 * Errors: INVALID_CONFIG: a model without attention. */
seqlstm_status sl_session_predict(struct sl_session *session, const struct sl_input_request *input, bool attention,
                                  sl_prediction_fn *write, void *context, struct seqlstm_error *err);

/* What layer `layer_name` yields for each record, instead of the model's output; NULL: what goes into the last layer.
 * In the network's units; `classes` of a prediction is NULL. Errors: INVALID_CONFIG: no such layer; as predict. */
seqlstm_status sl_session_embed(struct sl_session *session, const struct sl_input_request *input,
                                const char *layer_name, sl_prediction_fn *write, void *context,
                                struct seqlstm_error *err);

/* Predictions for `count` sequences of numbers in memory, one after the other in `values`, in the units of the data. */
seqlstm_status sl_session_predict_values(struct sl_session *session, const float *values, const int64_t *lengths,
                                         int64_t count, sl_prediction_fn *write, void *context,
                                         struct seqlstm_error *err);

struct sl_generate_request {
    const char *prompt; /* UTF-8; "" or NULL: from the beginning */
    int64_t length;     /* tokens to draw */
    double temperature; /* > 0; 1: as learned */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;
    bool stop_at_eos;
};

/* Called with the text of each token as it is drawn. */
typedef seqlstm_status sl_text_fn(void *context, const char *text, size_t bytes, struct seqlstm_error *err);

/* Samples from a language model. INVALID_CONFIG when the run is none. */
seqlstm_status sl_session_generate(struct sl_session *session, const struct sl_generate_request *request,
                                   sl_text_fn *write, void *context, struct seqlstm_error *err);

/* ---- weights, to and from other programs (docs/import-export.md) ------------------------------------ */

enum sl_weights_format {
    SL_WEIGHTS_AUTO,      /* import: what the names in the file look like */
    SL_WEIGHTS_CANONICAL, /* safetensors under our names */
    SL_WEIGHTS_PYTORCH,   /* safetensors under PyTorch's */
    SL_WEIGHTS_KERAS,     /* safetensors under Keras's */
    SL_WEIGHTS_ONNX       /* the whole model; import takes its weights */
};

/* The files that an export to `path` writes: 1, or of an encoder and a decoder as ONNX 2, NAME.encoder.onnx and
 * NAME.decoder.onnx for NAME.onnx. Zeroed bufs are the caller's. */
int32_t sl_session_name_exports(const struct sl_session *session, enum sl_weights_format format, const char *path,
                                struct sl_buf out_paths[2]);

/* Writes the weights of the run, or of its newest checkpoint, to `path`, atomically. A line of `notes` for each
 * thing that the format cannot name. Needs no backend. Errors: as sl_names_export and sl_onnx_write. */
seqlstm_status sl_session_export(struct sl_session *session, enum sl_weights_format format, const char *path,
                                 struct sl_buf *notes, struct seqlstm_error *err);

struct sl_import_request {
    const char *path; /* a safetensors or ONNX file */
    enum sl_weights_format format;
    const struct sl_rename *renames;
    size_t rename_count;
};

/* Reads the training data (vocabulary, scaling, widths), fills the model with the file's weights and makes a run
 * folder of it, on which evaluate, predict, generate and export work. Nothing is made when the weights do not fit.
 * Errors: as sl_names_import and sl_onnx_read. */
seqlstm_status sl_session_import(struct sl_session *session, const struct sl_import_request *request,
                                 struct sl_buf *notes, struct seqlstm_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a session, shared by the files of core/session.
 *
 * Invariants:
 *  1. What is set here is destroyed by sl_session_close in reverse order of making: executors, plans, graphs,
 *     parameters, batchers, datasets, state, registry, pool, model.
 *  2. One set of parameters serves all executors.
 */
#ifndef SL_SESSION_PRIVATE_H
#define SL_SESSION_PRIVATE_H

#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "base/system/pool.h"
#include "decode/decoder.h"
#include "decode/sampler.h"
#include "exec/exec.h"
#include "dispatch/planner.h"
#include "dispatch/explain/explain.h"
#include "session/session.h"

/* One phase of the model, made ready. */
struct sl_stage {
    struct sl_graph *graph;
    struct sl_plan *plan;
    struct sl_exec *exec; /* NULL: planned alone */
};

/* An encoder and a decoder that runs step by step. */
struct sl_stage_pair {
    struct sl_stage encoder, step;
    int64_t own_bytes; /* of whoever drives them */
};

/* What writes texts (decoding.c). Zeroed: not planned. */
struct sl_decoding {
    struct sl_stage_pair pair;
    bool attention;             /* it keeps what its texts looked at */
    struct sl_decoder *decoder; /* NULL until opened */
};

/* Scheduled sampling. Zeroed: not planned. */
struct sl_sampling {
    struct sl_stage_pair pair;
    struct sl_sampler *sampler; /* NULL until opened */
};

/* Choices that a plan follows, as sl_plan_request.stored. */
struct sl_choices {
    struct sl_plan_choice *items;
    int32_t count;
};

/* What a stored plan decides; texts in one arena. */
struct sl_stored_plan {
    struct sl_arena arena;
    struct sl_choices phases; /* of training and evaluation */
    struct sl_choices decoding, sampling;
    int32_t threads; /* 0: it does not say */
    struct sl_plan_device *devices;
    int32_t device_count;
    int64_t *edges;                        /* of buckets that were measured */
    int64_t edge_count;                    /* 0: none */
    struct sl_step_cost cost;              /* count 0: not measured */
    struct sl_whole_steps train, evaluate; /* whole steps that were compared; SL_COST_NONE: there were none */
};

/* quantization.json of a run; texts in one arena. */
struct sl_stored_quantization {
    struct sl_arena arena;
    struct sl_quantization layers; /* count 0: the run has none */
    uint64_t weights;              /* hash of those it was made for */
};

struct sl_session {
    struct sl_session_options options;
    struct sl_diagnostics *diagnostics; /* the caller's */
    struct sl_model *model;
    bool is_run;  /* opened from a run folder */
    bool replay;  /* the stored plan's thread count holds too: resume, --plan */
    bool changed; /* by --set or an overlay; the saved config is then written anew */
    char *folder; /* of the run; NULL before one is made */
    struct sl_memory memory;

    struct sl_data_state *state;
    struct sl_dataset *train_data;
    struct sl_dataset *valid_data;
    struct sl_batcher *train_batcher;
    struct sl_batcher *valid_batcher;
    struct sl_step_cost cost; /* count 0: not measured */

    struct sl_pool *pool;
    struct sl_registry *registry;
    struct sl_stored_plan stored;
    struct sl_stored_quantization quantization;
    struct sl_cost_cache *costs; /* NULL until something may be measured */

    struct sl_params *params;
    bool has_weights; /* params hold trained values */
    float *class_weights;
    struct sl_stage train;
    struct sl_stage evaluate;
    struct sl_stage predict;
    struct sl_decoding decoding; /* of the validation in training, or of the evaluation that is planned */
    struct sl_stage test;        /* of a run that has no validation: planned for what is said of memory */
    struct sl_decoding test_decoding;
    struct sl_sampling sampling; /* of training */
};

/* Makes graph and plan (and with `with_exec` parameters and executor) of one phase for the given envelope. */
seqlstm_status sl_session_prepare(struct sl_session *session, enum sl_phase phase, const struct sl_envelope *envelope,
                                  bool need_output, bool with_exec, const struct sl_quantization *quantization,
                                  struct sl_stage *stage, struct seqlstm_error *err);
/* For predictions, with executor; `carry_state`: one call goes on where the last one stopped; `layer`: whose output,
 * NULL for the model's. */
seqlstm_status sl_session_prepare_prediction(struct sl_session *session, const struct sl_envelope *envelope,
                                             bool carry_state, const struct sl_layer *layer, struct seqlstm_error *err);
/* Makes graph and plan (and with `with_exec` parameters and executor) as asked for. `profiles`: batches in place of
 * those that the session has of the phase; NULL. `choices`: in place of the stored plan's; NULL. */
seqlstm_status sl_session_prepare_stage(struct sl_session *session, const struct sl_graph_request *request,
                                        const struct sl_profiles *profiles, const struct sl_choices *choices,
                                        bool with_exec, struct sl_stage *stage, struct seqlstm_error *err);
/* Executor, and parameters if there are none yet, of a stage that is planned. */
seqlstm_status sl_session_open_exec(struct sl_session *session, struct sl_stage *stage, struct seqlstm_error *err);
void sl_stage_deinit(struct sl_stage *stage);

/* What a run holds beside the buffers of `plan`, as far as it is planned. Borrowed. */
struct sl_plan_beside sl_session_get_beside(const struct sl_session *session, const struct sl_plan *plan);

/* An evaluation that is looked at: every call of it, and its stage when it has ended. */
struct sl_evaluation_watch {
    sl_exec_watch_fn *on_call; /* NULL: none */
    seqlstm_status (*on_end)(void *context, const struct sl_stage *stage, struct seqlstm_error *err);
    void *context;
    const struct sl_quantization *quantization; /* instead of the run's */
};
seqlstm_status sl_session_evaluate_watched(struct sl_session *session, enum sl_split split,
                                           const struct sl_evaluation_watch *watch,
                                           struct sl_evaluation *out_evaluation, struct seqlstm_error *err);

/* Plans the evaluation of the test split that ends a run: reads it, and keeps the plans alone. */
seqlstm_status sl_session_plan_test(struct sl_session *session, struct seqlstm_error *err);

/* ---- int8 (stored_quantization.c) ------------------------------------------------------------------- */

/* Reads quantization.json of the run folder, if there is one. CORRUPT_DATA, NO_MEMORY. */
seqlstm_status sl_stored_quantization_read(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status sl_stored_quantization_write(struct sl_session *session, const struct sl_quantize_result *result,
                                            struct seqlstm_error *err);
/* Of the weights that the session has loaded. INVALID_CONFIG when int8 was calibrated for others. */
uint64_t sl_session_hash_weights(const struct sl_session *session);
seqlstm_status sl_stored_quantization_check(const struct sl_session *session, struct seqlstm_error *err);
/* NULL when the run has none. */
const struct sl_quantization *sl_session_find_quantization(const struct sl_session *session);

/* ---- texts of a decoder (decode.c, decoding.c) ------------------------------------------------------ */

/* Is it a model that writes texts? */
bool sl_session_decodes(const struct sl_session *session);
/* Choices that what is not measured follows: `own` of the stored plan, if any, and those of training (decoding.c). The
 * items are to be freed. NO_MEMORY. */
seqlstm_status sl_session_list_choices(const struct sl_session *session, const struct sl_choices *own, bool bound,
                                       struct sl_choices *out, struct seqlstm_error *err);
/* Graphs and plans for sources of the batches; what was planned before is gone. `attention`: it will keep what its
 * texts looked at. `exact`: for whoever says the memory, which takes longer. Errors: those of plans. */
seqlstm_status sl_decoding_plan(struct sl_session *session, const struct sl_batcher *batches, bool attention,
                                bool exact, struct sl_decoding *decoding, struct seqlstm_error *err);
/* Executors and decoder of what is planned. */
seqlstm_status sl_decoding_open(struct sl_session *session, struct sl_decoding *decoding, struct seqlstm_error *err);
/* Gives their buffers back; the plans stay. Nothing opened, or nothing planned, is fine, as it is for deinit. */
void sl_decoding_close(struct sl_decoding *decoding);
void sl_decoding_deinit(struct sl_decoding *decoding);
/* Throughput so far, for whoever looks at the log. */
void sl_session_note_decoding(const struct sl_session *session, const struct sl_decoder *decoder);
/* The same for the training's batches; nothing where the model's teacher forcing never samples. */
seqlstm_status sl_sampling_plan(struct sl_session *session, struct sl_sampling *sampling, struct seqlstm_error *err);
seqlstm_status sl_sampling_open(struct sl_session *session, struct sl_sampling *sampling, struct seqlstm_error *err);
void sl_sampling_deinit(struct sl_sampling *sampling);
/* Texts for all batches, in input order. */
seqlstm_status sl_session_decode(struct sl_session *session, const struct sl_dataset *data, struct sl_batcher *batcher,
                                 bool attention, sl_prediction_fn *write, void *context, struct seqlstm_error *err);
/* attention.c: what a text of a decoder looked at, in memory of the arena. NO_MEMORY. */
struct sl_arena;
seqlstm_status sl_session_view_attention(const struct sl_session *session, const struct sl_attention_trace *trace,
                                         const struct sl_batch *batch, int64_t sequence,
                                         const struct sl_hypothesis *text, struct sl_arena *arena,
                                         struct sl_prediction_attention *out, struct seqlstm_error *err);

/* Which sequence of the batch record first + n is: [sequences], to be freed. INTERNAL when one is missing. */
seqlstm_status sl_session_find_order(const struct sl_batch *batch, int64_t first_record, int64_t **out_sequences,
                                     struct seqlstm_error *err);

/* ---- measured dispatch (tuning.c) ------------------------------------------------------------------ */

/* What a plan of the phase may measure with. `profiles` is zeroed and becomes the caller's; without batches of the
 * phase they stay empty, and nothing is measured. */
seqlstm_status sl_session_open_tuning(struct sl_session *session, enum sl_phase phase, struct sl_profiles *profiles,
                                      struct sl_tuning *out_tuning, struct seqlstm_error *err);
/* whole_steps.c: a sl_whole_steps_fn. Buffers are those of one plan at a time, with parameters of their own. */
sl_whole_steps_fn sl_session_time_whole_steps;
/* made_batch.c: a batch of given lengths as the facts describe it: zeros, with weights of 1. Lengths do not increase;
 * `source_lengths` NULL: no source, `lengths` NULL: no steps. NO_MEMORY. */
seqlstm_status sl_session_make_batch(const struct sl_data_facts *facts, int64_t sequences, const int32_t *lengths,
                                     const int32_t *source_lengths, struct sl_batch **out_batch,
                                     struct seqlstm_error *err);
/* Keeps what was measured for the plan; what hinders it is logged and stops nobody. */
void sl_session_save_costs(struct sl_session *session, const struct sl_plan *plan);
/* Tells the plan what memory the process holds now, before buffers of the plan, and the most that it has held; 0 where
 * the system does not say. */
void sl_session_measure_process(struct sl_plan *plan);

/* misfit.c: weights at `path` of the run, that were not loaded because the configuration has other shapes
 * (INVALID_CONFIG), as a finding at the option that was changed. Returns `status`, and says nothing of others. */
seqlstm_status sl_session_find_misfit(struct sl_session *session, const char *path, seqlstm_status status,
                                      struct seqlstm_error *err);

/* Adds an error of a later phase to the findings, when it is of a kind that the user can mend: the place that
 * `err->where` names, else that of `key` (may be NULL). A message that ends in "; use …" becomes message and help.
 * Returns `status`. Codes: E0501 data, E0502 model against data, E0503 plan, E0504 backends, E0505 weights, E0506
 * options of a backend, E0507 weights of the run. */
seqlstm_status sl_session_find(struct sl_session *session, const char *code, const char *key, seqlstm_status status,
                               const struct seqlstm_error *err);
seqlstm_status sl_session_find_data_error(struct sl_session *session, enum sl_split split, seqlstm_status status,
                                          const struct seqlstm_error *err);
/* Notes the listed backends that are absent; UNAVAILABLE with a finding each for those that are required, and
 * INVALID_CONFIG for options that a backend does not have or take. */
seqlstm_status sl_session_find_missing_backends(struct sl_session *session, struct seqlstm_error *err);

/* NOT_FOUND and IO of a data file become CORRUPT_DATA, the class of all errors of data. */
seqlstm_status sl_session_blame_data(seqlstm_status status, struct seqlstm_error *err);

/* ---- batching (batching.c, step_cost.c) ----------------------------------------------------------- */

/* After the data was read. `bucketing: auto` measures the cost of a step, unless a stored plan holds the edges. */
seqlstm_status sl_session_open_train_batcher(struct sl_session *session, struct seqlstm_error *err);
/* With the edges of the training batcher. */
seqlstm_status sl_session_open_valid_batcher(struct sl_session *session, struct seqlstm_error *err);

/* Runs the training plan on batches made up, within the envelope. Changes no parameter that is not drawn anew
 * afterwards. No points for data without steps. */
seqlstm_status sl_session_measure_steps(struct sl_session *session, const struct sl_envelope *envelope,
                                        struct sl_step_cost *out, struct seqlstm_error *err);

/* For checkpoints: `,"batching":{"edges":[…]}` where edges were measured, else nothing. */
void sl_session_write_edges(const struct sl_session *session, struct sl_buf *out);
/* Reads "batching" of a plan's JSON; NULL: it has none. CORRUPT_DATA, NO_MEMORY. */
struct json_t;
seqlstm_status sl_stored_plan_read_batching(const char *path, const struct json_t *batching, struct sl_stored_plan *out,
                                            struct seqlstm_error *err);

/* Opens data and batchers of training; makes plans and executors of training and evaluation. */
seqlstm_status sl_session_prepare_training(struct sl_session *session, struct seqlstm_error *err);

/* Ready vectors and weights of another run into fresh parameters. */
seqlstm_status sl_session_load_initial(struct sl_session *session, struct seqlstm_error *err);

/* NOT_FOUND (of a run) or INVALID_ARGUMENT while nothing is learned of data: vocabulary, scaling and widths. */
seqlstm_status sl_session_require_trained(const struct sl_session *session, struct seqlstm_error *err);

/* Loads the final weights of the run, or of its newest checkpoint when it has not finished. */
seqlstm_status sl_session_load_weights(struct sl_session *session, struct seqlstm_error *err);

/* Hands out the predictions of the batch that ran last, in the order of records, which are first_record, … . `data` may
 * be NULL: no texts. */
seqlstm_status sl_session_hand_out(struct sl_session *session, const struct sl_dataset *data,
                                   const struct sl_batch *batch, int64_t first_record, sl_prediction_fn *write,
                                   void *context, struct seqlstm_error *err);

/* ---- run folders ---------------------------------------------------------------------------------- */

/* The folder for a new run: options.out_dir, or output.dir with {name} and {run} filled in (the next free
 * number). Makes it. INVALID_CONFIG when it exists and is not empty. Freed with free(). */
seqlstm_status sl_run_folder_make(const struct sl_model *model, const char *out_dir, char **out_folder,
                                  struct seqlstm_error *err);
/* Is a run there, finished or not? And anything to go on from, to evaluate or to predict with (run_name.c)? */
bool sl_run_folder_is_run(const char *path);
bool sl_run_folder_holds_weights(const char *path);

/* The folder that RUN means: itself, or the latest of runs/RUN that holds weights, else the latest (run_name.c). The
 * log (may be NULL) says where a newer one is passed over. NOT_FOUND. Freed with free(). */
seqlstm_status sl_run_folder_find(const char *run, const struct sl_log *log, char **out_folder,
                                  struct seqlstm_error *err);
/* Logs what differs from the configuration that the run had; returns how many keys. */
size_t sl_session_log_changes(const struct sl_session *session, const struct sl_model *before);

/* Writes a file of the run folder atomically. */
seqlstm_status sl_run_folder_write(const char *folder, const char *name, const void *data, size_t bytes,
                                   struct seqlstm_error *err);

seqlstm_status sl_run_folder_write_config(struct sl_session *session, struct seqlstm_error *err);
/* config.yaml (of a new run), data.json and plan.json. */
seqlstm_status sl_run_folder_write_setup(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status sl_run_folder_write_summary(struct sl_session *session, const struct sl_run_result *result,
                                           struct seqlstm_error *err);

/* Writes report.html; what keeps it from that is logged and stops nobody. */
void sl_report_write(const struct sl_session *session, const struct sl_run_result *result);

/* ---- data (sources.c) ----------------------------------------------------------------------------- */

/* Logs what reading a split, or what `name` says, dropped, cut or filled in, and what parallel streams leave over. */
void sl_session_note_split(const struct sl_session *session, enum sl_split split, const struct sl_dataset *data);
void sl_session_note_data(const struct sl_session *session, const char *name, const struct sl_dataset *data);
void sl_session_note_batches(const struct sl_session *session, enum sl_split split, const struct sl_batcher *batcher);

/* Writes the fingerprints of all data files into the run folder. */
seqlstm_status sl_sources_write(const struct sl_session *session, struct seqlstm_error *err);
/* Of a saved run: warns of files of the split that are not what the run began with. */
void sl_sources_check(const struct sl_session *session, enum sl_split split);

/* Reads layers, threads, devices and whole steps of a plan's JSON. NOT_FOUND, CORRUPT_DATA. */
seqlstm_status sl_stored_plan_read(const char *path, struct sl_stored_plan *out, struct seqlstm_error *err);

/* The comparison behind the choices of the phase; NULL: none. */
const struct sl_whole_steps *sl_stored_plan_find_whole_steps(const struct sl_stored_plan *stored, enum sl_phase phase);

/* How many threads the pool gets (0: auto): what the user says for this very command, else the stored plan's when it
 * is replayed. Says what differs from the plan. */
int32_t sl_stored_plan_choose_threads(const struct sl_session *session);

/* Warns of backends that compute on other devices, with other instructions, than those of the replayed plan. */
void sl_stored_plan_compare_devices(const struct sl_session *session);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan on batches. It decides nothing: it goes through prepared calls.
 *
 * An executor is a value: several may exist at once, on one set of parameters (train and evaluate), each with its own
 * buffers, carried states and bindings. One thread at a time per executor.
 *
 * Invariants:
 *  1. No backend is called with zero rows; sequences of length zero get h0 (or zero) as their final state.
 *  2. Buffers are sized once, from the plan; a step allocates nothing but bindings of shapes not seen recently.
 *  3. After a step in SL_PHASE_TRAIN, grads hold the gradient of this step, or the sum since the last step without
 *     `accumulate`.
 *  4. A training step whose calls all run on one device is captured by the device, with its update, the second time
 *     that its shape of batch occurs, and afterwards launched as a whole, with the same bits (capture/capture.c). Such
 *     steps, captured yet or not, can also be started one ahead of the other (sl_exec_start), again with the same bits.
 *  5. The buffers of a call are in the memory domain of its backend's device; where an edge of the graph crosses
 *     domains the executor copies (place/place.c). A step returns when all devices have finished it.
 */
#ifndef SL_EXEC_EXEC_H
#define SL_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/batch/batch.h"
#include "base/memory/memory.h"
#include "base/system/pool.h"
#include "dispatch/plan/plan.h"
#include "dispatch/stages/pipeline.h"
#include "exec/params/packed.h"
#include "exec/params/params.h"

struct sl_exec;

/* Exchanges floats with the executor of the stage after this one (`after`), or before it, in the order in which these
 * functions are called on both sides. */
typedef seqlstm_status sl_exec_exchange_fn(void *context, bool after, bool sends, float *values, int64_t elems,
                                           struct seqlstm_error *err);

/* One of several executors that run one training step together: each runs some calls of the plan, on the same batches.
 * It makes the gradients of the parameters that its calls use. A parameter that calls of several stages use is complete
 * in the first of them. The sums of the loss, and the output, are in the last. */
struct sl_exec_stage {
    int32_t first, end; /* of the plan's calls; end 0: all */
    sl_exec_exchange_fn *exchange;
    void *context;
};

struct sl_exec_request {
    const struct sl_plan *plan; /* must outlive the executor, as must all below */
    struct sl_params *params;
    struct sl_pool *pool;
    struct sl_memory *memory;       /* may be NULL */
    uint64_t seed;                  /* of the masks */
    const float *class_weights;     /* [classes], copied; NULL: all 1 */
    bool lean;                      /* PREDICT: use sl_exec_run_lean where possible */
    struct sl_exec_stage stage;     /* TRAIN; zeroed: it runs all calls */
    int32_t pieces;                 /* at most as many as the graph has; 0: as many */
    const struct sl_packed *packed; /* of the plan, in place of weights that the executor packs itself; NULL: none */
};

seqlstm_status sl_exec_create(const struct sl_exec_request *request, struct sl_exec **out_exec,
                              struct seqlstm_error *err);
void sl_exec_destroy(struct sl_exec *exec);

/* One update of all trainable parameters. It changes nothing if the loss of the last run or the sum of squares of the
 * gradients is not finite. */
struct sl_exec_update {
    uint64_t count; /* from 1: updates that have changed something, this one included */
    double learning_rate;
    bool skip; /* change nothing */
};

/* Rows of a parameter, by their ids; ids below 0 are none. */
typedef void sl_exec_rows_fn(void *context, int64_t offset, const int32_t *ids, int64_t count);

/* What the device needs in order to go on by itself while the host does not know yet how earlier steps have ended. */
struct sl_exec_course {
    uint64_t updates;    /* that have changed something before this step */
    double loss, weight; /* sums over the earlier steps of this update */
    bool goes_on; /* after an update whose loss or gradient is not finite: carried states begin at zero. Otherwise
                   * no later update changes anything */
    int64_t good_enough; /* the loss scale follows overflows, and is doubled after so many updates; 0: it does not */
    int64_t good;        /* updates since it changed */
    double scale_most;   /* the largest loss scale */
};

/* Options of one step. Zeroed: epoch 0, gradients overwritten. */
struct sl_exec_step {
    uint64_t epoch;    /* of the mask keys */
    double normaliser; /* TRAIN: factor of the gradient, e.g. 1 / sum of weights of the whole update */
    double loss_scale; /* TRAIN: another factor, a power of two, which the update removes again; 0: 1 */
    bool accumulate;   /* TRAIN: add to grads */
    const struct sl_exec_update *update; /* TRAIN: this run completes the gradients: make the update; NULL: not yet */
    uint32_t weight_mask_step;
    struct sl_exec_course course; /* TRAIN: for sl_exec_start */
    /* TRAIN: called during the backward pass, when the gradients of the parameters from element `from` on are complete
     * on the host. NULL: not called. A step need not call it. */
    void (*on_grads)(void *context, int64_t from);
    /* TRAIN: called before the backward pass for each embedding: its step will add to these rows of the gradient that
     * begins at element `offset`. NULL: not called; nor is it where parameters lie on devices. */
    sl_exec_rows_fn *on_rows;
    void *grads_context;
    const struct sl_batch *next; /* batch of the next run, or NULL: its fields are copied to the devices meanwhile. It
                                  * must stay unchanged until that run */
};

struct sl_exec_result {
    double loss_sum; /* weighted sum over the rows of the target; 0 in PREDICT */
    double weight_sum;
    int64_t rows;   /* real steps given to kernels (sequences for models without steps) */
    double squares; /* with an update: of the gradients, regularized and with clip_value, before clip_norm */
};

/* Forward, and backward in SL_PHASE_TRAIN. When batch->carry_state is false the carried states start at zero. Errors:
 * INVALID_ARGUMENT if the batch does not fit the plan's envelope (see sl_exec_fits) or its fields are not those of the
 * graph; errors of backends. */
seqlstm_status sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                           struct sl_exec_result *out_result, struct seqlstm_error *err);

/* ---- lean runs -------------------------------------------------------------------------------------------------- */

/* True if the request asked for it and all calls run on the host, without a loop. Then only the next function runs it.
 */
bool sl_exec_is_lean(const struct sl_exec *exec);

/* Forward of a batch whose input lies where that of the last one lay. It reads and writes the states in place, neither
 * clears nor carries them, and keeps no times. The second run of a shape allocates nothing, takes no lock and makes no
 * system call. Errors as sl_exec_run. */
seqlstm_status sl_exec_run_lean(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);

/* Where state s of the graph is read and written: [sequences of the envelope, features] on the host. */
float *sl_exec_get_state_in(const struct sl_exec *exec, int32_t s);
const float *sl_exec_get_state_out(const struct sl_exec *exec, int32_t s);

enum { SL_EXEC_AHEAD = 2 }; /* the most steps that are under way at once */

/* Starts a step in SL_PHASE_TRAIN without waiting for it, if all its calls run on one device that has captures;
 * sl_exec_wait fetches its result. A step may be started while another one is under way: update->count, loss_scale and
 * course then do not count, since the device goes on from its own. `*out_started` is false if nothing was started: the
 * caller then fetches all results and calls sl_exec_run. No other function but these two may be called while a step is
 * under way. Errors: as sl_exec_run, and those of earlier steps. */
seqlstm_status sl_exec_start(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                             bool *out_started, struct seqlstm_error *err);
/* Waits for the oldest step under way. */
seqlstm_status sl_exec_wait(struct sl_exec *exec, struct sl_exec_result *out_result, struct seqlstm_error *err);
/* The caller does other things before the next step: the time until then does not count as idle. */
void sl_exec_pause(struct sl_exec *exec);

/* As a run in SL_PHASE_TRAIN whose batch has no sequence: the sums of the loss, and without `accumulate` the gradients,
 * become zero. */
seqlstm_status sl_exec_run_empty(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err);

/* Does the batch fit the buffers? If not, a plan with a larger envelope is needed. */
bool sl_exec_fits(const struct sl_exec *exec, const struct sl_batch *batch);

/* Sum of the weights in the loss: rows with target >= 0, times row and class weights. */
double sl_exec_weigh(const struct sl_exec *exec, const struct sl_batch *batch);

/* The output of the last step, on the host: VALUES on the steps or the sequences axis. Valid until the next step, if
 * the graph needs it (output_needed) or predicts. */
struct sl_field sl_exec_get_output(const struct sl_exec *exec);

/* Carried states, for checkpoints: one flat buffer on the host, in the order of the last batch. May be read or written
 * until the next step. Errors: DEVICE. */
seqlstm_status sl_exec_get_state(struct sl_exec *exec, float **out_state, int64_t *out_elems,
                                 struct seqlstm_error *err);
void sl_exec_reset_state(struct sl_exec *exec);
/* Where state s of the graph begins in it: [sequences of the envelope, features], rows of the last batch first. */
int64_t sl_exec_get_state_offset(const struct sl_exec *exec, int32_t s);

const struct sl_graph *sl_exec_get_graph(const struct sl_exec *exec);

/* Flat operations on the plan's backend; SL_PHASE_TRAIN only. y and x lie in the host's flat parameter buffers, of
 * which the newest copy is used wherever it is, or in any other 64-byte aligned host buffer. */
seqlstm_status sl_exec_vector(struct sl_exec *exec, uint32_t kind, float *y, const float *x, int64_t elems, float alpha,
                              struct seqlstm_error *err);
/* An update without a run, with the present gradients. */
seqlstm_status sl_exec_update(struct sl_exec *exec, const struct sl_exec_update *update, double *out_squares,
                              struct seqlstm_error *err);

/* The update of a stage: of the parameters of the table with owned[p], in two steps, since a limit of the norm needs
 * the gradients of all stages. The bits do not depend on which stage owns what. All on the host.
 *
 * First: regularizes, limits, and sums the squares of each gradient; 0 for other parameters. */
seqlstm_status sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *update, const bool *owned,
                                   double *out_squares, struct seqlstm_error *err);
/* Then, with their sum over the parameters of all stages: the update. *out_squares as of sl_exec_update. */
seqlstm_status sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                    struct seqlstm_error *err);

/* Copies the memories that attention reads: from an executor of SL_PART_ENCODER, after its run, to one of
 * SL_PART_DECODER, whose batches must then have the same source (axis, and the place of each sequence's source).
 * Errors: INVALID_ARGUMENT, DEVICE. */
seqlstm_status sl_exec_hand_memories(struct sl_exec *encoder, struct sl_exec *decoder, struct seqlstm_error *err);

/* Where memory m of an executor of SL_PART_DECODER is on the host, to be written before its next run. */
float *sl_exec_write_memory(struct sl_exec *exec, int32_t m);

/* Called after each call of a forward pass that had rows, until another function is set; NULL: none. It may read the
 * tensors of the call's node with sl_exec_read. Its error ends the step. */
typedef seqlstm_status sl_exec_watch_fn(void *context, struct sl_exec *exec, const struct sl_node *node,
                                        struct seqlstm_error *err);
void sl_exec_watch(struct sl_exec *exec, sl_exec_watch_fn *watch, void *context);
/* The backend that runs a node of the graph: its id. */
const char *sl_exec_get_backend(const struct sl_exec *exec, const struct sl_node *node);
/* A float32 tensor of the running step, on the host: valid until the watcher returns. */
seqlstm_status sl_exec_read(struct sl_exec *exec, int32_t tensor, const float **out_values, int64_t *out_elems,
                            struct seqlstm_error *err);

/* Wall time spent in each call of the plan since creation, for reports: nanoseconds, forward and backward, number of
 * calls, and the rows of forward calls. Calls on a device count with the time that it took to start them. */
struct sl_exec_timing {
    int64_t forward_ns, backward_ns, calls, rows;
};
const struct sl_exec_timing *sl_exec_get_timing(const struct sl_exec *exec, int32_t *out_count);

/* Adds the times of the calls of the next steps to `times`, which has a place for each call of the plan and each piece
 * of a batch; NULL: no longer. Not for captured steps. */
void sl_exec_time_pieces(struct sl_exec *exec, struct sl_piece_times *times);

/* Captures of training steps on the device, since creation. */
struct sl_exec_captures {
    int64_t captured, launched;
    int64_t uncaptured; /* started call by call, without waiting for their end */
    int64_t ahead;      /* launched or started while the step before was still under way */
    int64_t gaps;       /* times that one step followed directly on another on the device, ... */
    double idle_ns;     /* ... and for how long the device had nothing to do in between, in all */
    char refusal[256];  /* the device's last message when a capture failed, so that the step ran call by call; "" */
};
const struct sl_exec_captures *sl_exec_get_captures(const struct sl_exec *exec);
/* Do training steps run as captures, once their shape of batch has come twice? */
bool sl_exec_can_capture(const struct sl_exec *exec);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the data of one case through one backend, with every buffer guarded and poisoned.
 *
 * The same code runs the backend under test and the reference. For the reference it uses the extension float64/0
 * (ext/draft/float64.h): every slot that is otherwise float32, gradients included, then holds float64. */
#ifndef SL_JUDGE_RUNNER_H
#define SL_JUDGE_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>
#include <seqlstm/ext/draft/float64.h>

#include "registry/domain.h"
#include "registry/host.h"
#include "judge/data.h"

/* One opened backend, one device, one queue. */
struct sl_subject {
    const struct seqlstm_backend *table;
    struct seqlstm_instance *instance;
    uint32_t device;
    const char *device_class;
    struct seqlstm_queue *queue;
    struct sl_domain *domain;              /* where its buffers are; the queue is that domain's. NULL: the host */
    const struct seqlstm_float64 *float64; /* the extension to use; NULL: the ordinary calls */
};

enum { SL_SEGMENTS_MAX = 4 };

/* How the steps are cut: segment k is [cuts[k], cuts[k + 1]). More than one segment needs a recurrent operation with
 * initial and final states. */
struct sl_cuts {
    int32_t count; /* 0: one segment, which is everything */
    int64_t at[SL_SEGMENTS_MAX + 1];
    struct sl_host *rebinds; /* the subject's: bindings are made for all steps, and get their segment by rebind/1, in
                              * which allocations fail. NULL: they are made for their segment */
    int32_t rebound;         /* counts changes of bindings by rebind/1 */
};

struct sl_runner;

/* Asks supports, creates the operation, allocates and binds. `variant` NULL: the first one of the answer. Errors:
 * UNSUPPORTED with the backend's reason; errors of the backend. `data` must outlive the runner. */
seqlstm_status sl_runner_create(const struct sl_subject *subject, const struct sl_data *data, const char *variant,
                                struct sl_cuts *cuts, struct sl_runner **out_runner, struct seqlstm_error *err);
void sl_runner_destroy(struct sl_runner *runner);

/* Each segment takes the binding of the next one, which rebind/1 changes. `cuts` are those of its creation, and count
 * the changes: with rebinds, and rebound > 0. */
seqlstm_status sl_runner_exchange_bindings(struct sl_runner *runner, struct sl_cuts *cuts, struct seqlstm_error *err);

/* Writes the inputs, poisons everything else, packs the weights, and runs forward over all segments. */
seqlstm_status sl_runner_forward(struct sl_runner *runner, struct seqlstm_error *err);

/* Poisons the gradients (with `accumulate` fills those of parameters with data->base), and runs backward over all
 * segments, last one first. Call it once after sl_runner_forward. `parts`: SEQLSTM_BIT_BACKWARD_…. */
seqlstm_status sl_runner_backward(struct sl_runner *runner, uint32_t parts, bool accumulate, struct seqlstm_error *err);

/* Reads the elements of an output after forward, or of a gradient after backward, as float64. Returns false if there
 * is none. */
bool sl_runner_read(const struct sl_runner *runner, int32_t slot, bool gradient, double *out);

/* Returns true if an input was changed or a byte outside of a buffer was written. `text` says which. */
bool sl_runner_find_damage(const struct sl_runner *runner, char *text, size_t capacity_bytes);

/* Asks which bytes of workspace and reserve the calls on this batch never touch. From then on both are poisoned only
 * before forward. `out_any`: the backend named some. Errors: the backend's; INTERNAL if it names more than there
 * are. One segment only. */
seqlstm_status sl_runner_ask_idle(struct sl_runner *runner, bool *out_any, struct seqlstm_error *err);
/* Returns true if some of these bytes have lost their poison. `text` says which. */
bool sl_runner_find_busy(const struct sl_runner *runner, char *text, size_t capacity_bytes);

/* Uses other values, of a case with equal shapes, from the next forward on. */
void sl_runner_set_data(struct sl_runner *runner, const struct sl_data *data);

/* For a runner with float64: moves slopes of activations by `distance` in backward (float64.h); 0: does not. */
void sl_runner_move_slopes(struct sl_runner *runner, double distance, uint64_t draw);

/* A hash of the bits of all outputs and gradients: equal for equal bits. */
uint64_t sl_runner_digest(const struct sl_runner *runner);

#endif

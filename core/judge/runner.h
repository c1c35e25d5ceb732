/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the data of one case through one backend, every buffer guarded and poisoned.
 *
 * The same code runs the backend under test and the reference; the latter through its extension float64/0
 * (ext/draft/float64.h): then every slot that is float32 otherwise, gradients included, holds float64.
 */
#ifndef SL_JUDGE_RUNNER_H
#define SL_JUDGE_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>
#include <seqlstm/ext/draft/float64.h>

#include "registry/domain.h"
#include "judge/data.h"

/* One opened backend, one device, one queue. */
struct sl_subject {
    const struct seqlstm_backend *table;
    struct seqlstm_instance *instance;
    uint32_t device;
    const char *device_class;
    struct seqlstm_queue *queue;
    struct sl_domain *domain;              /* where its buffers lie, the queue is the domain's; NULL: the host */
    const struct seqlstm_float64 *float64; /* its extension, to be used; NULL: the ordinary calls */
};

enum { SL_SEGMENTS_MAX = 4 };

/* How the steps are cut: segment k is [cuts[k], cuts[k + 1]). More than one segment needs a recurrent
 * operation with initial and final states. */
struct sl_cuts {
    int32_t count; /* 0 counts as one segment: everything */
    int64_t at[SL_SEGMENTS_MAX + 1];
};

struct sl_runner;

/* Asks supports, creates the op, allocates and binds. `variant` NULL: the first of the answer.
 * Errors: UNSUPPORTED with the backend's reason; whatever the backend returned. `data` must outlive it. */
seqlstm_status sl_runner_create(const struct sl_subject *subject, const struct sl_data *data, const char *variant,
                                const struct sl_cuts *cuts, struct sl_runner **out_runner, struct seqlstm_error *err);
void sl_runner_destroy(struct sl_runner *runner);

/* Writes the inputs, poisons everything else, packs the weights, runs forward over all segments. */
seqlstm_status sl_runner_forward(struct sl_runner *runner, struct seqlstm_error *err);

/* Poisons the gradients (with `accumulate` fills those of parameters with data->base), runs backward
 * over all segments, last first. After sl_runner_forward, once. `parts` of SEQLSTM_BIT_BACKWARD_…. */
seqlstm_status sl_runner_backward(struct sl_runner *runner, uint32_t parts, bool accumulate, struct seqlstm_error *err);

/* Elements of an output after forward, or of a gradient after backward, as float64. False: there is none. */
bool sl_runner_read(const struct sl_runner *runner, int32_t slot, bool gradient, double *out);

/* True when an input was changed or a byte beside a buffer written; `text` says which. */
bool sl_runner_find_damage(const struct sl_runner *runner, char *text, size_t capacity_bytes);

/* Asks what of workspace and reserve calls on this batch never touch; from then on both are poisoned before forward
 * alone. `out_any`: something was said. Errors: the backend's; INTERNAL: more than there is. One segment only. */
seqlstm_status sl_runner_ask_idle(struct sl_runner *runner, bool *out_any, struct seqlstm_error *err);
/* True when some of it does not hold its poison any more; `text` says what. */
bool sl_runner_find_busy(const struct sl_runner *runner, char *text, size_t capacity_bytes);

/* Other values, of a case of equal shape: the next forward reads them. */
void sl_runner_set_data(struct sl_runner *runner, const struct sl_data *data);

/* Of a runner with float64: slopes of activations are moved by `distance` in backward (float64.h); 0: not. */
void sl_runner_move_slopes(struct sl_runner *runner, double distance, uint64_t draw);

/* Raw bits of all outputs and gradients, mixed: equal for equal bits. */
uint64_t sl_runner_digest(const struct sl_runner *runner);

#endif

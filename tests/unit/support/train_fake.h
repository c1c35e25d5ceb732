/* SPDX-License-Identifier: Apache-2.0 */
/* A small world for the trainer: linear regression with a carried state, whose executor and batcher are a few
 * lines each. The functions replace those of core/exec and core/data: weak, so that the linker takes them and
 * leaves the real ones in their libraries. Every number is a pure function of (epoch, ordinal, weights, states), as the
 * contract of the real ones says.
 *
 * The model is y = w x + b + s, s' = s / 2 + x / 4 carried; loss (y - target)^2.
 */
#ifndef SL_TESTS_TRAIN_FAKE_H
#define SL_TESTS_TRAIN_FAKE_H

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/interrupt.h"
#include "data/batch/batcher.h"
#include "data/batch/prefetch.h"
#include "data/dataset/state.h"
#include "decode/decoder.h"
#include "decode/sampler.h"
#include "exec/exec.h"
#include "exec/params/params.h"

#define WEAK __attribute__((weak))

enum { FAKE_SEQUENCES = 4, FAKE_STEPS = 3, FAKE_FEATURES = 3, FAKE_ELEMS = 32, FAKE_RUNS = 72 };

/* ---- batches ---------------------------------------------------------------------------------------- */

struct sl_batcher {
    int64_t batches;  /* of an epoch */
    int64_t estimate; /* of these, as it is told; 0: exact */
    int64_t segments; /* > 1: unit: sequence with bptt, so many segments a batch */
    bool stream;
    bool evaluate;
    uint64_t epoch, ordinal;
    int fail_at;    /* calls of next until one fails; 0: never */
    double ignored; /* share of the targets that weigh nothing, by hash */
};

static inline double fake_uniform(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c * 0x94d049bb133111ebu + 1;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

WEAK seqlstm_status sl_batcher_next(struct sl_batcher *batcher, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    static const int32_t lengths[FAKE_SEQUENCES] = {FAKE_STEPS, FAKE_STEPS, FAKE_STEPS, FAKE_STEPS - 1};
    if (batcher->fail_at > 0 && --batcher->fail_at == 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "the disk is gone");
    if ((int64_t)batcher->ordinal == batcher->batches) {
        batcher->epoch++;
        batcher->ordinal = 0;
        *out_batch = NULL;
        return SEQLSTM_OK;
    }
    struct sl_batch_shape shape = {
        .sequences = FAKE_SEQUENCES,
        .lengths = lengths,
        .input_kind = SL_FIELD_VALUES,
        .input_features = FAKE_FEATURES,
        .input_on_steps = true,
        .target_kind = SL_FIELD_VALUES,
        .target_features = 1,
        .target_on_steps = true,
        .has_weight = true,
    };
    struct sl_batch *batch = NULL;
    SEQLSTM_TRY(sl_batch_create(&shape, &batch, err));
    float *x = (float *)batch->input.values, *y = (float *)batch->target.values;
    float *weights = (float *)batch->weight.values;
    uint64_t epoch = batcher->evaluate ? 1000 : batcher->epoch;
    for (int64_t r = 0; r < batch->axis.rows; r++) {
        double sum = 0.3;
        for (int64_t f = 0; f < FAKE_FEATURES; f++) {
            double value = fake_uniform(epoch, batcher->ordinal, (uint64_t)(r * 8 + f));
            x[r * FAKE_FEATURES + f] = (float)value;
            sum += (double)(f + 1) * value;
        }
        y[r] = (float)(sum + 0.1 * fake_uniform(epoch + 7, batcher->ordinal, (uint64_t)r));
        weights[r] = fake_uniform(epoch, batcher->ordinal, (uint64_t)(r + 999)) < batcher->ignored ? 0.0f : 1.0f;
    }
    int64_t segments = batcher->segments > 1 ? batcher->segments : 1;
    batch->ordinal = batcher->ordinal;
    batch->carry_state = batcher->stream ? batcher->ordinal > 0 : (int64_t)batcher->ordinal % segments > 0;
    batch->last_segment = batcher->stream ? (int64_t)batcher->ordinal + 1 == batcher->batches
                                          : (int64_t)batcher->ordinal % segments == segments - 1;
    batcher->ordinal++;
    *out_batch = batch;
    return SEQLSTM_OK;
}

WEAK seqlstm_status sl_batcher_seek(struct sl_batcher *batcher, uint64_t epoch, uint64_t ordinal,
                                    struct seqlstm_error *err)
{
    if ((int64_t)ordinal > batcher->batches)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "beyond the end");
    batcher->epoch = epoch;
    batcher->ordinal = ordinal;
    return SEQLSTM_OK;
}

WEAK const struct sl_dataset *sl_batcher_get_dataset(const struct sl_batcher *batcher)
{
    (void)batcher;
    return NULL; /* nothing is written here */
}

WEAK int64_t sl_batcher_get_batches(const struct sl_batcher *batcher)
{
    return batcher->estimate ? batcher->estimate : batcher->batches;
}

WEAK struct sl_envelope sl_batcher_envelope(const struct sl_batcher *batcher)
{
    (void)batcher;
    return (struct sl_envelope){.sequences = FAKE_SEQUENCES, .steps = FAKE_STEPS, .rows = FAKE_SEQUENCES * FAKE_STEPS};
}

struct sl_prefetch {
    struct sl_batcher *batcher;
};

WEAK seqlstm_status sl_prefetch_create(struct sl_batcher *batcher, int depth, struct sl_prefetch **out_prefetch,
                                       struct seqlstm_error *err)
{
    (void)depth;
    struct sl_prefetch *prefetch = malloc(sizeof *prefetch);
    if (!prefetch)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    prefetch->batcher = batcher;
    *out_prefetch = prefetch;
    return SEQLSTM_OK;
}

WEAK seqlstm_status sl_prefetch_next(struct sl_prefetch *prefetch, struct sl_batch **out_batch,
                                     struct seqlstm_error *err)
{
    return sl_batcher_next(prefetch->batcher, out_batch, err);
}

WEAK int64_t sl_prefetch_get_wait_ns(const struct sl_prefetch *prefetch)
{
    (void)prefetch;
    return 0;
}

WEAK void sl_prefetch_destroy(struct sl_prefetch *prefetch)
{
    free(prefetch);
}

WEAK const struct sl_scaling *sl_data_state_find_target_scaling(const struct sl_data_state *state)
{
    (void)state;
    return NULL;
}

/* ---- executor ----------------------------------------------------------------------------------------- */

/* w [1, 3] at 0, b [1] at 16, and a frozen vector at 24, as sl_params lays them out. */
struct fake_params {
    struct sl_params params;
    struct sl_param_view views[3];
    float values[FAKE_ELEMS], grads[FAKE_ELEMS], m[FAKE_ELEMS], v[FAKE_ELEMS];
};

static inline void fake_params_init(struct fake_params *fake)
{
    memset(fake, 0, sizeof *fake);
    fake->views[0] = (struct sl_param_view){"dense.w", 1, FAKE_FEATURES, 0, FAKE_FEATURES, 0, true, {0.001, 0.01}};
    fake->views[1] = (struct sl_param_view){"dense.bias", 1, 1, 16, 1, 0, true, {0, 0}};
    fake->views[2] = (struct sl_param_view){"frozen.w", 2, 1, 24, 2, 0, false, {0, 0}};
    fake->params = (struct sl_params){
        .views = fake->views,
        .view_count = 3,
        .elems = FAKE_ELEMS,
        .trainable_elems = 24,
        .param_elems = 6,
        .values = fake->values,
        .grads = fake->grads,
        .states = {fake->m, fake->v, NULL},
    };
    fake->values[0] = 0.5f;
    fake->values[1] = -0.25f;
    fake->values[24] = 3;
    fake->values[25] = 4;
}

/* Steps that are started before the results of others are fetched. */
struct fake_ahead {
    bool possible;
    int64_t started, waited;
    int64_t most; /* steps started while another was under way */
    struct sl_exec_result results[SL_EXEC_AHEAD];
    uint64_t updates;
    double loss, weight;
    bool stopped, reset;
};

struct sl_exec {
    struct sl_params *params;
    bool training;
    double class_weight; /* of all rows, as if of one class */
    float output[FAKE_SEQUENCES * FAKE_STEPS];
    float state[FAKE_SEQUENCES];
    int runs;
    int fail_at;                    /* the n-th run fails, as if the process were gone; 0: never */
    int stop_at;                    /* in the n-th run the user stops the training ... */
    struct sl_interrupt *interrupt; /* ... by this */
    int poison_at;                  /* the n-th run has a loss of NaN, ... */
    double poison;                  /* ... or with this added to it; 0: NaN */
    int poison_grad_at;             /* its gradient is infinite */
    int poison_count;               /* for so many runs from then on */
    double last_normaliser;
    uint32_t mask_steps[FAKE_RUNS]; /* of the first runs */
    int accumulated;
    uint64_t last_update;
    struct fake_ahead ahead;
    bool watched; /* the run ends at once: there is no call to watch */
};

WEAK void sl_exec_watch(struct sl_exec *exec, sl_exec_watch_fn *watch, void *context)
{
    (void)context;
    exec->watched = watch != NULL;
}

WEAK seqlstm_status sl_exec_read(struct sl_exec *exec, int32_t tensor, const float **out_values, int64_t *out_elems,
                                 struct seqlstm_error *err)
{
    (void)exec;
    (void)tensor;
    (void)out_values;
    (void)out_elems;
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "there is no tensor");
}

WEAK const char *sl_exec_get_backend(const struct sl_exec *exec, const struct sl_node *node)
{
    (void)exec;
    (void)node;
    return "fake";
}

static inline bool fake_is_poisoned(const struct sl_exec *exec, int at)
{
    return at > 0 && exec->runs >= at && exec->runs < at + exec->poison_count;
}

WEAK double sl_exec_weigh(const struct sl_exec *exec, const struct sl_batch *batch)
{
    (void)exec;
    double sum = 0;
    for (int64_t r = 0; r < batch->axis.rows; r++)
        sum += (double)batch->weight.values[r];
    return sum;
}

WEAK void sl_exec_reset_state(struct sl_exec *exec)
{
    memset(exec->state, 0, sizeof exec->state);
}

WEAK seqlstm_status sl_exec_get_state(struct sl_exec *exec, float **out_state, int64_t *out_elems,
                                      struct seqlstm_error *err)
{
    (void)err;
    *out_elems = FAKE_SEQUENCES;
    *out_state = exec->state;
    return SEQLSTM_OK;
}

WEAK struct sl_field sl_exec_get_output(const struct sl_exec *exec)
{
    return (struct sl_field){.kind = SL_FIELD_VALUES, .on_steps = true, .features = 1, .values = exec->output};
}

/* Adam, so that both states and the number of the update matter. */
static inline void fake_update(struct sl_exec *exec, const struct sl_exec_update *update, struct sl_exec_result *result)
{
    struct sl_params *params = exec->params;
    float c1 = 1 - powf(0.9f, (float)update->count), c2 = 1 - powf(0.99f, (float)update->count);
    for (int64_t i = 0; i < params->trainable_elems; i++)
        result->squares += (double)params->grads[i] * (double)params->grads[i];
    if (update->skip || !isfinite(result->loss_sum) || !isfinite(result->squares))
        return;
    for (int64_t i = 0; i < params->trainable_elems; i++) {
        float g = params->grads[i];
        params->states[0][i] += 0.1f * (g - params->states[0][i]);
        params->states[1][i] += 0.01f * (g * g - params->states[1][i]);
        params->values[i] -=
            (float)update->learning_rate * (params->states[0][i] / c1) / (sqrtf(params->states[1][i] / c2) + 1e-7f);
    }
    exec->last_update = update->count;
    params->version++;
}

WEAK seqlstm_status sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                struct sl_exec_result *out_result, struct seqlstm_error *err)
{
    if (exec->watched)
        SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "nothing was found");
    exec->runs++;
    if (exec->fail_at > 0 && exec->runs == exec->fail_at)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "run %d failed on purpose", exec->runs);
    if (exec->stop_at > 0 && exec->runs == exec->stop_at)
        atomic_store(&exec->interrupt->stop, 15);
    struct sl_params *params = exec->params;
    if (!batch->carry_state)
        sl_exec_reset_state(exec);
    if (exec->training) {
        exec->last_normaliser = step->normaliser;
        if (exec->runs <= FAKE_RUNS)
            exec->mask_steps[exec->runs - 1] = step->weight_mask_step;
        exec->accumulated = step->accumulate ? exec->accumulated + 1 : 1;
        if (!step->accumulate)
            memset(params->grads, 0, FAKE_ELEMS * sizeof(float));
    }
    struct sl_exec_result result = {.rows = batch->axis.rows};
    for (int64_t t = 0; t < batch->axis.steps; t++)
        for (int64_t k = 0; k < batch->axis.batch_sizes[t]; k++) {
            int64_t r = sl_batch_row(batch, k, t);
            const float *x = batch->input.values + r * FAKE_FEATURES;
            float y = params->values[16] + exec->state[k];
            for (int f = 0; f < FAKE_FEATURES; f++)
                y += params->values[f] * x[f];
            exec->output[r] = y;
            double weight = (double)batch->weight.values[r], error = (double)y - (double)batch->target.values[r];
            result.loss_sum += weight * error * error;
            result.weight_sum += weight;
            exec->state[k] = exec->state[k] / 2 + x[0] / 4;
            float g = (float)(2 * error * weight * step->normaliser);
            for (int f = 0; exec->training && f < FAKE_FEATURES; f++)
                params->grads[f] += g * x[f];
            if (exec->training)
                params->grads[16] += g;
        }
    if (fake_is_poisoned(exec, exec->poison_at))
        result.loss_sum += exec->poison == 0 ? (double)NAN : exec->poison;
    for (int k = 0; k < FAKE_SEQUENCES && !isfinite(result.loss_sum); k++)
        exec->state[k] = NAN; /* what was not finite is carried on */
    if (fake_is_poisoned(exec, exec->poison_grad_at))
        params->grads[1] = INFINITY;
    if (step->update)
        fake_update(exec, step->update, &result);
    *out_result = result;
    return SEQLSTM_OK;
}

/* A device that goes on by itself: it counts updates, and knows when nothing may change any more. */
static inline void fake_judge(struct sl_exec *exec, const struct sl_exec_step *step,
                              const struct sl_exec_result *result)
{
    struct fake_ahead *ahead = &exec->ahead;
    ahead->loss += result->loss_sum;
    ahead->weight += result->weight_sum;
    ahead->reset = false;
    if (step->update == NULL || ahead->weight == 0 || ahead->stopped)
        return;
    const bool sound = isfinite(ahead->loss) && isfinite(result->squares);
    ahead->updates += sound;
    ahead->reset = !sound && step->course.goes_on;
    ahead->stopped = !sound && !step->course.goes_on;
}

WEAK seqlstm_status sl_exec_start(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  bool *out_started, struct seqlstm_error *err)
{
    struct fake_ahead *ahead = &exec->ahead;
    *out_started = ahead->possible && ahead->started - ahead->waited < SL_EXEC_AHEAD;
    if (!*out_started)
        return SEQLSTM_OK;
    const bool settled = ahead->started == ahead->waited;
    struct sl_exec_update update = step->update ? *step->update : (struct sl_exec_update){0};
    struct sl_exec_step own = *step;
    if (settled) {
        ahead->updates = step->course.updates;
        ahead->loss = step->course.loss;
        ahead->weight = step->course.weight;
        ahead->stopped = false;
    } else {
        ahead->most++;
        if (!step->accumulate)
            ahead->loss = ahead->weight = 0;
        if (ahead->reset)
            sl_exec_reset_state(exec);
        update.count = ahead->updates + 1;
        update.skip |= ahead->stopped || !isfinite(ahead->loss);
    }
    if (own.update)
        own.update = &update;
    struct sl_exec_result *result = &ahead->results[ahead->started++ % SL_EXEC_AHEAD];
    SEQLSTM_TRY(sl_exec_run(exec, batch, &own, result, err));
    fake_judge(exec, step, result);
    return SEQLSTM_OK;
}

WEAK seqlstm_status sl_exec_wait(struct sl_exec *exec, struct sl_exec_result *out_result, struct seqlstm_error *err)
{
    if (exec->ahead.waited == exec->ahead.started)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "there is nothing to wait for");
    *out_result = exec->ahead.results[exec->ahead.waited++ % SL_EXEC_AHEAD];
    return SEQLSTM_OK;
}

WEAK void sl_exec_pause(struct sl_exec *exec)
{
    (void)exec;
}

WEAK seqlstm_status sl_exec_update(struct sl_exec *exec, const struct sl_exec_update *update, double *out_squares,
                                   struct seqlstm_error *err)
{
    struct sl_exec_result result = {0};
    (void)err;
    fake_update(exec, update, &result);
    *out_squares = result.squares;
    return SEQLSTM_OK;
}

WEAK seqlstm_status sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *update, const bool *owned,
                                        double *out_squares, struct seqlstm_error *err)
{
    (void)exec, (void)update, (void)owned, (void)out_squares;
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "there are no stages");
}

WEAK seqlstm_status sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                         struct seqlstm_error *err)
{
    (void)exec, (void)owned, (void)squares, (void)out_squares;
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "there are no stages");
}

WEAK seqlstm_status sl_exec_run_empty(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err)
{
    (void)err;
    if (!step->accumulate)
        memset(exec->params->grads, 0, FAKE_ELEMS * sizeof(float));
    return SEQLSTM_OK;
}

WEAK bool sl_exec_can_capture(const struct sl_exec *exec)
{
    (void)exec;
    return false;
}

/* One state of one feature for each sequence. */
WEAK const struct sl_graph *sl_exec_get_graph(const struct sl_exec *exec)
{
    static struct sl_state states[] = {{.features = 1}};
    static const struct sl_graph graph = {.state_count = 1, .states = states};
    (void)exec;
    return &graph;
}

WEAK int64_t sl_exec_get_state_offset(const struct sl_exec *exec, int32_t s)
{
    (void)exec, (void)s;
    return 0;
}

WEAK seqlstm_status sl_exec_vector(struct sl_exec *exec, uint32_t kind, float *y, const float *x, int64_t elems,
                                   float alpha, struct seqlstm_error *err)
{
    (void)exec;
    for (int64_t i = 0; i < elems; i++)
        switch (kind) {
        case SEQLSTM_KIND_VECTOR_LERP:
            y[i] += alpha * (x[i] - y[i]);
            break;
        default:
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "vector operation %u", kind);
        }
    return SEQLSTM_OK;
}

WEAK const struct sl_param_view *sl_params_find(const struct sl_params *params, const char *name)
{
    for (int32_t i = 0; i < params->view_count; i++)
        if (strcmp(params->views[i].name, name) == 0)
            return &params->views[i];
    return NULL;
}

/* ---- texts: there are none ------------------------------------------------------------------------ */

WEAK seqlstm_status sl_decoder_run(struct sl_decoder *decoder, const struct sl_batch *batch, struct seqlstm_error *err)
{
    (void)decoder, (void)batch;
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "there is no decoder");
}

WEAK struct sl_hypothesis sl_decoder_get_result(struct sl_decoder *decoder, int64_t sequence, int32_t rank)
{
    (void)decoder, (void)sequence, (void)rank;
    return (struct sl_hypothesis){0};
}

WEAK seqlstm_status sl_sampler_mix(struct sl_sampler *sampler, struct sl_batch *batch, double probability,
                                   uint64_t epoch, int64_t *out_own, struct seqlstm_error *err)
{
    (void)sampler, (void)batch, (void)probability, (void)epoch, (void)out_own;
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "there is no sampler");
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Times whole steps of two plans: forward, and in training backward and an update that changes nothing, through the
 * executor, on batches with the lengths of the data and random contents.
 *
 * The plans take turns. A turn makes an executor, warms it up, times a few steps and destroys it, so that no more
 * memory is used than by a run, and each plan finds the caches filled with its own data, as in a run.
 */
#include "session/measure/whole_steps.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "dispatch/cost/rounds.h"
#include "dispatch/plan/capture.h"
#include "dispatch/planner.h"
#include "exec/exec.h"
#include "session/measure/made_batch.h"

enum {
    BATCHES = 3, /* as many at once as a run has */
    ROUNDS_LEAST = 3,
    ROUNDS_SURE = 6,   /* from here on a difference counts */
    REPEATS_MOST = 200 /* steps of a turn */
};
static const double turn_ns = 2e6, shortest = 0.125; /* the least share of the lengths that cutting leaves */

struct timing {
    const struct sl_whole_steps_request *request;
    const struct sl_graph *graph;
    struct sl_params *params;
    struct sl_batch *batches[BATCHES];
    double weights[BATCHES];
    int32_t count, repeats;
    double scale; /* from these batches to a mean one */
    struct sl_rounds rounds[2];
};

/* ---- batches and parameters ---- */

/* In [0, 1) */
static float draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-24f;
}

/* Ids of all classes; values in [least, least + 1). */
static void fill_field(const struct sl_field *field, int64_t rows, int64_t classes, float least)
{
    uint32_t state = 12345;
    int32_t *ids = (int32_t *)(uintptr_t)field->ids;
    float *values = (float *)(uintptr_t)field->values;
    for (int64_t i = 0; field->kind == SL_FIELD_IDS && i < rows; i++)
        ids[i] = (int32_t)(draw(&state) * (float)classes) % (int32_t)(classes > 0 ? classes : 1);
    for (int64_t i = 0; field->kind == SL_FIELD_VALUES && i < rows * field->features; i++)
        values[i] = draw(&state) + least;
}

static int32_t *cut(const int32_t *lengths, int64_t sequences, int32_t most)
{
    int32_t *cut = lengths ? malloc((size_t)(sequences > 0 ? sequences : 1) * sizeof *cut) : NULL;
    for (int64_t k = 0; cut && k < sequences; k++)
        cut[k] = lengths[k] < most ? lengths[k] : most;
    return cut;
}

/* A batch of the profile whose lengths are cut to `share` of the longest. */
static seqlstm_status make_batch(const struct timing *timing, const struct sl_profile *profile, double share,
                                 struct sl_batch **out_batch, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = &timing->graph->facts;
    const int32_t *own = profile->lengths, *sources = profile->source_lengths;
    int32_t *lengths = cut(own, profile->sequences, own ? (int32_t)(share * own[0] + 0.999) : 0);
    int32_t *source_lengths = cut(sources, profile->sequences, sources ? (int32_t)(share * sources[0] + 0.999) : 0);
    bool complete = (lengths || !own) && (source_lengths || !sources);
    seqlstm_status status =
        complete ? sl_session_make_batch(facts, profile->sequences, lengths, source_lengths, out_batch, err)
                 : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a batch");
    free(lengths);
    free(source_lengths);
    SEQLSTM_TRY(status);
    struct sl_batch *batch = *out_batch;
    const int64_t rows = batch->axis.rows, sequences = batch->sequences;
    fill_field(&batch->input, batch->input.on_steps ? rows : sequences, facts->input.classes, -0.5f);
    fill_field(&batch->target, batch->target.on_steps ? rows : sequences, facts->target.classes, 0);
    if (batch->source.present)
        fill_field(&batch->source.input, batch->source.axis.rows, facts->source.classes, -0.5f);
    batch->axis.flags |= timing->request->tuning->profiles->stream ? SEQLSTM_BIT_AXIS_STREAM : 0;
    return SEQLSTM_OK;
}

static double get_rows(const struct sl_batch *batch)
{
    return (double)(batch->has_steps ? batch->axis.rows : batch->sequences);
}

/* The time of the cheaper plan's operations for a mean batch. */
static double predict(const struct sl_whole_steps_request *request)
{
    double least = 0;
    for (int w = 0; w < 2; w++) {
        double ns = 0;
        for (int32_t c = 0; c < request->plans[w]->call_count; c++)
            ns += request->plans[w]->calls[c].cost.forward_ns + request->plans[w]->calls[c].cost.backward_ns;
        least = w == 0 || ns < least ? ns : least;
    }
    return least < 1 ? 1 : least;
}

/* The second run of a shape is captured if the device can. */
static int32_t count_warm_ups(const struct sl_plan *plan)
{
    return sl_plan_find_capture(plan).possible ? 2 : 1;
}

/* Makes batches of the middle profiles, as many as there is time for; cut if there is not enough for one. count 0: not
 * even for that. */
static seqlstm_status make_batches(struct timing *timing, struct seqlstm_error *err)
{
    const struct sl_profiles *profiles = timing->request->tuning->profiles;
    const double step_ns = predict(timing->request), budget_ns = timing->request->seconds * 1e9;
    const double turns = 2 * ROUNDS_LEAST * (1 + count_warm_ups(timing->request->plans[0])); /* for each batch */
    const int32_t fitting = (int32_t)(budget_ns / (turns * step_ns)), most = fitting < BATCHES ? fitting : BATCHES;
    const int32_t count = most < 1 ? 1 : most < profiles->count ? most : profiles->count;
    const int32_t first = (profiles->count - count) / 2;
    const double share = fitting >= 1 ? 1 : budget_ns / (turns * step_ns);
    double all = 0, here = 0;
    if (share < shortest || (share < 1 && !profiles->items[first].lengths))
        return SEQLSTM_OK;
    for (int32_t p = 0; p < profiles->count; p++)
        all += profiles->items[p].weight * (double)sl_profile_get_rows(&profiles->items[p]);
    for (; timing->count < count; timing->count++) {
        const struct sl_profile *profile = &profiles->items[first + timing->count];
        SEQLSTM_TRY(make_batch(timing, profile, share, &timing->batches[timing->count], err));
        timing->weights[timing->count] = profile->weight;
        here += profile->weight * get_rows(timing->batches[timing->count]);
    }
    timing->scale = here > 0 ? all / here : 0;
    const double repeats = turn_ns / (step_ns * share * count);
    timing->repeats = repeats < 1 ? 1 : repeats < REPEATS_MOST ? (int32_t)repeats : REPEATS_MOST;
    return SEQLSTM_OK;
}

static seqlstm_status make_params(struct timing *timing, struct seqlstm_error *err)
{
    uint32_t state = 54321;
    bool training = timing->graph->phase == SL_PHASE_TRAIN;
    int32_t states = training ? timing->request->optimizer_states : 0;
    SEQLSTM_TRY(sl_params_create(timing->graph, training, states, NULL, &timing->params, err));
    for (int32_t v = 0; v < timing->params->view_count; v++) {
        const struct sl_param_view *view = &timing->params->views[v];
        for (int64_t i = 0; i < view->elems; i++)
            timing->params->values[view->offset_elems + i] = 0.1f * (draw(&state) - 0.5f);
    }
    sl_params_touch(timing->params);
    return SEQLSTM_OK;
}

/* ---- turns ---- */

static struct sl_exec_step make_step(const struct timing *timing, const struct sl_exec *exec,
                                     const struct sl_batch *batch, const struct sl_exec_update *update)
{
    const bool training = timing->graph->phase == SL_PHASE_TRAIN;
    const double weight = training ? sl_exec_weigh(exec, batch) : 0;
    return (struct sl_exec_step){.normaliser = weight > 0 ? 1 / weight : 0, .update = training ? update : NULL};
}

/* Runs `count` steps on a batch; training starts them one ahead of the other, where it can. */
static seqlstm_status run_steps(const struct timing *timing, struct sl_exec *exec, const struct sl_batch *batch,
                                int32_t count, double *out_ns, struct seqlstm_error *err)
{
    const struct sl_exec_update update = {.count = 1};
    const struct sl_exec_step step = make_step(timing, exec, batch, &update);
    struct sl_exec_result result;
    int32_t under_way = 0;
    const int64_t start = sl_clock_ns();
    for (int32_t k = 0; k < count; k++) {
        bool started = false;
        if (sl_interrupt_get_stop(timing->request->tuning->interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted while plans were timed");
        for (; under_way >= SL_EXEC_AHEAD; under_way--)
            SEQLSTM_TRY(sl_exec_wait(exec, &result, err));
        if (timing->graph->phase == SL_PHASE_TRAIN)
            SEQLSTM_TRY(sl_exec_start(exec, batch, &step, &started, err));
        under_way += started;
        for (; !started && under_way > 0; under_way--)
            SEQLSTM_TRY(sl_exec_wait(exec, &result, err));
        if (!started)
            SEQLSTM_TRY(sl_exec_run(exec, batch, &step, &result, err));
    }
    for (; under_way > 0; under_way--)
        SEQLSTM_TRY(sl_exec_wait(exec, &result, err));
    *out_ns = (double)(sl_clock_ns() - start);
    return SEQLSTM_OK;
}

static seqlstm_status time_steps(struct timing *timing, struct sl_exec *exec, const struct sl_plan *plan,
                                 struct sl_rounds *rounds, struct seqlstm_error *err)
{
    double ns, sum = 0;
    for (int32_t b = 0; b < timing->count; b++)
        SEQLSTM_TRY(run_steps(timing, exec, timing->batches[b], count_warm_ups(plan), &ns, err));
    const int64_t preemptions = sl_rounds_count_preemptions();
    for (int32_t b = 0; b < timing->count; b++) {
        SEQLSTM_TRY(run_steps(timing, exec, timing->batches[b], timing->repeats, &ns, err));
        sum += timing->weights[b] * ns / timing->repeats;
    }
    sl_rounds_add(rounds, sum, 0, sl_rounds_count_preemptions() > preemptions);
    return SEQLSTM_OK;
}

static seqlstm_status take_turn(struct timing *timing, int w, struct seqlstm_error *err)
{
    const struct sl_plan *plan = timing->request->plans[w];
    const struct sl_exec_request request = {
        .plan = plan, .params = timing->params, .pool = timing->request->tuning->pool, .seed = 1};
    struct sl_exec *exec = NULL;
    SEQLSTM_TRY(sl_exec_create(&request, &exec, err));
    seqlstm_status status = time_steps(timing, exec, plan, &timing->rounds[w], err);
    sl_exec_destroy(exec);
    return status;
}

/* Is one of them faster in most of its rounds than the other in any? */
static bool is_decided(const struct sl_rounds rounds[2])
{
    return sl_rounds_suffice(&rounds[0], ROUNDS_SURE) && sl_rounds_suffice(&rounds[1], ROUNDS_SURE) &&
           (sl_rounds_find(&rounds[0], 0.5) < sl_rounds_find(&rounds[1], 0) ||
            sl_rounds_find(&rounds[1], 0.5) < sl_rounds_find(&rounds[0], 0));
}

static seqlstm_status run_rounds(struct timing *timing, struct seqlstm_error *err)
{
    const int64_t end = sl_clock_ns() + (int64_t)(timing->request->seconds * 1e9);
    for (int32_t round = 0; round < SL_ROUNDS_MOST && !is_decided(timing->rounds); round++) {
        if (round >= ROUNDS_LEAST && sl_clock_ns() > end)
            break;
        for (int w = 0; w < 2; w++)
            SEQLSTM_TRY(take_turn(timing, (w + round) % 2, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_session_time_whole_steps(const struct sl_whole_steps_request *request, double out_ns[2],
                                           struct seqlstm_error *err)
{
    struct timing timing = {.request = request, .graph = request->plans[0]->graph};
    double none;
    out_ns[0] = out_ns[1] = 0;
    sl_memory_trim(); /* of what timing operations left */
    seqlstm_status status = make_batches(&timing, err);
    if (status == SEQLSTM_OK && timing.count > 0)
        status = make_params(&timing, err);
    if (status == SEQLSTM_OK && timing.count > 0)
        status = run_rounds(&timing, err);
    for (int w = 0; w < 2 && status == SEQLSTM_OK && timing.count > 0; w++) {
        sl_rounds_get(&timing.rounds[w], &out_ns[w], &none);
        out_ns[w] *= timing.scale;
    }
    sl_params_destroy(timing.params);
    for (int32_t b = 0; b < timing.count; b++)
        sl_batch_destroy(timing.batches[b]);
    return status;
}

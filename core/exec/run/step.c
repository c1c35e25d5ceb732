/* SPDX-License-Identifier: Apache-2.0 */
/* One step: checks and binds the batch, runs all calls and reads the results.
 *
 *   check, bind, stage │ clear sums, forward, backward, carry states, update │ stage the next batch, collect
 *                        one by one, or, with the frame of the device (frame.c), as a capture (capture.c) or ahead
 */
#include <string.h>

#include "base/system/trace.h"
#include "exec/call/border.h"
#include "exec/call/calls.h"
#include "exec/capture/capture.h"
#include "exec/capture/frame.h"
#include "exec/call/loop.h"
#include "exec/call/param_grads.h"
#include "exec/call/pieces.h"
#include "exec/params/used_rows.h"
#include "exec/place/place.h"
#include "exec/rows.h"
#include "exec/shape/shapes.h"
#include "exec/place/staging.h"
#include "exec/update/update.h"

/* ---- the batch -------------------------------------------------------------------------------------------------- */

bool sl_exec_fits(const struct sl_exec *exec, const struct sl_batch *batch)
{
    const struct sl_envelope *envelope = &exec->graph->facts.envelope;
    return batch->sequences <= envelope->sequences && batch->axis.steps <= envelope->steps &&
           batch->axis.rows <= envelope->rows &&
           (!exec->graph->reads_source ||
            (batch->source.axis.steps <= envelope->source_steps && batch->source.axis.rows <= envelope->source_rows));
}

static bool field_fits(const struct sl_field *field, const struct sl_field_facts *facts)
{
    return field->kind == facts->kind && field->on_steps == facts->on_steps &&
           (field->kind != SL_FIELD_VALUES || field->features == facts->features);
}

static seqlstm_status check_batch(const struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = &exec->graph->facts;
    if (!sl_exec_fits(exec, batch))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "a batch of %lld sequences, %lld steps and %lld rows (source: %lld, %lld) does not fit the plan's "
                     "%lld, %lld and %lld (%lld, %lld)",
                     (long long)batch->sequences, (long long)batch->axis.steps, (long long)batch->axis.rows,
                     (long long)batch->source.axis.steps, (long long)batch->source.axis.rows,
                     (long long)facts->envelope.sequences, (long long)facts->envelope.steps,
                     (long long)facts->envelope.rows, (long long)facts->envelope.source_steps,
                     (long long)facts->envelope.source_rows);
    bool loss = exec->graph->phase != SL_PHASE_PREDICT;
    bool input = exec->graph->reads_input, source = exec->graph->reads_source;
    if ((input && !field_fits(&batch->input, &facts->input)) ||
        (source && !field_fits(&batch->source.input, &facts->source)) ||
        (loss && !field_fits(&batch->target, &facts->target)))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the batch's fields are not those the model was built for");
    if (loss && facts->has_weight && batch->weight.kind != SL_FIELD_VALUES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the batch has no weights, but the model was built for them");
    return SEQLSTM_OK;
}

/* ---- the calls -------------------------------------------------------------------------------------------------- */

/* The sums that losses add to. */
static seqlstm_status clear_sums(struct sl_exec *exec, struct seqlstm_error *err)
{
    struct sl_exec_place *place = &exec->places[exec->device_place];
    if (exec->graph->sums >= 0)
        sl_exec_note_written(exec, exec->device_place, exec->graph->sums);
    if (exec->capturing) /* its frame does */
        return SEQLSTM_OK;
    return sl_domain_clear(place->domain, place->sums, 2 * sizeof *place->sums, err);
}

static bool is_loop(const struct sl_exec *exec, const struct sl_unit *unit)
{
    return unit->first == exec->loop.first && exec->loop.end > exec->loop.first;
}

/* Does the unit run piece by piece? Not if the batch has no rows. */
static bool is_pieced(const struct sl_exec *exec, const struct sl_unit *unit)
{
    return unit->pieced && exec->shape->piece_count > 0;
}

/* The unit of call c, as far as it is in this stage. */
static struct sl_unit find_unit(const struct sl_exec *exec, int32_t c)
{
    struct sl_unit unit = exec->units[c];
    unit.first = unit.first < exec->stage.first ? exec->stage.first : unit.first;
    unit.end = unit.end > exec->stage.end ? exec->stage.end : unit.end;
    return unit;
}

static seqlstm_status forward_unit(struct sl_exec *exec, const struct sl_unit *unit, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_exec_enter_unit(exec, unit->first, unit->end, err));
    if (is_loop(exec, unit))
        SEQLSTM_TRY(sl_exec_loop_forward(exec, err));
    else if (is_pieced(exec, unit))
        SEQLSTM_TRY(sl_exec_pieces_forward(exec, unit->first, unit->end, err));
    for (int32_t c = unit->first; c < unit->end; c++) {
        if (!is_loop(exec, unit) && !is_pieced(exec, unit))
            SEQLSTM_TRY(sl_exec_forward_call(exec, c, err));
        if (exec->watch && sl_exec_has_rows(exec, c))
            SEQLSTM_TRY(exec->watch(exec->watch_context, exec, exec->plan->calls[c].node, err));
    }
    return sl_exec_leave_unit(exec, unit->first, unit->end, err);
}

static seqlstm_status forward(struct sl_exec *exec, struct seqlstm_error *err)
{
    for (int32_t c = exec->stage.first; c < exec->stage.end;) {
        const struct sl_unit unit = find_unit(exec, c);
        SEQLSTM_TRY(forward_unit(exec, &unit, err));
        c = unit.end;
    }
    return SEQLSTM_OK;
}

static seqlstm_status backward_unit(struct sl_exec *exec, const struct sl_unit *unit, bool accumulate,
                                    struct seqlstm_error *err)
{
    const bool loops = is_loop(exec, unit) && exec->shape->step_binding_count > 0;
    SEQLSTM_TRY(sl_exec_enter_unit_back(exec, unit->first, unit->end, err));
    if (loops)
        SEQLSTM_TRY(sl_exec_loop_backward(exec, accumulate, err));
    else if (is_pieced(exec, unit))
        SEQLSTM_TRY(sl_exec_pieces_backward(exec, unit->first, unit->end, accumulate, err));
    else
        for (int32_t c = unit->end - 1; c >= unit->first; c--)
            if (exec->plan->calls[c].node->needs_backward)
                SEQLSTM_TRY(sl_exec_backward_call(exec, c, accumulate, err));
    return sl_exec_leave_unit_back(exec, unit->first, err);
}

static void mark_rows(void *params, int64_t offset, const int32_t *ids, int64_t count)
{
    sl_used_rows_mark(params, offset, ids, count);
}

/* Devices go on after their calls have returned. */
static void note_grads(struct sl_exec *exec, const struct sl_exec_step *step, const struct sl_unit *unit)
{
    if (exec->params->mirrors)
        return;
    sl_exec_name_rows(exec, unit->first, unit->end, mark_rows, exec->params);
    if (step->on_grads)
        step->on_grads(step->grads_context, sl_exec_find_complete(exec, unit->first));
}

static seqlstm_status backward(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err)
{
    memset(exec->grad_valid, 0, (size_t)exec->graph->tensor_count * sizeof *exec->grad_valid);
    memset(exec->param_written, 0, (size_t)exec->graph->param_count * sizeof *exec->param_written);
    if (step->on_rows && !exec->params->mirrors)
        sl_exec_name_rows(exec, exec->stage.first, exec->stage.end, step->on_rows, step->grads_context);
    for (int32_t c = exec->stage.end; c > exec->stage.first;) {
        const struct sl_unit unit = find_unit(exec, c - 1);
        SEQLSTM_TRY(backward_unit(exec, &unit, step->accumulate, err));
        c = unit.first;
        note_grads(exec, step, &unit);
    }
    return sl_exec_pass_params(exec, err);
}

/* Final states become the initial ones of the next run. Those of sequences without a step are their initial states. */
static seqlstm_status carry_states(struct sl_exec *exec, struct seqlstm_error *err)
{
    for (int32_t s = 0; s < exec->graph->state_count; s++) {
        const struct sl_state *state = &exec->graph->states[s];
        int32_t place = 0;
        while (place < SL_PLACES_MAX && !(exec->valid[state->tensor_out] >> place & 1))
            place++;
        if (place == SL_PLACES_MAX)
            continue;
        void *in;
        SEQLSTM_TRY(sl_exec_provide(exec, place, state->tensor_in, &in, err));
        const void *out = sl_exec_at(exec, place, state->tensor_out);
        const int64_t bytes = exec->shape->sequences * state->features * 4;
        if (!exec->capturing || !sl_exec_add_to_frame(exec->capturing, in, out, bytes))
            SEQLSTM_TRY(sl_domain_copy(exec->places[place].domain, in, out, bytes, err));
        sl_exec_note_written(exec, place, state->tensor_in);
    }
    return SEQLSTM_OK;
}

static seqlstm_status call_by_call(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err)
{
    SEQLSTM_TRY(clear_sums(exec, err));
    if (step->accumulate)
        SEQLSTM_TRY(sl_exec_pass_param_sums(exec, err));
    SEQLSTM_TRY(forward(exec, err));
    if (exec->graph->phase == SL_PHASE_TRAIN)
        SEQLSTM_TRY(backward(exec, step, err));
    SEQLSTM_TRY(carry_states(exec, err));
    return step->update ? sl_exec_make_update(exec, err) : SEQLSTM_OK;
}

/* ---- the step --------------------------------------------------------------------------------------------------- */

/* Copies what the caller reads to the host. Waits for every device: whatever failed there is reported by this run. */
static seqlstm_status collect(struct sl_exec *exec, const struct sl_exec_step *step, struct sl_exec_result *result,
                              struct seqlstm_error *err)
{
    const struct sl_graph *graph = exec->graph;
    const double *sums;
    void *read;
    for (int32_t p = 0; p < SL_PLACES_MAX; p++)
        if (exec->places[p].domain)
            SEQLSTM_TRY(sl_domain_finish(exec->places[p].domain, err));
    SEQLSTM_TRY(sl_exec_finish_staging(exec, err));
    if (graph->sums >= 0) {
        SEQLSTM_TRY(sl_exec_provide(exec, SL_PLACE_HOST, graph->sums, &read, err));
        sums = read;
        result->loss_sum = sums[0];
        result->weight_sum = sums[1];
    }
    return step->update ? sl_exec_finish_update(exec, &result->squares, err) : SEQLSTM_OK;
}

/* While devices compute: copies of the next batch, and the bindings of its shape, so that no device waits for these. If
 * the batch does not fit or cannot be bound, its own run reports it. */
static seqlstm_status prepare_next(struct sl_exec *exec, const struct sl_batch *next, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_exec_stage(exec, next, err));
    sl_exec_prepare_shape(exec, next, NULL);
    return SEQLSTM_OK;
}

static seqlstm_status prepare_fields(struct sl_exec *exec, const struct sl_exec_step *step, bool marks,
                                     struct seqlstm_error *err)
{
    if (step->next)
        SEQLSTM_TRY(sl_exec_open_staging(exec, err));
    if (!exec->batch->carry_state)
        sl_exec_reset_state(exec);
    SEQLSTM_TRY(sl_exec_take_staged(exec, exec->batch, err));
    SEQLSTM_TRY(sl_exec_renew_live(exec, err));
    return marks ? sl_exec_mark_begin(exec, err) : SEQLSTM_OK;
}

static seqlstm_status run_one_by_one(struct sl_exec *exec, const struct sl_exec_step *step,
                                     struct sl_exec_result *result, struct seqlstm_error *err)
{
    const bool marks = exec->device_place != SL_PLACE_HOST;
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_PREPARE, "fields");
    const seqlstm_status status = prepare_fields(exec, step, marks, err);
    sl_trace_end(begin, SL_ACTIVITY_PREPARE, "fields", NULL, 0);
    SEQLSTM_TRY(status);
    SEQLSTM_TRY(call_by_call(exec, step, err));
    if (marks)
        SEQLSTM_TRY(sl_exec_mark_end(exec, err));
    if (step->next && check_batch(exec, step->next, NULL) == SEQLSTM_OK)
        SEQLSTM_TRY(prepare_next(exec, step->next, err));
    SEQLSTM_TRY(collect(exec, step, result, err));
    return marks ? sl_exec_count_idle(exec, err) : SEQLSTM_OK;
}

/* Runs the calls one by one. */
static seqlstm_status run_calls(struct sl_exec *exec, const struct sl_exec_step *step, struct sl_exec_result *result,
                                struct seqlstm_error *err)
{
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_STEP, NULL);
    const seqlstm_status status = run_one_by_one(exec, step, result, err);
    sl_trace_end(begin, SL_ACTIVITY_STEP, NULL, NULL, exec->batch->axis.rows);
    return status;
}

/* Launches a capture of the calls. What a capture without the update leaves to be done follows. */
static seqlstm_status run_capture(struct sl_exec *exec, struct sl_exec_capture *capture,
                                  const struct sl_exec_step *step, struct sl_exec_result *result,
                                  struct seqlstm_error *err)
{
    const bool apart = step->update && !exec->captures_update;
    struct sl_exec_step alone = *step;
    if (apart)
        alone.update = NULL;
    SEQLSTM_TRY(sl_exec_launch_capture(exec, capture, &alone, err));
    if (apart)
        SEQLSTM_TRY(sl_exec_make_update(exec, err));
    SEQLSTM_TRY(sl_exec_land(exec, result, err));
    return apart ? sl_exec_finish_update(exec, &result->squares, err) : SEQLSTM_OK;
}

/* Binds the batch and notes the numbers of the step. */
static seqlstm_status bind_batch(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                 struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_exec_bind(exec, batch, err));
    exec->step.epoch = step->epoch;
    exec->step.weight_mask_step = step->weight_mask_step;
    exec->step.normaliser = (float)step->normaliser;
    exec->step.loss_scale = step->loss_scale > 0 ? (float)step->loss_scale : 1.0f;
    if (step->update)
        sl_exec_begin_update(exec, step->update);
    exec->loop.step = exec->pieces.running = -1; /* after a run that failed */
    exec->borders[SL_EXEC_AFTER].received = false;
    sl_exec_begin_values(exec);
    return SEQLSTM_OK;
}

static seqlstm_status begin(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                            struct seqlstm_error *err)
{
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_PREPARE, "bindings");
    const seqlstm_status status = bind_batch(exec, batch, step, err);
    sl_trace_end(begin, SL_ACTIVITY_PREPARE, "bindings", NULL, 0);
    return status;
}

seqlstm_status sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                           struct sl_exec_result *out_result, struct seqlstm_error *err)
{
    const struct sl_graph *graph = exec->graph;
    struct sl_exec_capture *capture;
    struct sl_exec_result result = {0};
    void *read;
    SEQLSTM_TRY(check_batch(exec, batch, err));
    SEQLSTM_TRY(begin(exec, batch, step, err));
    SEQLSTM_TRY(sl_exec_prepare_capture(exec, step, call_by_call, &capture, err));
    SEQLSTM_TRY(capture ? run_capture(exec, capture, step, &result, err) : run_calls(exec, step, &result, err));
    if (graph->output >= 0 && graph->output_needed)
        SEQLSTM_TRY(sl_exec_provide(exec, SL_PLACE_HOST, graph->output, &read, err));
    result.rows = sl_batch_count_computed_rows(batch);
    *out_result = result;
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_start(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                             bool *out_started, struct seqlstm_error *err)
{
    const struct sl_exec_ring *ring = &exec->ring;
    struct sl_exec_capture *capture;
    *out_started = false;
    if (!sl_exec_may_start(exec, step) || ring->launched - ring->landed == SL_EXEC_AHEAD)
        return SEQLSTM_OK;
    SEQLSTM_TRY(check_batch(exec, batch, err));
    SEQLSTM_TRY(begin(exec, batch, step, err));
    SEQLSTM_TRY(sl_exec_prepare_capture(exec, step, call_by_call, &capture, err));
    *out_started = true;
    return capture ? sl_exec_launch_capture(exec, capture, step, err)
                   : sl_exec_start_calls(exec, step, call_by_call, err);
}

seqlstm_status sl_exec_wait(struct sl_exec *exec, struct sl_exec_result *out_result, struct seqlstm_error *err)
{
    return sl_exec_land(exec, out_result, err);
}

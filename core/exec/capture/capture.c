/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a run as a capture: one object of the device that launches all of them.
 *
 *   first run of a shape     call by call
 *   second                   captured, then launched
 *   later                    launched
 *
 * A shape that does not come again while it is among the last SL_EXEC_SHAPES is never captured: that would cost more
 * than it saves. Its calls are started within a frame, as those of a capture would be, so that the host need not wait
 * for one step before it starts the next. A capture holds addresses, which stay valid: buffers and fields are made
 * once, and axes and bindings live as long as the capture. What changes from run to run is kept on the device
 * (frame.c).
 *
 * Invariants:
 *  1. Before calls that may be captured, everything they read is made valid in their place, so that none of them copies
 *     from the host.
 *  2. After a launch, the marks of which copies are valid are those that the calls would have left.
 */
#include "exec/capture/capture.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/trace.h"
#include "base/value/text.h"
#include "dispatch/plan/capture.h"
#include "exec/capture/frame.h"
#include "exec/place/place.h"
#include "exec/rows.h"
#include "exec/update/update.h"
#include "exec/update/vectors.h"

seqlstm_status sl_exec_open_capture(struct sl_exec *exec, struct seqlstm_error *err)
{
    int32_t place = exec->plan->call_count > 0 ? exec->calls[0].place : SL_PLACE_HOST;
    if (!sl_plan_find_capture(exec->plan).possible || !sl_domain_has_captures(exec->places[place].domain->table))
        return SEQLSTM_OK;
    exec->device_place = place;
    sl_exec_open_update(exec);
    SEQLSTM_TRY(sl_exec_open_live(exec, err));
    return sl_exec_open_frame(exec, err);
}

static void drop(struct sl_exec *exec, struct sl_exec_capture *capture)
{
    if (capture->native)
        sl_domain_drop_capture(exec->places[exec->device_place].domain, capture->native);
    sl_exec_release_vectors(exec, capture);
    free(capture->marks);
    *capture = (struct sl_exec_capture){0};
}

void sl_exec_drop_captures(struct sl_exec *exec, struct sl_exec_shape *shape)
{
    for (int k = 0; k < SL_EXEC_CAPTURES; k++)
        drop(exec, &shape->captures[k]);
}

/* Invariant 1. What calls write before they read it is valid nowhere yet, and stays so. */
static seqlstm_status bring(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err)
{
    const int32_t place = exec->device_place;
    for (int32_t c = 0; c < exec->plan->call_count; c++) {
        const struct sl_exec_call *own = &exec->calls[c];
        for (int32_t s = 0; s < own->slot_count; s++) {
            const int32_t t = exec->plan->calls[c].node->slots[s];
            void *at;
            if (own->roles[s] != SL_SLOT_OUTPUT && own->roles[s] != SL_SLOT_ABSENT && t != exec->graph->sums)
                SEQLSTM_TRY(sl_exec_provide(exec, place, t, &at, err));
        }
    }
    const struct sl_loop *loop = &exec->graph->loop;
    for (int32_t k = 0; k < loop->carry_count; k++) {
        void *at;
        if (loop->carries[k].initial >= 0)
            SEQLSTM_TRY(sl_exec_provide(exec, place, loop->carries[k].initial, &at, err));
    }
    struct sl_params *params = exec->params;
    float *grads;
    if (step->accumulate)
        SEQLSTM_TRY(sl_exec_provide_part(exec, place, SL_PART_GRADS, 0, params->trainable_elems, &grads, err));
    return step->update ? sl_exec_bring_update(exec, err) : SEQLSTM_OK;
}

/* What a capture depends on besides shape and addresses: which fields the batch has, and the flags of the axes. */
static uint32_t get_circumstances(const struct sl_batch *batch)
{
    const struct sl_field *const fields[] = {&batch->input, &batch->target, &batch->weight, &batch->source.input};
    uint32_t bits = batch->axis.flags;
    if (batch->source.present)
        bits = bits << 8 | batch->source.axis.flags;
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
        bits = bits << 1 | (fields[k]->kind != SL_FIELD_NONE);
    return bits;
}

/* ---- marks ------------------------------------------------------------------------------------------------------ */

static void keep_marks(const struct sl_exec *exec, uint8_t *marks)
{
    const size_t tensors = (size_t)exec->graph->tensor_count;
    memcpy(marks, exec->valid, tensors);
    memcpy(marks + tensors, exec->grad_valid, tensors);
    for (int32_t p = 0; p < exec->graph->param_count; p++)
        marks[2 * tensors + (size_t)p] = exec->param_written[p];
}

static void restore_marks(struct sl_exec *exec, const uint8_t *marks)
{
    const size_t tensors = (size_t)exec->graph->tensor_count;
    memcpy(exec->valid, marks, tensors);
    memcpy(exec->grad_valid, marks + tensors, tensors);
    for (int32_t p = 0; p < exec->graph->param_count; p++)
        exec->param_written[p] = marks[2 * tensors + (size_t)p];
}

/* Invariant 2. */
static void note_launch(struct sl_exec *exec, const struct sl_exec_step *step, const uint8_t *marks)
{
    restore_marks(exec, marks);
    for (int32_t p = 0; p < exec->graph->param_count; p++) {
        const struct sl_param_view *view = &exec->params->views[p];
        if (exec->param_written[p])
            sl_params_note_written(exec->params, exec->device_place, SL_PART_GRADS, view->offset_elems, view->elems);
    }
    for (int32_t c = 0; c < exec->plan->call_count; c++) {
        exec->calls[c].packed_version = exec->params->version + 1;
        if (!sl_exec_has_rows(exec, c))
            continue;
        exec->timing[c].calls++;
        exec->timing[c].rows += sl_exec_get_rows(exec, exec->calls[c].axis);
    }
    if (step->update) /* after packing */
        sl_exec_note_update(exec);
}

/* ---- capture ---------------------------------------------------------------------------------------------------- */

static seqlstm_status record(struct sl_exec *exec, struct sl_exec_capture *capture, const struct sl_exec_step *step,
                             sl_exec_calls_fn *calls, struct seqlstm_error *err)
{
    struct sl_domain *domain = exec->places[exec->device_place].domain;
    SEQLSTM_TRY(sl_domain_begin_capture(domain, err));
    exec->capturing = capture;
    sl_exec_make_frame(exec, capture);
    seqlstm_status status = sl_exec_begin_frame(exec, capture, err);
    if (status == SEQLSTM_OK)
        status = calls(exec, step, err);
    if (status == SEQLSTM_OK)
        status = sl_exec_end_frame(exec, capture, err);
    exec->capturing = NULL;
    seqlstm_status ended = sl_domain_end_capture(domain, &capture->native, status == SEQLSTM_OK ? err : NULL);
    if (status == SEQLSTM_OK || capture->native == NULL)
        return status != SEQLSTM_OK ? status : ended;
    sl_domain_drop_capture(domain, capture->native);
    capture->native = NULL;
    return status;
}

/* If the device cannot capture the step, it runs call by call; an error of a call is then reported by that run. */
static seqlstm_status record_step(struct sl_exec *exec, struct sl_exec_capture *capture,
                                  const struct sl_exec_step *step, sl_exec_calls_fn *calls, struct seqlstm_error *err)
{
    const size_t marks = 2 * (size_t)exec->graph->tensor_count + (size_t)exec->graph->param_count + 1;
    struct seqlstm_error refusal = SEQLSTM_ERROR_INIT;
    if (capture->marks == NULL && (capture->marks = malloc(marks)) == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the capture of a step");
    keep_marks(exec, capture->marks);
    sl_exec_note_frame(exec);
    SEQLSTM_TRY(bring(exec, step, err));
    if (record(exec, capture, step, calls, &refusal) != SEQLSTM_OK) {
        capture->refused = true;
        exec->loop.step = -1;
        sl_text_snprintf(exec->captures.refusal, sizeof exec->captures.refusal, "%s", refusal.message);
        restore_marks(exec, capture->marks);
        for (int32_t c = 0; c < exec->plan->call_count; c++)
            exec->calls[c].packed_version = 0; /* nothing has been packed */
        return SEQLSTM_OK;
    }
    keep_marks(exec, capture->marks);
    capture->circumstances = get_circumstances(exec->batch);
    capture->loss_scale = exec->step.loss_scale;
    exec->captures.captured++;
    return SEQLSTM_OK;
}

/* Does the step make its update by a capture? */
static bool captures_update(const struct sl_exec *exec, const struct sl_exec_step *step)
{
    return step->update != NULL && exec->captures_update;
}

static int find_capture(const struct sl_exec *exec, const struct sl_exec_step *step)
{
    return step->accumulate + 2 * captures_update(exec, step);
}

/* Must the calls be seen one by one, by a watcher or for a profile? */
static bool runs_apart(const struct sl_exec *exec)
{
    return exec->watch != NULL || sl_trace_wants_calls();
}

bool sl_exec_may_start(const struct sl_exec *exec, const struct sl_exec_step *step)
{
    return exec->device_place != SL_PLACE_HOST && !runs_apart(exec) && !(step->update && !exec->captures_update) &&
           !exec->graph->output_needed && !(exec->scales_factors && step->course.good_enough > 0);
}

seqlstm_status sl_exec_prepare_capture(struct sl_exec *exec, const struct sl_exec_step *step, sl_exec_calls_fn *calls,
                                       struct sl_exec_capture **out_capture, struct seqlstm_error *err)
{
    struct sl_exec_capture *capture = &exec->shape->captures[find_capture(exec, step)];
    struct sl_exec_step recorded = *step;
    recorded.update = captures_update(exec, step) ? step->update : NULL;
    *out_capture = NULL;
    if (exec->device_place == SL_PLACE_HOST || runs_apart(exec))
        return SEQLSTM_OK;
    if (capture->native && recorded.update && exec->scales_factors && capture->loss_scale != exec->step.loss_scale) {
        drop(exec, capture);
        capture->seen = 1; /* captured again at once */
    }
    if (capture->native == NULL && !capture->refused && capture->seen++ > 0)
        SEQLSTM_TRY(record_step(exec, capture, &recorded, calls, err));
    if (capture->native && capture->circumstances == get_circumstances(exec->batch))
        *out_capture = capture;
    return SEQLSTM_OK;
}

/* The frame brings the fields. */
static seqlstm_status prepare(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err)
{
    sl_exec_note_frame(exec);
    exec->staged = NULL;
    return bring(exec, step, err);
}

seqlstm_status sl_exec_launch_capture(struct sl_exec *exec, struct sl_exec_capture *capture,
                                      const struct sl_exec_step *step, struct seqlstm_error *err)
{
    SEQLSTM_TRY(prepare(exec, step, err));
    note_launch(exec, step, capture->marks);
    return sl_exec_launch(exec, capture, step, NULL, err);
}

seqlstm_status sl_exec_start_calls(struct sl_exec *exec, const struct sl_exec_step *step, sl_exec_calls_fn *calls,
                                   struct seqlstm_error *err)
{
    SEQLSTM_TRY(prepare(exec, step, err));
    sl_exec_make_frame(exec, &exec->loose);
    exec->capturing = &exec->loose;
    const seqlstm_status status = sl_exec_launch(exec, &exec->loose, step, calls, err);
    exec->capturing = NULL;
    return status;
}

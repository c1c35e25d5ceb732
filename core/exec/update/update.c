/* SPDX-License-Identifier: Apache-2.0 */
/* The update of the parameters, after the gradients of a step:
 *
 *   grads += scale (l1 sign(w) + 2 l2 w)                parameters with regularizers
 *   grads = limited to scale clip_value                 if there is such a limit
 *   squares = sum of grads^2
 *   parameters, states = OPTIMIZER(grads, sums of the loss, squares)
 *
 * Gradients contain `scale`, the factor of the loss, until the optimizer removes it. The optimizer also limits their
 * norm, and changes nothing if loss or squares are not finite. So nothing waits for the host between a step and its
 * update, and one capture may hold both. The caller sees from loss and squares whether the update was made.
 *
 * Of an embedding only the rows that a step has used are gone over (exec/params/used_rows.h), but by optimizers that
 * also change what has no gradient.
 */
#include "exec/update/update.h"

#include <string.h>

#include "dispatch/plan/capture.h"
#include "exec/params/used_rows.h"
#include "exec/place/place.h"
#include "exec/update/vectors.h"

void sl_exec_open_update(struct sl_exec *exec)
{
    exec->captures_update = exec->device_place != SL_PLACE_HOST && exec->params->trainable_elems > 0 &&
                            sl_plan_find_capture(exec->plan).with_update;
    exec->scales_factors = exec->graph->clip_value > 0;
    for (int32_t v = 0; v < exec->params->view_count; v++) {
        const struct sl_param_view *view = &exec->params->views[v];
        exec->scales_factors |= view->trainable && (view->regularizer.l1 != 0 || view->regularizer.l2 != 0);
    }
}

void sl_exec_begin_update(struct sl_exec *exec, const struct sl_exec_update *update)
{
    exec->step.update = update->count;
    exec->step.learning_rate = (float)update->learning_rate;
    exec->step.grad_scale = 1.0f / exec->step.loss_scale;
    exec->step.flags = update->skip ? SEQLSTM_BIT_STEP_SKIP : 0;
}

seqlstm_status sl_exec_regularize(struct sl_exec *exec, const bool *owned, struct seqlstm_error *err)
{
    const struct sl_params *params = exec->params;
    const double scale = (double)exec->step.loss_scale;
    for (int32_t v = 0; v < params->view_count; v++) {
        const struct sl_param_view *view = &params->views[v];
        float *grad = params->grads + view->offset_elems;
        const float *value = params->values + view->offset_elems;
        if (!view->trainable || (owned && !owned[v]))
            continue;
        if (view->regularizer.l1 != 0)
            SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_KIND_VECTOR_SIGN_AXPY, grad, value, view->elems,
                                       (float)(scale * view->regularizer.l1), err));
        if (view->regularizer.l2 != 0)
            SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_KIND_VECTOR_AXPY, grad, value, view->elems,
                                       (float)(scale * 2 * view->regularizer.l2), err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status limit(struct sl_exec *exec, struct seqlstm_error *err)
{
    const struct sl_params *params = exec->params;
    const double scale = (double)exec->step.loss_scale;
    if (exec->graph->clip_value <= 0)
        return SEQLSTM_OK;
    return sl_exec_vector(exec, SEQLSTM_KIND_VECTOR_CLAMP, params->grads, NULL, params->trainable_elems,
                          (float)(scale * exec->graph->clip_value), err);
}

/* Does a gradient of zero change nothing? */
static bool is_still_without(const struct seqlstm_optimizer_desc *desc)
{
    return desc->kind == SEQLSTM_KIND_OPTIMIZER_SGD && desc->weight_decay == 0;
}

/* Runs call v on all gradients that may differ from zero. Slots up to `last` are as long as the gradients. */
static seqlstm_status run_used(struct sl_exec *exec, int32_t v, void *const *whole, uint32_t slot_count, uint32_t last,
                               struct seqlstm_error *err)
{
    void *slots[SEQLSTM_SLOT_OPTIMIZER_COUNT];
    struct sl_grad_range range = {0};
    memcpy(slots, whole, slot_count * sizeof *slots);
    const struct sl_call_time time = sl_exec_begin_vector(exec, v);
    while (sl_used_rows_next(exec->params, range.end, &range)) {
        for (uint32_t s = 0; s <= last; s++)
            slots[s] = whole[s] ? (float *)whole[s] + range.begin : NULL;
        SEQLSTM_TRY(sl_exec_run_vector_part(exec, v, slots, slot_count, range.end - range.begin, err));
    }
    sl_exec_end_vector(exec, v, &time, exec->params->trainable_elems);
    return SEQLSTM_OK;
}

/* Writes the sum to the place's scalar. */
static seqlstm_status sum_squares(struct sl_exec *exec, int32_t v, struct seqlstm_error *err)
{
    const int32_t p = exec->vector_places[v];
    struct sl_exec_place *place = &exec->places[p];
    float *grads;
    SEQLSTM_TRY(sl_exec_provide_part(exec, p, SL_PART_GRADS, 0, exec->params->trainable_elems, &grads, err));
    if (!exec->capturing) /* its frame does */
        SEQLSTM_TRY(sl_domain_clear(place->domain, place->scalar, sizeof(double), err));
    void *slots[SEQLSTM_SLOT_REDUCE_COUNT] = {
        [SEQLSTM_SLOT_REDUCE_X] = grads, [SEQLSTM_SLOT_REDUCE_RESULT] = place->scalar};
    return run_used(exec, v, slots, SEQLSTM_SLOT_REDUCE_COUNT, SEQLSTM_SLOT_REDUCE_X, err);
}

/* Values, gradients and states where the optimizer runs; NULL: it has no such state. */
static seqlstm_status provide_parts(struct sl_exec *exec, int32_t place, float *parts[SL_PART_COUNT],
                                    struct seqlstm_error *err)
{
    for (int part = 0; part < SL_PART_COUNT; part++) {
        parts[part] = NULL;
        if (part < SL_PART_STATE_1 || exec->params->states[part - SL_PART_STATE_1])
            SEQLSTM_TRY(sl_exec_provide_part(exec, place, (enum sl_param_part)part, 0, exec->params->trainable_elems,
                                             &parts[part], err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status optimize(struct sl_exec *exec, int32_t v, int32_t norm, struct seqlstm_error *err)
{
    const int32_t place = exec->vector_places[v], from = exec->vector_places[norm];
    float *parts[SL_PART_COUNT];
    void *sums;
    SEQLSTM_TRY(provide_parts(exec, place, parts, err));
    SEQLSTM_TRY(sl_exec_provide(exec, place, exec->graph->sums, &sums, err));
    if (place != from)
        SEQLSTM_TRY(sl_params_move(exec->params, from, place, exec->places[from].scalar,
                                   exec->places[SL_PLACE_HOST].scalar, exec->places[place].scalar, sizeof(double),
                                   err));
    void *slots[SEQLSTM_SLOT_OPTIMIZER_COUNT] = {
        [SEQLSTM_SLOT_OPTIMIZER_PARAM] = parts[SL_PART_VALUES],
        [SEQLSTM_SLOT_OPTIMIZER_GRAD] = parts[SL_PART_GRADS],
        [SEQLSTM_SLOT_OPTIMIZER_STATE_1] = parts[SL_PART_STATE_1],
        [SEQLSTM_SLOT_OPTIMIZER_STATE_2] = parts[SL_PART_STATE_2],
        [SEQLSTM_SLOT_OPTIMIZER_STATE_3] = parts[SL_PART_STATE_3],
        [SEQLSTM_SLOT_OPTIMIZER_SUMS] = sums,
        [SEQLSTM_SLOT_OPTIMIZER_SQUARES] = exec->places[place].scalar,
    };
    if (is_still_without(&exec->plan->vectors[v].desc->optimizer))
        return run_used(exec, v, slots, SEQLSTM_SLOT_OPTIMIZER_COUNT, SEQLSTM_SLOT_OPTIMIZER_STATE_3, err);
    return sl_exec_run_vector(exec, v, slots, SEQLSTM_SLOT_OPTIMIZER_COUNT, exec->params->trainable_elems, err);
}

seqlstm_status sl_exec_bring_update(struct sl_exec *exec, struct seqlstm_error *err)
{
    float *parts[SL_PART_COUNT];
    return provide_parts(exec, exec->device_place, parts, err);
}

void sl_exec_note_update(struct sl_exec *exec)
{
    struct sl_params *params = exec->params;
    const int32_t place = sl_exec_get_vector_place(exec, SEQLSTM_OP_OPTIMIZER, 0);
    sl_params_note_written(params, place, SL_PART_VALUES, 0, params->trainable_elems);
    for (int s = 0; s < 3; s++)
        if (params->states[s])
            sl_params_note_written(params, place, (enum sl_param_part)(SL_PART_STATE_1 + s), 0,
                                   params->trainable_elems);
    params->version++;
}

seqlstm_status sl_exec_make_update(struct sl_exec *exec, struct seqlstm_error *err)
{
    int32_t norm, optimizer;
    SEQLSTM_TRY(sl_exec_find_vector(exec, SEQLSTM_OP_SQUARED_NORM, 0, &norm, err));
    SEQLSTM_TRY(sl_exec_find_vector(exec, SEQLSTM_OP_OPTIMIZER, 0, &optimizer, err));
    if (exec->params->trainable_elems <= 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_exec_regularize(exec, NULL, err));
    SEQLSTM_TRY(limit(exec, err));
    SEQLSTM_TRY(sum_squares(exec, norm, err));
    SEQLSTM_TRY(optimize(exec, optimizer, norm, err));
    sl_exec_note_update(exec);
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_finish_update(struct sl_exec *exec, double *out_squares, struct seqlstm_error *err)
{
    const int32_t p = sl_exec_get_vector_place(exec, SEQLSTM_OP_SQUARED_NORM, 0);
    const double unscale = 1 / (double)exec->step.loss_scale;
    double squares = 0;
    if (exec->params->trainable_elems > 0)
        SEQLSTM_TRY(sl_domain_download(exec->places[p].domain, &squares, exec->places[p].scalar, sizeof squares, err));
    *out_squares = squares * unscale * unscale;
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_update(struct sl_exec *exec, const struct sl_exec_update *update, double *out_squares,
                              struct seqlstm_error *err)
{
    sl_exec_begin_update(exec, update);
    SEQLSTM_TRY(sl_exec_make_update(exec, err));
    return sl_exec_finish_update(exec, out_squares, err);
}

seqlstm_status sl_exec_run_empty(struct sl_exec *exec, const struct sl_exec_step *step, struct seqlstm_error *err)
{
    struct sl_params *params = exec->params;
    struct sl_exec_place *place = &exec->places[exec->device_place];
    exec->step.loss_scale = step->loss_scale > 0 ? (float)step->loss_scale : 1.0f;
    if (exec->graph->sums >= 0)
        sl_exec_note_written(exec, exec->device_place, exec->graph->sums);
    SEQLSTM_TRY(sl_domain_clear(place->domain, place->sums, 2 * (int64_t)sizeof *place->sums, err));
    if (step->accumulate)
        return SEQLSTM_OK;
    memset(params->grads, 0, (size_t)params->elems * sizeof *params->grads);
    for (int32_t v = 0; v < params->view_count; v++)
        sl_used_rows_clear(params, params->views[v].offset_elems);
    sl_params_note_written(params, SL_PLACE_HOST, SL_PART_GRADS, 0, params->elems);
    return SEQLSTM_OK;
}

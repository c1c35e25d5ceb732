/* SPDX-License-Identifier: Apache-2.0 */
/* The update of the parameters that a stage owns, on the host. The sum of squares is made of one number for each
 * parameter, so that its bits do not depend on the stages. */
#include <string.h>

#include "exec/update/update.h"
#include "exec/update/vectors.h"

/* The sum of the squares of one gradient. */
static seqlstm_status sum_squares(struct sl_exec *exec, int32_t v, const struct sl_param_view *view, double *out,
                                  struct seqlstm_error *err)
{
    void *slots[SEQLSTM_SLOT_REDUCE_COUNT] = {
        [SEQLSTM_SLOT_REDUCE_X] = exec->params->grads + view->offset_elems, [SEQLSTM_SLOT_REDUCE_RESULT] = out};
    return sl_exec_run_vector(exec, v, slots, SEQLSTM_SLOT_REDUCE_COUNT, view->elems, err);
}

seqlstm_status sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *update, const bool *owned,
                                   double *out_squares, struct seqlstm_error *err)
{
    const struct sl_params *params = exec->params;
    const float most = (float)((double)exec->step.loss_scale * exec->graph->clip_value);
    int32_t norm;
    sl_exec_begin_update(exec, update);
    SEQLSTM_TRY(sl_exec_find_vector(exec, SEQLSTM_OP_SQUARED_NORM, 0, &norm, err));
    if (exec->vector_places[norm] != SL_PLACE_HOST)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the update runs on a device, and pieces run on the processor only");
    SEQLSTM_TRY(sl_exec_regularize(exec, owned, err));
    for (int32_t v = 0; v < params->view_count; v++) {
        const struct sl_param_view *view = &params->views[v];
        out_squares[v] = 0;
        if (!owned[v] || !view->trainable)
            continue;
        if (most > 0)
            SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_KIND_VECTOR_CLAMP, params->grads + view->offset_elems, NULL,
                                       view->elems, most, err));
        SEQLSTM_TRY(sum_squares(exec, norm, view, &out_squares[v], err));
    }
    return SEQLSTM_OK;
}

/* Parameters that lie side by side, padding included. */
static seqlstm_status optimize(struct sl_exec *exec, int32_t optimizer, int64_t begin, int64_t elems, double *squares,
                               struct seqlstm_error *err)
{
    const struct sl_params *params = exec->params;
    void *slots[SEQLSTM_SLOT_OPTIMIZER_COUNT] = {
        [SEQLSTM_SLOT_OPTIMIZER_PARAM] = params->values + begin,
        [SEQLSTM_SLOT_OPTIMIZER_GRAD] = params->grads + begin,
        [SEQLSTM_SLOT_OPTIMIZER_STATE_1] = params->states[0] ? params->states[0] + begin : NULL,
        [SEQLSTM_SLOT_OPTIMIZER_STATE_2] = params->states[1] ? params->states[1] + begin : NULL,
        [SEQLSTM_SLOT_OPTIMIZER_STATE_3] = params->states[2] ? params->states[2] + begin : NULL,
        [SEQLSTM_SLOT_OPTIMIZER_SUMS] = exec->places[SL_PLACE_HOST].sums,
        [SEQLSTM_SLOT_OPTIMIZER_SQUARES] = squares,
    };
    return elems > 0 ? sl_exec_run_vector(exec, optimizer, slots, SEQLSTM_SLOT_OPTIMIZER_COUNT, elems, err)
                     : SEQLSTM_OK;
}

seqlstm_status sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                    struct seqlstm_error *err)
{
    const struct sl_params *params = exec->params;
    const double unscale = 1 / (double)exec->step.loss_scale;
    int64_t begin = 0, end = 0;
    int32_t optimizer;
    SEQLSTM_TRY(sl_exec_find_vector(exec, SEQLSTM_OP_OPTIMIZER, 0, &optimizer, err));
    for (int32_t v = 0; v < params->view_count; v++) {
        const struct sl_param_view *view = &params->views[v];
        if (!owned[v] || !view->trainable)
            continue;
        if (view->offset_elems != end) {
            SEQLSTM_TRY(optimize(exec, optimizer, begin, end - begin, &squares, err));
            begin = view->offset_elems;
        }
        end = view->offset_elems + (view->elems + 15) / 16 * 16;
    }
    SEQLSTM_TRY(optimize(exec, optimizer, begin, end - begin, &squares, err));
    sl_exec_note_update(exec);
    *out_squares = squares * unscale * unscale;
    return SEQLSTM_OK;
}

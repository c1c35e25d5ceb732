/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of a stack: layers from the highest, each direction against its order of steps.
 *
 *   scratch  [ dh, dc carried by each sequence | dh, dc of one step before | d output | d input | dh rows | layer ] */
#include <string.h>

#include "recurrent.h"
#include "recurrent_cell.h"

/* The gradient of one direction's h at every row, from the gradient of the merged output. */
static void split(const struct ref_stack *stack, int64_t layer, int64_t direction, const double *dy, double *dh)
{
    const int64_t n = stack->out;
    for (int64_t row = 0; row < stack->rows; row++) {
        const double *other =
            ref_stack_records(stack, layer, 1 - direction) + row * stack->layout.elems + stack->layout.h;
        for (int64_t k = 0; k < n; k++) {
            const double *from = dy + row * stack->merged;
            if (stack->directions == 1 || stack->desc->merge == SEQLSTM_KIND_MERGE_SUM)
                dh[row * n + k] = from[k];
            else if (stack->desc->merge == SEQLSTM_KIND_MERGE_CONCAT)
                dh[row * n + k] = from[direction * n + k];
            else
                dh[row * n + k] = from[k] * (stack->desc->merge == SEQLSTM_KIND_MERGE_MUL ? other[k] : 0.5);
        }
    }
}

static void set_or_zero(double *to, const double *from, int64_t n)
{
    if (from)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        memset(to, 0, (size_t)n * sizeof *to);
}

/* The gradients of h and c at one step: the sum of those from above and from the step after; for the later dW, the
 * stored ones. */
static void meet(const struct ref_layer *y, const double *dh_row, double *record, double *dh, double *dc)
{
    const struct ref_record_layout *layout = y->layout;
    if (y->stack->later) {
        memcpy(dh, record + layout->dh, (size_t)y->out * sizeof *dh);
        memcpy(dc, record + layout->dc, (size_t)y->hidden * sizeof *dc);
        return;
    }
    ref_axpy(y->out, 1, dh_row, dh);
    if (y->stack->stepwise) {
        memcpy(record + layout->dh, dh, (size_t)y->out * sizeof *dh);
        memcpy(record + layout->dc, dc, (size_t)y->hidden * sizeof *dc);
    }
}

/* All steps of one layer in one direction. dh_rows: the gradient of h by row. dx: NULL if not wanted. */
static void run_direction(const struct ref_layer *y, const double *x, const double *dh_rows, double *dx,
                          double *carried)
{
    const struct ref_stack *stack = y->stack;
    double *const *grads = stack->call->grads;
    const int64_t n = y->layer * stack->directions + y->direction, steps = stack->t1 - stack->t0;
    double *dh = carried, *dc = dh + stack->states * y->out;
    double *dh_before = dc + stack->states * y->hidden, *dc_before = dh_before + y->out;
    set_or_zero(dh, grads[SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_HN)], stack->states * y->out);
    set_or_zero(dc, grads[SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_CN)], stack->states * y->hidden);
    for (int64_t s = 0; s < steps; s++) {
        const int64_t t = y->reverse ? stack->t0 + s : stack->t1 - 1 - s;
        for (int64_t b = 0; b < stack->axis->batch_sizes[t]; b++) {
            const int64_t row = ref_stack_row(stack, b, t);
            meet(y, dh_rows + row * y->out, ref_layer_record(y, row), dh + b * y->out, dc + b * y->hidden);
            ref_cell_backward(y, b, t, x + row * y->input, ref_layer_h_before(y, b, t), ref_layer_c_before(y, b, t),
                              ref_layer_record(y, row), dh + b * y->out, dc + b * y->hidden,
                              dx ? dx + row * y->input : NULL, dh_before, dc_before);
            memcpy(dh + b * y->out, dh_before, (size_t)y->out * sizeof *dh);
            memcpy(dc + b * y->hidden, dc_before, (size_t)y->hidden * sizeof *dc);
        }
    }
    double *dh0 = grads[SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_H0)];
    double *dc0 = grads[SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_C0)];
    if (dh0)
        ref_axpy(stack->states * y->out, 1, dh, dh0);
    if (dc0)
        ref_axpy(stack->states * y->hidden, 1, dc, dc0);
}

static void take_parameter_gradients(struct ref_layer *y)
{
    const struct ref_stack *stack = y->stack;
    const int64_t ld = stack->layers * stack->directions, n = y->layer * stack->directions + y->direction;
    double *const *grad = &stack->call->grads[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, 0)];
    y->dw_x = grad[SEQLSTM_PARAM_W_X];
    y->dw_h = grad[SEQLSTM_PARAM_W_H];
    y->dbias = grad[SEQLSTM_PARAM_BIAS];
    y->dpeephole = grad[SEQLSTM_PARAM_PEEPHOLE];
    y->dprojection = grad[SEQLSTM_PARAM_PROJECTION];
    y->dnorm = grad[SEQLSTM_PARAM_NORM];
}

static void run_layer_direction(const struct ref_stack *stack, int64_t l, int64_t direction, const double *dy,
                                double *dh_rows, double *dx, double *carried, double *scratch)
{
    struct ref_layer y = ref_layer_make(stack, l, direction, &scratch);
    take_parameter_gradients(&y);
    double *dw_h = y.dw_h;
    const int64_t w_h_elems = y.gates * y.hidden * y.out;
    const bool masked = dw_h && stack->desc->weight_drop > 0;
    if (masked) { /* first the gradient of the masked matrix */
        y.dw_h = scratch;
        memset(y.dw_h, 0, (size_t)w_h_elems * sizeof *y.dw_h);
    }
    split(stack, l, direction, dy, dh_rows);
    run_direction(&y, ref_stack_input(stack, l), dh_rows, dx, carried);
    if (masked) {
        ref_layer_mask_weights(&y, y.dw_h, y.dw_h);
        ref_axpy(w_h_elems, 1, y.dw_h, dw_h);
    }
}

seqlstm_status ref_recurrent_backward(const struct ref_call *call, struct seqlstm_error *err)
{
    if (call->reserve == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "backward of a recurrent layer needs the reserve of its forward");
    const struct ref_stack stack = ref_stack_make(call, call->reserve);
    if (stack.later && (call->parts & (SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES)))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "stepwise: weight gradients need a call of their own");
    if (stack.later && stack.rows != stack.axis->rows)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "stepwise: weight gradients need a binding of the whole axis");
    double *carried = call->scratch;
    double *dy = carried + (stack.states + 1) * (stack.out + stack.hidden);
    double *below = dy + stack.rows * stack.merged;
    double *dh_rows = below + stack.rows * stack.merged;
    double *scratch = dh_rows + stack.rows * stack.out;
    set_or_zero(dy, call->grads[SEQLSTM_SLOT_RECURRENT_Y], stack.rows * stack.merged);
    for (int64_t l = stack.layers - 1; l >= 0; l--) {
        double *dx = l == 0 ? call->grads[SEQLSTM_SLOT_RECURRENT_X] : below;
        if (l > 0)
            memset(below, 0, (size_t)(stack.rows * stack.merged) * sizeof *below);
        for (int64_t direction = 0; direction < stack.directions; direction++)
            run_layer_direction(&stack, l, direction, dy, dh_rows, dx, carried, scratch);
        double *swap = dy;
        dy = below;
        below = swap;
    }
    return SEQLSTM_OK;
}

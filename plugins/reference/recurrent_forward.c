/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of a stack: layers from the lowest, each direction step by step, and each step sequence by sequence. */
#include <string.h>

#include "recurrent.h"
#include "recurrent_cell.h"

/* All steps of one layer in one direction; fills its records. */
static void run_direction(const struct ref_layer *y, const double *x)
{
    const struct ref_stack *stack = y->stack;
    const int64_t steps = stack->t1 - stack->t0;
    for (int64_t s = 0; s < steps; s++) {
        const int64_t t = y->reverse ? stack->t1 - 1 - s : stack->t0 + s;
        for (int64_t b = 0; b < stack->axis->batch_sizes[t]; b++) {
            const int64_t row = ref_stack_row(stack, b, t);
            ref_cell_forward(y, b, t, x + row * y->input, ref_layer_h_before(y, b, t), ref_layer_c_before(y, b, t),
                             ref_layer_record(y, row));
        }
    }
}

/* HN and CN: the states after the last step in order of execution, for each sequence with a step at t0. */
static void final_states(const struct ref_layer *y)
{
    const struct ref_stack *stack = y->stack;
    for (int64_t b = 0; b < stack->states; b++) {
        int64_t last = stack->t0;
        while (!y->reverse && last + 1 < stack->t1 && b < stack->axis->batch_sizes[last + 1])
            last++;
        const double *record = ref_layer_record(y, ref_stack_row(stack, b, last));
        if (y->hn)
            memcpy(y->hn + b * y->out, record + y->layout->h, (size_t)y->out * sizeof *record);
        if (y->cn)
            memcpy(y->cn + b * y->hidden, record + y->layout->c, (size_t)y->hidden * sizeof *record);
    }
}

/* The h of all directions at one row, merged. */
static void merge_row(const struct ref_stack *stack, int64_t layer, int64_t row, double *y)
{
    const double *first = ref_stack_records(stack, layer, 0) + row * stack->layout.elems + stack->layout.h;
    memcpy(y, first, (size_t)stack->out * sizeof *y);
    if (stack->directions == 1)
        return;
    const double *second = ref_stack_records(stack, layer, 1) + row * stack->layout.elems + stack->layout.h;
    for (int64_t k = 0; k < stack->out; k++) {
        switch (stack->desc->merge) {
        case SEQLSTM_KIND_MERGE_CONCAT:
            y[stack->out + k] = second[k];
            break;
        case SEQLSTM_KIND_MERGE_SUM:
            y[k] += second[k];
            break;
        case SEQLSTM_KIND_MERGE_MUL:
            y[k] *= second[k];
            break;
        default: /* SEQLSTM_KIND_MERGE_AVE */
            y[k] = (y[k] + second[k]) / 2;
            break;
        }
    }
}

seqlstm_status ref_recurrent_forward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &call->desc->recurrent;
    double *scratch = call->scratch;
    double *reserve = call->reserve;
    if (d->head.mode == SEQLSTM_MODE_TRAINING && reserve == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "forward of a recurrent layer in training needs the reserve");
    if (d->head.mode == SEQLSTM_MODE_INFERENCE) { /* the records lie behind one layer's scratch */
        reserve = scratch + ref_layer_scratch(d, call->extent->states);
    }
    const struct ref_stack stack = ref_stack_make(call, reserve);
    for (int64_t l = 0; l < stack.layers; l++) {
        for (int64_t direction = 0; direction < stack.directions; direction++) {
            double *at = scratch;
            const struct ref_layer y = ref_layer_make(&stack, l, direction, &at);
            run_direction(&y, ref_stack_input(&stack, l));
            final_states(&y);
        }
        for (int64_t row = 0; row < stack.rows; row++)
            merge_row(&stack, l, row, ref_stack_output(&stack, l) + row * stack.merged);
    }
    if (call->values[SEQLSTM_SLOT_RECURRENT_Y])
        memcpy(call->values[SEQLSTM_SLOT_RECURRENT_Y], ref_stack_output(&stack, stack.layers - 1),
               (size_t)(stack.rows * stack.merged) * sizeof(double));
    return SEQLSTM_OK;
}

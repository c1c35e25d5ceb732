/* SPDX-License-Identifier: Apache-2.0 */
/* See recurrent_stack.h. */
#include "recurrent_stack.h"

static int64_t widest_input(const struct seqlstm_recurrent_desc *d)
{
    return d->layers > 1 && ref_merged_of(d) > d->input ? ref_merged_of(d) : d->input;
}

static struct ref_record_layout layout_of(const struct seqlstm_recurrent_desc *d)
{
    const int64_t gh = ref_gates_of(d) * d->hidden;
    struct ref_record_layout r = {.n = -1, .c_raw = -1, .c = -1, .u = -1, .v = -1, .dh = -1, .dc = -1};
    int64_t at = gh; /* z is at 0 */
    if (d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER) {
        r.n = at;
        at += d->hidden;
    }
    if (d->cell == SEQLSTM_CELL_LSTM) {
        r.c_raw = at;
        r.c = at + d->hidden;
        at += 2 * d->hidden;
    }
    r.h = at;
    at += ref_out_of(d);
    if (d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) {
        r.u = at;
        r.v = at + gh;
        at += 2 * gh;
    }
    if (d->options & SEQLSTM_BIT_RECURRENT_STEPWISE) {
        r.dh = at;
        r.dc = at + ref_out_of(d);
        at += ref_out_of(d) + d->hidden;
    }
    r.elems = at;
    return r;
}

int64_t ref_cell_scratch(const struct seqlstm_recurrent_desc *d)
{
    const int64_t out = d->projection > 0 ? d->projection : d->hidden;
    const int64_t merged = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 * out : out;
    const int64_t input = d->input > merged ? d->input : merged;
    return 2 * input + 3 * out + 6 * 4 * d->hidden + 5 * d->hidden;
}

int64_t ref_layer_scratch(const struct seqlstm_recurrent_desc *d, int64_t states)
{
    const int64_t masks = states * (widest_input(d) + ref_out_of(d));
    const int64_t w_h = ref_gates_of(d) * d->hidden * ref_out_of(d);
    return masks + 2 * w_h + ref_cell_scratch(d); /* w_h and its gradient, both of the masked matrix */
}

int64_t ref_stack_reserve(const struct seqlstm_recurrent_desc *d, int64_t rows)
{
    const int64_t record = layout_of(d).elems;
    return rows * d->layers * (ref_directions_of(d) * record + ref_merged_of(d));
}

/* Inference has no reserve: the records lie in the workspace. Backward carries dh and dc, and holds the gradients of
 * two layers' outputs. */
int64_t ref_stack_scratch(const union seqlstm_any_desc *desc, const struct ref_extent *extent)
{
    const struct seqlstm_recurrent_desc *d = &desc->recurrent;
    const bool training = desc->head.mode == SEQLSTM_MODE_TRAINING;
    const int64_t carry = (extent->states + 1) * (ref_out_of(d) + d->hidden);
    const int64_t flow = extent->rows * (2 * ref_merged_of(d) + ref_out_of(d));
    return ref_layer_scratch(d, extent->states) + (training ? carry + flow : ref_stack_reserve(d, extent->rows));
}

struct ref_stack ref_stack_make(const struct ref_call *call, double *reserve)
{
    const struct seqlstm_recurrent_desc *d = &call->desc->recurrent;
    const struct seqlstm_bind *bind = call->bind;
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING;
    const bool stepwise = training && (d->options & SEQLSTM_BIT_RECURRENT_STEPWISE);
    return (struct ref_stack){.call = call,
                              .desc = d,
                              .axis = bind->axis,
                              .t0 = bind->t0,
                              .t1 = bind->t1,
                              .row0 = bind->axis->row_offsets[bind->t0],
                              .rows = call->extent->rows,
                              .states = call->extent->states,
                              .kept_rows = stepwise ? bind->axis->rows : call->extent->rows,
                              .kept_row0 = stepwise ? bind->axis->row_offsets[bind->t0] : 0,
                              .layers = d->layers,
                              .directions = ref_directions_of(d),
                              .gates = ref_gates_of(d),
                              .hidden = d->hidden,
                              .out = ref_out_of(d),
                              .merged = ref_merged_of(d),
                              .layout = layout_of(d),
                              .reserve = reserve,
                              .training = training,
                              .stepwise = stepwise,
                              .later = stepwise && (call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS)};
}

double *ref_stack_records(const struct ref_stack *stack, int64_t layer, int64_t direction)
{
    const int64_t layers_below = layer * stack->directions + direction;
    return stack->reserve + (layers_below * stack->kept_rows + stack->kept_row0) * stack->layout.elems;
}

double *ref_stack_output(const struct ref_stack *stack, int64_t layer)
{
    double *outputs = stack->reserve + stack->layers * stack->directions * stack->kept_rows * stack->layout.elems;
    return outputs + (layer * stack->kept_rows + stack->kept_row0) * stack->merged;
}

const double *ref_stack_input(const struct ref_stack *stack, int64_t layer)
{
    return layer == 0 ? stack->call->values[SEQLSTM_SLOT_RECURRENT_X] : ref_stack_output(stack, layer - 1);
}

int64_t ref_stack_input_width(const struct ref_stack *stack, int64_t layer)
{
    return layer == 0 ? stack->desc->input : stack->merged;
}

static uint64_t mask_key(const struct ref_layer *y, uint32_t which)
{
    const struct seqlstm_step *step = y->stack->call->step;
    const uint64_t stream = y->desc->stream_base + (uint64_t)(SEQLSTM_STREAMS_PER_LAYER * y->layer + 16 * y->direction);
    return seqlstm_mix64(step->seed, stream + which, step->epoch);
}

/* One mask per sequence, [states, n]; NULL when it is all ones. */
static const double *sequence_mask(const struct ref_layer *y, uint32_t which, float rate, int64_t n, double *mask)
{
    if (!y->training || rate == 0)
        return NULL;
    const struct seqlstm_axis *axis = y->stack->axis;
    const uint64_t key = mask_key(y, which);
    for (int64_t b = 0; b < y->stack->states; b++) {
        const uint32_t step = axis->flags & SEQLSTM_BIT_AXIS_STREAM ? axis->position0[b] : 0;
        for (int64_t k = 0; k < n; k++)
            mask[b * n + k] = (double)seqlstm_mask(key, (uint64_t)k, step, axis->sequence_id[b], rate);
    }
    return mask;
}

void ref_layer_mask_weights(const struct ref_layer *y, const double *from, double *into)
{
    const uint64_t key = mask_key(y, SEQLSTM_MASK_WEIGHT);
    const uint32_t step = y->stack->call->step->weight_mask_step;
    for (int64_t k = 0; k < y->gates * y->hidden * y->out; k++)
        into[k] = from[k] * (double)seqlstm_mask(key, (uint64_t)k, step, SEQLSTM_WEIGHT_SEQUENCE, y->desc->weight_drop);
}

struct ref_layer ref_layer_make(const struct ref_stack *stack, int64_t layer, int64_t direction, double **scratch)
{
    const struct seqlstm_recurrent_desc *d = stack->desc;
    const int64_t ld = stack->layers * stack->directions, n = layer * stack->directions + direction;
    void *const *state = &stack->call->values[SEQLSTM_SLOT_RECURRENT_STATE(n, 0)];
    void *const *param = &stack->call->values[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, 0)];
    struct ref_layer y = {.stack = stack,
                          .desc = d,
                          .layout = &stack->layout,
                          .layer = layer,
                          .direction = direction,
                          .input = ref_stack_input_width(stack, layer),
                          .hidden = stack->hidden,
                          .out = stack->out,
                          .gates = stack->gates,
                          .reverse = direction == 1 || d->direction == SEQLSTM_DIRECTION_BACKWARD,
                          .training = stack->training,
                          .gate = &d->activations[SEQLSTM_PLACE_GATE][direction],
                          .candidate = &d->activations[SEQLSTM_PLACE_CANDIDATE][direction],
                          .output = &d->activations[SEQLSTM_PLACE_OUTPUT][direction],
                          .w_x = param[SEQLSTM_PARAM_W_X],
                          .w_h = param[SEQLSTM_PARAM_W_H],
                          .bias = param[SEQLSTM_PARAM_BIAS],
                          .peephole = param[SEQLSTM_PARAM_PEEPHOLE],
                          .projection = param[SEQLSTM_PARAM_PROJECTION],
                          .norm = param[SEQLSTM_PARAM_NORM],
                          .h0 = state[SEQLSTM_STATE_H0],
                          .c0 = state[SEQLSTM_STATE_C0],
                          .hn = state[SEQLSTM_STATE_HN],
                          .cn = state[SEQLSTM_STATE_CN],
                          .records = ref_stack_records(stack, layer, direction)};
    double *at = *scratch;
    y.mask_x = sequence_mask(&y, SEQLSTM_MASK_INPUT, d->dropout, y.input, at);
    at += stack->states * y.input;
    y.mask_h = sequence_mask(&y, SEQLSTM_MASK_RECURRENT, d->recurrent_dropout, y.out, at);
    at += stack->states * y.out;
    if (y.training && d->weight_drop > 0) {
        ref_layer_mask_weights(&y, y.w_h, at);
        y.w_h = at;
        at += y.gates * y.hidden * y.out;
    }
    if (y.training && d->zoneout_cell > 0)
        y.zoneout_cell_key = mask_key(&y, SEQLSTM_MASK_ZONEOUT_CELL);
    if (y.training && d->zoneout_hidden > 0)
        y.zoneout_hidden_key = mask_key(&y, SEQLSTM_MASK_ZONEOUT_HIDDEN);
    y.scratch = at;
    *scratch = at + ref_cell_scratch(d);
    return y;
}

const double *ref_layer_h_before(const struct ref_layer *y, int64_t b, int64_t t)
{
    const int64_t before = ref_layer_previous(y, b, t);
    if (before >= 0)
        return ref_layer_record(y, ref_stack_row(y->stack, b, before)) + y->layout->h;
    return y->h0 ? y->h0 + b * y->out : NULL;
}

const double *ref_layer_c_before(const struct ref_layer *y, int64_t b, int64_t t)
{
    const int64_t before = ref_layer_previous(y, b, t);
    if (y->layout->c < 0)
        return NULL;
    if (before >= 0)
        return ref_layer_record(y, ref_stack_row(y->stack, b, before)) + y->layout->c;
    return y->c0 ? y->c0 + b * y->hidden : NULL;
}

bool ref_zoneout_keeps(const struct ref_layer *y, uint64_t key, float rate, int64_t b, int64_t t, int64_t element)
{
    const struct seqlstm_axis *axis = y->stack->axis;
    return seqlstm_mask_drops(key, (uint64_t)element, axis->position0[b] + (uint32_t)t, axis->sequence_id[b], rate);
}

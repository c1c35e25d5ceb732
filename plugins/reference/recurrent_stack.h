/* SPDX-License-Identifier: Apache-2.0 */
/* A recurrent stack and one layer of it as views of a call, and what they keep for backward.
 *
 * Reserve: for each (l, d) one record per row, then for each layer its merged output [rows, merged].
 *
 *   record   z [G H]  pre-activations before the gate clip
 *            n [H]    GRU with reset_after: v_n + b_hn
 *            c~ [H]   LSTM: c^ before the cell clip
 *            c [H]    LSTM: the carried cell, after zoneout
 *            h [O]    the carried output, after zoneout
 *            u, v [G H each]  LAYER_NORM: products before normalisation
 *            dh [O], dc [H]   STEPWISE: gradients of h and c in backward of the segment, for the later dW
 *
 * With STEPWISE the reserve holds all rows of the axis, and each segment works on its own rows. Backward computes
 * everything else again: masks from philox.h, activations from z. */
#ifndef REF_RECURRENT_STACK_H
#define REF_RECURRENT_STACK_H

#include "reference.h"

/* Widths: G; D; O, what a direction hands on; what a layer hands on. */
static inline int64_t ref_gates_of(const struct seqlstm_recurrent_desc *d)
{
    return d->cell == SEQLSTM_CELL_LSTM ? 4 : d->cell == SEQLSTM_CELL_GRU ? 3 : 1;
}

static inline int64_t ref_directions_of(const struct seqlstm_recurrent_desc *d)
{
    return d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
}

static inline int64_t ref_out_of(const struct seqlstm_recurrent_desc *d)
{
    return d->projection > 0 ? d->projection : d->hidden;
}

static inline int64_t ref_merged_of(const struct seqlstm_recurrent_desc *d)
{
    return ref_directions_of(d) == 2 && d->merge == SEQLSTM_KIND_MERGE_CONCAT ? 2 * ref_out_of(d) : ref_out_of(d);
}

/* Where the parts of a record begin, in elements; -1: absent. */
struct ref_record_layout {
    int64_t z, n, c_raw, c, h, u, v, dh, dc, elems;
};

/* A call on a stack. */
struct ref_stack {
    const struct ref_call *call;
    const struct seqlstm_recurrent_desc *desc;
    const struct seqlstm_axis *axis;
    int64_t t0, t1, row0;         /* row0: first row of the segment on the axis */
    int64_t rows, states;         /* rows of the segment; sequences with a step at t0 */
    int64_t kept_rows, kept_row0; /* rows of the reserve, and the first of the segment in it */
    int64_t layers, directions, gates, hidden, out, merged;
    struct ref_record_layout layout;
    double *reserve;
    bool training;
    bool stepwise, later; /* stepwise: dW has a later call; later: this is that call */
};

/* One (layer, direction) of the stack. Gradients are NULL if not wanted, and always in forward. */
struct ref_layer {
    const struct ref_stack *stack;
    const struct seqlstm_recurrent_desc *desc;
    const struct ref_record_layout *layout;
    int64_t layer, direction, input, hidden, out, gates;
    bool reverse; /* runs from each sequence's last step to its first */
    bool training;
    const struct seqlstm_activation *gate, *candidate, *output;
    const double *w_x, *w_h, *bias, *peephole, *projection, *norm; /* w_h with the weight mask applied */
    const double *h0, *c0;
    double *hn, *cn;
    double *dw_x, *dw_h, *dbias, *dpeephole, *dprojection, *dnorm; /* dw_h: of the masked matrix */
    const double *mask_x, *mask_h;                                 /* [states, input], [states, out] */
    uint64_t zoneout_cell_key, zoneout_hidden_key;
    double *records;
    double *scratch; /* for the cell: ref_cell_scratch elements */
};

/* Make views of a call. ref_layer_make takes its masks and the cell's scratch from *scratch and moves *scratch past
 * them. */
struct ref_stack ref_stack_make(const struct ref_call *call, double *reserve);
struct ref_layer ref_layer_make(const struct ref_stack *stack, int64_t layer, int64_t direction, double **scratch);
int64_t ref_layer_scratch(const struct seqlstm_recurrent_desc *d, int64_t states);
/* For the work of a cell (recurrent_cell.h), of which ref_layer_scratch holds one. */
int64_t ref_cell_scratch(const struct seqlstm_recurrent_desc *d);

/* Elements of the reserve of so many rows, and of the workspace of a call. */
int64_t ref_stack_reserve(const struct seqlstm_recurrent_desc *d, int64_t rows);
int64_t ref_stack_scratch(const union seqlstm_any_desc *desc, const struct ref_extent *extent);

/* into = from times the weight mask; from is W_h, or the gradient of the masked W_h; into may be from. */
void ref_layer_mask_weights(const struct ref_layer *y, const double *from, double *into);

/* Parts of the reserve. `row` counts from the first row of the segment. */
double *ref_stack_records(const struct ref_stack *stack, int64_t layer, int64_t direction);
double *ref_stack_output(const struct ref_stack *stack, int64_t layer);
/* Input of a layer: X, or the output of the layer below. */
const double *ref_stack_input(const struct ref_stack *stack, int64_t layer);
int64_t ref_stack_input_width(const struct ref_stack *stack, int64_t layer);

static inline double *ref_layer_record(const struct ref_layer *y, int64_t row)
{
    return y->records + row * y->layout->elems;
}

/* The row of (sequence b, step t) in the segment. */
static inline int64_t ref_stack_row(const struct ref_stack *stack, int64_t b, int64_t t)
{
    return stack->axis->row_offsets[t] - stack->row0 + b;
}

/* The step that was processed before t for sequence b, or -1 if b begins at t. */
static inline int64_t ref_layer_previous(const struct ref_layer *y, int64_t b, int64_t t)
{
    if (y->reverse)
        return t + 1 < y->stack->t1 && b < y->stack->axis->batch_sizes[t + 1] ? t + 1 : -1;
    return t > y->stack->t0 ? t - 1 : -1;
}

/* h' and c' of sequence b at step t: those of the previous step, the initial state, or zeros (NULL). */
const double *ref_layer_h_before(const struct ref_layer *y, int64_t b, int64_t t);
const double *ref_layer_c_before(const struct ref_layer *y, int64_t b, int64_t t);

/* Does zoneout in training keep this element of c (h) from the step before? */
bool ref_zoneout_keeps(const struct ref_layer *y, uint64_t key, float rate, int64_t b, int64_t t, int64_t element);

#endif

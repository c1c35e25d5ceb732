/* SPDX-License-Identifier: Apache-2.0 */
/* The time loop as source: a complete LSTM around a matrix product and a cell. Forward is here, backward in
 * prim_loop_backward.h.
 *
 * A backend for a new processor can start from a struct seqlstm_prim (prim_loop_cell.h) with one function of its own
 * and plain versions of the others. prim_loop_backend.h turns it into a plugin; a plugin with its own table calls the
 * functions below. The loop is simple and not fast: every step is a call, and nothing is packed. It is not part of the
 * ABI: it is compiled into the plugin, and may be copied and changed.
 *
 * It runs LSTM stacks in float32 over packed ranges: both directions with all merges; initial and final states;
 * peephole, projection, coupled gates, both clips, every activation; dropout, recurrent dropout, zoneout and weight
 * drop with the masks of philox.h. It refuses, with a reason: other cells, layer norm, and dW in a later call.
 *
 * Reserve (in training; in inference it is part of the workspace): for every (l, d), by row
 *   z [4 H] · c_raw [H] · c [H] · h [O] · out [H] with a projection;    for every l but the last: y [merged]
 *
 * The carried states are [B, …] arrays, which start as h0 and c0. Step t reads and writes their first batch_sizes[t]
 * rows: it does not touch the rows of sequences that have ended or, in the backward direction, that have not begun.
 */
#ifndef SEQLSTM_PRIM_LOOP_H
#define SEQLSTM_PRIM_LOOP_H

#include <stdint.h>
#include <string.h>

#include "backend.h"
#include "desc_check.h"
#include "philox.h"
#include "prim_loop_cell.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shapes ------------------------------------------------------------------------------------------ */

/* One shape of a stack, in elements. */
struct seqlstm_prim_shape {
    const struct seqlstm_recurrent_desc *desc;
    int64_t rows, states, layers, directions, hidden, out, merged, widest; /* R, B, L, D, H, O; widest input */
    int32_t training;
};

static inline struct seqlstm_prim_shape seqlstm_prim_shape_make(const struct seqlstm_recurrent_desc *d, int64_t rows,
                                                                int64_t states)
{
    struct seqlstm_prim_shape s;
    s.desc = d;
    s.rows = rows;
    s.states = states;
    s.layers = d->layers;
    s.directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    s.hidden = d->hidden;
    s.out = d->projection > 0 ? d->projection : d->hidden;
    s.merged = s.directions == 2 && d->merge == SEQLSTM_KIND_MERGE_CONCAT ? 2 * s.out : s.out;
    s.widest = d->layers > 1 && s.merged > d->input ? s.merged : d->input;
    s.training = d->head.mode == SEQLSTM_MODE_TRAINING;
    return s;
}

/* Elements of one row in the reserve of one (l, d). */
static inline int64_t seqlstm_prim_record_elems(const struct seqlstm_prim_shape *s)
{
    return 6 * s->hidden + s->out + (s->desc->projection > 0 ? s->hidden : 0);
}

static inline int64_t seqlstm_prim_reserve_elems(const struct seqlstm_prim_shape *s)
{
    return s->rows * (s->layers * s->directions * seqlstm_prim_record_elems(s) + (s->layers - 1) * s->merged);
}

/* Offsets of the arrays in the workspace, in elements. */
struct seqlstm_prim_scratch {
    int64_t x, w_h, h, c, h_masked, out, h_new;                                          /* forward and backward */
    int64_t dy, dy_below, dx, dz, h_before, c_before, dh_new, dout, dc, dc_before, dw_h; /* backward */
    int64_t reserve;                                                                     /* inference */
    int64_t elems;
};

static inline int64_t seqlstm_prim_take(int64_t *at, int64_t elems)
{
    const int64_t here = *at;
    *at += (elems + 15) / 16 * 16; /* every array on a cache line */
    return here;
}

static inline struct seqlstm_prim_scratch seqlstm_prim_scratch_make(const struct seqlstm_prim_shape *s)
{
    struct seqlstm_prim_scratch w;
    const int64_t r = s->rows, b = s->states, h = s->hidden, o = s->out, back = s->training ? 1 : 0;
    const int64_t masked = s->training && s->desc->weight_drop > 0 ? 4 * h * o : 0;
    int64_t at = 0;
    w.x = seqlstm_prim_take(&at, s->training && s->desc->dropout > 0 ? r * s->widest : 0);
    w.w_h = seqlstm_prim_take(&at, masked);
    w.h = seqlstm_prim_take(&at, b * o);
    w.c = seqlstm_prim_take(&at, b * h);
    w.h_masked = seqlstm_prim_take(&at, b * o);
    w.out = seqlstm_prim_take(&at, b * h);
    w.h_new = seqlstm_prim_take(&at, b * o);
    w.dy = seqlstm_prim_take(&at, back * r * s->merged);
    w.dy_below = seqlstm_prim_take(&at, back * r * s->merged);
    w.dx = seqlstm_prim_take(&at, back * r * s->widest);
    w.dz = seqlstm_prim_take(&at, back * r * 4 * h);
    w.h_before = seqlstm_prim_take(&at, back * r * o);
    w.c_before = seqlstm_prim_take(&at, back * r * h);
    w.dh_new = seqlstm_prim_take(&at, back * r * o);
    w.dout = seqlstm_prim_take(&at, back * b * h);
    w.dc = seqlstm_prim_take(&at, back * b * h);
    w.dc_before = seqlstm_prim_take(&at, back * b * h);
    w.dw_h = seqlstm_prim_take(&at, back * masked);
    w.reserve = seqlstm_prim_take(&at, s->training ? 0 : seqlstm_prim_reserve_elems(s));
    w.elems = at;
    return w;
}

/* ---- capability -------------------------------------------------------------------------------------- */

/* Can the loop run the descriptor with the functions of `prim`? If not, it fills the answer; if so, the caller fills in
 * the variants. [any] */
static inline int32_t seqlstm_prim_supports(const struct seqlstm_prim *prim, const struct seqlstm_desc *head,
                                            struct seqlstm_answer *answer)
{
    union seqlstm_any_desc copy;
    const struct seqlstm_recurrent_desc *d = &copy.recurrent;
    if (head->op != SEQLSTM_OP_RECURRENT)
        return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_OPERATION, SEQLSTM_OPTION_NONE, NULL,
                                 "it runs recurrent layers only");
    if (!seqlstm_desc_check(head, answer)) /* values and bits that these headers do not know */
        return 0;
    seqlstm_desc_copy(head, &copy);
    if (head->dtype_activation | head->dtype_activation_grad | head->dtype_state | head->dtype_compute |
        head->dtype_weight | head->dtype_weight_grad)
        return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL,
                                 "it knows float32 only");
    if (d->cell != SEQLSTM_CELL_LSTM)
        return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_CELL,
                                 d->cell == SEQLSTM_CELL_GRU ? "gru" : "rnn", "its cell is the LSTM");
    if (d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM)
        return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_LAYER_NORM, NULL,
                                 "its cell gets the sum of both products, which layer norm takes one by one");
    if (d->options & SEQLSTM_BIT_RECURRENT_STEPWISE)
        return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_STATES, NULL,
                                 "it computes the gradient of the weights with the rest");
    /* in float, since the number of bytes may exceed 64 bits */
    const float rows = (float)head->max_rows, wide = (float)d->input + (float)d->hidden + (float)d->projection;
    if ((rows + wide) * wide * 64 * (float)d->layers > 1e18f)
        return seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE, NULL,
                                 "its buffers would be larger than any memory");
    return prim->accepts ? prim->accepts(d, answer) : 1;
}

/* ---- one call ---------------------------------------------------------------------------------------- */

/* The arguments of one call of forward or backward. */
struct seqlstm_prim_call {
    const struct seqlstm_prim *prim;
    struct seqlstm_queue *queue;
    struct seqlstm_prim_shape shape;
    struct seqlstm_prim_scratch at;
    const struct seqlstm_axis *axis;
    int64_t t0, t1;
    void *const *slots;
    void *const *grads; /* backward */
    uint32_t parts;     /* backward */
    float *work, *reserve;
    const struct seqlstm_step *step;
};

/* One (l, d) of a call. */
struct seqlstm_prim_layer {
    const struct seqlstm_prim_call *call;
    struct seqlstm_prim_cell cell; /* what does not change from step to step */
    int64_t layer, direction, n, input;
    int32_t reverse;
    const float *x;                 /* [rows, input], with the input mask */
    const float *w_h;               /* with the weight mask */
    float *z, *c_raw, *c, *h, *out; /* in the reserve; out NULL without a projection */
};

/* First row of step t in the range. */
static inline int64_t seqlstm_prim_row(const struct seqlstm_prim_call *call, int64_t t)
{
    return call->axis->row_offsets[t] - call->axis->row_offsets[call->t0];
}

static inline float *seqlstm_prim_slot(void *const *slots, int64_t k)
{
    return (float *)slots[k];
}

static inline int64_t seqlstm_prim_state(const struct seqlstm_prim_layer *y, int64_t which)
{
    return SEQLSTM_SLOT_RECURRENT_STATE(y->n, which);
}

static inline int64_t seqlstm_prim_param(const struct seqlstm_prim_layer *y, int64_t which)
{
    const int64_t ld = y->call->shape.layers * y->call->shape.directions;
    return SEQLSTM_SLOT_RECURRENT_PARAM(ld, y->n, which);
}

static inline void seqlstm_prim_multiply(const struct seqlstm_prim_call *call, struct seqlstm_prim_gemm gemm)
{
    if (call->prim->gemm)
        call->prim->gemm(call->queue, &gemm);
    else
        seqlstm_prim_gemm_plain(call->queue, &gemm);
}

/* C = or += A B' with A [m, k] and B stored [n, k]: rows times weights. */
static inline void seqlstm_prim_rows_by_weights(const struct seqlstm_prim_call *call, int64_t m, int64_t n, int64_t k,
                                                const float *a, const float *b, float *c, int32_t accumulate)
{
    const struct seqlstm_prim_gemm gemm = {m, n, k, a, b, c, k, k, n, 0, 1, accumulate};
    seqlstm_prim_multiply(call, gemm);
}

/* C = A B with A [m, k] and B stored [k, n]: gradients backward through weights. */
static inline void seqlstm_prim_grads_by_weights(const struct seqlstm_prim_call *call, int64_t m, int64_t n, int64_t k,
                                                 const float *a, const float *b, float *c)
{
    const struct seqlstm_prim_gemm gemm = {m, n, k, a, b, c, k, n, n, 0, 0, 0};
    seqlstm_prim_multiply(call, gemm);
}

/* C [m, n] = or += A' B with A stored [rows, m] and B [rows, n]: gradients of weights, summed over all rows. */
static inline void seqlstm_prim_grads_by_rows(const struct seqlstm_prim_call *call, int64_t m, int64_t n,
                                              const float *a, const float *b, float *c, int32_t accumulate)
{
    const struct seqlstm_prim_gemm gemm = {m, n, call->shape.rows, a, b, c, m, n, n, 1, 0, accumulate};
    seqlstm_prim_multiply(call, gemm);
}

struct seqlstm_prim_cell_work {
    const struct seqlstm_prim_cell *cell;
    void (*fn)(const struct seqlstm_prim_cell *cell, int64_t begin, int64_t end);
};

static inline void seqlstm_prim_cell_range(void *argument, int64_t begin, int64_t end)
{
    const struct seqlstm_prim_cell_work *work = (const struct seqlstm_prim_cell_work *)argument;
    work->fn(work->cell, begin, end);
}

static inline void seqlstm_prim_run_cell(const struct seqlstm_prim_call *call, const struct seqlstm_prim_cell *cell,
                                         int64_t rows, int32_t backward)
{
    struct seqlstm_prim_cell_work work = {cell, NULL};
    if (backward)
        work.fn = call->prim->cell_backward ? call->prim->cell_backward : seqlstm_prim_cell_backward;
    else
        work.fn = call->prim->cell_forward ? call->prim->cell_forward : seqlstm_prim_cell_forward;
    call->queue->services->parallel_for(call->queue, rows, 2, seqlstm_prim_cell_range, &work);
}

/* ---- masks ------------------------------------------------------------------------------------------- */

static inline uint64_t seqlstm_prim_mask_key(const struct seqlstm_prim_layer *y, uint32_t which)
{
    const struct seqlstm_step *step = y->call->step;
    const uint64_t stream =
        y->call->shape.desc->stream_base + (uint64_t)(SEQLSTM_STREAMS_PER_LAYER * y->layer + 16 * y->direction) + which;
    return seqlstm_mix64(step->seed, stream, step->epoch);
}

/* to = from times the mask of each sequence, both [rows of a step, n]. `from` NULL: zeros; rate 0: a copy. */
static inline void seqlstm_prim_mask_rows(const struct seqlstm_prim_layer *y, uint32_t which, float rate, int64_t rows,
                                          int64_t n, const float *from, float *to)
{
    const struct seqlstm_axis *axis = y->call->axis;
    const uint64_t key = rate > 0 ? seqlstm_prim_mask_key(y, which) : 0;
    for (int64_t b = 0; b < rows; b++) {
        const uint32_t step = axis->flags & SEQLSTM_BIT_AXIS_STREAM ? axis->position0[b] : 0;
        for (int64_t k = 0; k < n; k++) {
            const float value = from ? from[b * n + k] : 0;
            to[b * n + k] = rate > 0 ? value * seqlstm_mask(key, (uint64_t)k, step, axis->sequence_id[b], rate) : value;
        }
    }
}

/* Applies the input mask to all rows of the range. */
static inline void seqlstm_prim_mask_input(const struct seqlstm_prim_layer *y, const float *from, float *to)
{
    for (int64_t t = y->call->t0; t < y->call->t1; t++) {
        const int64_t at = seqlstm_prim_row(y->call, t) * y->input;
        seqlstm_prim_mask_rows(y, SEQLSTM_MASK_INPUT, y->call->shape.desc->dropout, y->call->axis->batch_sizes[t],
                               y->input, from + at, to + at);
    }
}

/* Factor of element k of W_h, and of its gradient, by the weight mask. */
static inline float seqlstm_prim_weight_mask(const struct seqlstm_prim_layer *y, uint64_t key, int64_t k)
{
    return seqlstm_mask(key, (uint64_t)k, y->call->step->weight_mask_step, SEQLSTM_WEIGHT_SEQUENCE,
                        y->call->shape.desc->weight_drop);
}

/* Does element k of sequence b keep its value of the step before (zoneout)? */
static inline int32_t seqlstm_prim_keeps(const struct seqlstm_prim_layer *y, uint64_t key, float rate, int64_t b,
                                         int64_t t, int64_t k)
{
    const struct seqlstm_axis *axis = y->call->axis;
    return seqlstm_mask_drops(key, (uint64_t)k, axis->position0[b] + (uint32_t)t, axis->sequence_id[b], rate);
}

/* Zoneout: mixes `before` into `now` [rows, n], which becomes the carried state. */
static inline void seqlstm_prim_zoneout(const struct seqlstm_prim_layer *y, uint32_t which, float rate, int64_t t,
                                        int64_t n, const float *before, float *now)
{
    if (!(rate > 0))
        return;
    const uint64_t key = seqlstm_prim_mask_key(y, which);
    const float kept = seqlstm_mask_rate(rate);
    for (int64_t b = 0; b < y->call->axis->batch_sizes[t]; b++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = b * n + k;
            if (!y->call->shape.training)
                now[at] = kept * before[at] + (1 - kept) * now[at];
            else if (seqlstm_prim_keeps(y, key, rate, b, t, k))
                now[at] = before[at];
        }
}

/* ---- one layer in one direction ---------------------------------------------------------------------- */

/* Output of layer l in the reserve. The output of the last layer is only in the slot. */
static inline float *seqlstm_prim_layer_output(const struct seqlstm_prim_call *call, int64_t l)
{
    const struct seqlstm_prim_shape *s = &call->shape;
    return call->reserve + s->rows * (s->layers * s->directions * seqlstm_prim_record_elems(s) + l * s->merged);
}

static inline struct seqlstm_prim_layer seqlstm_prim_layer_make(const struct seqlstm_prim_call *call, int64_t layer,
                                                                int64_t direction)
{
    const struct seqlstm_prim_shape *s = &call->shape;
    const struct seqlstm_recurrent_desc *d = s->desc;
    struct seqlstm_prim_layer y;
    memset(&y, 0, sizeof y);
    y.call = call;
    y.layer = layer;
    y.direction = direction;
    y.n = layer * s->directions + direction;
    y.input = layer == 0 ? d->input : s->merged;
    y.reverse = direction == 1 || d->direction == SEQLSTM_DIRECTION_BACKWARD;
    y.cell.desc = d;
    y.cell.gate = &d->activations[SEQLSTM_PLACE_GATE][direction];
    y.cell.candidate = &d->activations[SEQLSTM_PLACE_CANDIDATE][direction];
    y.cell.output = &d->activations[SEQLSTM_PLACE_OUTPUT][direction];
    y.cell.peephole = seqlstm_prim_slot(call->slots, seqlstm_prim_param(&y, SEQLSTM_PARAM_PEEPHOLE));
    y.cell.hidden = s->hidden;
    y.z = call->reserve + y.n * s->rows * seqlstm_prim_record_elems(s);
    y.c_raw = y.z + s->rows * 4 * s->hidden;
    y.c = y.c_raw + s->rows * s->hidden;
    y.h = y.c + s->rows * s->hidden;
    y.out = d->projection > 0 ? y.h + s->rows * s->out : NULL;
    y.x = layer == 0 ? seqlstm_prim_slot(call->slots, SEQLSTM_SLOT_RECURRENT_X)
                     : seqlstm_prim_layer_output(call, layer - 1);
    if (s->training && d->dropout > 0) {
        seqlstm_prim_mask_input(&y, y.x, call->work + call->at.x);
        y.x = call->work + call->at.x;
    }
    y.w_h = seqlstm_prim_slot(call->slots, seqlstm_prim_param(&y, SEQLSTM_PARAM_W_H));
    if (s->training && d->weight_drop > 0) {
        float *masked = call->work + call->at.w_h;
        const uint64_t key = seqlstm_prim_mask_key(&y, SEQLSTM_MASK_WEIGHT);
        for (int64_t k = 0; k < 4 * s->hidden * s->out; k++)
            masked[k] = y.w_h[k] * seqlstm_prim_weight_mask(&y, key, k);
        y.w_h = masked;
    }
    return y;
}

static inline void seqlstm_prim_copy(float *to, const float *from, int64_t elems)
{
    if (from)
        memcpy(to, from, (size_t)elems * sizeof *to);
    else
        memset(to, 0, (size_t)elems * sizeof *to);
}

/* z = x~ W_x' + b for all rows at once; each step adds its recurrent part. */
static inline void seqlstm_prim_input_product(const struct seqlstm_prim_layer *y)
{
    const struct seqlstm_prim_shape *s = &y->call->shape;
    const float *bias = seqlstm_prim_slot(y->call->slots, seqlstm_prim_param(y, SEQLSTM_PARAM_BIAS));
    const float *w_x = seqlstm_prim_slot(y->call->slots, seqlstm_prim_param(y, SEQLSTM_PARAM_W_X));
    for (int64_t row = 0; bias && row < s->rows; row++)
        memcpy(y->z + row * 4 * s->hidden, bias, (size_t)(4 * s->hidden) * sizeof *bias);
    seqlstm_prim_rows_by_weights(y->call, s->rows, 4 * s->hidden, y->input, y->x, w_x, y->z, bias != NULL);
}

/* One step forward: moves the first batch_sizes[t] rows of the carried h and c from before the step to after it. */
static inline void seqlstm_prim_step_forward(const struct seqlstm_prim_layer *y, int64_t t, float *h, float *c)
{
    const struct seqlstm_prim_call *call = y->call;
    const struct seqlstm_prim_shape *s = &call->shape;
    const struct seqlstm_recurrent_desc *d = s->desc;
    const int64_t rows = call->axis->batch_sizes[t], row = seqlstm_prim_row(call, t), hidden = s->hidden;
    float *masked = call->work + call->at.h_masked;
    struct seqlstm_prim_cell cell = y->cell;
    cell.c_before = c;
    cell.z = y->z + row * 4 * hidden;
    cell.c_raw = y->c_raw + row * hidden;
    cell.c = y->c + row * hidden;
    cell.out = y->out ? y->out + row * hidden : call->work + call->at.out;
    seqlstm_prim_mask_rows(y, SEQLSTM_MASK_RECURRENT, s->training ? d->recurrent_dropout : 0, rows, s->out, h, masked);
    seqlstm_prim_rows_by_weights(call, rows, 4 * hidden, s->out, masked, y->w_h, cell.z, 1);
    seqlstm_prim_run_cell(call, &cell, rows, 0);
    float *now = y->h + row * s->out;
    if (y->out)
        seqlstm_prim_rows_by_weights(call, rows, s->out, hidden, cell.out,
                                     seqlstm_prim_slot(call->slots, seqlstm_prim_param(y, SEQLSTM_PARAM_PROJECTION)),
                                     now, 0);
    else
        seqlstm_prim_copy(now, cell.out, rows * hidden);
    seqlstm_prim_zoneout(y, SEQLSTM_MASK_ZONEOUT_CELL, d->zoneout_cell, t, hidden, c, cell.c);
    seqlstm_prim_zoneout(y, SEQLSTM_MASK_ZONEOUT_HIDDEN, d->zoneout_hidden, t, s->out, h, now);
    seqlstm_prim_copy(c, cell.c, rows * hidden);
    seqlstm_prim_copy(h, now, rows * s->out);
}

static inline void seqlstm_prim_layer_forward(const struct seqlstm_prim_layer *y)
{
    const struct seqlstm_prim_call *call = y->call;
    const struct seqlstm_prim_shape *s = &call->shape;
    float *h = call->work + call->at.h, *c = call->work + call->at.c;
    float *hn = seqlstm_prim_slot(call->slots, seqlstm_prim_state(y, SEQLSTM_STATE_HN));
    float *cn = seqlstm_prim_slot(call->slots, seqlstm_prim_state(y, SEQLSTM_STATE_CN));
    const int32_t given = (s->desc->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE) != 0;
    const int32_t wanted = (s->desc->options & SEQLSTM_BIT_RECURRENT_FINAL_STATE) != 0;
    seqlstm_prim_copy(h, given ? seqlstm_prim_slot(call->slots, seqlstm_prim_state(y, SEQLSTM_STATE_H0)) : NULL,
                      s->states * s->out);
    seqlstm_prim_copy(c, given ? seqlstm_prim_slot(call->slots, seqlstm_prim_state(y, SEQLSTM_STATE_C0)) : NULL,
                      s->states * s->hidden);
    seqlstm_prim_input_product(y);
    for (int64_t k = 0; k < call->t1 - call->t0; k++)
        seqlstm_prim_step_forward(y, y->reverse ? call->t1 - 1 - k : call->t0 + k, h, c);
    if (wanted && hn)
        seqlstm_prim_copy(hn, h, s->states * s->out);
    if (wanted && cn)
        seqlstm_prim_copy(cn, c, s->states * s->hidden);
}

/* Output of a layer: merges the h of its directions row by row. */
static inline void seqlstm_prim_merge(const struct seqlstm_prim_call *call, const float *first, const float *second,
                                      float *to)
{
    const struct seqlstm_prim_shape *s = &call->shape;
    for (int64_t row = 0; row < s->rows; row++, first += s->out, second += s->out, to += s->merged)
        for (int64_t k = 0; k < s->out; k++) {
            to[k] = first[k];
            if (s->directions == 1)
                continue;
            switch (s->desc->merge) {
            case SEQLSTM_KIND_MERGE_CONCAT:
                to[s->out + k] = second[k];
                break;
            case SEQLSTM_KIND_MERGE_SUM:
                to[k] += second[k];
                break;
            case SEQLSTM_KIND_MERGE_MUL:
                to[k] *= second[k];
                break;
            default:
                to[k] = (to[k] + second[k]) / 2;
                break; /* SEQLSTM_KIND_MERGE_AVE */
            }
        }
}

/* All layers, the first one first. [queue] */
static inline void seqlstm_prim_forward(const struct seqlstm_prim_call *call)
{
    const struct seqlstm_prim_shape *s = &call->shape;
    for (int64_t l = 0; l < s->layers; l++) {
        const float *h[2] = {NULL, NULL};
        for (int64_t direction = 0; direction < s->directions; direction++) {
            const struct seqlstm_prim_layer y = seqlstm_prim_layer_make(call, l, direction);
            seqlstm_prim_layer_forward(&y);
            h[direction] = y.h;
        }
        float *to = l + 1 < s->layers ? seqlstm_prim_layer_output(call, l)
                                      : seqlstm_prim_slot(call->slots, SEQLSTM_SLOT_RECURRENT_Y);
        if (l + 1 < s->layers || (s->desc->options & SEQLSTM_BIT_RECURRENT_OUTPUT))
            seqlstm_prim_merge(call, h[0], s->directions == 2 ? h[1] : h[0], to);
    }
}

#ifdef __cplusplus
}
#endif

#endif

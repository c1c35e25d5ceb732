/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the time loop (prim_loop.h). It runs the layers from the last to the first, and each direction in the
 * reverse order of its steps. Then it computes the gradients of the weights, each with one product over all rows.
 *
 * The carried arrays hold dh and dc of every sequence. They start as the gradients of the final states and end as those
 * of the initial states. It is not part of the ABI: it is compiled into the plugin.
 */
#ifndef SEQLSTM_PRIM_LOOP_BACKWARD_H
#define SEQLSTM_PRIM_LOOP_BACKWARD_H

#include "prim_loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gradient of this direction's h at (row, k), from dy, the gradient of the merged output (NULL: zero). */
static inline float seqlstm_prim_split(const struct seqlstm_prim_layer *y, const float *dy, int64_t row, int64_t k)
{
    const struct seqlstm_prim_shape *s = &y->call->shape;
    const int64_t other = (1 - 2 * y->direction) * s->rows * seqlstm_prim_record_elems(s);
    if (!dy)
        return 0;
    dy += row * s->merged;
    if (s->directions == 1 || s->desc->merge == SEQLSTM_KIND_MERGE_SUM)
        return dy[k];
    if (s->desc->merge == SEQLSTM_KIND_MERGE_CONCAT)
        return dy[y->direction * s->out + k];
    return s->desc->merge == SEQLSTM_KIND_MERGE_MUL ? dy[k] * y->h[other + row * s->out + k] : dy[k] / 2;
}

/* The rows of a state before step t: from the step that ran before it or, where there is none, the initial state. */
static inline void seqlstm_prim_state_before(const struct seqlstm_prim_layer *y, int64_t t, int64_t elems,
                                             const float *records, const float *initial, float *to)
{
    const struct seqlstm_prim_call *call = y->call;
    const int64_t before = y->reverse ? t + 1 : t - 1, rows = call->axis->batch_sizes[t];
    int64_t there = 0; /* rows of the step before */
    if (before >= call->t0 && before < call->t1) {
        there = call->axis->batch_sizes[before] < rows ? call->axis->batch_sizes[before] : rows;
        seqlstm_prim_copy(to, records + seqlstm_prim_row(call, before) * elems, there * elems);
    }
    seqlstm_prim_copy(to + there * elems, initial ? initial + there * elems : NULL, (rows - there) * elems);
}

/* Splits the gradient `carried` [rows, n]: that of kept elements stays in it for the step before, the rest goes to
 * `here`. */
static inline void seqlstm_prim_zoneout_backward(const struct seqlstm_prim_layer *y, uint32_t which, float rate,
                                                 int64_t t, int64_t n, float *carried, float *here)
{
    const uint64_t key = rate > 0 ? seqlstm_prim_mask_key(y, which) : 0;
    for (int64_t b = 0; b < y->call->axis->batch_sizes[t]; b++)
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = b * n + k;
            const int32_t kept = rate > 0 && seqlstm_prim_keeps(y, key, rate, b, t, k);
            here[at] = kept ? 0 : carried[at];
            carried[at] = kept ? carried[at] : 0;
        }
}

/* One step backward: moves dh and dc [B, …] from after the step to before it, and fills the step's rows of dz, h~, c'
 * and dh^. */
static inline void seqlstm_prim_step_backward(const struct seqlstm_prim_layer *y, int64_t t, const float *dy, float *dh,
                                              float *dc)
{
    const struct seqlstm_prim_call *call = y->call;
    const struct seqlstm_prim_shape *s = &call->shape;
    const struct seqlstm_recurrent_desc *d = s->desc;
    const int64_t rows = call->axis->batch_sizes[t], row = seqlstm_prim_row(call, t), hidden = s->hidden, out = s->out;
    const int32_t given = (d->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE) != 0;
    float *work = call->work, *dh_before = work + call->at.h_masked;
    float *h_before = work + call->at.h_before + row * out, *c_before = work + call->at.c_before + row * hidden;
    float *dh_new = work + call->at.dh_new + row * out;
    struct seqlstm_prim_cell cell = y->cell;
    seqlstm_prim_state_before(y, t, out, y->h,
                              given ? seqlstm_prim_slot(call->slots, seqlstm_prim_state(y, SEQLSTM_STATE_H0)) : NULL,
                              h_before);
    seqlstm_prim_mask_rows(y, SEQLSTM_MASK_RECURRENT, d->recurrent_dropout, rows, out, h_before, h_before);
    seqlstm_prim_state_before(y, t, hidden, y->c,
                              given ? seqlstm_prim_slot(call->slots, seqlstm_prim_state(y, SEQLSTM_STATE_C0)) : NULL,
                              c_before);
    for (int64_t b = 0; b < rows; b++)
        for (int64_t k = 0; k < out; k++)
            dh[b * out + k] += seqlstm_prim_split(y, dy, row + b, k);
    seqlstm_prim_zoneout_backward(y, SEQLSTM_MASK_ZONEOUT_HIDDEN, d->zoneout_hidden, t, out, dh, dh_new);
    seqlstm_prim_zoneout_backward(y, SEQLSTM_MASK_ZONEOUT_CELL, d->zoneout_cell, t, hidden, dc, work + call->at.dc);
    cell.c_before = c_before;
    cell.z = y->z + row * 4 * hidden;
    cell.c_raw = y->c_raw + row * hidden;
    cell.dout = dh_new;
    cell.dc = work + call->at.dc;
    cell.dz = work + call->at.dz + row * 4 * hidden;
    cell.dc_before = work + call->at.dc_before;
    if (y->out) {
        seqlstm_prim_grads_by_weights(call, rows, hidden, out, dh_new,
                                      seqlstm_prim_slot(call->slots, seqlstm_prim_param(y, SEQLSTM_PARAM_PROJECTION)),
                                      work + call->at.dout);
        cell.dout = work + call->at.dout;
    }
    seqlstm_prim_run_cell(call, &cell, rows, 1);
    seqlstm_prim_grads_by_weights(call, rows, out, 4 * hidden, cell.dz, y->w_h, dh_before);
    seqlstm_prim_mask_rows(y, SEQLSTM_MASK_RECURRENT, d->recurrent_dropout, rows, out, dh_before, dh_before);
    for (int64_t k = 0; k < rows * out; k++)
        dh[k] += dh_before[k];
    for (int64_t k = 0; k < rows * hidden; k++)
        dc[k] += cell.dc_before[k];
}

/* grad [n] = or += the sum over all rows of a [rows, stride] times b [rows, n], element by element (b NULL: of a). */
static inline void seqlstm_prim_sum_rows(const struct seqlstm_prim_call *call, int64_t n, const float *a,
                                         int64_t stride, const float *b, int32_t accumulate, float *grad)
{
    for (int64_t k = 0; k < n; k++) {
        double sum = accumulate ? (double)grad[k] : 0;
        for (int64_t row = 0; row < call->shape.rows; row++)
            sum += (double)a[row * stride + k] * (b ? (double)b[row * n + k] : 1);
        grad[k] = (float)sum;
    }
}

static inline void seqlstm_prim_peephole_gradient(const struct seqlstm_prim_layer *y, int32_t accumulate, float *grad)
{
    const struct seqlstm_prim_call *call = y->call;
    const int64_t n = call->shape.hidden;
    const float *dz = call->work + call->at.dz, *c_before = call->work + call->at.c_before;
    seqlstm_prim_sum_rows(call, n, dz, 4 * n, c_before, accumulate, grad);
    seqlstm_prim_sum_rows(call, n, dz + n, 4 * n, c_before, accumulate, grad + n);
    for (int64_t k = 0; k < n; k++) { /* output gate: with c^, which is c_raw after the clip */
        double sum = accumulate ? (double)grad[2 * n + k] : 0;
        for (int64_t row = 0; row < call->shape.rows; row++)
            sum += (double)dz[row * 4 * n + 3 * n + k] *
                   (double)seqlstm_prim_clip(y->c_raw[row * n + k], call->shape.desc->cell_clip);
        grad[2 * n + k] = (float)sum;
    }
}

/* Gradients of all parameters of one (l, d). Those whose pointer is NULL are not wanted. */
static inline void seqlstm_prim_weight_gradients(const struct seqlstm_prim_layer *y)
{
    const struct seqlstm_prim_call *call = y->call;
    const struct seqlstm_prim_shape *s = &call->shape;
    const int64_t gates = 4 * s->hidden;
    const int32_t accumulate = (call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0;
    const float *dz = call->work + call->at.dz, *h_before = call->work + call->at.h_before;
    float *w_x = seqlstm_prim_slot(call->grads, seqlstm_prim_param(y, SEQLSTM_PARAM_W_X));
    float *w_h = seqlstm_prim_slot(call->grads, seqlstm_prim_param(y, SEQLSTM_PARAM_W_H));
    float *bias = seqlstm_prim_slot(call->grads, seqlstm_prim_param(y, SEQLSTM_PARAM_BIAS));
    float *peephole = seqlstm_prim_slot(call->grads, seqlstm_prim_param(y, SEQLSTM_PARAM_PEEPHOLE));
    float *projection = seqlstm_prim_slot(call->grads, seqlstm_prim_param(y, SEQLSTM_PARAM_PROJECTION));
    if (w_x)
        seqlstm_prim_grads_by_rows(call, gates, y->input, dz, y->x, w_x, accumulate);
    if (w_h && s->desc->weight_drop > 0) { /* of the masked matrix first */
        float *masked = call->work + call->at.dw_h;
        const uint64_t key = seqlstm_prim_mask_key(y, SEQLSTM_MASK_WEIGHT);
        seqlstm_prim_grads_by_rows(call, gates, s->out, dz, h_before, masked, 0);
        for (int64_t k = 0; k < gates * s->out; k++)
            w_h[k] = (accumulate ? w_h[k] : 0) + masked[k] * seqlstm_prim_weight_mask(y, key, k);
    } else if (w_h) {
        seqlstm_prim_grads_by_rows(call, gates, s->out, dz, h_before, w_h, accumulate);
    }
    if (bias)
        seqlstm_prim_sum_rows(call, gates, dz, gates, NULL, accumulate, bias);
    if (peephole)
        seqlstm_prim_peephole_gradient(y, accumulate, peephole);
    if (projection)
        seqlstm_prim_grads_by_rows(call, s->out, s->hidden, call->work + call->at.dh_new, y->out, projection,
                                   accumulate);
}

/* One layer and direction. dy [rows, merged] or NULL; dx [rows, input] or NULL; the second direction adds to dx. */
static inline void seqlstm_prim_layer_backward(const struct seqlstm_prim_layer *y, const float *dy, float *dx)
{
    const struct seqlstm_prim_call *call = y->call;
    const struct seqlstm_prim_shape *s = &call->shape;
    float *dh = call->work + call->at.h, *dc = call->work + call->at.c, *part = call->work + call->at.dx;
    const int32_t final = (s->desc->options & SEQLSTM_BIT_RECURRENT_FINAL_STATE) != 0;
    seqlstm_prim_copy(dh, final ? seqlstm_prim_slot(call->grads, seqlstm_prim_state(y, SEQLSTM_STATE_HN)) : NULL,
                      s->states * s->out);
    seqlstm_prim_copy(dc, final ? seqlstm_prim_slot(call->grads, seqlstm_prim_state(y, SEQLSTM_STATE_CN)) : NULL,
                      s->states * s->hidden);
    for (int64_t k = 0; k < call->t1 - call->t0; k++)
        seqlstm_prim_step_backward(y, y->reverse ? call->t0 + k : call->t1 - 1 - k, dy, dh, dc);
    if ((call->parts & SEQLSTM_BIT_BACKWARD_STATES) && (s->desc->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE)) {
        float *dh0 = seqlstm_prim_slot(call->grads, seqlstm_prim_state(y, SEQLSTM_STATE_H0));
        float *dc0 = seqlstm_prim_slot(call->grads, seqlstm_prim_state(y, SEQLSTM_STATE_C0));
        if (dh0)
            seqlstm_prim_copy(dh0, dh, s->states * s->out);
        if (dc0)
            seqlstm_prim_copy(dc0, dc, s->states * s->hidden);
    }
    if (call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS)
        seqlstm_prim_weight_gradients(y);
    if (!dx)
        return;
    seqlstm_prim_grads_by_weights(call, s->rows, y->input, 4 * s->hidden, call->work + call->at.dz,
                                  seqlstm_prim_slot(call->slots, seqlstm_prim_param(y, SEQLSTM_PARAM_W_X)), part);
    if (s->desc->dropout > 0)
        seqlstm_prim_mask_input(y, part, part);
    for (int64_t k = 0; k < s->rows * y->input; k++)
        dx[k] = part[k] + (y->direction == 1 ? dx[k] : 0);
}

/* All layers, the last one first. [queue] */
static inline void seqlstm_prim_backward(const struct seqlstm_prim_call *call)
{
    const struct seqlstm_prim_shape *s = &call->shape;
    float *input =
        call->parts & SEQLSTM_BIT_BACKWARD_INPUTS ? seqlstm_prim_slot(call->grads, SEQLSTM_SLOT_RECURRENT_X) : NULL;
    float *flow[2] = {call->work + call->at.dy, call->work + call->at.dy_below};
    const float *dy = s->desc->options & SEQLSTM_BIT_RECURRENT_OUTPUT
                          ? seqlstm_prim_slot(call->grads, SEQLSTM_SLOT_RECURRENT_Y)
                          : NULL;
    for (int64_t l = s->layers - 1; l >= 0; l--) {
        float *dx = l == 0 ? input : flow[l % 2];
        for (int64_t direction = 0; direction < s->directions; direction++) {
            const struct seqlstm_prim_layer y = seqlstm_prim_layer_make(call, l, direction);
            seqlstm_prim_layer_backward(&y, dy, dx);
        }
        dy = dx;
    }
}

#ifdef __cplusplus
}
#endif

#endif

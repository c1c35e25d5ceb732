/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of a recurrent stack. See recurrent.h. */
#include "cuda-generic/recurrent/fold.h"
#include "cuda-generic/recurrent/products.h"
#include "cuda-generic/recurrent/recurrent.h"
#include "cuda-generic/rows/rows.h"
#include "cuda-generic/recurrent/kernels/norm_inputs.h"
#include "cuda-generic/recurrent/kernels/step.h"
#include "cuda-generic/recurrent/kernels/step_tile.h"

static seqlstm_status run_step(const struct cg_call *call, const struct cg_stack *s, const struct cg_layer *y,
                               int64_t t, int64_t m, struct seqlstm_error *err)
{
    void *stream = call->stream;
    if (s->desc->projection > 0) {
        CG_START(call, "a backward step", cg_step_split_back(stream, y, t, m, s->out));
        CG_START(call, "a backward step",
                 cg_step_product(stream, y, CG_PRODUCT_BACK_OUTPUT, s->compute, t, 0, m, s->hidden));
    }
    CG_START(call, "a backward step", cg_step_cell_back(stream, y, s->late ? CG_PHASE_RESET : CG_PHASE_WHOLE, t, m));
    if (s->late) {
        CG_START(call, "a backward step",
                 cg_step_product(stream, y, CG_PRODUCT_BACK_RESET, s->compute, t, 0, m, s->hidden));
        CG_START(call, "a backward step", cg_step_cell_back(stream, y, CG_PHASE_OUTPUT, t, m));
    }
    CG_START(call, "a backward step", cg_step_product(stream, y, CG_PRODUCT_BACK, s->compute, t, 0, m, s->out));
    return SEQLSTM_OK;
}

/* Each kernel multiplies what the one before has published; the last kernel does nothing else. */
static seqlstm_status run_tiles(const struct cg_call *call, const struct cg_stack *s, const struct cg_layer *device,
                                const struct cg_layer *host, struct seqlstm_error *err)
{
    const int64_t steps = call->axis->steps;
    const int32_t *sizes = call->binding->recurrent->batch_sizes;
    int64_t before = 0;
    for (int64_t turn = 0; turn <= steps; turn++) {
        int64_t most = 0;
        for (int64_t direction = 0; turn < steps && direction < s->directions; direction++) {
            const int32_t m = sizes[host[direction].reverse ? turn : steps - 1 - turn];
            most = m > most ? m : most;
        }
        CG_START(call, "a backward step",
                 cg_tile_backward(call->stream, device, s->directions, s->compute, turn, most > before ? most : before,
                                  s->hidden));
        before = most;
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_steps(const struct cg_call *call, const struct cg_stack *s, const struct cg_layer *device,
                                const struct cg_layer *host, struct seqlstm_error *err)
{
    const int64_t steps = call->axis->steps;
    for (int64_t turn = 0; turn < steps; turn++)
        for (int64_t direction = 0; direction < s->directions; direction++) {
            const int64_t t = host[direction].reverse ? turn : steps - 1 - turn;
            SEQLSTM_TRY(run_step(call, s, device + direction, t, call->binding->recurrent->batch_sizes[t], err));
        }
    return SEQLSTM_OK;
}

/* ---- gradients of weights ------------------------------------------------------------------------------------- */

static seqlstm_status sum_rows(const struct cg_call *call, const float *x, int64_t stride, int64_t n, float *to,
                               struct seqlstm_error *err)
{
    CG_START(call, "a gradient of weights", cg_column_sums(call->stream, call->rows, n, x, stride, to, call->add));
    return SEQLSTM_OK;
}

static seqlstm_status find_dw_h(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                int64_t n, const struct cg_layer *y, float *dw_h, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = s->desc;
    const bool masked = d->weight_drop > 0;
    const int64_t rows = s->late ? 2 * s->hidden : s->gh;
    float *to = masked ? cg_workspace(call, l->dw_masked) : dw_h;
    const bool add = call->add && !masked;
    struct cg_rows_product product = {s->late ? -1 : CG_LT_HIDDEN,  y->dv, s->gh, rows, y->h_rows, s->out, to, add,
                                      cg_workspace(call, l->parts), NULL,  n};
    SEQLSTM_TRY(cg_recurrent_multiply_rows(call, s, l, &product, err));
    if (s->late) { /* the candidate's rows, with the states behind the reset gate */
        product.a += rows;
        product.m = s->hidden;
        product.b = y->reset_rows;
        product.dw += rows * s->out;
        SEQLSTM_TRY(cg_recurrent_multiply_rows(call, s, l, &product, err));
    }
    if (!masked)
        return SEQLSTM_OK;
    const uint64_t stream =
        d->stream_base + (uint64_t)(SEQLSTM_STREAMS_PER_LAYER * (n / s->directions) + 16 * (n % s->directions));
    const struct cg_mask mask = {.live = call->live, .stream = stream + SEQLSTM_MASK_WEIGHT, .rate = d->weight_drop};
    CG_START(call, "the weight mask", cg_weight_mask(call->stream, &mask, s->gh * s->out, to, dw_h, call->add));
    return SEQLSTM_OK;
}

static seqlstm_status find_weights(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                   int64_t layer, int64_t n, const struct cg_layer *y, struct seqlstm_error *err)
{
    const int64_t h = s->hidden, gh = s->gh, width = cg_layer_width(s, layer);
    void *const *grad = &call->grads[SEQLSTM_SLOT_RECURRENT_PARAM(s->layers * s->directions, n, 0)];
    const float *x =
        l->x_masked >= 0 ? cg_drop_input(call, s, l, layer, n % s->directions).y : cg_layer_input(call, s, l, layer);
    float *bias = y->bias ? grad[SEQLSTM_PARAM_BIAS] : NULL, *norm = grad[SEQLSTM_PARAM_NORM];
    const bool summed = bias && grad[SEQLSTM_PARAM_W_X] && !s->normed; /* together with dW_x, since du is pre_u */
    const struct cg_rows_product w_x = {layer == 0 ? CG_LT_INPUT : CG_LT_BETWEEN,
                                        y->du,
                                        gh,
                                        gh,
                                        x,
                                        width,
                                        grad[SEQLSTM_PARAM_W_X],
                                        call->add,
                                        cg_workspace(call, l->parts),
                                        summed ? bias : NULL,
                                        n};
    const struct cg_rows_product projection = {CG_LT_PROJECTION,
                                               y->dh_new,
                                               s->out,
                                               s->out,
                                               y->out_rows,
                                               h,
                                               grad[SEQLSTM_PARAM_PROJECTION],
                                               call->add,
                                               cg_workspace(call, l->parts),
                                               NULL,
                                               n};
    const int64_t h_rows = grad[SEQLSTM_PARAM_W_H] ? call->rows : 0;
    const struct cg_drop drop =
        grad[SEQLSTM_PARAM_W_X] ? cg_drop_input(call, s, l, layer, n % s->directions) : (struct cg_drop){.rows = 0};
    if (h_rows + drop.rows > 0)
        CG_START(call, "rows for gradients of weights",
                 cg_step_h_rows(call->stream, call->binding->recurrent->device + call->binding->recurrent->count + n,
                                h_rows, s->out, &drop));
    if (grad[SEQLSTM_PARAM_W_X])
        SEQLSTM_TRY(cg_recurrent_multiply_rows(call, s, l, &w_x, err));
    if (grad[SEQLSTM_PARAM_W_H])
        SEQLSTM_TRY(find_dw_h(call, s, l, n, y, grad[SEQLSTM_PARAM_W_H], err));
    if (bias && !summed)
        SEQLSTM_TRY(sum_rows(call, y->pre_u, gh, gh, bias, err));
    if (bias && s->reset_after)
        SEQLSTM_TRY(sum_rows(call, y->pre_v + 2 * h, gh, h, bias + gh, err));
    if (grad[SEQLSTM_PARAM_PEEPHOLE] && y->peep)
        SEQLSTM_TRY(sum_rows(call, y->peep, 3 * h, 3 * h, grad[SEQLSTM_PARAM_PEEPHOLE], err));
    if (grad[SEQLSTM_PARAM_PROJECTION] && y->w_p)
        SEQLSTM_TRY(cg_recurrent_multiply_rows(call, s, l, &projection, err));
    if (norm && s->normed) {
        SEQLSTM_TRY(sum_rows(call, y->gain_u, gh, gh, norm, err));
        SEQLSTM_TRY(sum_rows(call, y->gain_v, gh, gh, norm + gh, err));
        if (s->lstm) {
            SEQLSTM_TRY(sum_rows(call, y->gain_c, h, h, norm + 2 * gh, err));
            SEQLSTM_TRY(sum_rows(call, y->bias_c, h, h, norm + 2 * gh + h, err));
        }
    }
    return SEQLSTM_OK;
}

/* ---- gradient of the input ------------------------------------------------------------------------------------ */

/* dx (+)= du W_x, times the mask of the input, unless the layer below reads dx with it. The second direction has put
 * its own first into the place of its masked input, which nothing reads any more. */
static seqlstm_status find_dx(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                              int64_t layer, int64_t n, const struct cg_layer *y, float *dx, struct seqlstm_error *err)
{
    const bool masked = s->training && s->desc->dropout > 0, second = n % s->directions > 0;
    float *other = second && masked ? cg_drop_input(call, s, l, layer, 1).y : NULL;
    SEQLSTM_TRY(cg_recurrent_multiply_back(call, s, n, l, y->du, other ? other : dx, second && !masked, err));
    if (!masked || n % s->directions < s->directions - 1 || (layer > 0 && l->dy_mask >= 0))
        return SEQLSTM_OK;
    const struct cg_drop drop = cg_drop_gradient(call, s, layer, dx, other);
    return cg_mask_rows(call, &drop, err);
}

/* ---- the way back ---------------------------------------------------------------------------------------------- */

/* How h of this direction enters the merged output. */
static void set_dy(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l, int64_t layer,
                   int64_t direction, const float *dy, struct cg_layer *y)
{
    const uint32_t merge = s->directions == 2 ? s->desc->merge : SEQLSTM_KIND_MERGE_SUM;
    y->dy = dy;
    y->dy_mask =
        l->dy_mask >= 0 && layer < s->layers - 1 ? cg_workspace(call, l->dy_mask + layer * l->dy_mask_floats) : NULL;
    y->dy_stride = s->merged;
    y->dy_offset = merge == SEQLSTM_KIND_MERGE_CONCAT ? direction * s->out : 0;
    y->dy_scale = merge == SEQLSTM_KIND_MERGE_AVE ? 0.5f : 1.0f;
    if (merge == SEQLSTM_KIND_MERGE_MUL)
        y->other_h = cg_record(call, s, l, 2 * layer + 1 - direction, l->h, s->out);
}

static float *get_gradients(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l, int64_t n,
                            int64_t offset, int64_t width)
{
    return s->stepwise ? cg_record(call, s, l, n, offset, width) : cg_own(call, s, l, n, offset);
}

static void set_workspace(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l, int64_t n,
                          struct cg_layer *y)
{
    const int64_t h = s->hidden, gh = s->gh;
    y->direct = cg_own(call, s, l, n, l->direct);
    y->back = cg_own(call, s, l, n, l->back);
    y->dc = cg_own(call, s, l, n, l->dc);
    y->dout = cg_own(call, s, l, n, l->dout);
    y->dreset = cg_own(call, s, l, n, l->dreset);
    y->h_rows = cg_workspace(call, l->h_rows);
    y->dh_new = get_gradients(call, s, l, n, l->dh_new, s->out);
    y->out_rows = get_gradients(call, s, l, n, l->out_rows, h);
    y->reset_rows = get_gradients(call, s, l, n, l->reset_rows, h);
    y->pre_u = get_gradients(call, s, l, n, l->pre_u, gh);
    y->pre_v = get_gradients(call, s, l, n, l->pre_v, gh);
    y->du = get_gradients(call, s, l, n, l->du, gh);
    y->dv = get_gradients(call, s, l, n, l->dv, gh);
    y->gain_u = get_gradients(call, s, l, n, l->gain_u, gh);
    y->gain_v = get_gradients(call, s, l, n, l->gain_v, gh);
    y->gain_c = get_gradients(call, s, l, n, l->gain_c, h);
    y->bias_c = get_gradients(call, s, l, n, l->bias_c, h);
    y->peep = get_gradients(call, s, l, n, l->peep, 3 * h);
}

/* The gradients that the last step of a direction reads, unless the kernel of all steps finds them itself. */
static seqlstm_status begin_direction(const struct cg_call *call, const struct cg_stack *s, int64_t layer,
                                      int64_t direction, struct seqlstm_error *err)
{
    const struct cg_recurrent_binding *r = call->binding->recurrent;
    const int64_t n = layer * s->directions + direction;
    if (s->folded)
        SEQLSTM_TRY(cg_fold_begin_back(call, s, n, err));
    if (cg_begins_itself(call->op->variant))
        return SEQLSTM_OK;
    CG_START(call, "the last step",
             cg_step_begin_back(call->stream, r->device_run + r->count + n, call->axis->sequences, s->hidden, s->out));
    return SEQLSTM_OK;
}

/* All steps of all directions. */
static seqlstm_status run_layer(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                int64_t layer, struct seqlstm_error *err)
{
    struct cg_recurrent_binding *r = call->binding->recurrent;
    const int64_t n = layer * s->directions, sequences = call->axis->sequences;
    const struct cg_layer *device = r->device_run + r->count + n;
    for (int64_t direction = 0; direction < s->directions; direction++) {
        SEQLSTM_TRY(begin_direction(call, s, layer, direction, err));
        if (call->op->variant == CG_STEP_GRAPH && s->lone)
            CG_START(call, "the last step",
                     cg_tile_begin_back(call->stream, device + direction, s->compute, sequences, s->hidden, s->gates));
    }
    if (cg_count_blocks(call->op->variant) > 0)
        SEQLSTM_TRY(cg_run_clusters(call, s, device, true, err));
    else if (call->op->variant == CG_SMALL)
        SEQLSTM_TRY(cg_small_run(call, s, device, true, err));
    else if (call->op->variant == CG_RESIDENT)
        SEQLSTM_TRY(cg_run_resident(call, s, l, device, true, err));
    else if (call->op->variant == CG_STEP_GRAPH)
        SEQLSTM_TRY(cg_run_loop(call, s, r->count + n, s->lone ? run_tiles : run_steps, err));
    if (s->normed && call->op->variant != CG_STEP_GRAPH)
        CG_START(call, "gradients of inputs", cg_norm_inputs_back(call->stream, device, s->directions, call->rows));
    return SEQLSTM_OK;
}

/* After the steps of a direction: gradients of its states, weights and input. */
static seqlstm_status finish_direction(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                       int64_t layer, int64_t direction, float *dx, struct seqlstm_error *err)
{
    struct cg_recurrent_binding *r = call->binding->recurrent;
    const int64_t n = layer * s->directions + direction;
    const struct cg_layer *device = r->device_run + r->count + n, *y = &r->host[n], *run = &r->run[n];
    if (s->folded)
        SEQLSTM_TRY(cg_fold_finish_back(call, s, n, err));
    if (!cg_begins_itself(call->op->variant) && (run->dh0 || run->dc0))
        CG_START(call, "gradients of states",
                 cg_step_finish_back(call->stream, device, call->axis->sequences, s->hidden, s->out));
    if (dx || (call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS))
        SEQLSTM_TRY(cg_recurrent_convert_gradients(call, s, n, l, y->du, y->dv, err));
    if (call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS)
        SEQLSTM_TRY(find_weights(call, s, l, layer, n, y, err));
    return dx ? find_dx(call, s, l, layer, n, y, dx, err) : SEQLSTM_OK;
}

/* The weight gradients of all segments, from the gradients that they have left in the reserve. */
static seqlstm_status finish_stepwise(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                      int64_t layer, int64_t direction, struct seqlstm_error *err)
{
    const int64_t n = layer * s->directions + direction;
    return find_weights(call, s, l, layer, n, &call->binding->recurrent->host[n], err);
}

static seqlstm_status check_stepwise(const struct cg_call *call, struct seqlstm_error *err)
{
    if (!(call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS))
        return SEQLSTM_OK;
    if (call->parts & (SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "stepwise: weight gradients need a call of their own");
    if (call->rows != call->binding->bind.axis->rows)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "stepwise: weight gradients need a binding of the whole axis");
    return SEQLSTM_OK;
}

seqlstm_status cg_recurrent_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct cg_stack s = cg_stack_make(call->op);
    const struct cg_layout l = cg_layout_make(&s);
    struct cg_recurrent_binding *r = call->binding->recurrent;
    float *below[2] = {cg_workspace(call, l.below0), cg_workspace(call, l.below1)};
    const bool states = call->parts & SEQLSTM_BIT_BACKWARD_STATES;
    const bool weights_alone = s.stepwise && (call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS);
    if (s.stepwise)
        SEQLSTM_TRY(check_stepwise(call, err));
    for (int64_t n = 0; n < r->count; n++) {
        const int64_t layer = n / s.directions;
        struct cg_layer *y = &r->host[n];
        void *const *grad = &call->grads[SEQLSTM_SLOT_RECURRENT_STATE(n, 0)];
        *y = cg_layer_make(call, &s, &l, layer, n % s.directions);
        set_workspace(call, &s, &l, n, y);
        set_dy(call, &s, &l, layer, n % s.directions,
               layer == s.layers - 1 ? cg_grad(call, SEQLSTM_SLOT_RECURRENT_Y, 0) : below[layer % 2], y);
        y->dhn = grad[SEQLSTM_STATE_HN];
        y->dcn = s.lstm ? grad[SEQLSTM_STATE_CN] : NULL;
        y->dh0 = states ? grad[SEQLSTM_STATE_H0] : NULL;
        y->dc0 = states && s.lstm ? grad[SEQLSTM_STATE_C0] : NULL;
    }
    if (s.folded)
        cg_fold_make_backward(call, &s, &l);
    SEQLSTM_TRY(cg_store_layers(call, &s, &l, true, err));
    for (int64_t layer = s.layers - 1; layer >= 0; layer--) {
        float *dx =
            layer == 0 ? cg_grad(call, SEQLSTM_SLOT_RECURRENT_X, SEQLSTM_BIT_BACKWARD_INPUTS) : below[(layer - 1) % 2];
        if (!weights_alone)
            SEQLSTM_TRY(run_layer(call, &s, &l, layer, err));
        for (int64_t direction = 0; direction < s.directions; direction++)
            SEQLSTM_TRY(weights_alone ? finish_stepwise(call, &s, &l, layer, direction, err)
                                      : finish_direction(call, &s, &l, layer, direction, dx, err));
    }
    return SEQLSTM_OK;
}

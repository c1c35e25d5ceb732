/* SPDX-License-Identifier: Apache-2.0 */
/* See fold.h. */
#include "cuda-generic/recurrent/fold.h"
#include "cuda-generic/ops/product.h"
#include "cuda-generic/recurrent/kernels/fold_rows.h"
#include "cuda-generic/recurrent/products.h"

/* What differs from the layer with the projection. Its final states are those after the projection. */
static struct cg_layer make_folded(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                   int64_t n)
{
    struct cg_layer y = call->binding->recurrent->host[n];
    y.projection = 0;
    y.out = s->hidden;
    y.w_h = cg_record(call, s, l, n, l->fold, 0);
    y.w_p = NULL;
    y.h = cg_record(call, s, l, n, l->raw_rows, s->hidden);
    y.h0 = NULL;
    y.hn = NULL;
    return y;
}

void cg_fold_make_forward(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l)
{
    struct cg_recurrent_binding *r = call->binding->recurrent;
    for (int64_t n = 0; n < r->count; n++) {
        r->run[n] = make_folded(call, s, l, n);
        if (call->op->variant == CG_SMALL) /* its kernels write the final c themselves */
            r->host[n].cn = NULL;
    }
}

void cg_fold_make_backward(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l)
{
    struct cg_recurrent_binding *r = call->binding->recurrent;
    for (int64_t n = 0; n < r->count; n++) {
        struct cg_layer *y = &r->run[n];
        *y = make_folded(call, s, l, n);
        r->host[n].out_rows = y->h;
        y->dy = cg_own(call, s, l, n, l->dr);
        y->dy_stride = s->hidden;
        y->dy_offset = 0;
        y->dy_scale = 1;
        y->dy_mask = NULL;
        y->other_h = NULL;
        y->dhn = NULL;
        y->dh0 = NULL;
    }
}

/* W_p with all rows. */
static struct cg_product make_projection(const struct cg_call *call, const struct cg_stack *s)
{
    return (struct cg_product){
        .lt = call->binding->lt[CG_LT_PROJECTION], .rows = call->rows, .input = s->hidden, .output = s->out};
}

seqlstm_status cg_fold_begin(const struct cg_call *call, const struct cg_stack *s, int64_t n, struct seqlstm_error *err)
{
    const struct cg_recurrent_binding *r = call->binding->recurrent;
    const struct cg_layer *y = &r->host[n];
    const struct cg_product fold = {.rows = s->gh, .input = s->hidden, .output = s->out};
    const struct cg_product first = {.rows = call->axis->sequences, .input = s->out, .output = s->gh};
    float *to = (float *)(void *)(uintptr_t)r->run[n].w_h; /* in the reserve or the workspace */
    bool lt;
    SEQLSTM_TRY(cg_product_inputs(call, &fold, y->w_h, y->w_p, to, false, err));
    if (y->h0 == NULL)
        return SEQLSTM_OK;
    SEQLSTM_TRY(cg_product_forward(call, &first, y->h0, y->w_h, NULL, y->product, &lt, err));
    CG_START(call, "initial states", cg_fold_add_first(call->stream, r->device + n, call->axis->sequences, s->gh));
    return SEQLSTM_OK;
}

seqlstm_status cg_fold_finish(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                              struct seqlstm_error *err)
{
    const struct cg_recurrent_binding *r = call->binding->recurrent;
    const struct cg_product projection = make_projection(call, s);
    bool lt;
    return cg_product_forward(call, &projection, r->run[n].h, r->host[n].w_p, NULL, r->host[n].h, &lt, err);
}

seqlstm_status cg_fold_begin_back(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                                  struct seqlstm_error *err)
{
    const struct cg_recurrent_binding *r = call->binding->recurrent;
    const struct cg_layer *y = &r->host[n];
    const struct cg_product projection = make_projection(call, s);
    float *dr = (float *)(void *)(uintptr_t)r->run[n].dy;
    CG_START(call, "gradients of all steps",
             cg_fold_collect(call->stream, r->device + r->count + n, call->rows, s->out));
    return cg_product_inputs(call, &projection, y->dh_new, y->w_p, dr, false, err);
}

seqlstm_status cg_fold_finish_back(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                                   struct seqlstm_error *err)
{
    const struct cg_recurrent_binding *r = call->binding->recurrent;
    const struct cg_layer *y = &r->host[n];
    struct cg_product hidden = {
        .lt = call->binding->lt[CG_LT_HIDDEN], .rows = call->rows, .input = s->out, .output = s->gh};
    SEQLSTM_TRY(cg_recurrent_multiply_gates(call, s, &hidden, y->dv, y->w_h, y->h_rows, false, err));
    CG_START(call, "gradients of all steps",
             cg_fold_carry_back(call->stream, r->device + r->count + n, call->rows, s->out));
    return SEQLSTM_OK;
}

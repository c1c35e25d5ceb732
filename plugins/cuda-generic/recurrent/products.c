/* SPDX-License-Identifier: Apache-2.0 */
/* See products.h. */
#include "cuda-generic/recurrent/products.h"

#include "common/cuda_cast.h"
#include "cuda-generic/ops/lt_product.h"

static uint16_t *get_words(float *at)
{
    return (uint16_t *)(void *)at;
}

/* The products of W_x by cuBLASLt; NULL: there are none. */
static const struct cg_lt_layer *find_lt(const struct cg_call *call, const struct cg_stack *s, int64_t n)
{
    return call->binding->lt[n < s->directions ? CG_LT_INPUT : CG_LT_BETWEEN];
}

/* The layer and direction whose record holds the input in 16 bits. */
static int64_t find_owner(const struct cg_stack *s, const struct cg_layout *l, int64_t n)
{
    return l->x_masked >= 0 ? n : n - n % s->directions;
}

/* The products of W_x of layer and direction n. `back`: forward has converted the operands. */
static struct cg_product make_product(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                      int64_t n, bool back)
{
    struct cg_product p = {
        .lt = find_lt(call, s, n), .rows = call->rows, .input = cg_layer_width(s, n / s->directions), .output = s->gh};
    if (!cg_lt_layer_is_narrow(p.lt))
        return p;
    const int64_t owner = find_owner(s, l, n);
    p.x16 = get_words(cg_record(call, s, l, owner, l->x16, 0));
    p.w16 = get_words(cg_record(call, s, l, n, l->w16, 0));
    p.dz16 = get_words(cg_workspace(call, l->du16));
    p.x_ready = back || owner != n;
    p.w_ready = back;
    return p;
}

seqlstm_status cg_recurrent_multiply_input(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                                           const struct cg_layout *l, const float *x, float *u,
                                           struct seqlstm_error *err)
{
    const struct cg_product p = make_product(call, s, l, n, false);
    bool lt;
    return cg_product_forward(call, &p, x, cg_param(call, s, n, SEQLSTM_PARAM_W_X), NULL, u, &lt, err);
}

/* The gradient that the product of W_h with all rows reads. */
static uint16_t *find_dv16(const struct cg_call *call, const struct cg_layout *l)
{
    return get_words(cg_workspace(call, l->dv16 >= 0 ? l->dv16 : l->du16));
}

static seqlstm_status convert(const struct cg_call *call, const float *x, int64_t elems, uint16_t *to,
                              struct seqlstm_error *err)
{
    CG_START(call, "operands in 16 bits",
             gpu_cast(call->stream, SEQLSTM_DTYPE_FLOAT32, call->desc->head.dtype_compute, elems, x, to));
    return SEQLSTM_OK;
}

seqlstm_status cg_recurrent_convert_gradients(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                                              const struct cg_layout *l, const float *du, const float *dv,
                                              struct seqlstm_error *err)
{
    const bool input = cg_lt_layer_is_narrow(find_lt(call, s, n));
    const bool hidden = cg_lt_layer_is_narrow(call->binding->lt[CG_LT_HIDDEN]);
    if (input || (hidden && du == dv))
        SEQLSTM_TRY(convert(call, du, call->rows * s->gh, get_words(cg_workspace(call, l->du16)), err));
    if (hidden && du != dv)
        SEQLSTM_TRY(convert(call, dv, call->rows * s->gh, find_dv16(call, l), err));
    return SEQLSTM_OK;
}

seqlstm_status cg_recurrent_multiply_gates(const struct cg_call *call, const struct cg_stack *s, struct cg_product *p,
                                           const float *dz, const float *w, float *dx, bool add,
                                           struct seqlstm_error *err)
{
    if (!(s->desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES))
        return cg_product_inputs(call, p, dz, w, dx, add, err);
    p->stride = s->gh; /* the columns of the second gate are skipped */
    p->output = s->hidden;
    SEQLSTM_TRY(cg_product_inputs(call, p, dz, w, dx, add, err));
    p->output = 2 * s->hidden;
    return cg_product_inputs(call, p, dz + 2 * s->hidden, w + 2 * s->hidden * p->input, dx, true, err);
}

seqlstm_status cg_recurrent_multiply_back(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                                          const struct cg_layout *l, const float *du, float *dx, bool add,
                                          struct seqlstm_error *err)
{
    struct cg_product p = make_product(call, s, l, n, true);
    return cg_recurrent_multiply_gates(call, s, &p, du, cg_param(call, s, n, SEQLSTM_PARAM_W_X), dx, add, err);
}

seqlstm_status cg_recurrent_multiply_rows(const struct cg_call *call, const struct cg_stack *s,
                                          const struct cg_layout *l, const struct cg_rows_product *r,
                                          struct seqlstm_error *err)
{
    struct cg_product p = {.lt = r->which >= 0 ? call->binding->lt[r->which] : NULL,
                           .rows = call->rows,
                           .input = r->columns,
                           .output = r->m,
                           .stride = r->stride != r->m ? r->stride : 0,
                           .parts = r->parts};
    if (cg_lt_layer_is_narrow(p.lt) && r->which == CG_LT_HIDDEN) {
        p.x16 = get_words(cg_workspace(call, l->h16));
        p.dz16 = find_dv16(call, l);
        SEQLSTM_TRY(convert(call, r->b, call->rows * r->columns, p.x16, err));
    } else if (cg_lt_layer_is_narrow(p.lt)) {
        const struct cg_product w_x = make_product(call, s, l, r->n, true);
        p.x16 = w_x.x16;
        p.dz16 = w_x.dz16;
    }
    return cg_product_weights(call, &p, r->a, r->b, r->dw, r->sums, r->add, err);
}

/* ---- with cuBLASLt ---------------------------------------------------------------------------------------------- */

seqlstm_status cg_recurrent_lt_open(struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    const struct cg_stack s = cg_stack_make(binding->op);
    const bool between = s.layers > 1;
    const struct cg_lt_shape shapes[CG_LT_LAYERS] = {
        [CG_LT_INPUT] = {.input = s.desc->input,
                         .output = s.gh,
                         .forward = true,
                         .inputs = s.training,
                         .weights = s.training,
                         .sums = !s.normed},
        [CG_LT_BETWEEN] = {.input = s.merged,
                           .output = s.gh,
                           .forward = between,
                           .inputs = between && s.training,
                           .weights = between && s.training,
                           .sums = !s.normed},
        [CG_LT_HIDDEN] = {.input = s.out,
                          .output = s.gh,
                          .inputs = s.training && s.folded,
                          .weights = s.training && !s.late},
        [CG_LT_PROJECTION] = {.input = s.hidden,
                              .output = s.out,
                              .forward = s.folded,
                              .inputs = s.training && s.folded,
                              .weights = s.training && s.desc->projection > 0}};
    for (int k = 0; k < CG_LT_LAYERS; k++) {
        struct cg_lt_shape shape = shapes[k];
        shape.rows = binding->bind.rows;
        shape.compute = s.compute;
        shape.narrow = s.narrow[k];
        if (!shape.forward && !shape.inputs && !shape.weights)
            continue;
        seqlstm_status status = cg_lt_layer_create(binding->op, &shape, &binding->lt[k], err);
        if (status == SEQLSTM_UNSUPPORTED && shape.narrow) {
            shape.narrow = false;
            status = cg_lt_layer_create(binding->op, &shape, &binding->lt[k], err);
        }
        if (status != SEQLSTM_OK && status != SEQLSTM_UNSUPPORTED)
            return status;
    }
    return SEQLSTM_OK;
}

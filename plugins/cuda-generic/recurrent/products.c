/* SPDX-License-Identifier: Apache-2.0 */
/* See products.h. */
#include "cuda-generic/recurrent/products.h"

#include "cuda-generic/ops/lt_product.h"

/* The products of W_x of layer and direction n. */
static struct cg_product make_product(const struct cg_call *call, const struct cg_stack *s, int64_t n)
{
    return (struct cg_product){.lt = call->binding->lt[n < s->directions ? CG_LT_INPUT : CG_LT_BETWEEN],
                               .rows = call->rows,
                               .input = cg_layer_width(s, n / s->directions),
                               .output = s->gh};
}

seqlstm_status cg_recurrent_multiply_input(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                                           const float *x, float *u, struct seqlstm_error *err)
{
    const struct cg_product p = make_product(call, s, n);
    bool lt;
    return cg_product_forward(call, &p, x, cg_param(call, s, n, SEQLSTM_PARAM_W_X), NULL, u, &lt, err);
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
                                          const float *du, float *dx, bool add, struct seqlstm_error *err)
{
    struct cg_product p = make_product(call, s, n);
    return cg_recurrent_multiply_gates(call, s, &p, du, cg_param(call, s, n, SEQLSTM_PARAM_W_X), dx, add, err);
}

seqlstm_status cg_recurrent_multiply_rows(const struct cg_call *call, const struct cg_rows_product *r,
                                          struct seqlstm_error *err)
{
    const struct cg_product p = {.lt = r->which >= 0 ? call->binding->lt[r->which] : NULL,
                                 .rows = call->rows,
                                 .input = r->columns,
                                 .output = r->m,
                                 .stride = r->stride != r->m ? r->stride : 0,
                                 .parts = r->parts};
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
        if (!shape.forward && !shape.inputs && !shape.weights)
            continue;
        const seqlstm_status status = cg_lt_layer_create(binding->op, &shape, &binding->lt[k], err);
        if (status != SEQLSTM_OK && status != SEQLSTM_UNSUPPORTED)
            return status;
    }
    return SEQLSTM_OK;
}

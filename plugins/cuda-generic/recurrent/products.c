/* SPDX-License-Identifier: Apache-2.0 */
/* See products.h. */
#include "cuda-generic/recurrent/products.h"

#include "cuda-generic/ops/product.h"
#include "cuda-generic/gemm/gemm.h"

/* Which products belong to the input of a layer. */
static int get_input(const struct cg_stack *s, int64_t n)
{
    return n < s->directions ? CG_LT_INPUT : CG_LT_BETWEEN;
}

seqlstm_status cg_recurrent_multiply_input(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                                           const float *x, float *u, struct seqlstm_error *err)
{
    const int64_t width = cg_layer_width(s, n / s->directions);
    const float *w = cg_param(call, s, n, SEQLSTM_PARAM_W_X);
    const struct cg_lt_layer *lt = call->binding->lt[get_input(s, n)];
    bool done = false;
    if (lt != NULL)
        SEQLSTM_TRY(cg_lt_forward(lt, call, x, w, NULL, u, &done, err));
    if (done)
        return SEQLSTM_OK;
    const struct cg_gemm g = {.m = call->rows,
                              .n = s->gh,
                              .depth = width,
                              .a = x,
                              .a_row = width,
                              .a_column = 1,
                              .b = w,
                              .b_row = 1,
                              .b_column = width,
                              .c = u,
                              .c_row = s->gh,
                              .compute = s->compute};
    CG_START(call, "the input's product", cg_gemm_launch(call->stream, &g));
    return SEQLSTM_OK;
}

seqlstm_status cg_recurrent_multiply_back(const struct cg_call *call, const struct cg_stack *s, int64_t n,
                                          const float *du, float *dx, bool add, struct seqlstm_error *err)
{
    const int64_t width = cg_layer_width(s, n / s->directions), h = s->hidden;
    const bool coupled = s->desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
    const float *w = cg_param(call, s, n, SEQLSTM_PARAM_W_X);
    const struct cg_lt_layer *lt = coupled ? NULL : call->binding->lt[get_input(s, n)];
    bool done = false;
    if (lt != NULL)
        SEQLSTM_TRY(cg_lt_inputs(lt, call, du, w, dx, add, &done, err));
    if (done)
        return SEQLSTM_OK;
    struct cg_gemm g = {.m = call->rows,
                        .n = width,
                        .depth = s->gh,
                        .a = du,
                        .a_row = s->gh,
                        .a_column = 1,
                        .b = w,
                        .b_row = width,
                        .b_column = 1,
                        .c = dx,
                        .c_row = width,
                        .add = add,
                        .compute = s->compute};
    if (coupled) {
        g.depth = h;
        CG_START(call, "the input's gradient", cg_gemm_launch(call->stream, &g));
        g.a += 2 * h;
        g.b += 2 * h * width;
        g.depth = 2 * h;
        g.add = 1;
    }
    CG_START(call, "the input's gradient", cg_gemm_launch(call->stream, &g));
    return SEQLSTM_OK;
}

seqlstm_status cg_recurrent_multiply_rows(const struct cg_call *call, const struct cg_rows_product *p,
                                          struct seqlstm_error *err)
{
    const struct cg_lt_layer *lt = p->which >= 0 ? call->binding->lt[p->which] : NULL;
    bool done = false;
    if (lt != NULL)
        SEQLSTM_TRY(cg_lt_weights(lt, call, p->a, p->b, p->dw, NULL, p->add, &done, err));
    if (done)
        return SEQLSTM_OK;
    const struct cg_gemm g = {.m = p->m,
                              .n = p->columns,
                              .depth = call->rows,
                              .a = p->a,
                              .a_row = 1,
                              .a_column = p->stride,
                              .b = p->b,
                              .b_row = p->columns,
                              .b_column = 1,
                              .c = p->dw,
                              .c_row = p->columns,
                              .add = p->add,
                              .compute = call->desc->head.dtype_compute,
                              .parts = p->parts};
    CG_START(call, "a gradient of weights", cg_gemm_launch(call->stream, &g));
    return SEQLSTM_OK;
}

/* ---- with cuBLASLt ---------------------------------------------------------------------------------------------- */

seqlstm_status cg_recurrent_lt_open(struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    const struct cg_stack s = cg_stack_make(binding->op);
    const bool apart = s.layers > 1 && !s.waves; /* a wavefront multiplies the inputs between its layers in the steps */
    const struct cg_lt_shape shapes[CG_LT_LAYERS] = {
        [CG_LT_INPUT] =
            {.input = s.desc->input, .output = s.gh, .forward = true, .inputs = s.training, .weights = s.training},
        [CG_LT_BETWEEN] = {.input = s.merged,
                           .output = s.gh,
                           .forward = apart,
                           .inputs = apart && s.training,
                           .weights = s.layers > 1 && s.training},
        [CG_LT_HIDDEN] = {.input = s.out, .output = s.gh, .weights = s.training && !s.late},
        [CG_LT_PROJECTION] = {.input = s.hidden, .output = s.out, .weights = s.training && s.desc->projection > 0}};
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

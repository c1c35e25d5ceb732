/* SPDX-License-Identifier: Apache-2.0 */
/* Flat vectors: reductions, optimizers, vector operations. */
#include "cuda-generic/rows/flat.h"
#include "cuda-generic/plugin.h"

static seqlstm_status finite_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    CG_START(call, "finite check",
             cg_finite_check(call->stream, call->rows, cg_slot(call, SEQLSTM_SLOT_REDUCE_X),
                             call->slots[SEQLSTM_SLOT_REDUCE_RESULT]));
    return SEQLSTM_OK;
}

const struct cg_family cg_finite_check_family = {.forward = finite_forward};

static void norm_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    (void)op;
    sizes->workspace_bytes = CG_PARTIALS * sizeof(double);
}

static seqlstm_status norm_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    CG_START(call, "squared norm",
             cg_squared_norm(call->stream, call->rows, cg_slot(call, SEQLSTM_SLOT_REDUCE_X),
                             (double *)(void *)call->workspace, call->binding->counter,
                             call->slots[SEQLSTM_SLOT_REDUCE_RESULT]));
    return SEQLSTM_OK;
}

const struct cg_family cg_squared_norm_family = {.sizes = norm_sizes, .forward = norm_forward};

static seqlstm_status optimizer_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_optimizer_desc *d = &call->desc->optimizer;
    const struct cg_optimizer rule = {.kind = d->kind,
                                      .options = d->options,
                                      .beta_1 = d->beta_1,
                                      .beta_2 = d->beta_2,
                                      .rho = d->rho,
                                      .momentum = d->momentum,
                                      .epsilon = d->epsilon,
                                      .weight_decay = d->weight_decay,
                                      .clip_norm = d->clip_norm};
    float *const states[3] = {cg_slot(call, SEQLSTM_SLOT_OPTIMIZER_STATE_1),
                              cg_slot(call, SEQLSTM_SLOT_OPTIMIZER_STATE_2),
                              cg_slot(call, SEQLSTM_SLOT_OPTIMIZER_STATE_3)};
    CG_START(call, "optimizer",
             cg_optimize(call->stream, &rule, &call->live, call->rows, cg_slot(call, SEQLSTM_SLOT_OPTIMIZER_PARAM),
                         cg_slot(call, SEQLSTM_SLOT_OPTIMIZER_GRAD), states, call->slots[SEQLSTM_SLOT_OPTIMIZER_SUMS],
                         call->slots[SEQLSTM_SLOT_OPTIMIZER_SQUARES]));
    return SEQLSTM_OK;
}

const struct cg_family cg_optimizer_family = {.forward = optimizer_forward};

static seqlstm_status vector_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    CG_START(call, "vector operation",
             cg_vector(call->stream, call->desc->vector.kind, call->rows, call->live.step.alpha,
                       cg_slot(call, SEQLSTM_SLOT_VECTOR_X), cg_slot(call, SEQLSTM_SLOT_VECTOR_Y)));
    return SEQLSTM_OK;
}

const struct cg_family cg_vector_family = {.forward = vector_forward};

static seqlstm_status top_k_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_top_k_desc *d = &call->desc->top_k;
    const struct cg_top_k rule = {.kind = d->kind,
                                  .limit = d->top_k > 0 && d->top_k < d->features ? d->top_k : (uint32_t)d->features,
                                  .features = d->features,
                                  .k = d->k,
                                  .live = call->live,
                                  .stream = d->stream,
                                  .temperature = d->temperature,
                                  .top_p = d->top_p,
                                  .on_sequences = (call->binding->bind.flags & SEQLSTM_BIT_BIND_ON_SEQUENCES) != 0};
    CG_START(call, "choice",
             cg_top_k_forward(call->stream, &rule, call->axis, call->rows, cg_slot(call, SEQLSTM_SLOT_TOP_K_X),
                              call->slots[SEQLSTM_SLOT_TOP_K_INDEX], cg_slot(call, SEQLSTM_SLOT_TOP_K_VALUE)));
    return SEQLSTM_OK;
}

const struct cg_family cg_top_k_family = {.forward = top_k_forward};

/* SPDX-License-Identifier: Apache-2.0 */
/* Row-wise operations: embedding, activation, dropout, layer norm, pool, merge, gather, scatter, cast. */
#include "cuda-generic/plugin.h"
#include "cuda-generic/rows/rows.h"

#include "common/cuda_cast.h"

/* Finds the gradient that a backward reads and the one that it writes. Returns false if nothing is left to do: either
 * no gradient is wanted, or the one to read is absent and thus zero, and the other is cleared here. */
static bool find_flow(const struct cg_call *call, int32_t y, int32_t x, int64_t x_elems, const float **out_dy,
                      float **out_dx, seqlstm_status *status, struct seqlstm_error *err)
{
    *out_dy = cg_grad(call, y, 0);
    *out_dx = cg_grad(call, x, SEQLSTM_BIT_BACKWARD_INPUTS);
    *status = *out_dx && *out_dy == NULL ? cg_clear(call, *out_dx, x_elems, err) : SEQLSTM_OK;
    return *out_dy && *out_dx;
}

/* ---- embedding ---------------------------------------------------------------------------------------------- */

static seqlstm_status embedding_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_embedding_desc *d = &call->desc->embedding;
    CG_START(call, "embedding",
             cg_gather(call->stream, call->rows, d->features, call->slots[SEQLSTM_SLOT_EMBEDDING_IDS],
                       cg_slot(call, SEQLSTM_SLOT_EMBEDDING_W), cg_slot(call, SEQLSTM_SLOT_EMBEDDING_Y)));
    return SEQLSTM_OK;
}

static seqlstm_status embedding_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_embedding_desc *d = &call->desc->embedding;
    const float *dy = cg_grad(call, SEQLSTM_SLOT_EMBEDDING_Y, 0);
    float *dw = cg_grad(call, SEQLSTM_SLOT_EMBEDDING_W, SEQLSTM_BIT_BACKWARD_WEIGHTS);
    if (dw == NULL)
        return SEQLSTM_OK;
    if (dy == NULL)
        return call->add ? SEQLSTM_OK : cg_clear(call, dw, d->vocabulary * d->features, err);
    CG_START(call, "embedding, backward",
             cg_gather_back(call->stream, d->vocabulary, call->rows, d->features,
                            call->slots[SEQLSTM_SLOT_EMBEDDING_IDS], dy, dw, call->add));
    return SEQLSTM_OK;
}

const struct cg_family cg_embedding = {.forward = embedding_forward, .backward = embedding_backward};

/* ---- activation --------------------------------------------------------------------------------------------- */

static seqlstm_status activation_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_activation_desc *d = &call->desc->activation;
    CG_START(call, "activation",
             cg_activation_forward(call->stream, &d->activation, call->rows, d->features,
                                   cg_slot(call, SEQLSTM_SLOT_UNARY_X), cg_slot(call, SEQLSTM_SLOT_UNARY_Y)));
    return SEQLSTM_OK;
}

static seqlstm_status activation_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_activation_desc *d = &call->desc->activation;
    const float *dy;
    float *dx;
    seqlstm_status status;
    if (!find_flow(call, SEQLSTM_SLOT_UNARY_Y, SEQLSTM_SLOT_UNARY_X, call->rows * d->features, &dy, &dx, &status, err))
        return status;
    CG_START(call, "activation, backward",
             cg_activation_backward(call->stream, &d->activation, call->rows, d->features,
                                    cg_slot(call, SEQLSTM_SLOT_UNARY_X), dy, dx));
    return SEQLSTM_OK;
}

const struct cg_family cg_activation = {.forward = activation_forward, .backward = activation_backward};

/* ---- dropout ------------------------------------------------------------------------------------------------ */

static seqlstm_status mask_rows(const struct cg_call *call, const float *from, float *to, struct seqlstm_error *err)
{
    const struct seqlstm_dropout_desc *d = &call->desc->dropout;
    if (d->head.mode == SEQLSTM_MODE_INFERENCE || d->rate == 0)
        return cg_copy(call, to, from, call->rows * d->features, err);
    const struct cg_mask mask = {.live = call->live,
                                 .stream = d->stream,
                                 .rate = d->rate,
                                 .per_step = d->mask == SEQLSTM_KIND_DROPOUT_STEP,
                                 .on_sequences = (call->binding->bind.flags & SEQLSTM_BIT_BIND_ON_SEQUENCES) != 0};
    const struct cg_drop drop = {.mask = mask, .rows = call->rows, .n = d->features, .x = from, .y = to};
    CG_START(call, "dropout", cg_dropout(call->stream, &drop, call->axis));
    return SEQLSTM_OK;
}

static seqlstm_status dropout_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    return mask_rows(call, cg_slot(call, SEQLSTM_SLOT_UNARY_X), cg_slot(call, SEQLSTM_SLOT_UNARY_Y), err);
}

static seqlstm_status dropout_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const float *dy;
    float *dx;
    seqlstm_status status;
    if (!find_flow(call, SEQLSTM_SLOT_UNARY_Y, SEQLSTM_SLOT_UNARY_X, call->rows * call->desc->dropout.features, &dy,
                   &dx, &status, err))
        return status;
    return mask_rows(call, dy, dx, err);
}

const struct cg_family cg_dropout_family = {.forward = dropout_forward, .backward = dropout_backward};

/* ---- layer norm: the reserve keeps mean and 1 / deviation of each row ----------------------------------------- */

static void norm_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    if (op->desc.head.mode == SEQLSTM_MODE_TRAINING)
        sizes->reserve_bytes = (uint64_t)op->desc.head.max_rows * 2 * sizeof(float);
}

static struct cg_norm get_norm(const struct cg_call *call)
{
    return (struct cg_norm){.epsilon = call->desc->layer_norm.epsilon,
                            .gain = cg_slot(call, SEQLSTM_SLOT_LAYER_NORM_GAIN),
                            .bias = cg_slot(call, SEQLSTM_SLOT_LAYER_NORM_BIAS)};
}

static seqlstm_status norm_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct cg_norm norm = get_norm(call);
    CG_START(call, "layer norm",
             cg_norm_forward(call->stream, &norm, call->rows, call->desc->layer_norm.features,
                             cg_slot(call, SEQLSTM_SLOT_LAYER_NORM_X), cg_slot(call, SEQLSTM_SLOT_LAYER_NORM_Y),
                             (float *)(void *)call->reserve));
    return SEQLSTM_OK;
}

static seqlstm_status norm_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct cg_norm norm = get_norm(call);
    const int64_t n = call->desc->layer_norm.features;
    const float *x = cg_slot(call, SEQLSTM_SLOT_LAYER_NORM_X), *stats = (const float *)(const void *)call->reserve, *dy;
    float *dx, *dgain = cg_grad(call, SEQLSTM_SLOT_LAYER_NORM_GAIN, SEQLSTM_BIT_BACKWARD_WEIGHTS);
    float *dbias = cg_grad(call, SEQLSTM_SLOT_LAYER_NORM_BIAS, SEQLSTM_BIT_BACKWARD_WEIGHTS);
    seqlstm_status status;
    bool flows =
        find_flow(call, SEQLSTM_SLOT_LAYER_NORM_Y, SEQLSTM_SLOT_LAYER_NORM_X, call->rows * n, &dy, &dx, &status, err);
    SEQLSTM_TRY(status);
    if (flows)
        CG_START(call, "layer norm, backward", cg_norm_backward(call->stream, &norm, call->rows, n, x, stats, dy, dx));
    if (dy == NULL && !call->add) {
        SEQLSTM_TRY(dgain ? cg_clear(call, dgain, n, err) : SEQLSTM_OK);
        SEQLSTM_TRY(dbias ? cg_clear(call, dbias, n, err) : SEQLSTM_OK);
    }
    if (dy && (dgain || dbias))
        CG_START(call, "layer norm, gradients of weights",
                 cg_norm_backward_weights(call->stream, call->rows, n, x, stats, dy, dgain, dbias, call->add));
    return SEQLSTM_OK;
}

const struct cg_family cg_layer_norm = {.sizes = norm_sizes, .forward = norm_forward, .backward = norm_backward};

/* ---- pool --------------------------------------------------------------------------------------------------- */

static seqlstm_status pool_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_pool_desc *d = &call->desc->pool;
    CG_START(call, "pool",
             cg_pool_forward(call->stream, d->kind, call->axis, d->features, cg_slot(call, SEQLSTM_SLOT_UNARY_X),
                             cg_slot(call, SEQLSTM_SLOT_UNARY_Y)));
    return SEQLSTM_OK;
}

static seqlstm_status pool_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_pool_desc *d = &call->desc->pool;
    const float *dy;
    float *dx;
    seqlstm_status status;
    if (!find_flow(call, SEQLSTM_SLOT_UNARY_Y, SEQLSTM_SLOT_UNARY_X, call->rows * d->features, &dy, &dx, &status, err))
        return status;
    CG_START(
        call, "pool, backward",
        cg_pool_backward(call->stream, d->kind, call->axis, d->features, cg_slot(call, SEQLSTM_SLOT_UNARY_X), dy, dx));
    return SEQLSTM_OK;
}

const struct cg_family cg_pool = {.forward = pool_forward, .backward = pool_backward};

/* ---- merge -------------------------------------------------------------------------------------------------- */

static struct cg_merge make_merge(const struct cg_call *call)
{
    const struct seqlstm_merge_desc *d = &call->desc->merge;
    struct cg_merge m = {.kind = d->kind, .inputs = d->inputs, .width = d->widths[0]};
    if (d->kind == SEQLSTM_KIND_MERGE_CONCAT)
        m.width = 0;
    for (uint32_t k = 0; k < d->inputs; k++) {
        m.widths[k] = d->widths[k];
        m.width += d->kind == SEQLSTM_KIND_MERGE_CONCAT ? d->widths[k] : 0;
        m.x[k] = cg_slot(call, SEQLSTM_SLOT_MERGE_X + (int32_t)k);
    }
    return m;
}

static seqlstm_status merge_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct cg_merge m = make_merge(call);
    CG_START(call, "merge", cg_merge_forward(call->stream, &m, call->rows, cg_slot(call, SEQLSTM_SLOT_MERGE_Y)));
    return SEQLSTM_OK;
}

static seqlstm_status merge_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    struct cg_merge m = make_merge(call);
    const float *dy = cg_grad(call, SEQLSTM_SLOT_MERGE_Y, 0);
    for (uint32_t k = 0; k < m.inputs; k++) {
        m.dx[k] = cg_grad(call, SEQLSTM_SLOT_MERGE_X + (int32_t)k, SEQLSTM_BIT_BACKWARD_INPUTS);
        if (dy == NULL && m.dx[k])
            SEQLSTM_TRY(cg_clear(call, m.dx[k], call->rows * m.widths[k], err));
    }
    if (dy)
        CG_START(call, "merge, backward", cg_merge_backward(call->stream, &m, call->rows, dy));
    return SEQLSTM_OK;
}

const struct cg_family cg_merge_family = {.forward = merge_forward, .backward = merge_backward};

/* ---- gather, scatter ---------------------------------------------------------------------------------------- */

static seqlstm_status gather_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    CG_START(call, "gather",
             cg_gather(call->stream, call->rows, call->desc->gather.features, call->slots[SEQLSTM_SLOT_GATHER_INDEX],
                       cg_slot(call, SEQLSTM_SLOT_GATHER_X), cg_slot(call, SEQLSTM_SLOT_GATHER_Y)));
    return SEQLSTM_OK;
}

static seqlstm_status gather_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const int64_t n = call->desc->gather.features, rows_in = call->binding->bind.rows_in;
    const float *dy;
    float *dx;
    seqlstm_status status;
    if (!find_flow(call, SEQLSTM_SLOT_GATHER_Y, SEQLSTM_SLOT_GATHER_X, rows_in * n, &dy, &dx, &status, err))
        return status;
    CG_START(call, "gather, backward",
             cg_gather_back(call->stream, rows_in, call->rows, n, call->slots[SEQLSTM_SLOT_GATHER_INDEX], dy, dx, 0));
    return SEQLSTM_OK;
}

static seqlstm_status scatter_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const int64_t n = call->desc->gather.features;
    float *y = cg_slot(call, SEQLSTM_SLOT_GATHER_Y);
    SEQLSTM_TRY(cg_clear(call, y, call->rows * n, err));
    CG_START(call, "scatter",
             cg_scatter(call->stream, call->binding->bind.rows_in, n, call->slots[SEQLSTM_SLOT_GATHER_INDEX],
                        cg_slot(call, SEQLSTM_SLOT_GATHER_X), y));
    return SEQLSTM_OK;
}

static seqlstm_status scatter_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const int64_t n = call->desc->gather.features, rows_in = call->binding->bind.rows_in;
    const float *dy;
    float *dx;
    seqlstm_status status;
    if (!find_flow(call, SEQLSTM_SLOT_GATHER_Y, SEQLSTM_SLOT_GATHER_X, rows_in * n, &dy, &dx, &status, err))
        return status;
    CG_START(call, "scatter, backward",
             cg_gather(call->stream, rows_in, n, call->slots[SEQLSTM_SLOT_GATHER_INDEX], dy, dx));
    return SEQLSTM_OK;
}

const struct cg_family cg_gather_family = {.forward = gather_forward, .backward = gather_backward};
const struct cg_family cg_scatter_family = {.forward = scatter_forward, .backward = scatter_backward};

/* ---- cast --------------------------------------------------------------------------------------------------- */

static seqlstm_status cast_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_cast_desc *d = &call->desc->cast;
    CG_START(call, "cast",
             gpu_cast(call->stream, d->from, d->to, call->rows * d->features, call->slots[SEQLSTM_SLOT_UNARY_X],
                      call->slots[SEQLSTM_SLOT_UNARY_Y]));
    return SEQLSTM_OK;
}

static uint64_t dtype_bytes(uint32_t dtype)
{
    return dtype == SEQLSTM_DTYPE_FLOAT64 ? 8 : dtype == SEQLSTM_DTYPE_FLOAT32 ? 4 : 2;
}

static seqlstm_status cast_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_cast_desc *d = &call->desc->cast;
    const float *dy = cg_grad(call, SEQLSTM_SLOT_UNARY_Y, 0);
    float *dx = cg_grad(call, SEQLSTM_SLOT_UNARY_X, SEQLSTM_BIT_BACKWARD_INPUTS);
    if (dx && dy == NULL)
        return gpu_fill(call->op->ordinal, call->stream, dx, 0,
                        (uint64_t)(call->rows * d->features) * dtype_bytes(d->from), err);
    if (dx)
        CG_START(call, "cast, backward", gpu_cast(call->stream, d->to, d->from, call->rows * d->features, dy, dx));
    return SEQLSTM_OK;
}

const struct cg_family cg_cast_family = {.forward = cast_forward, .backward = cast_backward};

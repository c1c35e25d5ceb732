/* SPDX-License-Identifier: Apache-2.0 */
/* ACTIVATION, LAYER_NORM and CAST, which treat each row by itself. */
#include <string.h>

#include "cpu-blas/share.h"

/* ---- activation ------------------------------------------------------------------------------ */

static bool is_softmax(uint32_t kind)
{
    return kind == SEQLSTM_ACT_SOFTMAX || kind == SEQLSTM_ACT_LOG_SOFTMAX;
}

static void activation_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_activation_desc *d = &call->op->desc.activation;
    const int64_t n = d->features;
    const float *x = call->slots[SEQLSTM_SLOT_UNARY_X];
    float *y = call->slots[SEQLSTM_SLOT_UNARY_Y];
    if (!is_softmax(d->activation.kind)) {
        call->math->act_forward(&d->activation, (end - begin) * n, x + begin * n, y + begin * n);
        return;
    }
    for (int64_t r = begin; r < end; r++)
        call->math->softmax(n, x + r * n, y + r * n, d->activation.kind == SEQLSTM_ACT_LOG_SOFTMAX);
}

static void activation_grads(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_activation_desc *d = &call->op->desc.activation;
    const int64_t n = d->features, at = begin * n;
    const float *x = call->slots[SEQLSTM_SLOT_UNARY_X], *y = call->slots[SEQLSTM_SLOT_UNARY_Y];
    const float *dy = call->grads[SEQLSTM_SLOT_UNARY_Y];
    float *dx = call->grads[SEQLSTM_SLOT_UNARY_X];
    if (!is_softmax(d->activation.kind)) {
        call->math->act_backward(&d->activation, (end - begin) * n, x + at, y + at, dy + at, dx + at);
        return;
    }
    for (int64_t r = begin; r < end; r++)
        call->math->softmax_backward(n, y + r * n, dy + r * n, dx + r * n,
                                     d->activation.kind == SEQLSTM_ACT_LOG_SOFTMAX);
}

static seqlstm_status activation_forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct blas_division rows =
        blas_divide(call->bind->rows, 1, blas_grain_rows(3 * call->op->desc.activation.features), call->members);
    blas_share(call, &rows, activation_rows, NULL);
    return SEQLSTM_OK;
}

static seqlstm_status activation_backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const int64_t n = call->op->desc.activation.features;
    if (!blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_UNARY_X))
        return SEQLSTM_OK;
    if (call->grads[SEQLSTM_SLOT_UNARY_Y] == NULL) {
        memset(call->grads[SEQLSTM_SLOT_UNARY_X], 0, (size_t)(call->bind->rows * n) * sizeof(float));
        return SEQLSTM_OK;
    }
    struct blas_division rows = blas_divide(call->bind->rows, 1, blas_grain_rows(2 * n), call->members);
    blas_share(call, &rows, activation_grads, NULL);
    return SEQLSTM_OK;
}

const struct blas_operation blas_activation = {
    .slots = SEQLSTM_SLOT_UNARY_COUNT,
    .forward = activation_forward,
    .backward = activation_backward,
};

/* ---- layer norm: mean and 1 / sqrt(variance + epsilon) of each row in the reserve ------------- */

static void norm_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    if (op->training)
        out->reserve_bytes = align_bytes((uint64_t)op->desc.head.max_rows * 2 * sizeof(float));
}

static void norm_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_layer_norm_desc *d = &call->op->desc.layer_norm;
    const int64_t n = d->features;
    const float *x = call->slots[SEQLSTM_SLOT_LAYER_NORM_X];
    const float *gain =
        (d->options & SEQLSTM_BIT_LAYER_NORM_GAIN) != 0 ? call->slots[SEQLSTM_SLOT_LAYER_NORM_GAIN] : NULL;
    const float *bias =
        (d->options & SEQLSTM_BIT_LAYER_NORM_BIAS) != 0 ? call->slots[SEQLSTM_SLOT_LAYER_NORM_BIAS] : NULL;
    float *y = call->slots[SEQLSTM_SLOT_LAYER_NORM_Y], *kept = call->op->training ? call->reserve : NULL;
    for (int64_t r = begin; r < end; r++) {
        float stats[2];
        call->math->norm_forward(n, x + r * n, gain, bias, d->epsilon, y + r * n, stats);
        if (kept != NULL)
            memcpy(kept + 2 * r, stats, sizeof stats);
    }
}

static void norm_grads(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_layer_norm_desc *d = &call->op->desc.layer_norm;
    const int64_t n = d->features;
    const float *x = call->slots[SEQLSTM_SLOT_LAYER_NORM_X], *dy = call->grads[SEQLSTM_SLOT_LAYER_NORM_Y],
                *stats = call->reserve;
    const float *gain =
        (d->options & SEQLSTM_BIT_LAYER_NORM_GAIN) != 0 ? call->slots[SEQLSTM_SLOT_LAYER_NORM_GAIN] : NULL;
    float *dx = call->grads[SEQLSTM_SLOT_LAYER_NORM_X];
    for (int64_t r = begin; r < end; r++)
        call->math->norm_backward(n, x + r * n, gain, dy + r * n, stats + 2 * r, dx + r * n);
}

/* Columns [begin, end) of the gradients of gain and bias, over all rows. */
static void norm_columns(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_layer_norm_desc *d = &call->op->desc.layer_norm;
    const int64_t n = d->features, rows = call->grads[SEQLSTM_SLOT_LAYER_NORM_Y] != NULL ? call->bind->rows : 0;
    const float *x = call->slots[SEQLSTM_SLOT_LAYER_NORM_X], *dy = call->grads[SEQLSTM_SLOT_LAYER_NORM_Y];
    for (int slot = SEQLSTM_SLOT_LAYER_NORM_GAIN; slot <= SEQLSTM_SLOT_LAYER_NORM_BIAS; slot++) {
        uint32_t option =
            slot == SEQLSTM_SLOT_LAYER_NORM_GAIN ? SEQLSTM_BIT_LAYER_NORM_GAIN : SEQLSTM_BIT_LAYER_NORM_BIAS;
        if ((d->options & option) == 0 || call->grads[slot] == NULL)
            continue;
        float *out = (float *)call->grads[slot] + begin;
        if ((call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) == 0)
            memset(out, 0, (size_t)(end - begin) * sizeof *out);
        if (rows > 0 && slot == SEQLSTM_SLOT_LAYER_NORM_GAIN)
            call->math->norm_gain_sums(rows, end - begin, n, x + begin, dy + begin, call->reserve, out);
        else if (rows > 0)
            call->math->column_sums(rows, end - begin, n, dy + begin, out);
    }
}

static seqlstm_status norm_forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct blas_division rows =
        blas_divide(call->bind->rows, 1, blas_grain_rows(2 * call->op->desc.layer_norm.features), call->members);
    blas_share(call, &rows, norm_rows, NULL);
    return SEQLSTM_OK;
}

static seqlstm_status norm_backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const int64_t n = call->op->desc.layer_norm.features, rows = call->bind->rows;
    struct blas_division division;
    if (blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_LAYER_NORM_X)) {
        division = blas_divide(rows, 1, blas_grain_rows(2 * n), call->members);
        if (call->grads[SEQLSTM_SLOT_LAYER_NORM_Y] == NULL)
            memset(call->grads[SEQLSTM_SLOT_LAYER_NORM_X], 0, (size_t)(rows * n) * sizeof(float));
        else
            blas_share(call, &division, norm_grads, NULL);
    }
    if ((call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS) != 0) {
        int64_t grain = BLAS_GRAIN_ELEMS / (rows > 0 ? rows : 1);
        division = blas_divide(n, 16, grain < 16 ? 16 : grain, call->members);
        blas_share(call, &division, norm_columns, NULL);
    }
    return SEQLSTM_OK;
}

const struct blas_operation blas_layer_norm = {
    .slots = SEQLSTM_SLOT_LAYER_NORM_COUNT,
    .sizes = norm_sizes,
    .forward = norm_forward,
    .backward = norm_backward,
};

/* ---- cast ------------------------------------------------------------------------------------ */

static void cast_supports(const union seqlstm_any_desc *desc, bool tiles, struct seqlstm_answer *answer)
{
    (void)tiles;
    static const char *const variants[] = {"default", NULL};
    if (answer_cast(answer, &desc->cast))
        answer_yes(answer, variants);
}

static size_t dtype_bytes(uint32_t dtype)
{
    return dtype == SEQLSTM_DTYPE_FLOAT64 ? 8 : dtype == SEQLSTM_DTYPE_FLOAT32 ? 4 : 2;
}

struct casting {
    uint32_t from, to;
    const char *x;
    char *y;
};

static void cast_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct casting *c = context;
    const int64_t n = call->op->desc.cast.features;
    call->math->cast(c->from, c->to, (end - begin) * n, c->x + (size_t)(begin * n) * dtype_bytes(c->from),
                     c->y + (size_t)(begin * n) * dtype_bytes(c->to));
}

static void cast_all(const struct blas_call *call, struct casting *casting)
{
    struct blas_division rows =
        blas_divide(call->bind->rows, 1, blas_grain_rows(4 * call->op->desc.cast.features), call->members);
    blas_share(call, &rows, cast_rows, casting);
}

static seqlstm_status cast_forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_cast_desc *d = &call->op->desc.cast;
    struct casting casting = {d->from, d->to, call->slots[SEQLSTM_SLOT_UNARY_X], call->slots[SEQLSTM_SLOT_UNARY_Y]};
    cast_all(call, &casting);
    return SEQLSTM_OK;
}

static seqlstm_status cast_backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_cast_desc *d = &call->op->desc.cast;
    if (!blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_UNARY_X))
        return SEQLSTM_OK;
    if (call->grads[SEQLSTM_SLOT_UNARY_Y] == NULL) {
        memset(call->grads[SEQLSTM_SLOT_UNARY_X], 0, (size_t)(call->bind->rows * d->features) * dtype_bytes(d->from));
        return SEQLSTM_OK;
    }
    struct casting casting = {d->to, d->from, call->grads[SEQLSTM_SLOT_UNARY_Y], call->grads[SEQLSTM_SLOT_UNARY_X]};
    cast_all(call, &casting);
    return SEQLSTM_OK;
}

const struct blas_operation blas_cast = {
    .slots = SEQLSTM_SLOT_UNARY_COUNT,
    .supports = cast_supports,
    .forward = cast_forward,
    .backward = cast_backward,
};

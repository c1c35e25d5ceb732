/* SPDX-License-Identifier: Apache-2.0 */
/* Flat vectors: FINITE_CHECK, SQUARED_NORM, VECTOR and OPTIMIZER.
 *
 * The norm is the sum, in order, of the norms of blocks of 65536 elements in float64, so that its bits do not even
 * depend on the number of members. The other operations are elementwise. */
#include <math.h>
#include <string.h>

#include "cpu-blas/share.h"

enum { NORM_BLOCK = 65536, GRAIN = 32768, NORM_GRAIN = 2 };

static struct blas_division divide_elems(const struct blas_call *call)
{
    return blas_divide(call->bind->rows, 64, GRAIN, call->members);
}

/* ---- reductions ---------------------------------------------------------------------------- */

static void sizes_flags(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    out->workspace_bytes = align_bytes((uint64_t)op->instance->members_max * sizeof(int32_t));
}

static void check_elems(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    const float *x = call->slots[SEQLSTM_SLOT_REDUCE_X];
    ((int32_t *)call->workspace)[part] = !call->math->finite(end - begin, x + begin);
}

static seqlstm_status forward_finite(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (call->bind->rows == 0)
        return SEQLSTM_OK;
    struct blas_division all = divide_elems(call);
    blas_share(call, &all, check_elems, NULL);
    int32_t *flag = call->slots[SEQLSTM_SLOT_REDUCE_RESULT];
    for (int32_t part = 0; part < all.parts; part++)
        *flag |= ((int32_t *)call->workspace)[part];
    return SEQLSTM_OK;
}

static void sizes_norm(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    uint64_t blocks = ((uint64_t)op->desc.head.max_rows + NORM_BLOCK - 1) / NORM_BLOCK;
    out->workspace_bytes = align_bytes(blocks * sizeof(double));
}

static void norm_blocks(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const float *x = call->slots[SEQLSTM_SLOT_REDUCE_X];
    double *norms = call->workspace;
    for (int64_t block = begin; block < end; block++) {
        int64_t at = block * NORM_BLOCK, rest = call->bind->rows - at;
        norms[block] = call->math->squared_norm(rest < NORM_BLOCK ? rest : NORM_BLOCK, x + at);
    }
}

static seqlstm_status forward_norm(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    int64_t blocks = (call->bind->rows + NORM_BLOCK - 1) / NORM_BLOCK;
    struct blas_division all = blas_divide(blocks, 1, NORM_GRAIN, call->members);
    blas_share(call, &all, norm_blocks, NULL);
    double sum = 0.0;
    for (int64_t block = 0; block < blocks; block++)
        sum += ((double *)call->workspace)[block];
    *(double *)call->slots[SEQLSTM_SLOT_REDUCE_RESULT] += sum;
    return SEQLSTM_OK;
}

/* ---- vector -------------------------------------------------------------------------------- */

static void vector_elems(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const float *x = call->slots[SEQLSTM_SLOT_VECTOR_X];
    call->math->vector(call->op->desc.vector.kind, call->step->alpha, end - begin, x != NULL ? x + begin : NULL,
                       (float *)call->slots[SEQLSTM_SLOT_VECTOR_Y] + begin);
}

static seqlstm_status forward_vector(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct blas_division all = divide_elems(call);
    blas_share(call, &all, vector_elems, NULL);
    return SEQLSTM_OK;
}

/* ---- optimizer ----------------------------------------------------------------------------- */

/* The factor that limits the norm of the gradient. */
static float limit_scale(const struct seqlstm_optimizer_desc *d, float grad_scale, double squares)
{
    const double norm = (double)grad_scale * sqrt(squares), limit = (double)d->clip_norm;
    return limit > 0.0 && norm > limit ? (float)((double)grad_scale * limit / norm) : grad_scale;
}

/* 1 - beta, and 1 / (1 - beta^t), in double, since beta is a float such as 0.999. */
static struct blas_update make_update(const struct seqlstm_optimizer_desc *d, const struct seqlstm_step *step,
                                      double squares)
{
    const bool adam = d->kind == SEQLSTM_KIND_OPTIMIZER_ADAM;
    const double t = (double)step->update;
    struct blas_update u = {
        .kind = d->kind,
        .options = d->options,
        .learning_rate = step->learning_rate,
        .grad_scale = limit_scale(d, step->grad_scale, squares),
        .decay = (float)((double)step->learning_rate * (double)d->weight_decay),
        .momentum = d->momentum,
        .beta_1 = d->beta_1,
        .rest_1 = (float)(1.0 - (double)d->beta_1),
        .beta_2 = adam ? d->beta_2 : d->rho,
        .rest_2 = (float)(1.0 - (double)(adam ? d->beta_2 : d->rho)),
        .correct_1 = 1.0f,
        .correct_2 = 1.0f,
        .epsilon = d->epsilon,
    };
    if (adam) {
        u.correct_1 = (float)(1.0 / (1.0 - pow((double)d->beta_1, t)));
        u.correct_2 = (float)(1.0 / (1.0 - pow((double)d->beta_2, t)));
    }
    return u;
}

static float *at(void *base, int64_t elem)
{
    return base != NULL ? (float *)base + elem : NULL;
}

static void update_elems(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    void *const *s = call->slots;
    call->math->update(context, end - begin, at(s[SEQLSTM_SLOT_OPTIMIZER_PARAM], begin),
                       at(s[SEQLSTM_SLOT_OPTIMIZER_GRAD], begin), at(s[SEQLSTM_SLOT_OPTIMIZER_STATE_1], begin),
                       at(s[SEQLSTM_SLOT_OPTIMIZER_STATE_2], begin), at(s[SEQLSTM_SLOT_OPTIMIZER_STATE_3], begin));
}

static seqlstm_status forward_optimizer(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const double *sums = call->slots[SEQLSTM_SLOT_OPTIMIZER_SUMS],
                 *squares = call->slots[SEQLSTM_SLOT_OPTIMIZER_SQUARES];
    if ((call->step->flags & SEQLSTM_BIT_STEP_SKIP) != 0 || !isfinite(sums[0]) || !isfinite(*squares))
        return SEQLSTM_OK;
    struct blas_update update = make_update(&call->op->desc.optimizer, call->step, *squares);
    struct blas_division all = divide_elems(call);
    blas_share(call, &all, update_elems, &update);
    return SEQLSTM_OK;
}

/* ---- tables -------------------------------------------------------------------------------- */

const struct blas_operation blas_finite_check = {
    .slots = SEQLSTM_SLOT_REDUCE_COUNT,
    .sizes = sizes_flags,
    .forward = forward_finite,
};

const struct blas_operation blas_squared_norm = {
    .slots = SEQLSTM_SLOT_REDUCE_COUNT,
    .sizes = sizes_norm,
    .forward = forward_norm,
};

const struct blas_operation blas_vector = {
    .slots = SEQLSTM_SLOT_VECTOR_COUNT,
    .forward = forward_vector,
};

const struct blas_operation blas_optimizer = {
    .slots = SEQLSTM_SLOT_OPTIMIZER_COUNT,
    .forward = forward_optimizer,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* DENSE_LOSS by rows: each part computes the sums (logits) of its rows and their losses. Training keeps the sums [R, C]
 * in the reserve, and backward replaces them by their gradient. Inference keeps only BLOCK_ROWS rows for each part.
 *
 *   reserve    sums [R, C] | log(sum exp) [R] float64 (cross-entropy)
 *   workspace  row losses [R] float64 | inference: BLOCK_ROWS rows of sums for each part */
#include <math.h>
#include <string.h>

#include "cpu-blas/multiply.h"
#include "cpu-blas/ops/dense_loss_columns.h"
#include "cpu-blas/ops/dense_loss_slots.h"

enum { BLOCK_ROWS = 128 };

static void supports(const union seqlstm_any_desc *desc, bool tiles, struct seqlstm_answer *answer)
{
    const char *const variants[] = {"rows", blas_multiply_tiles(&desc->head, tiles), NULL};
    if (blas_columns_fit(&desc->dense_loss))
        blas_columns_supports(&desc->dense_loss, tiles, answer);
    else
        answer_yes(answer, variants);
}

static uint64_t sums_bytes(const struct seqlstm_dense_loss_desc *d)
{
    return align_bytes((uint64_t)d->head.max_rows * (uint64_t)d->output * sizeof(float));
}

static void sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    const struct seqlstm_dense_loss_desc *d = &op->desc.dense_loss;
    if (blas_columns_fit(d)) {
        blas_columns_sizes(op, out);
        return;
    }
    const uint64_t losses = align_bytes((uint64_t)d->head.max_rows * sizeof(double));
    out->workspace_bytes = losses;
    if (op->training)
        out->reserve_bytes = sums_bytes(d) + losses;
    else
        out->workspace_bytes += (uint64_t)op->instance->members_max *
                                align_bytes((uint64_t)BLOCK_ROWS * (uint64_t)d->output * sizeof(float));
}

static double *log_sums(const struct blas_call *call)
{
    return (double *)((char *)call->reserve + sums_bytes(&call->op->desc.dense_loss));
}

/* The loss of row r, whose sums are at z. */
static double row_loss(const struct blas_call *call, const struct blas_dense_loss *l, int64_t r, const float *z)
{
    const int64_t n = l->classes;
    if (l->rule.kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
        const float *target = call->slots[SEQLSTM_SLOT_LOSS_TARGET];
        return call->math->loss(l->rule.kind, l->rule.delta, n, z, target + r * n) / (double)n;
    }
    const int32_t target = ((const int32_t *)call->slots[SEQLSTM_SLOT_LOSS_TARGET])[r];
    if (target < 0)
        return 0.0;
    struct blas_row_stats stats;
    call->math->row_stats(n, z, &stats);
    const double log_sum = (double)stats.largest + log((double)stats.exp_sum);
    if (call->op->training)
        log_sums(call)[r] = log_sum;
    return blas_cross_entropy(&l->rule, log_sum, (double)z[target], (double)stats.sum);
}

static void forward_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    const struct blas_dense_loss *l = context;
    const int64_t n = l->classes;
    double *losses = call->workspace;
    float *block = (float *)((char *)call->workspace +
                             align_bytes((uint64_t)call->op->desc.dense_loss.head.max_rows * sizeof(double)));
    block += (int64_t)part * (int64_t)(align_bytes((uint64_t)BLOCK_ROWS * (uint64_t)n * sizeof(float)) / sizeof(float));
    const int64_t step = call->op->training ? end - begin : BLOCK_ROWS;
    for (int64_t r0 = begin; r0 < end; r0 += step) {
        const int64_t count = end - r0 < step ? end - r0 : step;
        float *z = call->op->training ? (float *)call->reserve + r0 * n : block;
        blas_multiply(call, part, false, true, count, n, l->inputs, l->x + r0 * l->inputs, l->inputs, l->w, l->inputs,
                      0.0f, z, n);
        for (int64_t r = 0; r < count; r++) {
            if (l->bias != NULL)
                call->math->add(n, l->bias, z + r * n);
            losses[r0 + r] = row_loss(call, l, r0 + r, z + r * n);
        }
    }
}

static seqlstm_status forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (blas_columns_fit(&call->op->desc.dense_loss)) {
        blas_columns_forward(call);
        return SEQLSTM_OK;
    }
    struct blas_dense_loss l = blas_dense_loss_open(call);
    const int64_t grain = BLAS_GRAIN_PRODUCTS / (l.inputs * l.classes) + 1;
    struct blas_division rows = blas_divide(l.rows, 8, grain > 8 ? grain : 8, call->members);
    blas_share(call, &rows, forward_rows, &l);
    blas_loss_sums(&l.rule, call->slots, l.rows, call->workspace);
    return SEQLSTM_OK;
}

/* Replaces the sums of row r by their gradient. */
static void row_grad(const struct blas_call *call, const struct blas_dense_loss *l, int64_t r, float *z)
{
    const int64_t n = l->classes;
    const double scale = l->scale * blas_row_weight(&l->rule, call->slots, r);
    if (scale == 0.0) {
        memset(z, 0, (size_t)n * sizeof *z);
    } else if (l->rule.kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
        const float *target = call->slots[SEQLSTM_SLOT_LOSS_TARGET];
        call->math->loss_backward(l->rule.kind, l->rule.delta, (float)(scale / (double)n), n, z, target + r * n, z);
    } else {
        const int32_t target = ((const int32_t *)call->slots[SEQLSTM_SLOT_LOSS_TARGET])[r];
        const double s = (double)l->rule.label_smoothing;
        call->math->softmax_grad(n, z, (float)log_sums(call)[r], (float)scale, (float)(scale * s / (double)n), z);
        z[target] -= (float)(scale * (1.0 - s));
    }
}

static void backward_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    const struct blas_dense_loss *l = context;
    const int64_t n = l->classes;
    float *z = call->reserve;
    for (int64_t r = begin; r < end; r++)
        row_grad(call, l, r, z + r * n);
    if (l->dx != NULL)
        blas_multiply(call, part, false, false, end - begin, l->inputs, n, z + begin * n, n, l->w, l->inputs, 0.0f,
                      l->dx + begin * l->inputs, l->inputs);
}

static void weight_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    const struct blas_dense_loss *l = context;
    const float *z = call->reserve;
    blas_multiply(call, part, true, false, end - begin, l->inputs, l->rows, z + begin, l->classes, l->x, l->inputs,
                  l->keep, l->dw + begin * l->inputs, l->inputs);
}

static void weight_columns(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    const struct blas_dense_loss *l = context;
    blas_multiply(call, part, true, false, l->classes, end - begin, l->rows, call->reserve, l->classes, l->x + begin,
                  l->inputs, l->keep, l->dw + begin, l->inputs);
}

static seqlstm_status backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (blas_columns_fit(&call->op->desc.dense_loss)) {
        blas_columns_backward(call);
        return SEQLSTM_OK;
    }
    struct blas_dense_loss l = blas_dense_loss_open(call);
    const int64_t grain = BLAS_GRAIN_PRODUCTS / (l.inputs * l.classes) + 1;
    struct blas_division division = blas_divide(l.rows, 8, grain > 8 ? grain : 8, call->members);
    blas_share(call, &division, backward_rows, &l);
    if (l.dw != NULL) {
        const int64_t each = BLAS_GRAIN_PRODUCTS / (l.rows > 0 ? l.rows : 1);
        const bool by_rows = l.classes >= l.inputs;
        const int64_t extent = by_rows ? l.classes : l.inputs, other = by_rows ? l.inputs : l.classes;
        division = blas_divide(extent, 16, each / other > 16 ? each / other : 16, call->members);
        blas_share(call, &division, by_rows ? weight_rows : weight_columns, &l);
    }
    if (l.db != NULL) {
        if (l.keep == 0.0f)
            memset(l.db, 0, (size_t)l.classes * sizeof *l.db);
        call->math->column_sums(l.rows, l.classes, l.classes, call->reserve, l.db);
    }
    return SEQLSTM_OK;
}

const struct blas_operation blas_dense_loss = {
    .slots = SEQLSTM_SLOT_DENSE_LOSS_COUNT,
    .supports = supports,
    .sizes = sizes,
    .forward = forward,
    .backward = backward,
};

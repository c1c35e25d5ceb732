/* SPDX-License-Identifier: Apache-2.0 */
/* LOSS: sums over rows, and the gradient of each row.
 *
 * Row losses go to the workspace in float64. One thread adds them in the order of the rows, so that the sums do not
 * depend on the number of members. Cross-entropy keeps log(sum exp) of each row in the reserve. */
#include "cpu-blas/ops/loss_rules.h"

#include <math.h>
#include <string.h>

#include "cpu-blas/share.h"

void blas_loss_sums(const struct blas_loss_rule *rule, void *const *slots, int64_t rows, const double *row_losses)
{
    double *sums = slots[SEQLSTM_SLOT_LOSS_SUMS];
    double loss = 0.0, weight = 0.0;
    for (int64_t r = 0; r < rows; r++) {
        double w = blas_row_weight(rule, slots, r);
        if (w != 0.0)
            loss += w * row_losses[r];
        weight += w;
    }
    sums[0] += loss;
    sums[1] += weight;
    float *out = slots[SEQLSTM_SLOT_LOSS_ROW_LOSS];
    if ((rule->options & SEQLSTM_BIT_LOSS_ROW_LOSS) != 0 && out != NULL)
        for (int64_t r = 0; r < rows; r++)
            out[r] = (float)row_losses[r];
}

static struct blas_loss_rule rule_of(const struct seqlstm_loss_desc *d)
{
    return (struct blas_loss_rule){d->kind, d->options, d->label_smoothing, d->delta, d->features};
}

static void sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    uint64_t rows = (uint64_t)op->desc.loss.head.max_rows;
    out->workspace_bytes = align_bytes(rows * sizeof(double));
    if (op->training && op->desc.loss.kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY)
        out->reserve_bytes = align_bytes(rows * sizeof(float));
}

static void row_losses(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct blas_loss_rule *rule = context;
    const int64_t n = rule->classes;
    const float *x = call->slots[SEQLSTM_SLOT_LOSS_X];
    double *losses = call->workspace;
    if (rule->kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
        const float *target = call->slots[SEQLSTM_SLOT_LOSS_TARGET];
        for (int64_t r = begin; r < end; r++)
            losses[r] = call->math->loss(rule->kind, rule->delta, n, x + r * n, target + r * n) / (double)n;
        return;
    }
    const int32_t *target = call->slots[SEQLSTM_SLOT_LOSS_TARGET];
    float *log_sums = call->op->training ? call->reserve : NULL;
    for (int64_t r = begin; r < end; r++) {
        losses[r] = 0.0;
        if (target[r] < 0)
            continue;
        struct blas_row_stats stats;
        call->math->row_stats(n, x + r * n, &stats);
        double log_sum = (double)stats.largest + log((double)stats.exp_sum);
        losses[r] = blas_cross_entropy(rule, log_sum, (double)x[r * n + target[r]], (double)stats.sum);
        if (log_sums != NULL)
            log_sums[r] = (float)log_sum;
    }
}

static seqlstm_status forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct blas_loss_rule rule = rule_of(&call->op->desc.loss);
    struct blas_division rows = blas_divide(call->bind->rows, 1, blas_grain_rows(4 * rule.classes), call->members);
    blas_share(call, &rows, row_losses, &rule);
    blas_loss_sums(&rule, call->slots, call->bind->rows, call->workspace);
    return SEQLSTM_OK;
}

static void row_grads(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct blas_loss_rule *rule = context;
    const int64_t n = rule->classes;
    const float *x = call->slots[SEQLSTM_SLOT_LOSS_X], *log_sums = call->reserve;
    float *dx = call->grads[SEQLSTM_SLOT_LOSS_X];
    const double factor = (double)call->step->normaliser * (double)call->step->loss_scale;
    for (int64_t r = begin; r < end; r++) {
        const double scale = factor * blas_row_weight(rule, call->slots, r);
        if (scale == 0.0) {
            memset(dx + r * n, 0, (size_t)n * sizeof *dx);
        } else if (rule->kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
            const float *target = call->slots[SEQLSTM_SLOT_LOSS_TARGET];
            call->math->loss_backward(rule->kind, rule->delta, (float)(scale / (double)n), n, x + r * n, target + r * n,
                                      dx + r * n);
        } else {
            const int32_t target = ((const int32_t *)call->slots[SEQLSTM_SLOT_LOSS_TARGET])[r];
            const double s = (double)rule->label_smoothing;
            call->math->softmax_grad(n, x + r * n, log_sums[r], (float)scale, (float)(scale * s / (double)n),
                                     dx + r * n);
            dx[r * n + target] -= (float)(scale * (1.0 - s));
        }
    }
}

static seqlstm_status backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (!blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_LOSS_X))
        return SEQLSTM_OK;
    struct blas_loss_rule rule = rule_of(&call->op->desc.loss);
    struct blas_division rows = blas_divide(call->bind->rows, 1, blas_grain_rows(2 * rule.classes), call->members);
    blas_share(call, &rows, row_grads, &rule);
    return SEQLSTM_OK;
}

const struct blas_operation blas_loss = {
    .slots = SEQLSTM_SLOT_LOSS_COUNT,
    .sizes = sizes,
    .forward = forward,
    .backward = backward,
};

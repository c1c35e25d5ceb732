/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by LOSS and DENSE_LOSS: the fields, the weight of a row, the sums. */
#ifndef BLAS_LOSS_RULES_H
#define BLAS_LOSS_RULES_H

#include "cpu-blas/plugin.h"

/* The fields of a loss, copied from its descriptor. */
struct blas_loss_rule {
    uint32_t kind;
    uint32_t options;
    float label_smoothing;
    float delta;
    int64_t classes; /* C */
};

/* The weight w_r of row r. Slots are numbered as in LOSS. */
static inline double blas_row_weight(const struct blas_loss_rule *rule, void *const *slots, int64_t row)
{
    double w = 1.0;
    if ((rule->options & SEQLSTM_BIT_LOSS_ROW_WEIGHT) != 0)
        w = (double)((const float *)slots[SEQLSTM_SLOT_LOSS_ROW_WEIGHT])[row];
    if (rule->kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY)
        return w;
    int32_t target = ((const int32_t *)slots[SEQLSTM_SLOT_LOSS_TARGET])[row];
    if (target < 0)
        return 0.0;
    if ((rule->options & SEQLSTM_BIT_LOSS_CLASS_WEIGHT) != 0)
        w *= (double)((const float *)slots[SEQLSTM_SLOT_LOSS_CLASS_WEIGHT])[target];
    return w;
}

/* Adds row_losses (loss_r without w_r) to SUMS, in the order of the rows. Rows of weight 0 add nothing, whatever
 * their loss. Also copies row_losses to their slot, if wanted. */
void blas_loss_sums(const struct blas_loss_rule *rule, void *const *slots, int64_t rows, const double *row_losses);

/* -log softmax(x)[target], smoothed: log_sum - (1 - s) x_target - s mean(x). */
static inline double blas_cross_entropy(const struct blas_loss_rule *rule, double log_sum, double x_target, double sum)
{
    double s = (double)rule->label_smoothing;
    return log_sum - (1.0 - s) * x_target - (s != 0.0 ? s * (sum / (double)rule->classes) : 0.0);
}

#endif

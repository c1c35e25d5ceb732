/* SPDX-License-Identifier: Apache-2.0 */
/* DENSE_LOSS in two ways: by rows (dense_loss.c), and cross-entropy over many classes by columns
 * (dense_loss_columns.c). */
#ifndef BLAS_DENSE_LOSS_H
#define BLAS_DENSE_LOSS_H

#include "cpu-blas/ops/loss_rules.h"
#include "cpu-blas/share.h"

/* Slots of a call under the names of the mathematics. */
struct blas_dense_loss {
    struct blas_loss_rule rule;
    int64_t rows, inputs, classes;
    const float *x, *w, *bias; /* bias NULL: none */
    float *dx, *dw, *db;       /* NULL: not wanted */
    float keep;                /* 1: gradients of parameters are added to, 0: overwritten */
    double scale;              /* normaliser times loss scale */
};

struct blas_dense_loss blas_dense_loss_open(const struct blas_call *call);

static inline struct blas_loss_rule blas_dense_loss_rule(const struct seqlstm_dense_loss_desc *d)
{
    return (struct blas_loss_rule){d->kind, d->options, d->label_smoothing, d->delta, d->output};
}

/* By columns: is it the way for this descriptor, which variants has it, what does it need, and the passes. */
bool blas_columns_fit(const struct seqlstm_dense_loss_desc *d);
void blas_columns_supports(const struct seqlstm_dense_loss_desc *d, bool with_tiles, struct seqlstm_answer *answer);
void blas_columns_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out);
void blas_columns_forward(const struct blas_call *call);
void blas_columns_backward(const struct blas_call *call);

#endif

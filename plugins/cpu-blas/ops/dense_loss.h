/* SPDX-License-Identifier: Apache-2.0 */
/* The two implementations of DENSE_LOSS: by rows (dense_loss.c), and cross-entropy over many classes by columns
 * (dense_loss_columns.c). */
#ifndef BLAS_DENSE_LOSS_H
#define BLAS_DENSE_LOSS_H

#include "cpu-blas/ops/loss_rules.h"
#include "cpu-blas/share.h"

/* The slots of a call, under their mathematical names. */
struct blas_dense_loss {
    struct blas_loss_rule rule;
    int64_t rows, inputs, classes;
    const float *x, *w, *bias; /* bias NULL: none */
    float *dx, *dw, *db;       /* NULL: not wanted */
    float keep;                /* 1: add to the gradients of the parameters; 0: overwrite them */
    double scale;              /* normaliser times loss scale */
};

struct blas_dense_loss blas_dense_loss_open(const struct blas_call *call);

static inline struct blas_loss_rule blas_dense_loss_rule(const struct seqlstm_dense_loss_desc *d)
{
    return (struct blas_loss_rule){d->kind, d->options, d->label_smoothing, d->delta, d->output};
}

/* By columns: whether it fits this descriptor, which variants it has, what memory it needs, and the passes. */
bool blas_columns_fit(const struct seqlstm_dense_loss_desc *d);
void blas_columns_supports(const struct seqlstm_dense_loss_desc *d, bool with_tiles, struct seqlstm_answer *answer);
void blas_columns_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out);
void blas_columns_forward(const struct blas_call *call);
void blas_columns_backward(const struct blas_call *call);

#endif

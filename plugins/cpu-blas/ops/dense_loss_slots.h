/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of a call of DENSE_LOSS, under their mathematical names. */
#ifndef BLAS_DENSE_LOSS_SLOTS_H
#define BLAS_DENSE_LOSS_SLOTS_H

#include "cpu-blas/ops/loss_rules.h"
#include "cpu-blas/share.h"

struct blas_dense_loss {
    struct blas_loss_rule rule;
    int64_t rows, inputs, classes;
    const float *x, *w, *bias; /* bias NULL: none */
    float *dx, *dw, *db;       /* NULL: not wanted */
    float keep;                /* 1: add to the gradients of the parameters; 0: overwrite them */
    double scale;              /* normaliser times loss scale */
};

static inline struct blas_loss_rule blas_dense_loss_rule(const struct seqlstm_dense_loss_desc *d)
{
    return (struct blas_loss_rule){d->kind, d->options, d->label_smoothing, d->delta, d->output};
}

static inline struct blas_dense_loss blas_dense_loss_open(const struct blas_call *call)
{
    const struct seqlstm_dense_loss_desc *d = &call->op->desc.dense_loss;
    const bool bias = (d->dense_options & SEQLSTM_BIT_DENSE_USE_BIAS) != 0;
    struct blas_dense_loss l = {
        .rule = blas_dense_loss_rule(d),
        .rows = call->bind->rows,
        .inputs = d->input,
        .classes = d->output,
        .x = call->slots[SEQLSTM_SLOT_LOSS_X],
        .w = call->slots[SEQLSTM_SLOT_DENSE_LOSS_W],
        .bias = bias ? call->slots[SEQLSTM_SLOT_DENSE_LOSS_BIAS] : NULL,
    };
    if (call->grads == NULL)
        return l;
    l.dx = blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_LOSS_X) ? call->grads[SEQLSTM_SLOT_LOSS_X] : NULL;
    if ((call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS) != 0) {
        l.dw = call->grads[SEQLSTM_SLOT_DENSE_LOSS_W];
        l.db = bias ? call->grads[SEQLSTM_SLOT_DENSE_LOSS_BIAS] : NULL;
    }
    l.keep = (call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0 ? 1.0f : 0.0f;
    l.scale = (double)call->step->normaliser * (double)call->step->loss_scale;
    return l;
}

#endif

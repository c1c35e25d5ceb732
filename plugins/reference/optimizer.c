/* SPDX-License-Identifier: Apache-2.0 */
/* OPTIMIZER: one update of a flat vector of parameters, element by element. */
#include <math.h>

#include "reference.h"

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_optimizer_desc *d = &desc->optimizer;
    const int64_t n = extent->rows;
    const bool first = d->kind != SEQLSTM_KIND_OPTIMIZER_SGD;
    const bool second = d->kind == SEQLSTM_KIND_OPTIMIZER_ADAM || d->kind == SEQLSTM_KIND_OPTIMIZER_ADADELTA ||
                        (d->kind == SEQLSTM_KIND_OPTIMIZER_RMSPROP && d->momentum > 0);
    ref_slot_set(&slot[SEQLSTM_SLOT_OPTIMIZER_PARAM], REF_INOUT, n);
    ref_slot_set(&slot[SEQLSTM_SLOT_OPTIMIZER_GRAD], REF_CONST, n);
    ref_slot_set(&slot[SEQLSTM_SLOT_OPTIMIZER_STATE_1], REF_INOUT, first ? n : 0);
    ref_slot_set(&slot[SEQLSTM_SLOT_OPTIMIZER_STATE_2], REF_INOUT, second ? n : 0);
    ref_slot_set(&slot[SEQLSTM_SLOT_OPTIMIZER_STATE_3], REF_INOUT, d->options ? n : 0);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_OPTIMIZER_SUMS], REF_CONST, SEQLSTM_DTYPE_FLOAT64, 2);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_OPTIMIZER_SQUARES], REF_CONST, SEQLSTM_DTYPE_FLOAT64, 1);
    return SEQLSTM_SLOT_OPTIMIZER_COUNT;
}

/* The states of one parameter; NULL for those that a rule does not have. */
struct state {
    double *s1, *s2, *s3;
};

static double adam(const struct seqlstm_optimizer_desc *d, double lr, double t, double g, struct state s)
{
    const double b1 = (double)d->beta_1, b2 = (double)d->beta_2;
    double *m = s.s1, *v = s.s2;
    *m = b1 * *m + (1 - b1) * g;
    *v = b2 * *v + (1 - b2) * g * g;
    double w = *v;
    if (d->options & SEQLSTM_BIT_OPTIMIZER_AMSGRAD)
        w = *s.s3 = fmax(*s.s3, *v);
    return lr * (*m / (1 - pow(b1, t))) / (sqrt(w / (1 - pow(b2, t))) + (double)d->epsilon);
}

static double rmsprop(const struct seqlstm_optimizer_desc *d, double lr, double g, struct state s)
{
    const double rho = (double)d->rho;
    double *v = s.s1, *m = s.s2, *a = s.s3, spread;
    *v = rho * *v + (1 - rho) * g * g;
    spread = *v;
    if (d->options & SEQLSTM_BIT_OPTIMIZER_CENTERED) {
        *a = rho * *a + (1 - rho) * g;
        spread = fmax(*v - *a * *a, 0);
    }
    const double q = g / (sqrt(spread) + (double)d->epsilon);
    if (m == NULL)
        return lr * q;
    return *m = (double)d->momentum * *m + lr * q;
}

static double adadelta(const struct seqlstm_optimizer_desc *d, double lr, double g, struct state s)
{
    const double rho = (double)d->rho, epsilon = (double)d->epsilon;
    double *v = s.s1, *u = s.s2;
    *v = rho * *v + (1 - rho) * g * g;
    const double delta = sqrt(*u + epsilon) / sqrt(*v + epsilon) * g;
    *u = rho * *u + (1 - rho) * delta * delta;
    return lr * delta;
}

/* The amount to subtract from the parameter. */
static double update(const struct seqlstm_optimizer_desc *d, double lr, double t, double g, struct state s)
{
    const double mu = (double)d->momentum;
    switch (d->kind) {
    case SEQLSTM_KIND_OPTIMIZER_MOMENTUM:
        *s.s1 = mu * *s.s1 + g;
        return lr * *s.s1;
    case SEQLSTM_KIND_OPTIMIZER_NESTEROV:
        *s.s1 = mu * *s.s1 + g;
        return lr * (g + mu * *s.s1);
    case SEQLSTM_KIND_OPTIMIZER_ADAM:
        return adam(d, lr, t, g, s);
    case SEQLSTM_KIND_OPTIMIZER_RMSPROP:
        return rmsprop(d, lr, g, s);
    case SEQLSTM_KIND_OPTIMIZER_ADAGRAD:
        *s.s1 += g * g;
        return lr * g / (sqrt(*s.s1) + (double)d->epsilon);
    case SEQLSTM_KIND_OPTIMIZER_ADADELTA:
        return adadelta(d, lr, g, s);
    default: /* SEQLSTM_KIND_OPTIMIZER_SGD */
        return lr * g;
    }
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_optimizer_desc *d = &call->desc->optimizer;
    const struct seqlstm_step *step = call->step;
    const double *sums = call->values[SEQLSTM_SLOT_OPTIMIZER_SUMS],
                 *squares = call->values[SEQLSTM_SLOT_OPTIMIZER_SQUARES];
    if ((step->flags & SEQLSTM_BIT_STEP_SKIP) || !isfinite(sums[0]) || !isfinite(*squares))
        return SEQLSTM_OK;
    const double lr = (double)step->learning_rate, decay = (double)d->weight_decay, limit = (double)d->clip_norm;
    const double norm = (double)step->grad_scale * sqrt(*squares);
    const double scale = (double)step->grad_scale * (limit > 0 && norm > limit ? limit / norm : 1);
    const double *grad = call->values[SEQLSTM_SLOT_OPTIMIZER_GRAD];
    double *p = call->values[SEQLSTM_SLOT_OPTIMIZER_PARAM], *s1 = call->values[SEQLSTM_SLOT_OPTIMIZER_STATE_1];
    double *s2 = call->values[SEQLSTM_SLOT_OPTIMIZER_STATE_2], *s3 = call->values[SEQLSTM_SLOT_OPTIMIZER_STATE_3];
    for (int64_t k = 0; k < call->extent->rows; k++) {
        const struct state s = {s1 ? s1 + k : NULL, s2 ? s2 + k : NULL, s3 ? s3 + k : NULL};
        p[k] -= lr * decay * p[k];
        p[k] -= update(d, lr, (double)step->update, scale * grad[k], s);
    }
    return SEQLSTM_OK;
}

const struct ref_family ref_optimizer = {.slots = slots, .forward = forward};

/* SPDX-License-Identifier: Apache-2.0 */
/* Compares backward with central differences of forward, both in float64, for backends that have the extension
 * float64/0. The most important one is the reference.
 *
 *   L = sum over outputs of <upstream, output>     (losses: normaliser · loss_scale · SUMS[0])
 *
 *   dL/dv ≈ (L(v + h) - L(v - h)) / 2h */
#include <math.h>

#include "base/value/text.h"
#include "conformance/checks/checks.h"
#include "registry/plugin.h"

enum { ELEMENTS_PER_SLOT = 20 };

/* The errors of the method are h² / 6 times a third derivative of order 10, and the rounding 2^-53 / h. Both are
 * well below the tolerance. */
#define STEP      1e-5
#define TOLERANCE 2e-7

/* The value of L after a forward. */
static bool functional(struct sl_check *check, struct sl_runner *runner, double *out)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_data *d = check->data;
    uint32_t op = d->c.desc.head.op;
    bool is_loss = op == SEQLSTM_OP_LOSS || op == SEQLSTM_OP_DENSE_LOSS;
    if (!sl_check_status(check, sl_runner_forward(runner, &err), "forward", &err))
        return false;
    double sum = 0;
    for (int32_t k = 0; k < d->count; k++) {
        bool sums = is_loss && k == SEQLSTM_SLOT_LOSS_SUMS;
        if (!sums && (d->slots[k].role != SL_SLOT_OUTPUT || !d->upstream[k]))
            continue;
        double *values = SL_ARENA_ARRAY(check->arena, double, (size_t)d->elems[k]);
        if (!values || !sl_runner_read(runner, k, false, values)) {
            sl_check_fail(check, "the output %s could not be read", d->slots[k].name);
            return false;
        }
        if (sums)
            sum += (double)d->step.normaliser * (double)d->step.loss_scale * values[0];
        else
            for (int64_t i = 0; i < d->elems[k]; i++)
                sum += values[i] * d->upstream[k][i];
    }
    *out = sum;
    return true;
}

static double scale_of(const double *v, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += v[i] * v[i];
    return sqrt(squares / (double)n);
}

static void check_slot(struct sl_check *check, struct sl_runner *runner, int32_t k, const double *gradient)
{
    const struct sl_data *d = check->data;
    const struct sl_slot *slot = &d->slots[k];
    int64_t n = d->elems[k], stride = n > ELEMENTS_PER_SLOT ? n / ELEMENTS_PER_SLOT : 1;
    double scale = scale_of(gradient, n);
    for (int64_t i = 0; i < n && check->result->verdict == SL_VERDICT_PASS; i += stride) {
        double *v = &d->values[k][i], kept = *v, above, below;
        *v = kept + STEP;
        bool fine = functional(check, runner, &above);
        *v = kept - STEP;
        fine = fine && functional(check, runner, &below);
        *v = kept;
        if (!fine)
            return;
        double difference = (above - below) / (2 * STEP);
        double tolerance = TOLERANCE * (fabs(gradient[i]) + scale + fabs(above) * 1e-3 + 1e-3);
        double error = fabs(difference - gradient[i]);
        if (!(error / tolerance <= check->result->worst))
            check->result->worst = error / tolerance;
        if (!(error <= tolerance))
            sl_check_fail(check, "d%s[%lld, %lld] is %.12g, the difference quotient %.12g (error %.3g, tolerance %.3g)",
                          slot->name, (long long)(i / slot->features), (long long)(i % slot->features),
                          sl_text_unsign_nan(gradient[i]), sl_text_unsign_nan(difference), sl_text_unsign_nan(error),
                          tolerance);
    }
}

void sl_check_differences(struct sl_check *check)
{
    const uint32_t all = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES | SEQLSTM_BIT_BACKWARD_WEIGHTS;
    const struct sl_data *d = check->data;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_subject subject = check->bench->subject;
    struct sl_runner *runner = NULL;
    if (!subject.float64)
        subject.float64 = sl_plugin_get_extension(subject.table, subject.instance, SEQLSTM_FLOAT64_EXTENSION);
    if (!subject.float64 || !sl_op_has_backward(d->c.desc.head.op)) {
        check->result->verdict = SL_VERDICT_SKIP;
        sl_text_snprintf(check->result->detail, sizeof check->result->detail, "%s",
                         subject.float64 ? "the operation has no backward"
                                         : "the backend has no extension " SEQLSTM_FLOAT64_EXTENSION);
        return;
    }
    if (!sl_check_status(check, sl_runner_create(&subject, d, check->variant, NULL, &runner, &err),
                         "creating the operation", &err) ||
        !sl_check_status(check, sl_runner_forward(runner, &err), "forward", &err) ||
        !sl_check_status(check, sl_runner_backward(runner, all, false, &err), "backward", &err))
        goto out;
    double **gradients = SL_ARENA_ARRAY(check->arena, double *, (size_t)d->count);
    for (int32_t k = 0; gradients && k < d->count; k++) {
        enum sl_slot_role role = d->slots[k].role;
        if ((role != SL_SLOT_INPUT && role != SL_SLOT_PARAM) || !sl_slot_is_float(&d->slots[k]) ||
            (role == SL_SLOT_INPUT && d->c.no_input_grad))
            continue;
        gradients[k] = SL_ARENA_ARRAY(check->arena, double, (size_t)d->elems[k]);
        if (gradients[k] && !sl_runner_read(runner, k, true, gradients[k]))
            gradients[k] = NULL;
    }
    for (int32_t k = 0; gradients && k < d->count; k++)
        if (gradients[k])
            check_slot(check, runner, k, gradients[k]);
out:
    sl_runner_destroy(runner);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* DROPOUT: y = x * mask in training, y = x in inference. Backward draws the same mask again: it depends only on what
 * philox.h lists, such as the row's sequence and step. So nothing is kept. */
#include "reference.h"

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    ref_slot_set(&slot[SEQLSTM_SLOT_UNARY_X], REF_INPUT, extent->rows * desc->dropout.features);
    ref_slot_set(&slot[SEQLSTM_SLOT_UNARY_Y], REF_OUTPUT, extent->rows * desc->dropout.features);
    return SEQLSTM_SLOT_UNARY_COUNT;
}

/* to[row] = or += from[row] * mask, for one row, which belongs to sequence b and the absolute position `step`. */
static void mask_row(const struct ref_call *call, uint64_t key, int64_t row, int64_t b, uint32_t step,
                     const double *from, double *to, bool add)
{
    const struct seqlstm_dropout_desc *d = &call->desc->dropout;
    from += row * d->features;
    to += row * d->features;
    for (int64_t k = 0; k < d->features; k++) {
        const float m = seqlstm_mask(key, (uint64_t)k, step, call->bind->axis->sequence_id[b], d->rate);
        to[k] = from[k] * (double)m + (add ? to[k] : 0);
    }
}

static void mask_all(const struct ref_call *call, const double *from, double *to, bool add)
{
    const struct seqlstm_dropout_desc *d = &call->desc->dropout;
    const struct seqlstm_axis *axis = call->bind->axis;
    if (call->desc->head.mode == SEQLSTM_MODE_INFERENCE || d->rate == 0) {
        for (int64_t k = 0; k < call->extent->rows * d->features; k++)
            to[k] = from[k] + (add ? to[k] : 0);
        return;
    }
    const uint64_t key = seqlstm_mix64(call->step->seed, d->stream, call->step->epoch);
    if (call->bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES) {
        for (int64_t b = 0; b < call->extent->rows; b++)
            mask_row(call, key, b, b, 0, from, to, add);
        return;
    }
    const bool stream = axis->flags & SEQLSTM_BIT_AXIS_STREAM;
    int64_t row = 0;
    for (int64_t t = call->bind->t0; t < call->bind->t1; t++)
        for (int64_t b = 0; b < axis->batch_sizes[t]; b++, row++) {
            const uint32_t per_step = axis->position0[b] + (uint32_t)t;
            const uint32_t per_sequence = stream ? axis->position0[b] : 0;
            mask_row(call, key, row, b, d->mask == SEQLSTM_KIND_DROPOUT_STEP ? per_step : per_sequence, from, to, add);
        }
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    mask_all(call, call->values[SEQLSTM_SLOT_UNARY_X], call->values[SEQLSTM_SLOT_UNARY_Y], false);
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (call->grads[SEQLSTM_SLOT_UNARY_X] && call->grads[SEQLSTM_SLOT_UNARY_Y])
        mask_all(call, call->grads[SEQLSTM_SLOT_UNARY_Y], call->grads[SEQLSTM_SLOT_UNARY_X], true);
    return SEQLSTM_OK;
}

const struct ref_family ref_dropout = {.slots = slots, .forward = forward, .backward = backward};

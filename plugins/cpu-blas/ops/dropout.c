/* SPDX-License-Identifier: Apache-2.0 */
/* DROPOUT: masks by Philox, drawn again in backward instead of stored.
 *
 * A mask for a whole sequence is drawn once and applied to all of its rows. A row belongs to (t, b); the rows of
 * step t begin at row_offsets[t] - row_offsets[t0] of the call's range. */
#include <string.h>

#include <seqlstm/philox.h>

#include "cpu-blas/share.h"

struct masked {
    const float *in;
    float *out;
    uint64_t key;
};

/* For inference, or rate 0. */
static void copy_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct masked *m = context;
    const int64_t features = call->op->desc.dropout.features;
    memcpy(m->out + begin * features, m->in + begin * features, (size_t)((end - begin) * features) * sizeof *m->out);
}

/* Rows of the sequences axis. */
static void mask_sequences(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct masked *m = context;
    const struct seqlstm_dropout_desc *d = &call->op->desc.dropout;
    const struct seqlstm_axis *axis = call->bind->axis;
    for (int64_t r = begin; r < end; r++)
        call->math->mask_row(m->key, 0, axis->sequence_id[r], d->rate, d->features, m->in + r * d->features,
                             m->out + r * d->features);
}

/* The step that contains row `row` of the axis. */
static int64_t step_of_row(const struct seqlstm_axis *axis, int64_t row)
{
    int64_t low = 0, high = axis->steps;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (axis->row_offsets[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Rows of the steps axis, with a mask for each row. */
static void mask_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct masked *m = context;
    const struct seqlstm_dropout_desc *d = &call->op->desc.dropout;
    const struct seqlstm_axis *axis = call->bind->axis;
    const int64_t first = axis->row_offsets[call->bind->t0];
    int64_t t = step_of_row(axis, first + begin);
    for (int64_t r = begin; r < end; r++) {
        while (first + r >= axis->row_offsets[t + 1])
            t++;
        const int64_t b = first + r - axis->row_offsets[t];
        call->math->mask_row(m->key, axis->position0[b] + (uint32_t)t, axis->sequence_id[b], d->rate, d->features,
                             m->in + r * d->features, m->out + r * d->features);
    }
}

/* Sequences [begin, end): one mask for each, in the part's share of the workspace, applied to all its rows of the
 * range. */
static void mask_whole_sequences(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct masked *m = context;
    const struct seqlstm_dropout_desc *d = &call->op->desc.dropout;
    const struct seqlstm_axis *axis = call->bind->axis;
    const int64_t t0 = call->bind->t0, t1 = call->bind->t1, first = axis->row_offsets[t0];
    float *mask = (float *)call->workspace + (int64_t)part * d->features;
    for (int64_t b = begin; b < end; b++) {
        uint32_t step = (axis->flags & SEQLSTM_BIT_AXIS_STREAM) != 0 ? axis->position0[b] : 0;
        call->math->mask_row(m->key, step, axis->sequence_id[b], d->rate, d->features, NULL, mask);
        for (int64_t t = t0; t < t1 && b < axis->batch_sizes[t]; t++) {
            const int64_t at = (axis->row_offsets[t] - first + b) * d->features;
            call->math->multiply(d->features, m->in + at, mask, m->out + at);
        }
    }
}

static void sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    const struct seqlstm_dropout_desc *d = &op->desc.dropout;
    if (op->training && d->mask == SEQLSTM_KIND_DROPOUT_SEQUENCE)
        out->workspace_bytes = align_bytes((uint64_t)op->instance->members_max * (uint64_t)d->features * sizeof(float));
}

static void apply(const struct blas_call *call, const float *in, float *out)
{
    const struct seqlstm_dropout_desc *d = &call->op->desc.dropout;
    const struct seqlstm_bind *bind = call->bind;
    struct masked masked = {in, out, 0};
    struct blas_division rows = blas_divide(bind->rows, 1, blas_grain_rows(4 * d->features), call->members);
    if (!call->op->training || d->rate == 0.0f) {
        if (in != out)
            blas_share(call, &rows, copy_rows, &masked);
        return;
    }
    masked.key = seqlstm_mix64(call->step->seed, d->stream, call->step->epoch);
    if ((bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES) != 0) {
        blas_share(call, &rows, mask_sequences, &masked);
    } else if (d->mask == SEQLSTM_KIND_DROPOUT_STEP) {
        blas_share(call, &rows, mask_rows, &masked);
    } else {
        int64_t alive = bind->t0 < bind->t1 ? bind->axis->batch_sizes[bind->t0] : 0;
        int64_t each = alive > 0 ? bind->rows / alive * d->features : 1;
        struct blas_division sequences = blas_divide(alive, 1, blas_grain_rows(each > 0 ? each : 1), call->members);
        blas_share(call, &sequences, mask_whole_sequences, &masked);
    }
}

static seqlstm_status forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    apply(call, call->slots[SEQLSTM_SLOT_UNARY_X], call->slots[SEQLSTM_SLOT_UNARY_Y]);
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (!blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_UNARY_X))
        return SEQLSTM_OK;
    float *dx = call->grads[SEQLSTM_SLOT_UNARY_X];
    if (call->grads[SEQLSTM_SLOT_UNARY_Y] == NULL)
        memset(dx, 0, (size_t)(call->bind->rows * call->op->desc.dropout.features) * sizeof *dx);
    else
        apply(call, call->grads[SEQLSTM_SLOT_UNARY_Y], dx);
    return SEQLSTM_OK;
}

const struct blas_operation blas_dropout = {
    .slots = SEQLSTM_SLOT_UNARY_COUNT,
    .sizes = sizes,
    .forward = forward,
    .backward = backward,
};

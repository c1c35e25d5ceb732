/* SPDX-License-Identifier: Apache-2.0 */
/* EMBEDDING: rows of a table by id; a negative id gives zeros and no gradient. */
#include <string.h>

#include "reference.h"

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_embedding_desc *d = &desc->embedding;
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_EMBEDDING_IDS], REF_CONST, SEQLSTM_DTYPE_INT32, extent->rows);
    ref_slot_set(&slot[SEQLSTM_SLOT_EMBEDDING_Y], REF_OUTPUT, extent->rows * d->features);
    ref_slot_set(&slot[SEQLSTM_SLOT_EMBEDDING_W], REF_PARAM, d->vocabulary * d->features);
    return SEQLSTM_SLOT_EMBEDDING_COUNT;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_embedding_desc *d = &call->desc->embedding;
    const int32_t *ids = call->values[SEQLSTM_SLOT_EMBEDDING_IDS];
    const double *w = call->values[SEQLSTM_SLOT_EMBEDDING_W];
    double *y = call->values[SEQLSTM_SLOT_EMBEDDING_Y];
    for (int64_t r = 0; r < call->extent->rows; r++) {
        if (ids[r] >= d->vocabulary)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "id %d of row %lld, but the table has %lld rows", ids[r],
                         (long long)r, (long long)d->vocabulary);
        if (ids[r] < 0)
            memset(y + r * d->features, 0, (size_t)d->features * sizeof *y);
        else
            memcpy(y + r * d->features, w + ids[r] * d->features, (size_t)d->features * sizeof *y);
    }
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_embedding_desc *d = &call->desc->embedding;
    const int32_t *ids = call->values[SEQLSTM_SLOT_EMBEDDING_IDS];
    const double *dy = call->grads[SEQLSTM_SLOT_EMBEDDING_Y];
    double *dw = call->grads[SEQLSTM_SLOT_EMBEDDING_W];
    for (int64_t r = 0; dw && dy && r < call->extent->rows; r++)
        if (ids[r] >= 0)
            ref_axpy(d->features, 1, dy + r * d->features, dw + ids[r] * d->features);
    return SEQLSTM_OK;
}

const struct ref_family ref_embedding = {.slots = slots, .forward = forward, .backward = backward};

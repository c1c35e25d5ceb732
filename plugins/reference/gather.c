/* SPDX-License-Identifier: Apache-2.0 */
/* GATHER y[i] = x[index[i]] and SCATTER y[index[i]] = x[i]. Each is the transpose of the other. */
#include <string.h>

#include "reference.h"

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const int64_t n = desc->gather.features;
    ref_slot_set(&slot[SEQLSTM_SLOT_GATHER_X], REF_INPUT, extent->rows_in * n);
    ref_slot_set(&slot[SEQLSTM_SLOT_GATHER_Y], REF_OUTPUT, extent->rows * n);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_GATHER_INDEX], REF_CONST, SEQLSTM_DTYPE_INT32,
                       desc->head.op == SEQLSTM_OP_GATHER ? extent->rows : extent->rows_in);
    return SEQLSTM_SLOT_GATHER_COUNT;
}

/* With `pull`: to[i] += from[index[i]] for i < count, where from has `limit` rows. Otherwise: to[index[i]] +=
 * from[i]. */
static seqlstm_status add_rows(const struct ref_call *call, const double *from, double *to, int64_t count,
                               int64_t limit, bool pull, struct seqlstm_error *err)
{
    const int32_t *index = call->values[SEQLSTM_SLOT_GATHER_INDEX];
    const int64_t n = call->desc->gather.features;
    for (int64_t i = 0; i < count; i++) {
        if (index[i] >= limit)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "index %d at %lld, but there are %lld rows", index[i],
                         (long long)i, (long long)limit);
        if (index[i] >= 0)
            ref_axpy(n, 1, from + (pull ? index[i] : i) * n, to + (pull ? i : index[i]) * n);
    }
    return SEQLSTM_OK;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct ref_extent *e = call->extent;
    const bool gather = call->desc->head.op == SEQLSTM_OP_GATHER;
    double *y = call->values[SEQLSTM_SLOT_GATHER_Y];
    memset(y, 0, (size_t)(e->rows * call->desc->gather.features) * sizeof *y);
    return add_rows(call, call->values[SEQLSTM_SLOT_GATHER_X], y, gather ? e->rows : e->rows_in,
                    gather ? e->rows_in : e->rows, gather, err);
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct ref_extent *e = call->extent;
    const bool gather = call->desc->head.op == SEQLSTM_OP_GATHER;
    const double *dy = call->grads[SEQLSTM_SLOT_GATHER_Y];
    double *dx = call->grads[SEQLSTM_SLOT_GATHER_X];
    if (dx == NULL || dy == NULL)
        return SEQLSTM_OK;
    return add_rows(call, dy, dx, gather ? e->rows : e->rows_in, gather ? e->rows_in : e->rows, !gather, err);
}

const struct ref_family ref_gather = {.slots = slots, .forward = forward, .backward = backward};
const struct ref_family ref_scatter = {.slots = slots, .forward = forward, .backward = backward};

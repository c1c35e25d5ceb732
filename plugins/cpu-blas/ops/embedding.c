/* SPDX-License-Identifier: Apache-2.0 */
/* EMBEDDING: rows of a table by id.
 *
 * Backward divides the features, not the rows: each part adds its columns of all rows in their order. So ids may
 * repeat, and the sum is the same for any number of members. If the gradient need not be cleared, only the rows of
 * the table that are used are touched. */
#include <string.h>

#include "cpu-blas/share.h"

static void copy_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const int64_t features = call->op->desc.embedding.features;
    const int32_t *ids = call->slots[SEQLSTM_SLOT_EMBEDDING_IDS];
    const float *table = call->slots[SEQLSTM_SLOT_EMBEDDING_W];
    float *y = call->slots[SEQLSTM_SLOT_EMBEDDING_Y];
    for (int64_t r = begin; r < end; r++) {
        if (ids[r] >= 0)
            memcpy(y + r * features, table + ids[r] * features, (size_t)features * sizeof *y);
        else
            memset(y + r * features, 0, (size_t)features * sizeof *y);
    }
}

static seqlstm_status forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct blas_division rows =
        blas_divide(call->bind->rows, 1, blas_grain_rows(call->op->desc.embedding.features), call->members);
    blas_share(call, &rows, copy_rows, NULL);
    return SEQLSTM_OK;
}

static void clear_table(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    float *dw = call->grads[SEQLSTM_SLOT_EMBEDDING_W];
    memset(dw + begin, 0, (size_t)(end - begin) * sizeof *dw);
}

static void add_columns(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const int64_t features = call->op->desc.embedding.features;
    const int32_t *ids = call->slots[SEQLSTM_SLOT_EMBEDDING_IDS];
    const float *dy = call->grads[SEQLSTM_SLOT_EMBEDDING_Y];
    float *dw = call->grads[SEQLSTM_SLOT_EMBEDDING_W];
    for (int64_t r = 0; r < call->bind->rows; r++)
        if (ids[r] >= 0)
            call->math->add(end - begin, dy + r * features + begin, dw + ids[r] * features + begin);
}

static seqlstm_status backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_embedding_desc *d = &call->op->desc.embedding;
    if (!blas_wants(call, SEQLSTM_BIT_BACKWARD_WEIGHTS, SEQLSTM_SLOT_EMBEDDING_W))
        return SEQLSTM_OK;
    if ((call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) == 0) {
        struct blas_division all = blas_divide(d->vocabulary * d->features, 1024, 65536, call->members);
        blas_share(call, &all, clear_table, NULL);
    }
    if (call->grads[SEQLSTM_SLOT_EMBEDDING_Y] == NULL)
        return SEQLSTM_OK;
    int64_t grain = BLAS_GRAIN_ELEMS / (call->bind->rows > 0 ? call->bind->rows : 1);
    struct blas_division columns = blas_divide(d->features, 16, grain < 16 ? 16 : grain, call->members);
    blas_share(call, &columns, add_columns, NULL);
    return SEQLSTM_OK;
}

const struct blas_operation blas_embedding = {
    .slots = SEQLSTM_SLOT_EMBEDDING_COUNT,
    .forward = forward,
    .backward = backward,
};

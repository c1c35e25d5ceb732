/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that move rows: POOL, MERGE, GATHER, SCATTER. */
#include <string.h>

#include "cpu-blas/share.h"

static void copy_row(float *y, const float *x, int64_t n)
{
    memcpy(y, x, (size_t)n * sizeof *y);
}

static void clear_row(float *y, int64_t n)
{
    memset(y, 0, (size_t)n * sizeof *y);
}

/* ---- pool: parts are ranges of sequences; their rows of one step are contiguous ---------------- */

/* Elements of the rows of step t of sequences [begin, end). */
static int64_t alive_elems(const struct seqlstm_axis *axis, int64_t t, int64_t begin, int64_t end, int64_t n)
{
    const int64_t alive = axis->batch_sizes[t] < end ? axis->batch_sizes[t] : end;
    return alive > begin ? (alive - begin) * n : 0;
}

static void pool_sequences(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_pool_desc *d = &call->op->desc.pool;
    const struct seqlstm_axis *axis = call->bind->axis;
    const int64_t n = d->features;
    const float *x = call->slots[SEQLSTM_SLOT_UNARY_X];
    float *y = (float *)call->slots[SEQLSTM_SLOT_UNARY_Y] + begin * n;
    if (d->kind == SEQLSTM_KIND_POOL_LAST) {
        for (int64_t b = begin; b < end; b++)
            copy_row(y + (b - begin) * n, x + (axis->row_offsets[axis->lengths[b] - 1] + b) * n, n);
        return;
    }
    copy_row(y, x + begin * n, (end - begin) * n);
    if (d->kind == SEQLSTM_KIND_POOL_FIRST)
        return;
    for (int64_t t = 1; t < axis->steps; t++) {
        const int64_t count = alive_elems(axis, t, begin, end, n);
        const float *row = x + (axis->row_offsets[t] + begin) * n;
        if (count == 0)
            break;
        if (d->kind == SEQLSTM_KIND_POOL_MAX)
            call->math->maximum(count, row, y);
        else
            call->math->add(count, row, y);
    }
    if (d->kind == SEQLSTM_KIND_POOL_MEAN)
        for (int64_t b = begin; b < end; b++)
            call->math->vector(SEQLSTM_KIND_VECTOR_SCALE, 1.0f / (float)axis->lengths[b], n, NULL, y + (b - begin) * n);
}

/* The first step with the largest value gets the gradient, or the first with NaN; `dx` was cleared. */
static void pool_max_grads(const struct blas_call *call, int64_t begin, int64_t end)
{
    const struct seqlstm_axis *axis = call->bind->axis;
    const int64_t n = call->op->desc.pool.features;
    const float *x = call->slots[SEQLSTM_SLOT_UNARY_X], *y = call->slots[SEQLSTM_SLOT_UNARY_Y];
    const float *dy = call->grads[SEQLSTM_SLOT_UNARY_Y];
    float *dx = call->grads[SEQLSTM_SLOT_UNARY_X];
    for (int64_t b = begin; b < end; b++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t t = 0; t < axis->lengths[b]; t++) {
                const int64_t at = (axis->row_offsets[t] + b) * n + j;
                if (x[at] == y[b * n + j] || x[at] != x[at]) {
                    dx[at] = dy[b * n + j];
                    break;
                }
            }
}

static void pool_grads(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_pool_desc *d = &call->op->desc.pool;
    const struct seqlstm_axis *axis = call->bind->axis;
    const int64_t n = d->features;
    const float *dy = call->grads[SEQLSTM_SLOT_UNARY_Y];
    float *dx = call->grads[SEQLSTM_SLOT_UNARY_X];
    for (int64_t t = 0; t < axis->steps && alive_elems(axis, t, begin, end, n) > 0; t++) {
        const int64_t count = alive_elems(axis, t, begin, end, n) / n;
        for (int64_t b = begin; b < begin + count; b++) {
            float *row = dx + (axis->row_offsets[t] + b) * n;
            const bool copied = dy != NULL && (d->kind == SEQLSTM_KIND_POOL_MEAN || d->kind == SEQLSTM_KIND_POOL_SUM ||
                                               (d->kind == SEQLSTM_KIND_POOL_FIRST && t == 0) ||
                                               (d->kind == SEQLSTM_KIND_POOL_LAST && t == axis->lengths[b] - 1));
            if (!copied) {
                clear_row(row, n);
                continue;
            }
            copy_row(row, dy + b * n, n);
            if (d->kind == SEQLSTM_KIND_POOL_MEAN)
                call->math->vector(SEQLSTM_KIND_VECTOR_SCALE, 1.0f / (float)axis->lengths[b], n, NULL, row);
        }
    }
    if (d->kind == SEQLSTM_KIND_POOL_MAX && dy != NULL)
        pool_max_grads(call, begin, end);
}

static struct blas_division divide_sequences(const struct blas_call *call)
{
    const struct seqlstm_axis *axis = call->bind->axis;
    const int64_t each = axis->rows / axis->sequences * call->op->desc.pool.features;
    return blas_divide(axis->sequences, 1, blas_grain_rows(each > 0 ? each : 1), call->members);
}

static seqlstm_status pool_forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct blas_division sequences = divide_sequences(call);
    blas_share(call, &sequences, pool_sequences, NULL);
    return SEQLSTM_OK;
}

static seqlstm_status pool_backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (!blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_UNARY_X))
        return SEQLSTM_OK;
    struct blas_division sequences = divide_sequences(call);
    blas_share(call, &sequences, pool_grads, NULL);
    return SEQLSTM_OK;
}

const struct blas_operation blas_pool = {
    .slots = SEQLSTM_SLOT_UNARY_COUNT,
    .forward = pool_forward,
    .backward = pool_backward,
};

/* ---- merge ------------------------------------------------------------------------------------ */

static int64_t merged_width(const struct seqlstm_merge_desc *d)
{
    int64_t width = d->widths[0];
    for (uint32_t k = 1; d->kind == SEQLSTM_KIND_MERGE_CONCAT && k < d->inputs; k++)
        width += d->widths[k];
    return width;
}

static void merge_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_merge_desc *d = &call->op->desc.merge;
    const int64_t width = merged_width(d), at = begin * width, count = (end - begin) * width;
    float *y = call->slots[SEQLSTM_SLOT_MERGE_Y];
    int64_t offset = 0;
    for (uint32_t k = 0; k < d->inputs; k++) {
        const float *x = call->slots[SEQLSTM_SLOT_MERGE_X + k];
        if (d->kind == SEQLSTM_KIND_MERGE_CONCAT) {
            for (int64_t r = begin; r < end; r++)
                copy_row(y + r * width + offset, x + r * d->widths[k], d->widths[k]);
            offset += d->widths[k];
        } else if (k == 0) {
            copy_row(y + at, x + at, count);
        } else if (d->kind == SEQLSTM_KIND_MERGE_MUL) {
            call->math->multiply(count, y + at, x + at, y + at);
        } else {
            call->math->add(count, x + at, y + at);
        }
    }
    if (d->kind == SEQLSTM_KIND_MERGE_AVE)
        call->math->vector(SEQLSTM_KIND_VECTOR_SCALE, 1.0f / (float)d->inputs, count, NULL, y + at);
}

/* dx_k = dy times all other inputs. */
static void merge_mul_grads(const struct blas_call *call, uint32_t k, int64_t begin, int64_t end)
{
    const struct seqlstm_merge_desc *d = &call->op->desc.merge;
    float *dx = call->grads[SEQLSTM_SLOT_MERGE_X + k];
    const float *dy = call->grads[SEQLSTM_SLOT_MERGE_Y];
    copy_row(dx + begin, dy + begin, end - begin);
    for (uint32_t other = 0; other < d->inputs; other++) {
        const float *x = call->slots[SEQLSTM_SLOT_MERGE_X + other];
        if (other != k)
            call->math->multiply(end - begin, dx + begin, x + begin, dx + begin);
    }
}

static void merge_grads(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_merge_desc *d = &call->op->desc.merge;
    const int64_t width = merged_width(d);
    const float *dy = call->grads[SEQLSTM_SLOT_MERGE_Y];
    int64_t offset = 0;
    for (uint32_t k = 0; k < d->inputs; k++) {
        const int64_t own = d->widths[k], at = begin * own, count = (end - begin) * own;
        float *dx = call->grads[SEQLSTM_SLOT_MERGE_X + k];
        if (dx != NULL && dy == NULL) {
            clear_row(dx + at, count);
        } else if (dx != NULL && d->kind == SEQLSTM_KIND_MERGE_CONCAT) {
            for (int64_t r = begin; r < end; r++)
                copy_row(dx + r * own, dy + r * width + offset, own);
        } else if (dx != NULL && d->kind == SEQLSTM_KIND_MERGE_MUL) {
            merge_mul_grads(call, k, at, at + count);
        } else if (dx != NULL) {
            copy_row(dx + at, dy + at, count);
            if (d->kind == SEQLSTM_KIND_MERGE_AVE)
                call->math->vector(SEQLSTM_KIND_VECTOR_SCALE, 1.0f / (float)d->inputs, count, NULL, dx + at);
        }
        offset += own;
    }
}

static seqlstm_status merge_forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct blas_division rows =
        blas_divide(call->bind->rows, 1, blas_grain_rows(merged_width(&call->op->desc.merge)), call->members);
    blas_share(call, &rows, merge_rows, NULL);
    return SEQLSTM_OK;
}

static seqlstm_status merge_backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if ((call->parts & SEQLSTM_BIT_BACKWARD_INPUTS) == 0)
        return SEQLSTM_OK;
    struct blas_division rows =
        blas_divide(call->bind->rows, 1, blas_grain_rows(merged_width(&call->op->desc.merge)), call->members);
    blas_share(call, &rows, merge_grads, NULL);
    return SEQLSTM_OK;
}

const struct blas_operation blas_merge = {
    .slots = SEQLSTM_SLOT_MERGE_COUNT,
    .forward = merge_forward,
    .backward = merge_backward,
};

/* ---- gather and scatter ------------------------------------------------------------------------- */

/* Rows of `to` are copied from the rows of `from` that the index names; an index below zero gives zeros. */
struct picking {
    const float *from;
    float *to;
    const int32_t *index;
    int64_t rows; /* rows of the index */
};

static void pick_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct picking *p = context;
    const int64_t n = call->op->desc.gather.features;
    for (int64_t r = begin; r < end; r++) {
        if (p->index[r] >= 0)
            copy_row(p->to + r * n, p->from + p->index[r] * n, n);
        else
            clear_row(p->to + r * n, n);
    }
}

static void clear_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct picking *p = context;
    const int64_t n = call->op->desc.gather.features;
    clear_row(p->to + begin * n, (end - begin) * n);
}

/* Adds columns [begin, end) of all rows, in their order, to the row that the index names. */
static void put_columns(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)part;
    const struct picking *p = context;
    const int64_t n = call->op->desc.gather.features;
    for (int64_t r = 0; r < p->rows; r++)
        if (p->index[r] >= 0)
            call->math->add(end - begin, p->from + r * n + begin, p->to + p->index[r] * n + begin);
}

static void pick(const struct blas_call *call, struct picking *picking)
{
    const int64_t n = call->op->desc.gather.features;
    struct blas_division rows = blas_divide(picking->rows, 1, blas_grain_rows(n), call->members);
    blas_share(call, &rows, pick_rows, picking);
}

static void put(const struct blas_call *call, struct picking *picking, int64_t rows_to)
{
    const int64_t n = call->op->desc.gather.features;
    struct blas_division rows = blas_divide(rows_to, 1, blas_grain_rows(n), call->members);
    blas_share(call, &rows, clear_rows, picking);
    if (picking->from == NULL || picking->rows == 0)
        return;
    const int64_t grain = BLAS_GRAIN_ELEMS / picking->rows;
    struct blas_division columns = blas_divide(n, 16, grain < 16 ? 16 : grain, call->members);
    blas_share(call, &columns, put_columns, picking);
}

static seqlstm_status gather_forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct picking picking = {call->slots[SEQLSTM_SLOT_GATHER_X], call->slots[SEQLSTM_SLOT_GATHER_Y],
                              call->slots[SEQLSTM_SLOT_GATHER_INDEX], call->bind->rows};
    pick(call, &picking);
    return SEQLSTM_OK;
}

static seqlstm_status gather_backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (!blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_GATHER_X))
        return SEQLSTM_OK;
    struct picking picking = {call->grads[SEQLSTM_SLOT_GATHER_Y], call->grads[SEQLSTM_SLOT_GATHER_X],
                              call->slots[SEQLSTM_SLOT_GATHER_INDEX], call->bind->rows};
    put(call, &picking, call->bind->rows_in);
    return SEQLSTM_OK;
}

static seqlstm_status scatter_forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct picking picking = {call->slots[SEQLSTM_SLOT_GATHER_X], call->slots[SEQLSTM_SLOT_GATHER_Y],
                              call->slots[SEQLSTM_SLOT_GATHER_INDEX], call->bind->rows_in};
    put(call, &picking, call->bind->rows);
    return SEQLSTM_OK;
}

static seqlstm_status scatter_backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    if (!blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_GATHER_X))
        return SEQLSTM_OK;
    struct picking picking = {call->grads[SEQLSTM_SLOT_GATHER_Y], call->grads[SEQLSTM_SLOT_GATHER_X],
                              call->slots[SEQLSTM_SLOT_GATHER_INDEX], call->bind->rows_in};
    if (picking.from == NULL)
        memset(picking.to, 0, (size_t)(picking.rows * call->op->desc.gather.features) * sizeof(float));
    else
        pick(call, &picking);
    return SEQLSTM_OK;
}

const struct blas_operation blas_gather = {
    .slots = SEQLSTM_SLOT_GATHER_COUNT,
    .forward = gather_forward,
    .backward = gather_backward,
};

const struct blas_operation blas_scatter = {
    .slots = SEQLSTM_SLOT_GATHER_COUNT,
    .forward = scatter_forward,
    .backward = scatter_backward,
};

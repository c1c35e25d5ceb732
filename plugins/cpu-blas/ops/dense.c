/* SPDX-License-Identifier: Apache-2.0 */
/* DENSE: y = act(x W' + b). Bias and activation are applied while a block of the product is in the cache.
 *
 * Parts are blocks of rows or, if there are too few rows, blocks of output columns. The reserve holds x W' + b for
 * those activations whose derivative needs it. The workspace of backward holds its gradient. */
#include <string.h>

#include "cpu-blas/multiply.h"
#include "cpu-blas/ops/dense_packed.h"
#include "cpu-blas/share.h"

static void supports(const union seqlstm_any_desc *desc, bool tiles, struct seqlstm_answer *answer)
{
    answer_yes(answer, (const char *const[]){"default", blas_multiply_tiles(&desc->head, tiles), NULL});
}

static bool keeps_sums(const struct seqlstm_op *op)
{
    return op->training && !blas_act_from_output(op->desc.dense.activation.kind);
}

static void sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    const struct seqlstm_dense_desc *d = &op->desc.dense;
    uint64_t matrix = align_bytes((uint64_t)d->head.max_rows * (uint64_t)d->output * sizeof(float));
    if (keeps_sums(op))
        out->reserve_bytes = matrix;
    if (op->training && d->activation.kind != SEQLSTM_ACT_NONE)
        out->workspace_bytes = matrix;
    out->packed_bytes = blas_dense_packed_bytes(op);
}

static void pack(const struct seqlstm_op *op, void *const *slots, void *packed)
{
    if (blas_dense_packed_bytes(op) > 0)
        blas_dense_pack(op, slots[SEQLSTM_SLOT_DENSE_W], packed);
}

static bool is_softmax(uint32_t kind)
{
    return kind == SEQLSTM_ACT_SOFTMAX || kind == SEQLSTM_ACT_LOG_SOFTMAX;
}

enum { UNIT = 16 }; /* columns: a line of the cache */

/* Multiply-adds up to which the plugin's own products are as fast as OpenBLAS's. */
enum { STREAM_PRODUCTS = 1000000 };

/* Is it a small product for the next step of streams? It must not wait for other threads: OpenBLAS takes a lock. */
static bool is_stream_step(const struct blas_call *call, int64_t rows, int64_t width)
{
    const struct seqlstm_axis *axis = call->bind->axis;
    return axis && (axis->flags & SEQLSTM_BIT_AXIS_STREAM) && call->op->desc.head.mode != SEQLSTM_MODE_TRAINING &&
           call->op->tiled.kernels == NULL && rows * width * call->op->desc.dense.input <= STREAM_PRODUCTS;
}

/* x W' + b, or x W' if the bias is to be added afterwards. */
static void multiply_block(const struct blas_call *call, int32_t part, const float **bias, int64_t r0, int64_t r1,
                           int64_t c0, int64_t c1)
{
    const int64_t in = call->op->desc.dense.input, out = call->op->desc.dense.output, width = c1 - c0;
    const float *x = (const float *)call->slots[SEQLSTM_SLOT_DENSE_X] + r0 * in;
    const float *w = (const float *)call->slots[SEQLSTM_SLOT_DENSE_W] + c0 * in;
    float *y = (float *)call->slots[SEQLSTM_SLOT_DENSE_Y] + r0 * out + c0;
    if (blas_dense_packed_bytes(call->op) > 0) {
        blas_dense_packed_block(call, *bias, r0, r1, c0, c1);
        *bias = NULL;
    } else if (is_stream_step(call, r1 - r0, width))
        call->math->product_dots(r1 - r0, width, in, x, in, w, in, false, y, out);
    else
        blas_multiply(call, part, false, true, r1 - r0, width, in, x, in, w, in, 0.0f, y, out);
}

/* Rows [r0, r1), columns [c0, c1). With softmax: whole rows only. */
static void forward_block(const struct blas_call *call, int32_t part, int64_t r0, int64_t r1, int64_t c0, int64_t c1)
{
    const struct seqlstm_dense_desc *d = &call->op->desc.dense;
    const float *bias = (d->options & SEQLSTM_BIT_DENSE_USE_BIAS) != 0 ? call->slots[SEQLSTM_SLOT_DENSE_BIAS] : NULL;
    float *y = call->slots[SEQLSTM_SLOT_DENSE_Y];
    float *kept = keeps_sums(call->op) ? call->reserve : NULL;
    const int64_t out = d->output, width = c1 - c0;
    multiply_block(call, part, &bias, r0, r1, c0, c1);
    if (bias == NULL && d->activation.kind == SEQLSTM_ACT_NONE)
        return;
    for (int64_t r = r0; r < r1; r++) {
        float *row = y + r * out + c0;
        if (bias != NULL)
            call->math->add(width, bias + c0, row);
        if (kept != NULL)
            memcpy(kept + r * out + c0, row, (size_t)width * sizeof *row);
        if (!is_softmax(d->activation.kind))
            call->math->act_forward(&d->activation, width, row, row);
        else if (width == out)
            call->math->softmax(out, row, row, d->activation.kind == SEQLSTM_ACT_LOG_SOFTMAX);
    }
}

static void forward_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    forward_block(call, part, begin, end, 0, call->op->desc.dense.output);
}

static void forward_columns(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    forward_block(call, part, 0, call->bind->rows, begin, end);
}

static void softmax_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_dense_desc *d = &call->op->desc.dense;
    float *y = call->slots[SEQLSTM_SLOT_DENSE_Y];
    for (int64_t r = begin; r < end; r++)
        call->math->softmax(d->output, y + r * d->output, y + r * d->output,
                            d->activation.kind == SEQLSTM_ACT_LOG_SOFTMAX);
}

/* Divides the larger extent into blocks: `rows` in units of 8, or `columns` in units of `unit`. */
static bool divide_rows(int64_t rows, int64_t columns, int64_t unit, int64_t depth, int32_t members,
                        struct blas_division *out)
{
    int64_t grain_rows = BLAS_GRAIN_PRODUCTS / (columns * depth) + 1;
    int64_t grain_columns = BLAS_GRAIN_PRODUCTS / (rows * depth) + 1;
    struct blas_division by_rows = blas_divide(rows, 8, grain_rows > 8 ? grain_rows : 8, members);
    struct blas_division by_columns = blas_divide(columns, unit, grain_columns > unit ? grain_columns : unit, members);
    bool use_rows = by_rows.parts >= by_columns.parts;
    *out = use_rows ? by_rows : by_columns;
    return use_rows;
}

static seqlstm_status forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_dense_desc *d = &call->op->desc.dense;
    const int64_t rows = call->bind->rows;
    if (rows == 0)
        return SEQLSTM_OK;
    struct blas_division division;
    const int64_t unit = blas_dense_packed_bytes(call->op) > 0 ? BLAS_DENSE_PANEL : UNIT;
    if (divide_rows(rows, d->output, unit, d->input, call->members, &division)) {
        blas_share(call, &division, forward_rows, NULL);
        return SEQLSTM_OK;
    }
    blas_share(call, &division, forward_columns, NULL);
    if (is_softmax(d->activation.kind) && division.parts > 1) {
        struct blas_division all = blas_divide(rows, 1, blas_grain_rows(4 * d->output), call->members);
        blas_share(call, &all, softmax_rows, NULL);
    }
    return SEQLSTM_OK;
}

/* The gradient of x W' + b; this is dy itself if there is no activation. */
static const float *sum_grads(const struct blas_call *call)
{
    return call->op->desc.dense.activation.kind == SEQLSTM_ACT_NONE ? call->grads[SEQLSTM_SLOT_DENSE_Y]
                                                                    : call->workspace;
}

static void activation_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    const struct seqlstm_dense_desc *d = &call->op->desc.dense;
    const int64_t out = d->output, at = begin * out;
    const float *y = call->slots[SEQLSTM_SLOT_DENSE_Y], *dy = call->grads[SEQLSTM_SLOT_DENSE_Y];
    const float *kept = keeps_sums(call->op) ? call->reserve : NULL;
    float *dz = call->workspace;
    if (!is_softmax(d->activation.kind)) {
        call->math->act_backward(&d->activation, (end - begin) * out, kept != NULL ? kept + at : NULL, y + at, dy + at,
                                 dz + at);
        return;
    }
    for (int64_t r = begin; r < end; r++)
        call->math->softmax_backward(out, y + r * out, dy + r * out, dz + r * out,
                                     d->activation.kind == SEQLSTM_ACT_LOG_SOFTMAX);
}

static void input_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    const int64_t in = call->op->desc.dense.input, out = call->op->desc.dense.output;
    blas_multiply(call, part, false, false, end - begin, in, out, sum_grads(call) + begin * out, out,
                  call->slots[SEQLSTM_SLOT_DENSE_W], in, 0.0f, (float *)call->grads[SEQLSTM_SLOT_DENSE_X] + begin * in,
                  in);
}

static void input_columns(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    const int64_t in = call->op->desc.dense.input, out = call->op->desc.dense.output;
    blas_multiply(call, part, false, false, call->bind->rows, end - begin, out, sum_grads(call), out,
                  (const float *)call->slots[SEQLSTM_SLOT_DENSE_W] + begin, in, 0.0f,
                  (float *)call->grads[SEQLSTM_SLOT_DENSE_X] + begin, in);
}

/* Rows [begin, end) of W, which are outputs. */
static void weight_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    const int64_t in = call->op->desc.dense.input, out = call->op->desc.dense.output;
    const float keep = (call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0 ? 1.0f : 0.0f;
    blas_multiply(call, part, true, false, end - begin, in, call->bind->rows, sum_grads(call) + begin, out,
                  call->slots[SEQLSTM_SLOT_DENSE_X], in, keep, (float *)call->grads[SEQLSTM_SLOT_DENSE_W] + begin * in,
                  in);
}

static void weight_columns(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    const int64_t in = call->op->desc.dense.input, out = call->op->desc.dense.output;
    const float keep = (call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0 ? 1.0f : 0.0f;
    blas_multiply(call, part, true, false, out, end - begin, call->bind->rows, sum_grads(call), out,
                  (const float *)call->slots[SEQLSTM_SLOT_DENSE_X] + begin, in, keep,
                  (float *)call->grads[SEQLSTM_SLOT_DENSE_W] + begin, in);
}

static void bias_columns(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    (void)part;
    float *db = (float *)call->grads[SEQLSTM_SLOT_DENSE_BIAS] + begin;
    if ((call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) == 0)
        memset(db, 0, (size_t)(end - begin) * sizeof *db);
    call->math->column_sums(call->bind->rows, end - begin, call->op->desc.dense.output, sum_grads(call) + begin, db);
}

/* If there is no gradient of y, all other gradients are zero. */
static void clear_grads(const struct blas_call *call)
{
    const struct seqlstm_dense_desc *d = &call->op->desc.dense;
    if (blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_DENSE_X))
        memset(call->grads[SEQLSTM_SLOT_DENSE_X], 0, (size_t)(call->bind->rows * d->input) * sizeof(float));
    if ((call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0)
        return;
    if (blas_wants(call, SEQLSTM_BIT_BACKWARD_WEIGHTS, SEQLSTM_SLOT_DENSE_W))
        memset(call->grads[SEQLSTM_SLOT_DENSE_W], 0, (size_t)(d->output * d->input) * sizeof(float));
    if (blas_wants(call, SEQLSTM_BIT_BACKWARD_WEIGHTS, SEQLSTM_SLOT_DENSE_BIAS))
        memset(call->grads[SEQLSTM_SLOT_DENSE_BIAS], 0, (size_t)d->output * sizeof(float));
}

static seqlstm_status backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_dense_desc *d = &call->op->desc.dense;
    const int64_t rows = call->bind->rows;
    if (call->grads[SEQLSTM_SLOT_DENSE_Y] == NULL || rows == 0) {
        clear_grads(call);
        return SEQLSTM_OK;
    }
    struct blas_division division;
    if (d->activation.kind != SEQLSTM_ACT_NONE) {
        division = blas_divide(rows, 1, blas_grain_rows(4 * d->output), call->members);
        blas_share(call, &division, activation_rows, NULL);
    }
    if (blas_wants(call, SEQLSTM_BIT_BACKWARD_INPUTS, SEQLSTM_SLOT_DENSE_X)) {
        bool by_rows = divide_rows(rows, d->input, UNIT, d->output, call->members, &division);
        blas_share(call, &division, by_rows ? input_rows : input_columns, NULL);
    }
    if (blas_wants(call, SEQLSTM_BIT_BACKWARD_WEIGHTS, SEQLSTM_SLOT_DENSE_W)) {
        bool by_rows = divide_rows(d->output, d->input, UNIT, rows, call->members, &division);
        blas_share(call, &division, by_rows ? weight_rows : weight_columns, NULL);
    }
    if ((d->options & SEQLSTM_BIT_DENSE_USE_BIAS) != 0 &&
        blas_wants(call, SEQLSTM_BIT_BACKWARD_WEIGHTS, SEQLSTM_SLOT_DENSE_BIAS)) {
        int64_t grain = BLAS_GRAIN_ELEMS / rows;
        division = blas_divide(d->output, UNIT, grain < UNIT ? UNIT : grain, call->members);
        blas_share(call, &division, bias_columns, NULL);
    }
    return SEQLSTM_OK;
}

const struct blas_operation blas_dense = {
    .slots = SEQLSTM_SLOT_DENSE_COUNT,
    .supports = supports,
    .sizes = sizes,
    .forward = forward,
    .backward = backward,
    .pack = pack,
};

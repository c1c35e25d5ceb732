/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers and losses, alone and combined.
 *
 *   DENSE       reserve: z [rows, output], the sums before the activation (none without an activation)
 *   LOSS        workspace: float64 [CG_LOSS_BLOCKS, 2], sums of losses and weights; reserve: a total of each row
 *   DENSE_LOSS  workspace: these sums. Up to CG_KEEP_ELEMS logits, reserve: the gradients of the logits of all rows,
 *               which forward computes in the place of the logits, in the launch of the loss. With more of them,
 *               reserve: a total of each row; workspace: the logits of one chunk of rows (CG_CHUNK_ELEMS), which
 *               backward computes again. In inference, workspace: the logits of one chunk
 *   DENSE, DENSE_LOSS  workspace, at its end: parts of dW, where its depth is split (gemm.h)
 *   with operands in 16 bits: x [max_rows, input] and W, at the end of the reserve, in inference of the workspace; and
 *               at the end of the workspace dz [rows of a chunk, output] */
#include "cuda-generic/rows/flat.h"
#include "cuda-generic/ops/lt_product.h"
#include "cuda-generic/gemm/gemm.h"
#include "cuda-generic/ops/product.h"
#include "cuda-generic/rows/rows.h"

/* Elements of logits. Tests set it to get chunks of few rows. */
#ifndef CG_CHUNK_ELEMS
#define CG_CHUNK_ELEMS (16 * 1024 * 1024)
#endif

/* Up to so many logits of a batch are kept for backward. */
#ifndef CG_KEEP_ELEMS
#define CG_KEEP_ELEMS CG_CHUNK_ELEMS
#endif

static bool keeps_logits(const struct seqlstm_desc *head, int64_t output)
{
    return head->op == SEQLSTM_OP_DENSE_LOSS && head->mode == SEQLSTM_MODE_TRAINING &&
           head->max_rows <= CG_KEEP_ELEMS / output;
}

/* Rows per chunk of logits. */
static int64_t get_chunk(const struct seqlstm_desc *head, int64_t output)
{
    if (keeps_logits(head, output))
        return head->max_rows;
    const int64_t fits = CG_CHUNK_ELEMS / output;
    return fits < 1 ? 1 : fits < head->max_rows ? fits : head->max_rows;
}

/* ---- products ------------------------------------------------------------------------------------------------- */

#define PARTIALS_BYTES ((uint64_t)CG_LOSS_BLOCKS * 2 * sizeof(double))

/* Bytes of the workspace before the parts of dW. */
static uint64_t count_before_parts(const union seqlstm_any_desc *d)
{
    if (d->head.op == SEQLSTM_OP_DENSE)
        return d->dense.activation.kind == SEQLSTM_ACT_NONE
                   ? 0
                   : (uint64_t)(d->head.max_rows * d->dense.output) * sizeof(float);
    const int64_t output = d->dense_loss.output;
    const int64_t rows = keeps_logits(&d->head, output) ? 0 : get_chunk(&d->head, output);
    return PARTIALS_BYTES + (uint64_t)(rows * output) * sizeof(float);
}

/* Rows that one product over rows adds at most. */
static int64_t get_depth(const union seqlstm_any_desc *d)
{
    return d->head.op == SEQLSTM_OP_DENSE ? d->head.max_rows : get_chunk(&d->head, d->dense_loss.output);
}

static float *find_parts(const struct cg_call *call, int64_t output, int64_t input)
{
    return cg_gemm_count_room(output, input, get_depth(call->desc)) > 0
               ? (float *)(void *)(call->workspace + count_before_parts(call->desc))
               : NULL;
}

static uint64_t count_parts_bytes(const union seqlstm_any_desc *d, int64_t output, int64_t input)
{
    return d->head.mode == SEQLSTM_MODE_TRAINING
               ? (uint64_t)cg_gemm_count_room(output, input, get_depth(d)) * sizeof(float)
               : 0;
}

bool cg_dense_is_narrow(const union seqlstm_any_desc *d)
{
    const bool dense = d->head.op == SEQLSTM_OP_DENSE;
    const int64_t input = dense ? d->dense.input : d->dense_loss.input;
    const int64_t output = dense ? d->dense.output : d->dense_loss.output;
    return cg_product_is_narrow(d->head.dtype_compute, d->head.max_rows, input, output);
}

static uint64_t align_bytes(uint64_t bytes)
{
    return (bytes + SEQLSTM_ALIGNMENT - 1) / SEQLSTM_ALIGNMENT * SEQLSTM_ALIGNMENT;
}

/* Bytes of a matrix in 16 bits, so that what follows is aligned. */
static uint64_t count_narrow(int64_t rows, int64_t columns)
{
    return align_bytes((uint64_t)(rows * columns) * sizeof(uint16_t));
}

/* With a fused relu, y gives its slope as well as z would. */
static bool has_fused_relu(const struct seqlstm_op *op)
{
    return op->lt && op->desc.head.op == SEQLSTM_OP_DENSE && op->desc.dense.activation.kind == SEQLSTM_ACT_RELU;
}

/* Bytes of the reserve before operands in 16 bits. */
static uint64_t count_reserve(const struct seqlstm_op *op)
{
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    op->family->sizes(op, &sizes);
    return has_fused_relu(op) ? 0 : align_bytes(sizes.reserve_bytes);
}

/* The products of cuBLASLt for this number of rows; NULL: our own kernels compute them. */
static const struct cg_lt_layer *find_lt(const struct cg_call *call, int64_t rows)
{
    const bool first = rows == call->rows || call->binding->lt[1] == NULL ||
                       rows == get_chunk(&call->desc->head, call->desc->dense_loss.output);
    return call->op->lt ? call->binding->lt[first ? 0 : 1] : NULL;
}

/* Of all rows, or of the chunk that begins at `first`. `back`: forward has converted operands to 16 bits. */
static struct cg_product make_product(const struct cg_call *call, int64_t first, int64_t rows, bool back)
{
    const union seqlstm_any_desc *d = call->desc;
    const bool dense = d->head.op == SEQLSTM_OP_DENSE;
    struct cg_product p = {.lt = find_lt(call, rows),
                           .rows = rows,
                           .input = dense ? d->dense.input : d->dense_loss.input,
                           .output = dense ? d->dense.output : d->dense_loss.output};
    p.parts = find_parts(call, p.output, p.input);
    if (!call->op->narrow)
        return p;
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING;
    unsigned char *end = call->lt_workspace + CG_LT_WORKSPACE_BYTES;
    unsigned char *kept = training ? call->reserve + count_reserve(call->op) : end;
    p.x16 = (uint16_t *)(void *)kept + first * p.input;
    p.w16 = (uint16_t *)(void *)(kept + count_narrow(d->head.max_rows, p.input));
    p.dz16 = (uint16_t *)(void *)end;
    p.x_ready = back;
    p.w_ready = back || first > 0;
    return p;
}

/* ---- DENSE ---------------------------------------------------------------------------------------------------- */

static void dense_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    const struct seqlstm_dense_desc *d = &op->desc.dense;
    if (d->head.mode != SEQLSTM_MODE_TRAINING)
        return;
    sizes->reserve_bytes = count_before_parts(&op->desc);
    sizes->workspace_bytes = sizes->reserve_bytes /* dz */ + count_parts_bytes(&op->desc, d->output, d->input);
}

static seqlstm_status dense_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_dense_desc *d = &call->desc->dense;
    const bool keeps = call->reserve && d->activation.kind != SEQLSTM_ACT_NONE && !has_fused_relu(call->op);
    float *y = cg_slot(call, SEQLSTM_SLOT_DENSE_Y), *z = keeps ? (float *)(void *)call->reserve : y;
    const struct cg_product p = make_product(call, 0, call->rows, false);
    bool lt = false;
    SEQLSTM_TRY(cg_product_forward(call, &p, cg_slot(call, SEQLSTM_SLOT_DENSE_X), cg_slot(call, SEQLSTM_SLOT_DENSE_W),
                                   cg_slot(call, SEQLSTM_SLOT_DENSE_BIAS), z, &lt, err));
    if (d->activation.kind != SEQLSTM_ACT_NONE && !(lt && has_fused_relu(call->op)))
        CG_START(call, "dense", cg_activation_forward(call->stream, &d->activation, call->rows, d->output, z, y));
    return SEQLSTM_OK;
}

static seqlstm_status clear_params(const struct cg_call *call, float *dw, float *db, int64_t input, int64_t output,
                                   struct seqlstm_error *err)
{
    if (dw)
        SEQLSTM_TRY(cg_clear(call, dw, input * output, err));
    return db ? cg_clear(call, db, output, err) : SEQLSTM_OK;
}

static seqlstm_status dense_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_dense_desc *d = &call->desc->dense;
    const float *dy = cg_grad(call, SEQLSTM_SLOT_DENSE_Y, 0), *x = cg_slot(call, SEQLSTM_SLOT_DENSE_X);
    float *dx = cg_grad(call, SEQLSTM_SLOT_DENSE_X, SEQLSTM_BIT_BACKWARD_INPUTS);
    float *dw = cg_grad(call, SEQLSTM_SLOT_DENSE_W, SEQLSTM_BIT_BACKWARD_WEIGHTS);
    float *db = cg_grad(call, SEQLSTM_SLOT_DENSE_BIAS, SEQLSTM_BIT_BACKWARD_WEIGHTS);
    if (dy == NULL) {
        if (dx)
            SEQLSTM_TRY(cg_clear(call, dx, call->rows * d->input, err));
        return call->add ? SEQLSTM_OK : clear_params(call, dw, db, d->input, d->output, err);
    }
    if (d->activation.kind != SEQLSTM_ACT_NONE) {
        float *dz = (float *)(void *)call->workspace;
        const float *z =
            has_fused_relu(call->op) ? cg_slot(call, SEQLSTM_SLOT_DENSE_Y) : (const float *)(const void *)call->reserve;
        CG_START(call, "dense, backward",
                 cg_activation_backward(call->stream, &d->activation, call->rows, d->output, z, dy, dz));
        dy = dz;
    }
    const struct cg_product p = make_product(call, 0, call->rows, true);
    SEQLSTM_TRY(cg_product_convert_gradient(call, &p, dy, err));
    if (dx)
        SEQLSTM_TRY(cg_product_inputs(call, &p, dy, cg_slot(call, SEQLSTM_SLOT_DENSE_W), dx, false, err));
    return cg_product_weights(call, &p, dy, x, dw, db, call->add, err);
}

const struct cg_family cg_dense = {.sizes = dense_sizes, .forward = dense_forward, .backward = dense_backward};

/* ---- LOSS ----------------------------------------------------------------------------------------------------- */

/* The loss of the rows from `first` on. */
static struct cg_loss make_loss(const struct cg_call *call, uint32_t kind, int64_t classes, float smoothing,
                                float delta, int64_t first)
{
    const float *weight = cg_slot(call, SEQLSTM_SLOT_LOSS_ROW_WEIGHT);
    struct cg_loss l = {.kind = kind,
                        .classes = classes,
                        .label_smoothing = smoothing,
                        .delta = delta,
                        .weight = weight ? weight + first : NULL,
                        .class_weight = cg_slot(call, SEQLSTM_SLOT_LOSS_CLASS_WEIGHT)};
    if (kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY)
        l.target_class = (const int32_t *)call->slots[SEQLSTM_SLOT_LOSS_TARGET] + first;
    else
        l.target = cg_slot(call, SEQLSTM_SLOT_LOSS_TARGET) + first * classes;
    return l;
}

static void loss_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    sizes->workspace_bytes = PARTIALS_BYTES;
    if (op->desc.head.mode == SEQLSTM_MODE_TRAINING)
        sizes->reserve_bytes = (uint64_t)op->desc.head.max_rows * sizeof(float);
}

/* The totals of the rows from `first` on; NULL in inference. */
static float *get_totals(const struct cg_call *call, int64_t first)
{
    float *totals = (float *)(void *)call->reserve;
    return totals ? totals + first : NULL;
}

static seqlstm_status loss_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_loss_desc *d = &call->desc->loss;
    const struct cg_loss l = make_loss(call, d->kind, d->features, d->label_smoothing, d->delta, 0);
    CG_START(call, "loss",
             cg_loss_forward(call->stream, &l, call->rows, cg_slot(call, SEQLSTM_SLOT_LOSS_X),
                             cg_slot(call, SEQLSTM_SLOT_LOSS_ROW_LOSS), get_totals(call, 0),
                             (double *)(void *)call->workspace, call->binding->counter,
                             call->slots[SEQLSTM_SLOT_LOSS_SUMS]));
    return SEQLSTM_OK;
}

static seqlstm_status loss_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_loss_desc *d = &call->desc->loss;
    const struct cg_loss l = make_loss(call, d->kind, d->features, d->label_smoothing, d->delta, 0);
    float *dx = cg_grad(call, SEQLSTM_SLOT_LOSS_X, SEQLSTM_BIT_BACKWARD_INPUTS);
    if (dx)
        CG_START(call, "loss, backward",
                 cg_loss_backward(call->stream, &l, call->rows, &call->live, get_totals(call, 0),
                                  cg_slot(call, SEQLSTM_SLOT_LOSS_X), dx));
    return SEQLSTM_OK;
}

const struct cg_family cg_loss_family = {.sizes = loss_sizes, .forward = loss_forward, .backward = loss_backward};

/* ---- DENSE_LOSS ------------------------------------------------------------------------------------------------- */

static void dense_loss_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    const struct seqlstm_dense_loss_desc *d = &op->desc.dense_loss;
    const int64_t kept = keeps_logits(&op->desc.head, d->output) ? d->output : 1;
    sizes->workspace_bytes = count_before_parts(&op->desc) + count_parts_bytes(&op->desc, d->output, d->input);
    if (d->head.mode == SEQLSTM_MODE_TRAINING)
        sizes->reserve_bytes = (uint64_t)(d->head.max_rows * kept) * sizeof(float);
}

static float *get_logits(const struct cg_call *call)
{
    const struct seqlstm_dense_loss_desc *d = &call->desc->dense_loss;
    return (float *)(void *)(keeps_logits(&d->head, d->output) ? call->reserve : call->workspace + PARTIALS_BYTES);
}

static seqlstm_status make_logits(const struct cg_call *call, int64_t first, int64_t rows, bool back,
                                  struct seqlstm_error *err)
{
    const struct seqlstm_dense_loss_desc *d = &call->desc->dense_loss;
    const struct cg_product p = make_product(call, first, rows, back);
    bool lt;
    return cg_product_forward(call, &p, cg_slot(call, SEQLSTM_SLOT_LOSS_X) + first * d->input,
                              cg_slot(call, SEQLSTM_SLOT_DENSE_LOSS_W), cg_slot(call, SEQLSTM_SLOT_DENSE_LOSS_BIAS),
                              get_logits(call), &lt, err);
}

/* The loss of the rows from `first` on, whose logits are there; with their gradients if they are kept. */
static seqlstm_status find_loss(const struct cg_call *call, int64_t first, int64_t rows, struct seqlstm_error *err)
{
    const struct seqlstm_dense_loss_desc *d = &call->desc->dense_loss;
    const struct cg_loss l = make_loss(call, d->kind, d->output, d->label_smoothing, d->delta, first);
    float *logits = get_logits(call), *row_loss = cg_slot(call, SEQLSTM_SLOT_LOSS_ROW_LOSS);
    double *partials = (double *)(void *)call->workspace, *sums = call->slots[SEQLSTM_SLOT_LOSS_SUMS];
    unsigned *counter = call->binding->counter;
    row_loss = row_loss ? row_loss + first : NULL;
    if (keeps_logits(&d->head, d->output))
        CG_START(call, "dense and loss",
                 cg_loss_both(call->stream, &l, rows, &call->live, logits, row_loss, partials, counter, sums));
    else
        CG_START(call, "dense and loss",
                 cg_loss_forward(call->stream, &l, rows, logits, row_loss, get_totals(call, first), partials, counter,
                                 sums));
    return SEQLSTM_OK;
}

static seqlstm_status dense_loss_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_dense_loss_desc *d = &call->desc->dense_loss;
    const int64_t chunk = get_chunk(&d->head, d->output);
    for (int64_t first = 0; first < call->rows; first += chunk) {
        const int64_t rows = call->rows - first < chunk ? call->rows - first : chunk;
        SEQLSTM_TRY(make_logits(call, first, rows, false, err));
        SEQLSTM_TRY(find_loss(call, first, rows, err));
    }
    return SEQLSTM_OK;
}

/* The gradients of the logits of these rows, which take their places. */
static seqlstm_status make_gradients(const struct cg_call *call, int64_t first, int64_t rows, struct seqlstm_error *err)
{
    const struct seqlstm_dense_loss_desc *d = &call->desc->dense_loss;
    const struct cg_loss l = make_loss(call, d->kind, d->output, d->label_smoothing, d->delta, first);
    float *logits = get_logits(call);
    if (keeps_logits(&d->head, d->output))
        return SEQLSTM_OK; /* forward has made them */
    SEQLSTM_TRY(make_logits(call, first, rows, true, err));
    CG_START(call, "dense and loss, backward",
             cg_loss_backward(call->stream, &l, rows, &call->live, get_totals(call, first), logits, logits));
    return SEQLSTM_OK;
}

static seqlstm_status dense_loss_backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_dense_loss_desc *d = &call->desc->dense_loss;
    const int64_t chunk = get_chunk(&d->head, d->output);
    float *dx = cg_grad(call, SEQLSTM_SLOT_LOSS_X, SEQLSTM_BIT_BACKWARD_INPUTS);
    float *dw = cg_grad(call, SEQLSTM_SLOT_DENSE_LOSS_W, SEQLSTM_BIT_BACKWARD_WEIGHTS);
    float *db = cg_grad(call, SEQLSTM_SLOT_DENSE_LOSS_BIAS, SEQLSTM_BIT_BACKWARD_WEIGHTS);
    for (int64_t first = 0; first < call->rows; first += chunk) {
        const int64_t rows = call->rows - first < chunk ? call->rows - first : chunk;
        const bool add = call->add || first > 0;
        float *logits = get_logits(call);
        SEQLSTM_TRY(make_gradients(call, first, rows, err));
        const struct cg_product p = make_product(call, first, rows, true);
        SEQLSTM_TRY(cg_product_convert_gradient(call, &p, logits, err));
        if (dx)
            SEQLSTM_TRY(cg_product_inputs(call, &p, logits, cg_slot(call, SEQLSTM_SLOT_DENSE_LOSS_W),
                                          dx + first * d->input, false, err));
        SEQLSTM_TRY(cg_product_weights(call, &p, logits, cg_slot(call, SEQLSTM_SLOT_LOSS_X) + first * d->input, dw, db,
                                       add, err));
    }
    return SEQLSTM_OK;
}

const struct cg_family cg_dense_loss = {
    .sizes = dense_loss_sizes, .forward = dense_loss_forward, .backward = dense_loss_backward};

/* ---- with cuBLASLt ---------------------------------------------------------------------------------------------- */

void cg_dense_lt_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    const union seqlstm_any_desc *d = &op->desc;
    const bool dense = d->head.op == SEQLSTM_OP_DENSE;
    const int64_t input = dense ? d->dense.input : d->dense_loss.input;
    const int64_t output = dense ? d->dense.output : d->dense_loss.output;
    if (has_fused_relu(op))
        sizes->reserve_bytes = 0;
    if (!op->narrow)
        return;
    const uint64_t operands = count_narrow(d->head.max_rows, input) + count_narrow(output, input);
    if (d->head.mode != SEQLSTM_MODE_TRAINING) {
        sizes->workspace_bytes += operands;
        return;
    }
    sizes->reserve_bytes = count_reserve(op) + operands;
    sizes->workspace_bytes += count_narrow(get_depth(d), output);
}

/* A dense layer is one chunk. A loss is computed in full chunks, then one of the remaining rows. */
seqlstm_status cg_dense_lt_open(struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    const union seqlstm_any_desc *d = &op->desc;
    const bool dense = d->head.op == SEQLSTM_OP_DENSE, training = d->head.mode == SEQLSTM_MODE_TRAINING;
    const int64_t rows = binding->bind.rows;
    struct cg_lt_shape shape = {.rows = rows,
                                .compute = d->head.dtype_compute,
                                .narrow = op->narrow,
                                .forward = true,
                                .inputs = training,
                                .weights = training,
                                .input = dense ? d->dense.input : d->dense_loss.input,
                                .output = dense ? d->dense.output : d->dense_loss.output,
                                .bias = (dense ? d->dense.options : d->dense_loss.dense_options) &
                                        SEQLSTM_BIT_DENSE_USE_BIAS,
                                .relu = has_fused_relu(op)};
    shape.sums = shape.bias;
    const int64_t chunk = dense ? rows : get_chunk(&d->head, d->dense_loss.output);
    shape.rows = rows < chunk ? rows : chunk;
    if (shape.rows > 0)
        SEQLSTM_TRY(cg_lt_layer_create(op, &shape, &binding->lt[0], err));
    shape.rows = chunk > 0 ? rows % chunk : 0;
    return rows > chunk && shape.rows > 0 ? cg_lt_layer_create(op, &shape, &binding->lt[1], err) : SEQLSTM_OK;
}

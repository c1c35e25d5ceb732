/* SPDX-License-Identifier: Apache-2.0 */
/* See dense_packed.h. */
#include "cpu-blas/ops/dense_packed.h"

#include "cpu-blas/recurrent/kernels/kernels.h"

/* PACK_ELEMENTS: of W, from which packing pays. BLOCK_FLOATS: of the rows of x that meet one panel after the other;
 * they stay in the second-level cache. ROWS_LEAST: of such a block, so that a panel is read for many rows. */
enum { PACK_ELEMENTS = 16384, BLOCK_FLOATS = 65536, ROWS_LEAST = 66 };

static int64_t round_up(int64_t n)
{
    return (n + GROUP - 1) / GROUP * GROUP;
}

/* Outputs that fill groups. */
static int64_t get_grouped(const struct seqlstm_dense_desc *d)
{
    return d->output / GROUP * GROUP;
}

uint64_t blas_dense_packed_bytes(const struct seqlstm_op *op)
{
    const struct seqlstm_dense_desc *d = &op->desc.dense;
    if (op->training || op->tiled.kernels != NULL || op->math->lanes < 8 || d->input % BLAS_TURN_K != 0 ||
        d->output < PANEL || d->input * d->output < PACK_ELEMENTS)
        return 0;
    return (uint64_t)(get_grouped(d) * round_up(d->input)) * sizeof(float);
}

/* Floats from one group of columns to the next one: a group is a strip of its own, or one of four in a panel. */
static int64_t get_group_step(const struct seqlstm_op *op)
{
    return op->kernels->strips ? round_up(op->desc.dense.input) * GROUP : GROUP;
}

/* The packed weights of the panel that begins with this column. */
static const float *find_panel(const struct seqlstm_op *op, const float *packed, int64_t column)
{
    return packed + column * round_up(op->desc.dense.input);
}

/* Floats from one k to the next. The last panel may be narrower. */
static int64_t get_row(const struct seqlstm_op *op, int64_t panel)
{
    const int64_t left = get_grouped(&op->desc.dense) - panel;
    return op->kernels->strips ? GROUP : left < PANEL ? left : PANEL;
}

void blas_dense_pack(const struct seqlstm_op *op, const float *w, float *packed)
{
    const int64_t in = op->desc.dense.input;
    for (int64_t c = 0; c < get_grouped(&op->desc.dense); c += GROUP) {
        const int64_t panel = c / PANEL * PANEL, row = get_row(op, panel);
        float *out = packed + panel * round_up(in) + (c - panel) / GROUP * get_group_step(op);
        for (int64_t k = 0; k < in; k += GROUP)
            op->kernels->transpose16(w + c * in + k, in, GROUP, (int)(in - k < GROUP ? in - k : GROUP), out + k * row,
                                     row);
    }
}

/* Rows [r0, r1) by the whole groups of the columns [c0, c1). */
static void multiply_groups(const struct blas_call *call, const float *bias, int64_t r0, int64_t r1, int64_t c0,
                            int64_t c1)
{
    const struct seqlstm_op *op = call->op;
    const struct seqlstm_dense_desc *d = &op->desc.dense;
    const float *x = call->slots[SEQLSTM_SLOT_DENSE_X];
    float *y = call->slots[SEQLSTM_SLOT_DENSE_Y];
    for (int64_t c = c0; c < c1; c += PANEL) {
        const int64_t wide = c1 - c < PANEL ? c1 - c : PANEL;
        const bool last = c + PANEL >= c1;
        op->kernels->product(&(struct blas_product){
            .rows = r1 - r0,
            .a = x + r0 * d->input,
            .a_row = d->input,
            .k_blocks = 1,
            .k_inner = (int32_t)d->input,
            .b = find_panel(op, call->packed, c),
            .b_row = get_row(op, c),
            .b_strip = op->kernels->strips ? get_group_step(op) : 0,
            .groups = (int32_t)(wide / GROUP),
            .c = y + r0 * d->output + c,
            .c_row = d->output,
            .init = bias ? bias + c : NULL,
            .next = last ? NULL : find_panel(op, call->packed, c + PANEL),
        });
    }
}

void blas_dense_packed_block(const struct blas_call *call, const float *bias, int64_t r0, int64_t r1, int64_t c0,
                             int64_t c1)
{
    const struct seqlstm_dense_desc *d = &call->op->desc.dense;
    const int64_t grouped = get_grouped(d), end = c1 < grouped ? c1 : grouped, rest = c1 - end;
    const int64_t fit = BLOCK_FLOATS / d->input, most = fit > ROWS_LEAST ? fit : ROWS_LEAST;
    const int64_t blocks = (r1 - r0 + most - 1) / most;
    for (int64_t i = 0; i < blocks; i++)
        multiply_groups(call, bias, r0 + (r1 - r0) * i / blocks, r0 + (r1 - r0) * (i + 1) / blocks, c0, end);
    if (rest == 0)
        return;
    float *y = (float *)call->slots[SEQLSTM_SLOT_DENSE_Y] + end;
    call->math->product_dots(r1 - r0, rest, d->input, (const float *)call->slots[SEQLSTM_SLOT_DENSE_X] + r0 * d->input,
                             d->input, (const float *)call->slots[SEQLSTM_SLOT_DENSE_W] + end * d->input, d->input,
                             false, y + r0 * d->output, d->output);
    for (int64_t r = r0; bias && r < r1; r++)
        call->math->add(rest, bias + end, y + r * d->output);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Masks and scratch memory of a block. */
#include "cpu-blas/recurrent/run.h"

#include <string.h>

#include "cpu-blas/recurrent/tile_sizes.h"

/* ---- masks ------------------------------------------------------------------------------------------- */

static void mask_rows(const struct blas_run *run, uint32_t purpose, float rate, int64_t width, int64_t width_pad,
                      float *mask)
{
    const struct seqlstm_axis *axis = run->binding->axis;
    const float scale = seqlstm_mask_scale(rate);
    uint64_t key = blas_mask_key(run->op, run->step, run->layer, run->direction, purpose);
    for (int64_t r = 0; r < run->block->rows; r++) {
        int64_t b = run->block->first + r;
        run->op->kernels->keep_bits(
            &(struct blas_keep){.key = key,
                                .steps = 1,
                                .rows = 1,
                                .sequence = axis->sequence_id + b,
                                .position0 = axis->flags & SEQLSTM_BIT_AXIS_STREAM ? axis->position0 + b : NULL,
                                .elements = width,
                                .rate = rate,
                                .bits = run->scratch.bits});
        for (int64_t i = 0; i < width_pad; i++) {
            bool keep = i < width && (run->scratch.bits[i / 16] >> (i % 16) & 1);
            mask[r * width_pad + i] = keep ? scale : 0.0f;
        }
    }
}

void blas_masks_fill(const struct blas_run *run)
{
    const struct blas_recurrent *op = run->op;
    const struct blas_recurrent_layer *layer = &op->layers[run->layer];
    if (run->member != 0)
        return;
    if (run->scratch.mask_x)
        mask_rows(run, SEQLSTM_MASK_INPUT, op->desc.dropout, layer->input, layer->input_pad, run->scratch.mask_x);
    if (run->scratch.mask_h)
        mask_rows(run, SEQLSTM_MASK_RECURRENT, op->desc.recurrent_dropout, op->out, op->out_pad, run->scratch.mask_h);
}

/* ---- scratch ------------------------------------------------------------------------------------------ */

static int64_t widest_input(const struct blas_recurrent *op)
{
    int64_t first = op->layers[0].input_pad;
    int64_t next = op->layer_count > 1 ? op->layers[1].input_pad : 0;
    return first > next ? first : next;
}

/* The columns of x~ or h~, whichever has more, in the layers whose strips are copied; 0 if there are none. */
static int64_t widest_strips(const struct blas_recurrent *op)
{
    int64_t widest = 0;
    for (int32_t l = 0; l < op->layer_count; l++) {
        const struct blas_recurrent_layer *layer = &op->layers[l];
        const int64_t columns = layer->input_pad > op->out_pad ? layer->input_pad : op->out_pad;
        if (blas_copies_strips(op, layer) && columns > widest)
            widest = columns;
    }
    return blas_round(widest, PANEL);
}

static void scratch_common(const struct blas_recurrent *op, int64_t rows, struct blas_region *region,
                           struct blas_scratch *out)
{
    const int64_t columns = (int64_t)op->panels * PANEL, up = op->units_pad;
    const int64_t input = widest_input(op);
    memset(out, 0, sizeof *out);
    /* One more vector: padded rows are read and written whole. */
    out->h = blas_region_take(region, rows * op->h_row + PANEL);
    out->c = blas_region_take(region, rows * up);
    if (op->training && op->desc.dropout > 0.0f)
        out->mask_x = blas_region_take(region, rows * input);
    if (op->training && op->desc.recurrent_dropout > 0.0f)
        out->mask_h = blas_region_take(region, rows * op->out_pad);
    int64_t widest = input > op->out_pad ? input : op->out_pad;
    out->bits = (uint16_t *)(void *)blas_region_take(region, blas_round(widest, PANEL) / 32 + 1);
    out->z = blas_region_take(region, op->norm ? rows * columns : 0);
    if (op->norm || op->gru_before)
        out->extra = blas_region_take(region, rows * (up > op->out_pad ? up : op->out_pad));
    out->product = blas_region_take(region, op->gru_before ? rows * up : 0);
    out->projected = blas_region_take(region, rows * op->h_row);
    out->sums = blas_region_take(region, op->norm ? rows * 2 * GROUP : 0);
}

void blas_scratch_forward(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows, struct blas_region *region,
                          struct blas_scratch *out)
{
    const int64_t columns = (int64_t)op->panels * PANEL;
    scratch_common(op, rows, region, out);
    out->tiles = blas_region_take(region, op->tile_kernels ? blas_tiles_forward_floats(op, rows, chunk_rows) : 0);
    out->weights_x = blas_region_take(region, op->x_in_time ? widest_input(op) * PANEL : 0);
    if (op->training && op->lstm && op->tiled_steps && blas_gates_leave(op, op->desc.head.max_rows)) {
        out->gates = blas_region_take(region, rows * (op->norm ? columns : PANEL));
        out->gates_h = blas_region_take(region, op->norm ? rows * columns : 0);
    }
    if (op->training)
        return;
    int64_t xh_row = op->layers[0].xh_row;
    for (int32_t l = 1; l < op->layer_count; l++)
        xh_row = op->layers[l].xh_row > xh_row ? op->layers[l].xh_row : xh_row;
    out->xh = blas_region_take(region, 2 * chunk_rows * xh_row);
    out->gates = blas_region_take(region, chunk_rows * columns);
    out->gates_h = blas_region_take(region, op->norm ? rows * columns : 0);
    out->raw = blas_region_take(region, op->projection ? rows * op->units_pad : 0);
    out->stats = blas_region_take(region, op->norm ? rows * 4 : 0);
    out->c_stats = blas_region_take(region, op->norm && op->lstm ? rows * 2 : 0);
}

void blas_scratch_backward(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows,
                           struct blas_region *region, struct blas_scratch *out)
{
    scratch_common(op, rows, region, out);
    out->dq = blas_region_take(region, op->norm && op->lstm ? rows * op->units_pad : 0);
    out->dm = blas_region_take(region, op->projection ? rows * op->units_pad : 0);
    out->dprojected = blas_region_take(region, op->projection ? chunk_rows * op->out_pad : 0);
    out->dx = blas_region_take(region, chunk_rows * blas_stride(widest_input(op)));
    const int64_t strips = op->tile_kernels ? 0 : widest_strips(op),
                  sharing = blas_may_share_units(op) ? op->members_max : 1;
    out->strips = blas_region_take(region, chunk_rows * strips);
    if (strips && op->kernels->strips)
        out->gate_tiles = blas_region_take(region, sharing * chunk_rows * PANEL);
    out->tiles = blas_region_take(region, op->tile_kernels ? blas_tiles_backward_floats(op, rows, chunk_rows) : 0);
    out->tiles_gates = blas_region_take(region, op->tile_kernels ? blas_tiles_gates_floats(op, chunk_rows) : 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu-blas/recurrent/tiles.h"

#include <string.h>

static uint16_t *words_of(const float *floats)
{
    return (uint16_t *)(void *)(uintptr_t)floats;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

void blas_tiles_pack_forward(const struct blas_recurrent *op, const struct blas_pack *p)
{
    float block[BLAS_INT8_K * PANEL] __attribute__((aligned(64)));
    const int64_t tile_k = op->tile_kernels->tile_k;
    uint16_t *out = words_of(p->out);
    for (int64_t k = 0; k < p->width_pad; k += tile_k, out += 4 * op->bf16_parts * BLAS_TILE) {
        for (int64_t at = k; at < k + tile_k; at += GROUP)
            for (int32_t g = 0; g < PANEL; g += GROUP) {
                const int rows = (int)blas_group_rows(p->map + g);
                const int columns = (int)blas_max(0, blas_min(GROUP, p->width - at));
                op->kernels->transpose16(p->w + (rows && columns ? p->map[g] * p->width + at : 0), p->width,
                                         columns ? rows : 0, columns, block + (at - k) * PANEL + g, PANEL);
            }
        op->tile_kernels->columns(&(struct blas_split){.x = block,
                                                       .x_row = PANEL,
                                                       .rows = tile_k,
                                                       .columns = PANEL,
                                                       .parts = op->bf16_parts,
                                                       .out = out,
                                                       .int8 = {.factors = p->factors}});
    }
}

void blas_tiles_pack_back(const struct blas_recurrent *op, const struct blas_pack *p)
{
    float block[BLAS_TILE_K * PANEL] __attribute__((aligned(64)));
    for (int64_t n = 0; n < p->width_pad; n += PANEL) {
        const int64_t wide = blas_min(PANEL, p->width_pad - n), real = blas_max(0, blas_min(PANEL, p->width - n));
        uint16_t *out = words_of(p->out + blas_tiles_floats(op, p->k_all, PANEL) * (n / PANEL) +
                                 blas_tiles_floats(op, p->k0, wide));
        for (int32_t c = 0; c < PANEL; c += BLAS_TILE_K, out += wide / GROUP * op->bf16_parts * BLAS_TILE) {
            for (int32_t i = 0; i < BLAS_TILE_K; i++) {
                const int64_t copied = p->map[c + i] < 0 ? 0 : real;
                float *to = block + i * PANEL;
                if (copied)
                    memcpy(to, p->w + p->map[c + i] * p->width + n, (size_t)copied * sizeof *to);
                memset(to + copied, 0, (size_t)(wide - copied) * sizeof *to);
            }
            op->tile_kernels->columns(&(struct blas_split){
                .x = block, .x_row = PANEL, .rows = BLAS_TILE_K, .columns = wide, .parts = op->bf16_parts, .out = out});
        }
    }
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static struct blas_split split_of(const struct blas_run *r, int64_t rows, int64_t k)
{
    const struct blas_recurrent *op = r->op;
    struct blas_split split = {.rows = rows,
                               .blocks = 1,
                               .parts = op->bf16_parts,
                               .out = words_of(r->scratch.tiles),
                               .out_row = blas_tiles_row(op, k),
                               .int8 = {.scale = op->desc.data_scale, .shift = op->desc.data_shift}};
    blas_share(blas_row_tiles(rows), r->member, r->members, &split.first, &split.last);
    return split;
}

void blas_tiles_split_x(const struct blas_run *r, const float *x, int64_t x_row, int64_t rows)
{
    const struct blas_recurrent_layer *layer = &r->op->layers[r->layer];
    struct blas_split split = split_of(r, rows, blas_tiles_blocks(r->op, layer->input_pad));
    split.x = x;
    split.x_row = x_row;
    split.columns = layer->input;
    blas_run_barrier(r); /* until no member reads what is there */
    r->op->tile_kernels->rows(&split);
    blas_run_barrier(r);
}

void blas_tiles_split(const struct blas_run *r, const float *xh, int64_t rows, unsigned parts)
{
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t k_x = parts & BLAS_PART_X ? blas_tiles_blocks(op, layer->input_pad) : 0;
    const int64_t k_h = parts & BLAS_PART_H ? blas_tiles_blocks(op, op->out_pad) : 0;
    struct blas_split split = split_of(r, rows, k_x + k_h);
    split.x = xh;
    split.x_row = layer->xh_row;
    split.columns = layer->input_pad;
    blas_run_barrier(r); /* until no member reads what is there */
    if (k_x > 0)
        op->tile_kernels->rows(&split);
    split.x += layer->input_pad;
    split.columns = op->out_pad;
    split.out += blas_tiles_row(op, k_x);
    if (k_h > 0)
        op->tile_kernels->rows(&split);
    blas_run_barrier(r);
}

/* The weights that a product of `rows` rows prefetches for the next product. With few rows memory is too slow
 * anyway. */
static const uint16_t *next_of(const struct blas_recurrent *op, int64_t rows, const float *weights)
{
    return op->weights_large && rows >= 128 ? words_of(weights) : NULL;
}

void blas_tiles_forward(const struct blas_run *r, const struct blas_product *product, int64_t p, unsigned split,
                        unsigned parts)
{
    const struct blas_recurrent *op = r->op;
    const int64_t k_x = blas_tiles_blocks(op, op->layers[r->layer].input_pad);
    const int64_t k_h = blas_tiles_blocks(op, op->out_pad);
    const bool x = parts & BLAS_PART_X, behind = !x && (split & BLAS_PART_X);
    const int64_t x_floats = blas_x_floats(op, op->layers[r->layer].input_pad);
    const int64_t panel = x_floats + blas_h_floats(op);
    const float *weights = r->packed->forward + p * panel + (x ? 0 : x_floats);
    op->tile_kernels->product(
        &(struct blas_tile_product){
            .rows = product->rows,
            .k = (x ? k_x : 0) + (parts & BLAS_PART_H ? k_h : 0),
            .parts = op->bf16_parts,
            .a = words_of(r->scratch.tiles) + (behind ? blas_tiles_row(op, k_x) : 0),
            .a_row = blas_tiles_row(op, (split & BLAS_PART_X ? k_x : 0) + (split & BLAS_PART_H ? k_h : 0)),
            .b = words_of(weights),
            .b_groups = PANEL / GROUP,
            .groups = PANEL / GROUP,
            .c = product->c,
            .c_row = product->c_row,
            .init = op->int8 ? NULL : product->init,
            .accumulate = product->accumulate,
            .next = p + 1 < r->panel_last ? next_of(op, product->rows, weights + panel) : NULL,
            .ahead = product->ahead,
            .ahead_count = product->ahead_count,
            .ahead_lines = product->ahead_rate},
        r->tiles);
    if (op->int8 && (op->norm || parts & BLAS_PART_H))
        op->tile_kernels->sums(
            &(struct blas_int8_sums){.rows = product->rows,
                                     .c = product->c,
                                     .c_row = product->c_row,
                                     .scale = r->packed->scale + p * PANEL,
                                     .offset = (x || !op->norm ? r->packed->offset : r->packed->offset_h) + p * PANEL});
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

void blas_tiles_back(const struct blas_run *r, const struct blas_product *product, const float *b, int64_t width,
                     int64_t low, int64_t high)
{
    const struct blas_recurrent *op = r->op;
    const int64_t k_all = (int64_t)op->panels * PANEL;
    const int64_t two = PANEL / BLAS_TILE_K, together = blas_tiles_panels(op, product->rows);
    const int64_t strip = (product->descending ? -1 : 1) * blas_tiles_floats(op, k_all, PANEL);
    const int64_t strips = high > low ? (high + PANEL - 1) / PANEL - low / PANEL : 0;
    bool accumulate = product->accumulate;
    for (int64_t first = 0; first < op->panels; first += together, accumulate = true) {
        const int64_t count = blas_min(together, op->panels - first), a_row = blas_tiles_row(op, count * two);
        struct blas_split split = {.x = product->a + first * product->a_block,
                                   .x_row = product->a_row,
                                   .rows = product->rows,
                                   .columns = PANEL,
                                   .blocks = (int32_t)count,
                                   .x_block = product->a_block,
                                   .parts = op->bf16_parts,
                                   .out = words_of(r->scratch.tiles),
                                   .out_row = a_row};
        blas_share(blas_row_tiles(product->rows), r->member, r->members, &split.first, &split.last);
        blas_run_barrier(r); /* until no member reads what is there */
        op->tile_kernels->rows(&split);
        blas_run_barrier(r);
        for (int64_t i = 0; i < strips; i++) {
            const int64_t panel = low / PANEL + (product->descending ? strips - 1 - i : i);
            const int64_t wide = blas_min(PANEL, width - panel * PANEL);
            const int64_t n = blas_max(low, panel * PANEL), end = blas_min(panel * PANEL + wide, high);
            const float *weights =
                b + panel * blas_tiles_floats(op, k_all, PANEL) + blas_tiles_floats(op, first * PANEL, wide);
            op->tile_kernels->product(
                &(struct blas_tile_product){.rows = product->rows,
                                            .k = count * two,
                                            .parts = op->bf16_parts,
                                            .a = split.out,
                                            .a_row = a_row,
                                            .b = words_of(weights) + n % PANEL / GROUP * BLAS_TILE,
                                            .b_groups = (int32_t)(wide / GROUP),
                                            .groups = (int32_t)((end - n) / GROUP),
                                            .c = product->c + n,
                                            .c_row = product->c_row,
                                            .accumulate = accumulate,
                                            .next =
                                                i + 1 < strips ? next_of(op, product->rows, weights + strip) : NULL},
                r->tiles);
        }
    }
}

void blas_tiles_weights(const struct blas_run *r, const struct blas_tiles_outer *o)
{
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t rows = o->high - o->low, k = blas_bf16_blocks(rows), row = layer->input_pad + op->out_pad;
    const int64_t together = blas_tiles_strips(op, rows), strips = o->width / GROUP;
    uint16_t *gates = words_of(r->scratch.tiles_gates + r->member * blas_tiles_floats(op, rows, PANEL));
    struct blas_split strip = {.x = r->saved->xh + (r->block->q_base + o->low) * layer->xh_row + o->column,
                               .x_row = layer->xh_row,
                               .rows = rows,
                               .parts = op->bf16_parts,
                               .out = words_of(r->scratch.tiles),
                               .out_row = blas_tiles_row(op, k)};
    for (int64_t first = 0; first < strips; first += together, strip.x += together * GROUP) {
        const int64_t count = blas_min(together, strips - first);
        strip.columns = count * GROUP;
        blas_share(count, r->member, r->members, &strip.first, &strip.last);
        blas_run_barrier(r); /* until no member reads what is there */
        op->tile_kernels->across(&strip);
        blas_run_barrier(r);
        for (int64_t p = r->panel_first; p < r->panel_last; p++) {
            op->tile_kernels->columns(&(struct blas_split){.x = o->gates + (p * r->block->gate_rows + o->low) * PANEL,
                                                           .x_row = PANEL,
                                                           .rows = rows,
                                                           .columns = PANEL,
                                                           .parts = op->bf16_parts,
                                                           .out = gates});
            op->tile_kernels->product(
                &(struct blas_tile_product){.rows = count * GROUP,
                                            .k = k,
                                            .parts = op->bf16_parts,
                                            .a = strip.out,
                                            .a_row = strip.out_row,
                                            .b = gates,
                                            .b_groups = PANEL / GROUP,
                                            .groups = PANEL / GROUP,
                                            .c = o->w + (p * row + o->column + first * GROUP) * PANEL,
                                            .c_row = PANEL,
                                            .accumulate = o->accumulate},
                r->tiles);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See layout.h. */
#include "cpu-blas/recurrent/layout.h"

#include <string.h>

#include "cpu-blas/recurrent/tile_sizes.h"

float *blas_region_take(struct blas_region *region, int64_t count)
{
    if (count == 0)
        return NULL;
    float *at = region->base ? (float *)(void *)(region->base + region->used) : NULL;
    region->used += (uint64_t)blas_round(count, 16) * sizeof(float);
    return at;
}

int64_t blas_bits_row(const struct blas_recurrent *op)
{
    int64_t units = op->units_pad > op->out_pad ? op->units_pad : op->out_pad;
    return blas_round(units, PANEL) / GROUP;
}

bool blas_keeps_x_back(const struct blas_recurrent *op, int32_t layer)
{
    return layer > 0 || op->stepwise;
}

void blas_packed_layout(const struct blas_recurrent *op, int32_t layer, struct blas_region *region,
                        struct blas_packed *out)
{
    const int64_t ip = op->layers[layer].input_pad, op_ = op->out_pad, up = op->units_pad;
    const int64_t columns = (int64_t)op->panels * PANEL;
    memset(out, 0, sizeof *out);
    out->forward = blas_region_take(region, op->panels * (blas_x_floats(op, ip) + blas_h_floats(op)));
    out->bias = blas_region_take(region, columns);
    out->peephole = blas_region_take(region, 3 * up);
    if (op->int8) {
        out->scale = blas_region_take(region, columns);
        out->offset = blas_region_take(region, columns);
        out->offset_h = blas_region_take(region, op->norm ? columns : 0);
    }
    if (op->training) {
        out->h_back = blas_region_take(region, op->h_in_place ? 0 : blas_h_back_floats(op));
        out->x_back = blas_region_take(region, blas_keeps_x_back(op, layer) ? blas_x_back_floats(op, ip) : 0);
    }
    if (op->projection) {
        out->projection = blas_region_take(region, up * op_);
        out->projection_back = blas_region_take(region, op->training ? up * op_ : 0);
    }
    if (op->gru_before) {
        out->rh = blas_region_take(region, up * op_);
        out->rh_back = blas_region_take(region, op->training ? up * op_ : 0);
    }
    if (op->norm) {
        out->valid_u = blas_region_take(region, columns);
        out->valid_v = blas_region_take(region, columns);
        out->gain_u = blas_region_take(region, columns);
        out->gain_v = blas_region_take(region, columns);
        out->gain_c = blas_region_take(region, op->lstm ? up : 0);
        out->bias_c = blas_region_take(region, op->lstm ? up : 0);
    }
    if (op->training && op->desc.weight_drop > 0.0f) {
        int64_t elements = op->gate_rows * op->out;
        out->masked = blas_region_take(region, elements);
        out->drop_bits = (uint16_t *)(void *)blas_region_take(region, blas_round(elements, PANEL) / 32 + 1);
    }
}

enum { COPIES_MAX = 4, COPY_FLOATS = 64 * 1024, HEAD_FLOATS = 16, MEMBER_PRODUCTS = 1 << 17, MEMBER_ROWS = 20 };

int64_t blas_sweep_rows(const struct blas_recurrent *op)
{
    const bool sweeps = op->lstm && !op->tiled_steps && (!op->norm || op->norm_keeps) && !op->projection && !op->strips;
    if (!sweeps || (op->weights_large && op->norm))
        return 0;
    return op->weights_large ? 1 : SWEEP_ROWS;
}

int64_t blas_members_worth(const struct blas_recurrent *op, int64_t rows)
{
    const int64_t products = rows * op->panels * PANEL * (op->layers[0].input_pad + op->out_pad);
    const int64_t worth = 1 + products / MEMBER_PRODUCTS;
    if (!op->training)
        return worth;
    return rows < MEMBER_ROWS ? 1 : blas_min(worth, rows / MEMBER_ROWS);
}

int32_t blas_packed_copies(const struct blas_recurrent *op, int32_t members)
{
    int64_t floats = 0;
    for (int32_t n = 0; n < op->layer_count * op->directions; n++)
        floats += (int64_t)op->panels * PANEL * (op->layers[n / op->directions].input_pad + op->out_pad);
    if (floats > COPY_FLOATS || op->desc.weight_drop > 0.0f)
        return 1;
    const int64_t most = members == 0 ? op->members_max : blas_min(members, op->members_max);
    const int64_t useful = blas_min(op->desc.head.max_sequences, blas_members_worth(op, op->desc.head.max_rows));
    const int64_t copies = blas_min(blas_min(most, COPIES_MAX), useful);
    return copies < 1 ? 1 : (int32_t)copies;
}

uint64_t blas_packed_open(const struct blas_recurrent *op, const void *buffer, struct blas_packed_all *out)
{
    struct blas_region head = {(char *)(uintptr_t)buffer, 0}, one = {0};
    const float *copies = blas_region_take(&head, HEAD_FLOATS);
    struct blas_packed measured;
    out->copies = 1;
    out->base = buffer ? head.base + head.used : NULL;
    if (copies)
        memcpy(&out->copies, copies, sizeof out->copies);
    for (int32_t n = 0; n < op->layer_count * op->directions; n++) {
        out->at[n] = one.used;
        blas_packed_layout(op, n / op->directions, &one, &measured);
    }
    out->bytes = one.used;
    return head.used + one.used;
}

struct blas_packed blas_packed_own(const struct blas_recurrent *op, const struct blas_packed_all *all, int32_t n,
                                   int32_t member)
{
    struct blas_region region = {all->base + (uint64_t)(member % all->copies) * all->bytes, all->at[n]};
    struct blas_packed own;
    blas_packed_layout(op, n / op->directions, &region, &own);
    return own;
}

void blas_saved_layout(const struct blas_recurrent *op, int32_t layer, int64_t rows, int64_t blocks,
                       struct blas_region *region, struct blas_saved *out)
{
    const int64_t columns = (int64_t)op->panels * PANEL;
    const int64_t gate_rows = op->weights_large ? rows + 256 * blocks : rows;
    memset(out, 0, sizeof *out);
    out->xh = blas_region_take(region, rows * op->layers[layer].xh_row);
    out->gates = blas_region_take(region, gate_rows * columns);
    if (op->desc.cell != SEQLSTM_CELL_RNN)
        out->state = blas_region_take(region, rows * op->units_pad);
    if (op->norm) {
        out->gates_h = blas_region_take(region, gate_rows * columns);
        out->z = blas_region_take(region, op->norm_keeps ? gate_rows * columns : 0);
        out->stats = blas_region_take(region, rows * 4);
        out->c_stats = blas_region_take(region, op->lstm ? rows * 2 : 0);
    }
    if (op->projection)
        out->raw = blas_region_take(region, rows * op->units_pad);
    if (op->gru_before)
        out->rh = blas_region_take(region, rows * op->out_pad);
    int64_t bits = rows * blas_bits_row(op) / 2 + 1;
    if (op->desc.zoneout_cell > 0.0f)
        out->new_c = (uint16_t *)(void *)blas_region_take(region, bits);
    if (op->desc.zoneout_hidden > 0.0f)
        out->new_h = (uint16_t *)(void *)blas_region_take(region, bits);
    if (op->merge_apart && op->desc.merge == SEQLSTM_KIND_MERGE_MUL)
        out->merged = blas_region_take(region, rows * op->out);
    if (op->stepwise && op->projection)
        out->dprojected = blas_region_take(region, rows * op->out_pad);
}

void blas_gradients_layout(const struct blas_recurrent *op, int32_t layer, struct blas_region *region,
                           struct blas_gradients *out)
{
    const int64_t columns = (int64_t)op->panels * PANEL;
    memset(out, 0, sizeof *out);
    out->w = blas_region_take(region, columns * (op->layers[layer].input_pad + op->out_pad));
    out->projection = blas_region_take(region, op->projection ? op->out_pad * op->units_pad : 0);
    out->rh = blas_region_take(region, op->gru_before ? op->out_pad * op->units_pad : 0);
    uint64_t before = region->used;
    out->bias = blas_region_take(region, columns);
    out->sums = out->bias;
    out->peephole = blas_region_take(region, op->peephole ? 3 * op->units_pad : 0);
    out->norm_u = blas_region_take(region, op->norm ? columns : 0);
    out->norm_v = blas_region_take(region, op->norm ? columns : 0);
    out->norm_c = blas_region_take(region, op->norm && op->lstm ? 2 * op->units_pad : 0);
    out->sums_count = (int64_t)((region->used - before) / sizeof(float));
}

int64_t blas_gradients_all(const struct blas_recurrent *op, int32_t members, struct blas_region *region,
                           struct blas_gradients out[BLAS_LD_MAX])
{
    const uint64_t before = region->used;
    for (int32_t n = 0; n < op->layer_count * op->directions; n++)
        blas_gradients_layout(op, n / op->directions, region, &out[n]);
    const uint64_t one = region->used - before;
    region->used += one * (uint64_t)(members - 1);
    return (int64_t)(one / sizeof(float));
}

void blas_gradients_move(struct blas_gradients *g, int64_t floats)
{
    float **pointers[] = {&g->w,      &g->bias,   &g->peephole, &g->projection, &g->norm_u,
                          &g->norm_v, &g->norm_c, &g->rh,       &g->sums};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        if (*pointers[i])
            *pointers[i] += floats;
}

int64_t blas_chunk_rows_max(const struct blas_recurrent *op)
{
    return blas_min(blas_chunk_rows(op) + op->block_rows_max, blas_block_rows_all(op));
}

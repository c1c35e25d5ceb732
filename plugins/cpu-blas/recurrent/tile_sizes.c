/* SPDX-License-Identifier: Apache-2.0 */
/* See tile_sizes.h. */
#include "cpu-blas/recurrent/tile_sizes.h"

/* Bytes of A that stay in the second-level cache while panels of B pass. */
enum { RESIDENT_BYTES = 1 << 20 };

static int64_t a_floats(const struct blas_recurrent *op, int64_t rows, int64_t k)
{
    return blas_row_tiles(rows) * blas_tiles_row(op, k) / 2;
}

static int64_t widest_k(const struct blas_recurrent *op)
{
    int64_t widest = 0;
    for (int32_t l = 0; l < op->layer_count; l++)
        widest = blas_max(widest, blas_tiles_blocks(op, op->layers[l].input_pad));
    return widest;
}

int64_t blas_tiles_forward_floats(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows)
{
    const int64_t x = widest_k(op), h = blas_tiles_blocks(op, op->out_pad);
    return blas_max(a_floats(op, rows, x + h), a_floats(op, chunk_rows, x));
}

int64_t blas_tiles_panels(const struct blas_recurrent *op, int64_t rows)
{
    const int64_t panel = a_floats(op, rows, PANEL / BLAS_TILE_K) * (int64_t)sizeof(float);
    return blas_min(op->panels, blas_max(1, RESIDENT_BYTES / panel));
}

int64_t blas_tiles_strips(const struct blas_recurrent *op, int64_t rows)
{
    return blas_max(4, RESIDENT_BYTES / (blas_tiles_row(op, blas_bf16_blocks(rows)) * (int64_t)sizeof(uint16_t)));
}

/* The floats for `rows` rows of those panels of gate gradients that are split at once: as many panels as fill
 * RESIDENT_BYTES, at least the minimum, at most all. */
static int64_t gates_floats(const struct blas_recurrent *op, int64_t rows)
{
    const int64_t resident = RESIDENT_BYTES / (int64_t)sizeof(float);
    const int64_t panel = a_floats(op, rows, PANEL / BLAS_TILE_K);
    return blas_min(blas_max(resident, panel), op->panels * panel);
}

int64_t blas_tiles_own(const struct blas_recurrent *op, int32_t member, int32_t members, int64_t rows)
{
    return member * gates_floats(op, (rows + members - 1) / members);
}

int64_t blas_tiles_backward_floats(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows)
{
    const int64_t resident = RESIDENT_BYTES / (int64_t)sizeof(float), widest = blas_max(rows, chunk_rows);
    const int64_t strip = blas_tiles_row(op, blas_bf16_blocks(chunk_rows)) / 2;
    int64_t strips = 0, floats = gates_floats(op, widest);
    for (int32_t l = 0; l < op->layer_count; l++)
        strips = blas_max(strips, (op->layers[l].input_pad + op->out_pad) / GROUP);
    for (int32_t m = 2; blas_may_share_units(op) && m <= op->members_max && blas_shares_rows(m, widest); m++)
        floats = blas_max(floats, blas_tiles_own(op, m, m, widest));
    return blas_max(floats, blas_min(blas_max(resident, 4 * strip), strips * strip));
}

int64_t blas_tiles_gates_floats(const struct blas_recurrent *op, int64_t chunk_rows)
{
    return blas_tiles_floats(op, chunk_rows, PANEL) * (blas_may_share_units(op) ? op->members_max : 1);
}

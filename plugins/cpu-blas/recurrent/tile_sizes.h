/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of the tiles (tiles.h) of packed weights and of scratch memory. */
#ifndef BLAS_RECURRENT_TILE_SIZES_H
#define BLAS_RECURRENT_TILE_SIZES_H

#include "cpu-blas/recurrent/op.h"
#include "cpu-blas/tiles/tiles.h"

/* uint16_t elements of A from one row tile to the next. */
static inline int64_t blas_tiles_row(const struct blas_recurrent *op, int64_t k)
{
    return k * op->bf16_parts * BLAS_TILE;
}

static inline int64_t blas_tiles_blocks(const struct blas_recurrent *op, int64_t k)
{
    return (k + op->tile_kernels->tile_k - 1) / op->tile_kernels->tile_k;
}

/* The floats that B takes instead of k rows of 64 columns, or of `columns`. */
static inline int64_t blas_tiles_floats(const struct blas_recurrent *op, int64_t k, int64_t columns)
{
    return blas_tiles_blocks(op, k) * op->bf16_parts * columns / BLAS_TILE_ROWS * BLAS_TILE / 2;
}

/* The floats of packed weights in one panel: of `input` columns of x, or of h. */
static inline int64_t blas_x_floats(const struct blas_recurrent *op, int64_t input)
{
    if (op->x_in_time)
        return 0;
    return op->tile_kernels ? blas_tiles_floats(op, input, PANEL) : input * PANEL;
}
static inline int64_t blas_h_floats(const struct blas_recurrent *op)
{
    return op->tiled_steps ? blas_tiles_floats(op, op->out_pad, PANEL) : op->out_pad * PANEL;
}

/* The same for backward, in all panels. */
static inline int64_t blas_x_back_floats(const struct blas_recurrent *op, int64_t input)
{
    const int64_t k = (int64_t)op->panels * PANEL;
    return op->tile_kernels ? blas_tiles_floats(op, k, input) : k * input;
}
static inline int64_t blas_h_back_floats(const struct blas_recurrent *op)
{
    const int64_t k = (int64_t)op->panels * PANEL;
    return op->tiled_steps ? blas_tiles_floats(op, k, op->out_pad) : k * op->out_pad;
}

/* The floats of scratch: for A, and for B of one member. */
int64_t blas_tiles_forward_floats(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows);
int64_t blas_tiles_backward_floats(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows);
int64_t blas_tiles_gates_floats(const struct blas_recurrent *op, int64_t chunk_rows);

/* The floats of scratch in front of the tiles of a member that shares `rows` rows with others. */
int64_t blas_tiles_own(const struct blas_recurrent *op, int32_t member, int32_t members, int64_t rows);

/* The panels of gate gradients that are split at once, and the strips of 16 columns of x~h~. */
int64_t blas_tiles_panels(const struct blas_recurrent *op, int64_t rows);
int64_t blas_tiles_strips(const struct blas_recurrent *op, int64_t rows);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Products on tiles (tiles/tiles.h), used instead of those in recurrent/kernels/kernels.h. Weights are packed as tiles.
 * x~, h~ and gate gradients are converted to tiles, in scratch memory, before the products of a step or chunk. Members
 * that share a block share that work, too.
 *
 * Packed weights (those of h as in recurrent/kernels/kernels.h, if single steps do not use tiles):
 *   forward  [panel] B of k = x (whole tiles), then h, by 64 columns
 *   back     [64 columns of x or h] B of k = columns of all panels
 * Weight gradients: [panel][x, then h, padded to 16][64]; transposed when they are summed over the members. */
#ifndef BLAS_RECURRENT_TILES_H
#define BLAS_RECURRENT_TILES_H

#include "cpu-blas/tiles/tiles.h"
#include "cpu-blas/recurrent/run.h"
#include "cpu-blas/recurrent/tile_sizes.h"

/* Like pack_forward and pack_back of the kernels. Back: `out` is the beginning of all panels of the matrix. */
void blas_tiles_pack_forward(const struct blas_recurrent *op, const struct blas_pack *p);
void blas_tiles_pack_back(const struct blas_recurrent *op, const struct blas_pack *p);

/* The parts of a row of x~h~. */
enum { BLAS_PART_X = 1, BLAS_PART_H = 2 };

/* Splits `rows` rows of x, or those parts of as many rows of x~h~, into scratch. */
void blas_tiles_split_x(const struct blas_run *r, const float *x, int64_t x_row, int64_t rows);
void blas_tiles_split(const struct blas_run *r, const float *xh, int64_t rows, unsigned parts);

/* Multiplies panel `p` by `parts` of `split`, which says what has been split. Only rows and C of `product` are used.
 * In int8, the last product that is added to C also converts it to float. */
void blas_tiles_forward(const struct blas_run *r, const struct blas_product *product, int64_t p, unsigned split,
                        unsigned parts);

/* Like blas_product_back; all members that share the block call it together. */
void blas_tiles_back(const struct blas_run *r, const struct blas_product *product, const float *b, int64_t width,
                     int64_t low, int64_t high);

/* Weight gradients of own panels (+)= columns [column, column + width) of x~h~, at q in [low, high), times `gates`,
 * which begin at the block's first panel and row. */
struct blas_tiles_outer {
    int64_t low, high, column, width;
    const float *gates;
    float *w;
    bool accumulate;
};
void blas_tiles_weights(const struct blas_run *r, const struct blas_tiles_outer *o);

#endif

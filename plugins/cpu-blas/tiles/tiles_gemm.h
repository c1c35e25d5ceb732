/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on one thread, on tiles (tiles.h), of any size. float32 operands are converted to tiles, which may
 * be used for several products. Denormals are zeros. Tiles are 64-byte aligned; matrices need not be, and nothing
 * beyond them is read or written. */
#ifndef BLAS_TILES_GEMM_H
#define BLAS_TILES_GEMM_H

#include "cpu-blas/tiles/tiles.h"

/* The variant of operations whose float32 products are on tiles. */
#define BLAS_TILES "tiles"

/* How an operation multiplies: the table of kernels, or NULL for vectors of float32; and the parts: 3, 2
 * (tf32) or 1 (bfloat16, int8). */
struct blas_tiled {
    const struct blas_tile_kernels *kernels;
    int32_t parts;
};

/* The matrix from which an operand is made: A [n, k], or B [k, n]. */
struct blas_operand {
    const float *x;
    int64_t x_row;
    bool k_down; /* k runs down the rows of x, otherwise along them */
    int64_t n, k;
};

/* The uint16_t words of the operand as A and as B. */
static inline int64_t blas_operand_words(const struct blas_tiled *by, int64_t n, int64_t k)
{
    return blas_row_tiles(n) * blas_bf16_blocks(k) * by->parts * BLAS_TILE;
}

/* Makes A: row tiles [first, last) of blas_row_tiles(n); or B: strips [first, last) of 64 columns. [any] */
void blas_operand_a(const struct blas_tiled *by, const struct blas_operand *o, int64_t first, int64_t last,
                    uint16_t *out);
void blas_operand_b(const struct blas_tiled *by, const struct blas_operand *o, int64_t first, int64_t last,
                    uint16_t *out);
static inline int64_t blas_operand_strips(int64_t n)
{
    return (n + 4 * BLAS_TILE_ROWS - 1) / (4 * BLAS_TILE_ROWS);
}

/* C [m, n] (+)= A [m, k] B [k, n]. */
struct blas_operands {
    int64_t m, n, k;
    const uint16_t *a, *b;
    float *c;
    int64_t c_row;
    bool accumulate;
};
void blas_operands_multiply(const struct blas_tiled *by, const struct blas_operands *p, struct blas_tiles *tiles);

/* Like blas_gemm, in blocks that fit `scratch` of BLAS_GEMM_SCRATCH bytes. Releases the tiles. [any] */
enum { BLAS_GEMM_SCRATCH = 768 << 10 };
void blas_tiles_gemm(const struct blas_tiled *by, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                     int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc, uint16_t *scratch);

#endif

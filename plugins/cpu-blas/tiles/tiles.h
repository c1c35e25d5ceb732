/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float32 matrices on tiles: in bfloat16, with one to three parts of each number, or in int8.
 *
 * A float32 number is the sum of three bfloat16 numbers, its *parts*: each is the rest that the parts before it leave,
 * rounded to 8 bits. x = x1 + x2 + x3 to the last bit. Of the nine products of the parts of two numbers, the six
 * largest are summed in float32. Together the others are less than 2^-23 |a b|, as much as two roundings of a
 * multiply-add (Henry, Tang, Heinecke: Leveraging the bfloat16 artificial intelligence datatype for higher-precision
 * computations, ARITH 2019). A processor with AMX multiplies tiles of bfloat16 sixteen times as fast as vectors of
 * float32, so that six products take 3/8 of the time of one. Products in tf32 use the first two parts, which leave at
 * most 2^-16 |x| of a number, and three products. With what is left out, they differ from those of the whole numbers by
 * 3 2^-16 |a b| at most, a twentieth of what tf32 may. Products in bfloat16 use only the first parts, which are the
 * numbers rounded to the nearest bfloat16, ties to even.
 *
 * A *tile* is 16 rows of 32 bfloat16, 1 KiB: of A, 16 rows and 32 of k; of B, 16 columns and 32 of k. Within 32 of k
 * the order is 0, 16, 1, 17 … in both, so that each pair consists of elements of two vectors and needs no shuffle.
 *
 *   A  [row tile][k / 32][part][row][32]      rows are divided evenly between the smallest number of row tiles
 *   B  [k / 32][part][column / 16][pair of k][column][2]
 *
 * with `parts` parts.
 *
 * Tiles of *int8* are for products in int8: unsigned for A, signed for B. Sums are exact integers, and there is one
 * part. A tile has 64 of k, in the order 0, 16, 32, 48, 1, 17 …, for the same reason:
 *
 *   A  [row tile][k / 64][row][64]
 *   B  [k / 64][column / 16][four of k][column][4]
 *
 * Denormals are zeros. A product with an infinity is NaN. Pointers to tiles are 64-byte aligned; other pointers may
 * be unaligned. Strides are in floats, those of tiles in uint16_t. */
#ifndef BLAS_TILES_H
#define BLAS_TILES_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu-blas/isa/isa.h"

enum {
    BLAS_BF16_PARTS = 3,
    BLAS_TF32_PARTS = 2,
    BLAS_TILE_ROWS = 16,
    BLAS_TILE_K = 32,
    BLAS_TILE = BLAS_TILE_ROWS * BLAS_TILE_K,
    BLAS_INT8_K = 64
};

/* How numbers become int8. A: round(scale x + shift), limited to 0 .. 255. B: round(factors[column] x), limited to
 * -127 .. 127. Ties round to even. NaN becomes the lowest value. */
struct blas_int8_rule {
    float scale, shift;
    const float *factors;
};

/* Converts a matrix x of any size to tiles. k, and the columns of B, are filled with zeros to whole tiles; rows of A
 * that no product reads may hold anything. Nothing beyond rows and columns is read. */
struct blas_split {
    const float *x;
    int64_t x_row;
    int64_t rows;
    int64_t columns;
    /* rows(): columns come in blocks of this size, x_block apart. With more than one block, the size is a multiple
     * of 32. */
    int32_t blocks;
    int64_t x_block;
    int64_t first, last; /* rows(), across(): the row tiles of A to make */
    int32_t parts;
    uint16_t *out;
    int64_t out_row;            /* rows(), across(): distance from one row tile to the next */
    struct blas_int8_rule int8; /* used if tiles are int8 */
};

/* C[r][n] = init[n] + sum_k A[r][k] B[k][n]. */
struct blas_tile_product {
    int64_t rows;
    int64_t k; /* blocks of 32 */
    int32_t parts;
    const uint16_t *a;
    int64_t a_row; /* distance from one row tile to the next */
    const uint16_t *b;
    int32_t b_groups; /* columns / 16 of B, for each part */
    int32_t groups;   /* wanted groups, 1 .. 4 */
    float *c;         /* int8: int32_t */
    int64_t c_row;
    const float *init;    /* [columns], or NULL: zero */
    bool accumulate;      /* add to C */
    const uint16_t *next; /* B of the next product, of the same size, to be prefetched; or NULL */
    /* Prefetched if `next` is NULL: `ahead_lines` lines from each of ahead_count places on, one place for each of
     * blas_tile_slots. */
    const float *const *ahead;
    int32_t ahead_count, ahead_lines;
};

/* Converts int8 sums to float: C[r][n] = scale[n] C[r][n] + offset[n], from int32_t. */
struct blas_int8_sums {
    int64_t rows;
    float *c; /* [rows][64] */
    int64_t c_row;
    const float *scale, *offset;
};

/* The tiles of a thread. Must be all zero at first. */
struct blas_tiles {
    uint8_t rows[8]; /* rows that the tiles are configured for */
};

struct blas_tile_kernels {
    const char *name;
    int32_t tile_k; /* the k in a tile: BLAS_TILE_K or BLAS_INT8_K */
    /* Below these numbers, float32 in three parts is slower than vectors: sequences, for products of single steps;
     * rows of a call, for recurrent layers; rows, for other products. */
    int64_t sequences_min, rows_min, product_rows_min;
    void (*rows)(const struct blas_split *s);           /* A = x */
    void (*across)(const struct blas_split *s);         /* A = x transposed: k runs over its rows */
    void (*columns)(const struct blas_split *s);        /* B = x: k runs over its rows */
    void (*columns_across)(const struct blas_split *s); /* B = x transposed: k runs along its rows */
    /* Configuring tiles for a number of rows takes as long as ten products of tiles. So they stay configured between
     * products. The end of a call releases them, so that the operating system need not save them. */
    void (*product)(const struct blas_tile_product *p, struct blas_tiles *tiles);
    void (*release)(struct blas_tiles *tiles);
    /* int8 only, which has neither across() nor columns_across(). largest(): the bits of the largest absolute value
     * of n numbers. These bits are ordered like the values, with infinity and NaN above all. */
    void (*sums)(const struct blas_int8_sums *s);
    uint32_t (*largest)(const float *x, int64_t n);
};

/* Emulated: bit for bit like AMX, in portable C. A module built for tests uses these instead. */
extern const struct blas_tile_kernels blas_bf16_kernels_amx, blas_bf16_kernels_emulated;
/* All give the same bits. */
extern const struct blas_tile_kernels blas_int8_kernels_amx, blas_int8_kernels_avx512, blas_int8_kernels_avx2,
    blas_int8_kernels_portable;

/* Returns true if processor and operating system offer tiles. [any] */
bool blas_tiles_offered(void);
/* The kernels on tiles. Requests the permission for the whole process, whose signal frames become 8 KiB larger. NULL if
 * there are no tiles, or the system refuses the permission. [any] */
const struct blas_tile_kernels *blas_bf16_get(void);
/* The fastest kernels that use no more than `isa`, and tiles if `tiles` and the system allows them. [any] */
const struct blas_tile_kernels *blas_int8_get(enum blas_isa isa, bool tiles);

static inline int64_t blas_bf16_blocks(int64_t k)
{
    return (k + BLAS_TILE_K - 1) / BLAS_TILE_K;
}
static inline int64_t blas_row_tiles(int64_t rows)
{
    return (rows + BLAS_TILE_ROWS - 1) / BLAS_TILE_ROWS;
}

/* The iterations of a product that prefetch: those of two row tiles by two groups, for each block of k. */
static inline int64_t blas_tile_slots(int64_t rows, int64_t groups, int64_t k)
{
    return blas_row_tiles(rows) / 2 * (groups / 2) * k;
}

/* The first row of row tile `tile`, where `tiles` tiles share `rows`. */
static inline int64_t blas_row_tile_first(int64_t rows, int64_t tiles, int64_t tile)
{
    const int64_t more = rows % tiles;
    return tile * (rows / tiles) + (tile < more ? tile : more);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float32 matrices on tiles: of bfloat16, of three parts of each number or of one; or of bytes.
 *
 * A float32 number is the sum of three bfloat16 numbers, its *parts*, each what is left of it rounded to 8 bits:
 * x = x1 + x2 + x3 to the last bit. Of the nine products of two numbers' parts the six largest are summed in float32;
 * the others are less than 2^-23 |a b| together, as much as two roundings of a multiply-add (Henry, Tang, Heinecke:
 * Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations, ARITH 2019). A processor
 * with AMX multiplies tiles of bfloat16 sixteen times as fast as vectors of float32, so that six products take 3/8 of
 * the time of one. Products that are wanted in bfloat16 are those of the first parts alone, which are the numbers
 * rounded to the nearest of bfloat16, and between two of them to the even one.
 *
 * A *tile* is 16 rows of 32 bfloat16, 1 KiB: of A 16 rows and 32 of k, of B 16 columns and 32 of k. Within 32 of k
 * the order is 0, 16, 1, 17 … in both: each pair is made of elements that stand in two vectors, without a shuffle.
 *
 *   A  [row tile][k / 32][part][row][32]      rows are shared evenly between as few row tiles as hold them
 *   B  [k / 32][part][column / 16][pair of k][column][2]
 *
 * with `parts` parts, 3 or 1.
 *
 * Tiles of *bytes* are for products in int8: A has unsigned ones, B signed ones, sums are exact integers, and there is
 * one part. A tile has 64 of k in the order 0, 16, 32, 48, 1, 17 …, for the same reason:
 *
 *   A  [row tile][k / 64][row][64]
 *   B  [k / 64][column / 16][four of k][column][4]
 *
 * Denormals are zeros. A product with an infinity is NaN. Pointers to tiles are 64-byte aligned, others may be
 * unaligned; strides are in floats, those of tiles in uint16_t. */
#ifndef BLAS_TILES_H
#define BLAS_TILES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BLAS_BF16_PARTS = 3,
    BLAS_TILE_ROWS = 16,
    BLAS_TILE_K = 32,
    BLAS_TILE = BLAS_TILE_ROWS * BLAS_TILE_K,
    BLAS_INT8_K = 64
};

/* How numbers become bytes: those of A round(scale x + shift), limited to 0 .. 255; those of B
 * round(factors[column] x), limited to -127 .. 127; of two the even one. A NaN becomes the lowest. */
struct blas_int8_rule {
    float scale, shift;
    const float *factors;
};

/* A matrix x of any size into tiles. What k, or the columns of B, lack to whole tiles is zeros; rows of A that no
 * product reads may be anything. Nothing beyond rows and columns is read. */
struct blas_split {
    const float *x;
    int64_t x_row;
    int64_t rows;
    int64_t columns;
    /* rows(): columns come in blocks of that many, x_block apart; more than one only of multiples of 32 */
    int32_t blocks;
    int64_t x_block;
    int64_t first, last; /* rows(), across(): the row tiles of A that are made */
    int32_t parts;
    uint16_t *out;
    int64_t out_row;            /* rows(), across(): from one row tile to the next */
    struct blas_int8_rule int8; /* where tiles are of bytes */
};

/* C[r][n] = init[n] + sum_k A[r][k] B[k][n]. */
struct blas_tile_product {
    int64_t rows;
    int64_t k; /* blocks of 32 */
    int32_t parts;
    const uint16_t *a;
    int64_t a_row; /* from one row tile to the next */
    const uint16_t *b;
    int32_t b_groups; /* columns / 16 that B has for each part */
    int32_t groups;   /* that are wanted, 1 .. 4 */
    float *c;         /* of bytes: int32_t */
    int64_t c_row;
    const float *init;    /* [columns], or NULL: zero */
    bool accumulate;      /* start from C instead */
    const uint16_t *next; /* NULL, or B of the product that follows, as large as this one: it is prefetched */
    /* What else is prefetched, where there is no `next`: `ahead_lines` lines from each of ahead_count places on, one
     * for each of blas_tile_slots. */
    const float *const *ahead;
    int32_t ahead_count, ahead_lines;
};

/* What sums of products of bytes stand for: C[r][n] = scale[n] C[r][n] + offset[n], of int32_t into float. */
struct blas_int8_sums {
    int64_t rows;
    float *c; /* [rows][64] */
    int64_t c_row;
    const float *scale, *offset;
};

/* The tiles of a thread; all zero at first. */
struct blas_tiles {
    uint8_t rows[8]; /* that they are configured for */
};

struct blas_tile_kernels {
    const char *name;
    int32_t tile_k; /* of k that a tile has: BLAS_TILE_K or BLAS_INT8_K */
    /* Float32 in three parts is slower than vectors with fewer: sequences, for the products of single steps, rows of a
     * call, for recurrent layers at all, and rows of other products. */
    int64_t sequences_min, rows_min, product_rows_min;
    void (*rows)(const struct blas_split *s);           /* A = x */
    void (*across)(const struct blas_split *s);         /* A = x transposed: k runs over its rows */
    void (*columns)(const struct blas_split *s);        /* B = x: k runs over its rows */
    void (*columns_across)(const struct blas_split *s); /* B = x transposed: k runs along its rows */
    /* Tiles are configured for a number of rows, which takes as long as ten products of tiles: they stay so between
     * products and are given back at the end of a call, so that nothing of them is left to be saved. */
    void (*product)(const struct blas_tile_product *p, struct blas_tiles *tiles);
    void (*release)(struct blas_tiles *tiles);
    /* Bytes alone, which have neither across() nor columns_across(). largest(): the bits of the largest absolute value
     * of n, which are ordered as the values are, infinity and NaN above all. */
    void (*sums)(const struct blas_int8_sums *s);
    uint32_t (*largest)(const float *x, int64_t n);
};

extern const struct blas_tile_kernels blas_bf16_kernels_amx;
/* The same, bit for bit, in portable C: a module that tests build has them in the place of the others. */
extern const struct blas_tile_kernels blas_bf16_kernels_emulated;

/* The same on tiles of bytes. */
extern const struct blas_tile_kernels blas_int8_kernels_amx, blas_int8_kernels_emulated;

/* Do processor and operating system offer tiles? [any] */
bool blas_tiles_offered(void);
/* The kernels, with leave to run them, which the process has from then on: its signal frames are 8 KiB larger. NULL
 * where they are not offered, or the system refuses it. [any] */
const struct blas_tile_kernels *blas_bf16_get(void);
const struct blas_tile_kernels *blas_int8_get(void);

static inline int64_t blas_bf16_blocks(int64_t k)
{
    return (k + BLAS_TILE_K - 1) / BLAS_TILE_K;
}
static inline int64_t blas_row_tiles(int64_t rows)
{
    return (rows + BLAS_TILE_ROWS - 1) / BLAS_TILE_ROWS;
}

/* Turns of a product that prefetch: those of two row tiles by two groups, for each block of k. */
static inline int64_t blas_tile_slots(int64_t rows, int64_t groups, int64_t k)
{
    return blas_row_tiles(rows) / 2 * (groups / 2) * k;
}

/* First row of row tile `tile` of `tiles` that share `rows`. */
static inline int64_t blas_row_tile_first(int64_t rows, int64_t tiles, int64_t tile)
{
    const int64_t more = rows % tiles;
    return tile * (rows / tiles) + (tile < more ? tile : more);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu-blas/tiles/tiles_gemm.h"

#include <string.h>

enum {
    STRIP = 4 * BLAS_TILE_ROWS /* columns of one product */
};

/* What one part converts to tiles at once: A [m, k] and B [k, n] together fill less than half of a second-level
 * cache, and both are used often enough to be worth the conversion. */
struct block {
    int64_t m, n, k;
};
static const struct block one_part = {256, 512, 512}, three_parts = {128, 256, 320};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void blas_operand_a(const struct blas_tiled *by, const struct blas_operand *o, int64_t first, int64_t last,
                    uint16_t *out)
{
    const struct blas_split split = {.x = o->x,
                                     .x_row = o->x_row,
                                     .rows = o->k_down ? o->k : o->n,
                                     .columns = o->k_down ? o->n : o->k,
                                     .blocks = 1,
                                     .first = first,
                                     .last = last,
                                     .parts = by->parts,
                                     .out = out,
                                     .out_row = blas_bf16_blocks(o->k) * by->parts * BLAS_TILE};
    (o->k_down ? by->kernels->across : by->kernels->rows)(&split);
}

void blas_operand_b(const struct blas_tiled *by, const struct blas_operand *o, int64_t first, int64_t last,
                    uint16_t *out)
{
    for (int64_t strip = first; strip < last; strip++) {
        const int64_t column = strip * STRIP, wide = least(STRIP, o->n - column);
        const struct blas_split split = {.x = o->x + (o->k_down ? column : column * o->x_row),
                                         .x_row = o->x_row,
                                         .rows = o->k_down ? o->k : wide,
                                         .columns = o->k_down ? wide : o->k,
                                         .parts = by->parts,
                                         .out = out + strip * blas_operand_words(by, STRIP, o->k)};
        (o->k_down ? by->kernels->columns : by->kernels->columns_across)(&split);
    }
}

/* A strip whose last group has fewer than 16 columns: two row tiles at a time, outside of C. */
static void multiply_edge(const struct blas_tiled *by, const struct blas_operands *p, struct blas_tile_product *product,
                          struct blas_tiles *tiles)
{
    float edge[2 * BLAS_TILE_ROWS * STRIP] __attribute__((aligned(64)));
    const int64_t count = blas_row_tiles(p->m), wide = p->n % STRIP;
    float *c = product->c;
    product->c = edge;
    product->c_row = STRIP;
    product->accumulate = false;
    for (int64_t t = 0; t < count; t += 2, product->a += 2 * product->a_row) {
        const int64_t row = blas_row_tile_first(p->m, count, t);
        product->rows = blas_row_tile_first(p->m, count, least(t + 2, count)) - row;
        by->kernels->product(product, tiles);
        for (int64_t r = 0; r < product->rows; r++)
            for (int64_t n = 0; n < wide; n++) {
                float *to = c + (row + r) * p->c_row + n;
                *to = (p->accumulate ? *to : 0.0f) + edge[r * STRIP + n];
            }
    }
}

void blas_operands_multiply(const struct blas_tiled *by, const struct blas_operands *p, struct blas_tiles *tiles)
{
    const int64_t blocks = blas_bf16_blocks(p->k);
    for (int64_t column = 0; column < p->n; column += STRIP) {
        const int64_t wide = least(STRIP, p->n - column);
        struct blas_tile_product product = {.rows = p->m,
                                            .k = blocks,
                                            .parts = by->parts,
                                            .a = p->a,
                                            .a_row = blocks * by->parts * BLAS_TILE,
                                            .b = p->b + column / STRIP * blas_operand_words(by, STRIP, p->k),
                                            .b_groups = (int32_t)blas_row_tiles(wide),
                                            .groups = (int32_t)blas_row_tiles(wide),
                                            .c = p->c + column,
                                            .c_row = p->c_row,
                                            .accumulate = p->accumulate};
        if (wide % BLAS_TILE_ROWS != 0)
            multiply_edge(by, p, &product, tiles);
        else
            by->kernels->product(&product, tiles);
    }
}

void blas_tiles_gemm(const struct blas_tiled *by, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                     int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc, uint16_t *scratch)
{
    const struct block *block = by->parts > 1 ? &three_parts : &one_part;
    struct blas_tiles tiles = {{0}};
    uint16_t *tiles_a = scratch, *tiles_b = scratch + blas_operand_words(by, block->m, block->k);
    for (int64_t k0 = 0; k0 < k; k0 += block->k) {
        const int64_t deep = least(block->k, k - k0);
        for (int64_t n0 = 0; n0 < n; n0 += block->n) {
            const struct blas_operand right = {.x = tb ? b + n0 * ldb + k0 : b + k0 * ldb + n0,
                                               .x_row = ldb,
                                               .k_down = !tb,
                                               .n = least(block->n, n - n0),
                                               .k = deep};
            blas_operand_b(by, &right, 0, blas_operand_strips(right.n), tiles_b);
            for (int64_t m0 = 0; m0 < m; m0 += block->m) {
                const struct blas_operand left = {.x = ta ? a + k0 * lda + m0 : a + m0 * lda + k0,
                                                  .x_row = lda,
                                                  .k_down = ta,
                                                  .n = least(block->m, m - m0),
                                                  .k = deep};
                blas_operand_a(by, &left, 0, blas_row_tiles(left.n), tiles_a);
                blas_operands_multiply(by,
                                       &(struct blas_operands){.m = left.n,
                                                               .n = right.n,
                                                               .k = deep,
                                                               .a = tiles_a,
                                                               .b = tiles_b,
                                                               .c = c + m0 * ldc + n0,
                                                               .c_row = ldc,
                                                               .accumulate = beta != 0.0f || k0 > 0},
                                       &tiles);
            }
        }
    }
    for (int64_t r = 0; r < m && k <= 0 && beta == 0.0f; r++)
        memset(c + r * ldc, 0, (size_t)n * sizeof *c);
    by->kernels->release(&tiles);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Products on tiles of bfloat16 (plugins/cpu-blas/tiles/tiles.h): in portable C against float64 within the bound of six
 * products of parts, in every shape of tiles; on the processor's tiles, if it has any, against portable C bit by bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu-blas/isa/isa.h"
#include "cpu-blas/tiles/tiles.h"

enum { MOST_ROWS = 70, MOST_K = 90, MOST_COLUMNS = 64, C_ROW = MOST_COLUMNS + 16 };

struct shape {
    int64_t rows, k;
    int32_t groups;
    bool across; /* A is given transposed */
    bool init, accumulate;
    int32_t parts;
};

struct matrices {
    float *a, *b, *c; /* [rows][k] or [k][rows], [k][columns], [rows][C_ROW] */
    float init[MOST_COLUMNS];
};

static void *tiles_of(int64_t words)
{
    void *p = aligned_alloc(64, (size_t)words * sizeof(uint16_t));
    assert_non_null(p);
    memset(p, 0xFF, (size_t)words * sizeof(uint16_t)); /* NaN, wherever nothing is written */
    return p;
}

/* Numbers of all sizes, whose parts are of any. */
static float number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const double mantissa = (double)(*state >> 11) / 4503599627370496.0 - 1.0;
    return (float)(mantissa * exp2((double)(*state >> 59) - 16.0));
}

static void fill(float *x, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = number(&seed);
}

/* C = A B as the shape has it, by one table of kernels. */
static void multiply(const struct blas_tile_kernels *kernels, const struct shape *s, const struct matrices *m)
{
    const int64_t k = blas_bf16_blocks(s->k), tiles = blas_row_tiles(s->rows), columns = s->groups * INT64_C(16);
    const int64_t a_row = k * s->parts * BLAS_TILE;
    uint16_t *a = tiles_of(tiles * a_row), *b = tiles_of(k * s->parts * s->groups * BLAS_TILE);
    struct blas_split split = {.x = m->a,
                               .x_row = s->across ? MOST_ROWS + 10 : MOST_K + 6,
                               .rows = s->rows,
                               .columns = (s->k + 15) / 16 * 16,
                               .blocks = 1,
                               .last = tiles,
                               .parts = s->parts,
                               .out = a,
                               .out_row = a_row};
    struct blas_tiles state = {{0}};
    const uint32_t saved = blas_flush_denormals_enter();
    if (s->across) {
        split.rows = s->k;
        split.columns = s->rows;
        kernels->across(&split);
    } else {
        for (split.last = split.first; split.first < tiles; split.first = split.last) { /* tile by tile */
            split.last = split.first + 1;
            kernels->rows(&split);
        }
    }
    kernels->columns(&(struct blas_split){
        .x = m->b, .x_row = MOST_COLUMNS, .rows = s->k, .columns = columns, .parts = s->parts, .out = b});
    kernels->product(&(struct blas_tile_product){.rows = s->rows,
                                                 .k = k,
                                                 .parts = s->parts,
                                                 .a = a,
                                                 .a_row = a_row,
                                                 .b = b,
                                                 .b_groups = s->groups,
                                                 .groups = s->groups,
                                                 .c = m->c,
                                                 .c_row = C_ROW,
                                                 .init = s->init ? m->init : NULL,
                                                 .accumulate = s->accumulate},
                     &state);
    kernels->release(&state);
    blas_flush_denormals_leave(saved);
    free(a);
    free(b);
}

/* The nearest number of 8 bits, of two the even one. */
static double bfloat16(float x)
{
    int exponent;
    const double mantissa = frexp((double)x, &exponent);
    return ldexp(nearbyint(mantissa * 256.0), exponent - 8);
}

/* Within a product of tiles 16 pairs are summed and added up, and six of these for each 32 of k one after the other:
 * so many roundings at most, and 2^-23 for the products of parts that are left out. */
static void compare(const struct shape *s, const struct matrices *m, const float *c_before)
{
    for (int64_t r = 0; r < s->rows; r++)
        for (int32_t n = 0; n < C_ROW; n++) {
            const float got = m->c[r * C_ROW + n];
            if (n >= s->groups * 16) {
                assert_memory_equal(&got, &c_before[r * C_ROW + n], sizeof got);
                continue;
            }
            double sum = s->accumulate ? (double)c_before[r * C_ROW + n] : s->init ? (double)m->init[n] : 0.0;
            double size = fabs(sum);
            for (int64_t k = 0; k < s->k; k++) {
                const float a = s->across ? m->a[k * (MOST_ROWS + 10) + r] : m->a[r * (MOST_K + 6) + k];
                const double product = s->parts > 1 ? (double)a * (double)m->b[k * MOST_COLUMNS + n]
                                                    : bfloat16(a) * bfloat16(m->b[k * MOST_COLUMNS + n]);
                sum += product;
                size += fabs(product);
            }
            const double roundings = 16.0 + 2.0 + 6.0 * (double)blas_bf16_blocks(s->k);
            assert_true(fabs((double)got - sum) <=
                        (roundings * FLT_EPSILON / 2 + (s->parts == 2 ? 0x3p-16 : 0x1p-23)) * size);
        }
}

static void check(const struct shape *s, const struct blas_tile_kernels *tiles)
{
    struct matrices m = {.a = calloc((MOST_K + 6) * (MOST_ROWS + 10), sizeof(float)),
                         .b = calloc((MOST_K + 6) * MOST_COLUMNS, sizeof(float)),
                         .c = calloc((MOST_ROWS + 10) * C_ROW, sizeof(float))};
    float *before = calloc((MOST_ROWS + 10) * C_ROW, sizeof(float));
    float *first = calloc((MOST_ROWS + 10) * C_ROW, sizeof(float));
    assert_true(m.a && m.b && m.c && before && first);
    const uint64_t seed = (uint64_t)(s->rows * 1000 + s->k * 10 + s->groups);
    fill(m.a, (MOST_K + 6) * (MOST_ROWS + 10), seed);
    for (int64_t r = 0; !s->across && r < MOST_ROWS; r++) /* rows are padded with zeros to 16 */
        memset(m.a + r * (MOST_K + 6) + s->k, 0, (size_t)(MOST_K + 6 - s->k) * sizeof(float));
    fill(m.b, (MOST_K + 6) * MOST_COLUMNS, seed + 1);
    fill(m.init, MOST_COLUMNS, seed + 2);
    fill(before, (MOST_ROWS + 10) * C_ROW, seed + 3);
    memcpy(m.c, before, (MOST_ROWS + 10) * C_ROW * sizeof(float));
    multiply(&blas_bf16_kernels_emulated, s, &m);
    compare(s, &m, before);
    memcpy(first, m.c, (MOST_ROWS + 10) * C_ROW * sizeof(float));
    if (tiles) {
        memcpy(m.c, before, (MOST_ROWS + 10) * C_ROW * sizeof(float));
        multiply(tiles, s, &m);
        assert_memory_equal(m.c, first, (MOST_ROWS + 10) * C_ROW * sizeof(float));
    }
    free(m.a);
    free(m.b);
    free(m.c);
    free(before);
    free(first);
}

static void products_agree(void **state)
{
    const struct blas_tile_kernels *tiles = blas_bf16_get();
    static const int64_t rows[] = {1, 2, 15, 16, 17, 20, 31, 32, 33, 47, 48, 64, 70};
    static const int64_t ks[] = {1, 16, 17, 32, 33, 48, 64, 90};
    (void)state;
    print_message("# %s\n", tiles ? tiles->name : "no tiles here: portable C alone");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++)
            for (int32_t groups = 1; groups <= 4; groups++) {
                const int start = (int)(i + j) % 3;
                for (int32_t parts = 1; parts <= BLAS_BF16_PARTS; parts++) {
                    check(&(struct shape){rows[i], ks[j], groups, false, start == 1, start == 2, parts}, tiles);
                    if (rows[i] % 16 == 0)
                        check(&(struct shape){rows[i], ks[j], groups, true, start == 2, start == 1, parts}, tiles);
                }
            }
}

/* Three parts are the number, to the last bit. */
static void parts_add_up(void **state)
{
    float x[16 * 32] __attribute__((aligned(64)));
    uint16_t *out = tiles_of(BLAS_BF16_PARTS * BLAS_TILE);
    (void)state;
    fill(x, 16 * 32, 11);
    x[0] = 0.0f;
    x[1] = -0.0f;
    x[2] = 3.3895e38f;
    x[3] = 1e-32f;
    x[4] = 1.0f + FLT_EPSILON;
    x[5] = NAN;
    blas_bf16_kernels_emulated.rows(&(struct blas_split){.x = x,
                                                         .x_row = 32,
                                                         .rows = 16,
                                                         .columns = 32,
                                                         .blocks = 1,
                                                         .last = 1,
                                                         .parts = BLAS_BF16_PARTS,
                                                         .out = out,
                                                         .out_row = 0});
    for (int r = 0; r < 16; r++)
        for (int k = 0; k < 32; k++) {
            float sum = 0;
            for (int part = BLAS_BF16_PARTS - 1; part >= 0; part--) {
                const uint32_t bits = (uint32_t)out[part * BLAS_TILE + r * 32 + k % 16 * 2 + k / 16] << 16;
                float value;
                memcpy(&value, &bits, sizeof value);
                sum += value;
            }
            if (isnan(x[r * 32 + k]))
                assert_true(isnan(sum));
            else
                assert_true(sum == x[r * 32 + k]);
        }
    free(out);
}

/* A NaN, or an infinity, reaches all sums that it is part of, and no other. */
static void no_number_is_lost(void **state)
{
    const struct shape s = {17, 33, 2, false, false, false, BLAS_BF16_PARTS};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct matrices m = {.a = calloc(MOST_K + 6, MOST_ROWS * sizeof(float)),
                             .b = calloc(MOST_K + 6, MOST_COLUMNS * sizeof(float)),
                             .c = calloc(MOST_ROWS, C_ROW * sizeof(float))};
        assert_true(m.a && m.b && m.c);
        fill(m.b, 33 * MOST_COLUMNS, 5);
        for (int64_t r = 0; r < 17; r++)
            fill(m.a + r * (MOST_K + 6), 33, 7 + (uint64_t)r);
        m.a[16 * (MOST_K + 6) + 20] = bad[i];
        multiply(&blas_bf16_kernels_emulated, &s, &m);
        for (int64_t r = 0; r < 17; r++)
            for (int n = 0; n < 32; n++)
                assert_int_equal(isfinite(m.c[r * C_ROW + n]) != 0, r != 16);
        free(m.a);
        free(m.b);
        free(m.c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_agree),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(no_number_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

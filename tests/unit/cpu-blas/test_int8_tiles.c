/* SPDX-License-Identifier: Apache-2.0 */
/* Products on tiles of bytes (plugins/cpu-blas/tiles/tiles.h) with all kernels of this machine, against integers, to
 * the last one, in every shape of tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu-blas/tiles/tiles.h"

enum { MOST_ROWS = 50, MOST_K = 150, A_ROW = MOST_K + 14, COLUMNS = 64, C_ROW = COLUMNS + 16 };

/* The kernels that this machine runs. */
struct kernel_list {
    const struct blas_tile_kernels *of[4];
    int count;
};

static const float scale = 90.5f, shift = 111.25f;

struct shape {
    int64_t rows, k;
    int32_t groups;
    bool accumulate;
};

struct matrices {
    float a[MOST_ROWS * A_ROW], b[MOST_K * COLUMNS], factors[COLUMNS];
    int32_t c[MOST_ROWS * C_ROW], before[MOST_ROWS * C_ROW];
};

static struct kernel_list kernels_get(void)
{
    const enum blas_isa best = blas_isa_detect();
    struct kernel_list list = {.count = 0};
    for (int i = 0; i <= (int)best + 1; i++) { /* all instruction sets, then tiles */
        const struct blas_tile_kernels *kernels =
            i <= (int)best ? blas_int8_get((enum blas_isa)i, false) : blas_int8_get(best, true);
        if (list.count == 0 || kernels != list.of[list.count - 1])
            list.of[list.count++] = kernels;
    }
    return list;
}

static float number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(*state >> 11) / 4503599627370496.0 - 1.0);
}

/* Beyond both limits, and between two bytes, now and then. */
static void fill(struct matrices *m, uint64_t seed)
{
    for (int64_t i = 0; i < MOST_ROWS * A_ROW; i++)
        m->a[i] = i % 7 == 3 ? (rintf(number(&seed) * 100.0f) + 0.5f - shift) / scale : 2.0f * number(&seed);
    m->a[5] = NAN;
    m->a[6] = INFINITY;
    m->a[7] = -INFINITY;
    m->a[8] = 1e30f;
    for (int64_t i = 0; i < MOST_K * COLUMNS; i++)
        m->b[i] = i % 5 == 2 ? (rintf(number(&seed) * 100.0f) + 0.5f) / 64.0f : 2.5f * number(&seed);
    for (int64_t i = 0; i < COLUMNS; i++)
        m->factors[i] = i % 3 ? 64.0f : 0.0f;
    for (int64_t i = 0; i < MOST_ROWS * C_ROW; i++)
        m->before[i] = (int32_t)(number(&seed) * 1e8f);
}

static int32_t byte_of_a(float x)
{
    const float v = nearbyintf(fmaf(x, scale, shift));
    return !(v > 0.0f) ? 0 : v > 255.0f ? 255 : (int32_t)v;
}

static int32_t byte_of_b(float x, float factor)
{
    const float v = nearbyintf(x * factor);
    return v < -127.0f ? -127 : v > 127.0f ? 127 : (int32_t)v;
}

static uint16_t *tiles_of(int64_t words)
{
    uint16_t *p = aligned_alloc(64, (size_t)words * sizeof *p);
    assert_non_null(p);
    memset(p, 0x55, (size_t)words * sizeof *p);
    return p;
}

static void multiply(const struct blas_tile_kernels *kernels, const struct shape *s, struct matrices *m)
{
    const int64_t k = (s->k + BLAS_INT8_K - 1) / BLAS_INT8_K, tiles = blas_row_tiles(s->rows), a_row = k * BLAS_TILE;
    uint16_t *a = tiles_of(tiles * a_row), *b = tiles_of(k * s->groups * BLAS_TILE);
    struct blas_tiles state = {{0}};
    memcpy(m->c, m->before, sizeof m->c);
    for (int64_t t = 0; t < tiles; t++)
        kernels->rows(&(struct blas_split){.x = m->a,
                                           .x_row = A_ROW,
                                           .rows = s->rows,
                                           .columns = s->k,
                                           .blocks = 1,
                                           .first = t,
                                           .last = t + 1,
                                           .parts = 1,
                                           .out = a,
                                           .out_row = a_row,
                                           .int8 = {.scale = scale, .shift = shift}});
    kernels->columns(&(struct blas_split){.x = m->b,
                                          .x_row = COLUMNS,
                                          .rows = s->k,
                                          .columns = s->groups * INT64_C(16),
                                          .parts = 1,
                                          .out = b,
                                          .int8 = {.factors = m->factors}});
    kernels->product(&(struct blas_tile_product){.rows = s->rows,
                                                 .k = k,
                                                 .parts = 1,
                                                 .a = a,
                                                 .a_row = a_row,
                                                 .b = b,
                                                 .b_groups = s->groups,
                                                 .groups = s->groups,
                                                 .c = (float *)(void *)m->c,
                                                 .c_row = C_ROW,
                                                 .accumulate = s->accumulate},
                     &state);
    kernels->release(&state);
    free(a);
    free(b);
}

static void check(const struct blas_tile_kernels *kernels, const struct shape *s, struct matrices *m)
{
    multiply(kernels, s, m);
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t n = 0; n < C_ROW; n++) {
            int32_t sum = s->accumulate || n >= s->groups * 16 ? m->before[r * C_ROW + n] : 0;
            for (int64_t k = 0; k < s->k && n < s->groups * 16; k++)
                sum += byte_of_a(m->a[r * A_ROW + k]) * byte_of_b(m->b[k * COLUMNS + n], m->factors[n]);
            assert_int_equal(m->c[r * C_ROW + n], sum);
        }
}

static void products_are_exact(void **state)
{
    static const int64_t rows[] = {1, 2, 15, 16, 17, 20, 32, 33, 47, 48, 50};
    static const int64_t ks[] = {1, 16, 17, 48, 63, 64, 65, 127, 128, 129, 150};
    const struct kernel_list kernels = kernels_get();
    struct matrices *m = malloc(sizeof *m);
    (void)state;
    assert_non_null(m);
    for (int n = 0; n < kernels.count; n++)
        print_message("# %s\n", kernels.of[n]->name);
    fill(m, 3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof ks / sizeof *ks; j++)
            for (int32_t groups = 1; groups <= 4; groups++) {
                const struct shape s = {rows[i], ks[j], groups, (i + j) % 2 == 1};
                for (int n = 0; n < kernels.count; n++)
                    check(kernels.of[n], &s, m);
            }
    free(m);
}

static void sums_become_numbers(void **state)
{
    enum { ROWS = 5 };
    const struct kernel_list kernels = kernels_get();
    uint64_t seed = 9;
    float factor[COLUMNS], offset[COLUMNS];
    (void)state;
    for (int n = 0; n < COLUMNS; n++) {
        factor[n] = number(&seed);
        offset[n] = number(&seed);
    }
    for (int i = 0; i < kernels.count; i++) {
        int32_t c[ROWS * C_ROW], before[ROWS * C_ROW];
        for (int k = 0; k < ROWS * C_ROW; k++)
            before[k] = (int32_t)(number(&seed) * (k % 2 ? 2e9f : 3e3f));
        memcpy(c, before, sizeof c);
        kernels.of[i]->sums(&(struct blas_int8_sums){
            .rows = ROWS, .c = (float *)(void *)c, .c_row = C_ROW, .scale = factor, .offset = offset});
        for (int k = 0; k < ROWS * C_ROW; k++) {
            const int n = k % C_ROW;
            const float want = n < COLUMNS ? fmaf((float)before[k], factor[n], offset[n]) : 0.0f;
            assert_memory_equal(&c[k], n < COLUMNS ? (const void *)&want : &before[k], sizeof want);
        }
    }
}

static void the_largest_is_found(void **state)
{
    const struct kernel_list kernels = kernels_get();
    static const float largest[] = {3.0f, -3.0f, INFINITY, -INFINITY, NAN};
    (void)state;
    for (int i = 0; i < kernels.count; i++)
        for (int64_t n = 1; n < 70; n++)
            for (int64_t at = 0; at < 5 * n; at++) {
                float x[70], want = fabsf(largest[at % 5]);
                for (int64_t k = 0; k < n; k++)
                    x[k] = k % 2 ? -2.0f : 0.5f;
                x[at / 5] = largest[at % 5];
                x[n] = 9.0f;
                const uint32_t bits = kernels.of[i]->largest(x, n);
                if (isnan(want))
                    assert_true(bits > 0x7F800000u);
                else
                    assert_memory_equal(&bits, &want, sizeof bits);
            }
}

/* Tiles where the processor has them, unless they are not wanted; without them what the instruction set offers. */
static void tiles_are_used_where_they_are_wanted(void **state)
{
    const enum blas_isa best = blas_isa_detect();
    (void)state;
    for (int i = 0; i <= (int)best; i++)
        assert_null(strstr(blas_int8_get((enum blas_isa)i, false)->name, "amx"));
    assert_int_equal(strstr(blas_int8_get(best, true)->name, "amx") != NULL, blas_bf16_get() != NULL);
    if (!blas_tiles_offered())
        assert_ptr_equal(blas_int8_get(best, true), blas_int8_get(best, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_used_where_they_are_wanted),
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(sums_become_numbers),
        cmocka_unit_test(the_largest_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The products of recurrent layers (plugins/cpu-blas/recurrent/kernels/kernels.h), in every instruction set of this
 * machine, against sums in float64: rows times a panel, and sums of outer products, in every shape of register tiles,
 * of many tiles below and beside each other, with sums of a few, of many and of broken numbers of k. */
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
#include "cpu-blas/recurrent/kernels/kernels.h"

enum { CASES = 1500, A_FLOATS = 1 << 18, B_FLOATS = 1 << 18, C_FLOATS = 1 << 17 };

struct matrices {
    float *a, *b, *c, *before;
    float init[PANEL];
    uint64_t random;
};

static int64_t below(struct matrices *m, int64_t n)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((m->random >> 33) % (uint64_t)n);
}

static void fill(struct matrices *m, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(below(m, 2001) - 1000) / 1000.0f;
}

static int matrices_make(void **state)
{
    static struct matrices m;
    m = (struct matrices){.a = aligned_alloc(64, A_FLOATS * sizeof(float)),
                          .b = aligned_alloc(64, B_FLOATS * sizeof(float)),
                          .c = aligned_alloc(64, C_FLOATS * sizeof(float)),
                          .before = aligned_alloc(64, C_FLOATS * sizeof(float)),
                          .random = 7};
    *state = &m;
    if (m.a == NULL || m.b == NULL || m.c == NULL || m.before == NULL)
        return 1;
    fill(&m, m.a, A_FLOATS);
    fill(&m, m.b, B_FLOATS);
    fill(&m, m.before, C_FLOATS);
    fill(&m, m.init, PANEL);
    return 0;
}

static int matrices_free(void **state)
{
    struct matrices *m = *state;
    free(m->a);
    free(m->b);
    free(m->c);
    free(m->before);
    return 0;
}

/* The kernels of a set, or NULL where the processor or the build lacks it. */
static const struct blas_recurrent_kernels *kernels_of(enum blas_isa isa)
{
    if (isa > blas_isa_detect())
        return NULL;
#ifdef BLAS_HAVE_X86_KERNELS
    if (isa != BLAS_ISA_PORTABLE)
        return isa == BLAS_ISA_AVX512 ? &blas_recurrent_kernels_avx512 : &blas_recurrent_kernels_avx2;
#endif
    return &blas_recurrent_kernels_portable;
}

/* One element: `sum` of n terms whose magnitudes add up to `size`, rounded n times in any order. */
static void expect_near(float got, double sum, double size, int64_t n)
{
    const double unit = FLT_EPSILON / 2;
    if (!(fabs((double)got - sum) <= (double)n * unit / (1 - (double)n * unit) * size))
        fail_msg("%.9g in place of %.9g, %lld terms of %g", (double)got, sum, (long long)n, size);
}

/* Sum over k of A's row times B's column, of a product and of an outer one. */
static void product_element(const struct blas_product *p, int64_t row, int64_t column, double *sum, double *size)
{
    for (int64_t block = 0; block < p->k_blocks; block++) {
        for (int64_t k = 0; k < p->k_inner; k++) {
            const int64_t all = block * p->k_inner + k;
            const double a = p->a[row * p->a_row + block * p->a_block + k];
            const float *from = p->b + (p->b_strip ? column / GROUP * p->b_strip + column % GROUP : column);
            const double b = from[all * p->b_row + block * p->b_skip];
            *sum += a * b;
            *size += fabs(a * b);
        }
    }
}

static void check_product(const struct blas_product *p, const struct matrices *m)
{
    const int64_t terms = (int64_t)p->k_blocks * p->k_inner + 2;
    for (int64_t i = 0; i < p->rows; i++) {
        for (int64_t n = 0; n < p->c_row; n++) {
            const int64_t at = i * p->c_row + n;
            double sum = 0, size = 0;
            if (n >= p->groups * GROUP) {
                assert_true(m->c[at] == m->before[at]);
                continue;
            }
            sum = p->accumulate ? m->before[at] : p->init ? p->init[n] : 0.0;
            size = fabs(sum);
            product_element(p, i, n, &sum, &size);
            expect_near(m->c[at], sum, size, terms);
        }
    }
    assert_true(m->c[p->rows * p->c_row] == m->before[p->rows * p->c_row]);
}

/* `i`: cases go through all numbers of rows from 1 to 70, and some more. */
static struct blas_product product_case(struct matrices *m, bool strips, int i)
{
    struct blas_product p = {.rows = i % 10 == 0 ? 71 + below(m, 100) : 1 + i % 70,
                             .a = m->a,
                             .k_blocks = 1 + (int32_t)below(m, 3),
                             .b = m->b,
                             .b_row = PANEL,
                             .groups = 1 + (int32_t)below(m, 4),
                             .c = m->c,
                             .c_row = PANEL + GROUP * below(m, 2)};
    p.k_inner = BLAS_TURN_K * (1 + (int32_t)below(m, p.k_blocks > 1 ? 20 : i % 5 == 0 ? 120 : 36));
    p.a_row = p.k_inner + GROUP * below(m, 3);
    p.a_block = p.rows * p.a_row;
    if (strips && below(m, 2)) {
        p.b_row = GROUP;
        p.b_strip = p.k_blocks * p.k_inner * GROUP;
    } else {
        p.b_skip = PANEL * below(m, 3);
    }
    p.accumulate = below(m, 2);
    p.init = !p.accumulate && below(m, 2) ? m->init : NULL;
    p.next = below(m, 3) == 0 ? m->b : NULL;
    p.descending = p.rows <= 3 && below(m, 2);
    return p;
}

static void products_of(struct matrices *m, enum blas_isa isa)
{
    const struct blas_recurrent_kernels *kernels = kernels_of(isa);
    if (kernels == NULL) {
        print_message("%s: not on this machine\n", blas_isa_name(isa));
        return;
    }
    for (int i = 0; i < CASES; i++) {
        const struct blas_product p = product_case(m, kernels->strips, i);
        assert_true(p.k_blocks * p.a_block <= A_FLOATS && p.rows * p.c_row < C_FLOATS);
        memcpy(m->c, m->before, (size_t)(p.rows * p.c_row + 1) * sizeof *m->c);
        kernels->product(&p);
        check_product(&p, m);
    }
}

/* Row r of C, or -1 where it is not wanted. */
static int64_t outer_row_at(const struct blas_outer *o, int64_t r)
{
    const int64_t group = o->c_group ? o->c_group : GROUP * o->c_row;
    return r % GROUP < GROUP - o->m_skip ? r / GROUP * group + r % GROUP * o->c_row : -1;
}

/* What is not wanted stays what it was. */
static void check_outer(const struct blas_outer *o, const float *a, int64_t floats, const struct matrices *m)
{
    static bool written[C_FLOATS];
    memset(written, 0, sizeof written);
    for (int64_t r = 0; r < o->m_count; r++) {
        const int64_t to = outer_row_at(o, r);
        for (int64_t n = 0; to >= 0 && n < (int64_t)o->groups * GROUP - o->n_skip; n++) {
            double sum = o->accumulate ? m->before[to + n] : 0.0, size = fabs(sum);
            for (int64_t q = 0; q < o->rows; q++) {
                const float *row = o->b + (o->b_strip ? n / GROUP * o->b_strip + n % GROUP : n);
                const double b = row[q * o->b_row];
                sum += a[q * o->a_row + r] * b;
                size += fabs(a[q * o->a_row + r] * b);
            }
            expect_near(m->c[to + n], sum, size, o->rows + 2);
            written[to + n] = true;
        }
    }
    for (int64_t i = 0; i < floats; i++)
        assert_true(written[i] || m->c[i] == m->before[i]);
}

static void outers_of(struct matrices *m, enum blas_isa isa)
{
    const struct blas_recurrent_kernels *kernels = kernels_of(isa);
    if (kernels == NULL) {
        print_message("%s: not on this machine\n", blas_isa_name(isa));
        return;
    }
    float *tiled = aligned_alloc(64, A_FLOATS * sizeof *tiled);
    assert_non_null(tiled);
    for (int i = 0; i < CASES; i++) {
        struct blas_outer o = {.rows = i % 10 == 0 ? 71 + below(m, 500) : 1 + i % 70,
                               .a = m->a,
                               .a_row = PANEL + GROUP * below(m, 2),
                               .m_count = 1 + (int32_t)below(m, PANEL),
                               .b = m->b,
                               .b_row = PANEL + GROUP * below(m, 3),
                               .groups = 1 + (int32_t)below(m, 4),
                               .c = m->c,
                               .c_row = PANEL + below(m, 50),
                               .accumulate = below(m, 2)};
        if (kernels->strips && below(m, 2)) {
            o.b_row = GROUP;
            o.b_strip = o.rows * GROUP;
        }
        if (below(m, 2))
            o.n_skip = (int32_t)below(m, GROUP);
        if (below(m, 2))
            o.m_skip = (int32_t)below(m, GROUP);
        if (below(m, 2))
            o.c_group = GROUP * o.c_row + GROUP * below(m, 5);
        o.next = below(m, 3) == 0 ? m->b : NULL;
        const int64_t floats = 4 * (GROUP * o.c_row + 4 * GROUP) + PANEL;
        assert_true(o.rows * o.a_row <= A_FLOATS && o.rows * o.b_row <= B_FLOATS && floats <= C_FLOATS);
        if (below(m, 3) == 0) {
            kernels->outer_tile_a(&o, tiled);
            o.a = tiled;
            o.a_tiled = true;
        }
        memcpy(m->c, m->before, (size_t)floats * sizeof *m->c);
        kernels->outer(&o);
        check_outer(&o, m->a, floats, m);
    }
    free(tiled);
}

static void products_portable(void **state)
{
    products_of(*state, BLAS_ISA_PORTABLE);
}
static void products_avx2(void **state)
{
    products_of(*state, BLAS_ISA_AVX2);
}
static void products_avx512(void **state)
{
    products_of(*state, BLAS_ISA_AVX512);
}
static void outers_portable(void **state)
{
    outers_of(*state, BLAS_ISA_PORTABLE);
}
static void outers_avx2(void **state)
{
    outers_of(*state, BLAS_ISA_AVX2);
}
static void outers_avx512(void **state)
{
    outers_of(*state, BLAS_ISA_AVX512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_portable), cmocka_unit_test(products_avx2), cmocka_unit_test(products_avx512),
        cmocka_unit_test(outers_portable),   cmocka_unit_test(outers_avx2),   cmocka_unit_test(outers_avx512),
    };
    return cmocka_run_group_tests(tests, matrices_make, matrices_free);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix products of cuda-generic on the emulated device, against float64: every number type, every layout, sizes
 * that divide nothing and sizes around those of tiles and slices, with a depth in one part and in several, with a bias,
 * added to what is there, in a C whose rows are longer, and of operands which are parts of larger ones. */
#include <cmath>
#include <cstdio>
#include <vector>

#include "cuda-generic/gemm/gemm.h"
#include "seqlstm/ops.h"
#include "emulated_tests.h"

static uint64_t seed = 17;

static float draw()
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

static std::vector<float> draw_many(int64_t count)
{
    std::vector<float> x((size_t)count);
    for (float &value : x)
        value = draw();
    return x;
}

struct kind {
    const char *name;
    uint32_t compute;
    int32_t f16x3;
    double rounding; /* of an operand */
};

/* Bits of `form`: A and B by columns, a bias, added to C, a wider C, parts; gaps of NaN between rows of A and B, which
 * begin at multiples of 16 bytes, or of 8. */
enum { A_COLUMNS = 1, B_COLUMNS = 2, BIAS = 4, ADD = 8, WIDE = 16, PARTS = 32, FORMS = 64, GAPS = 64, HALVES = 128 };

/* How far rows of so many elements are apart. */
static int64_t get_stride(int64_t elems, int form)
{
    const int64_t fours = (elems + 3) / 4 * 4;
    return form & HALVES ? fours + 2 : form & GAPS ? fours + 4 : elems;
}

static std::vector<float> draw_rows(int64_t rows, int64_t elems, int form)
{
    const int64_t stride = get_stride(elems, form);
    std::vector<float> x = draw_many(rows * stride);
    for (int64_t k = 0; k < rows * stride; k++)
        if (k % stride >= elems)
            x[(size_t)k] = NAN;
    return x;
}

static bool check(const kind &k, int64_t m, int64_t n, int64_t depth, int form)
{
    const int64_t c_row = n + (form & WIDE ? 5 : 0);
    const bool by_a = form & A_COLUMNS, by_b = form & B_COLUMNS;
    const std::vector<float> a = draw_rows(by_a ? depth : m, by_a ? m : depth, form);
    const std::vector<float> b = draw_rows(by_b ? n : depth, by_b ? depth : n, form), bias = draw_many(n);
    std::vector<float> c = draw_many(m * c_row), parts((size_t)cg_gemm_count_room(m, n, depth) + 1, NAN);
    const std::vector<float> before = c;
    cg_gemm g = {};
    g.m = m;
    g.n = n;
    g.depth = depth;
    g.a = a.data();
    g.a_row = by_a ? 1 : get_stride(depth, form);
    g.a_column = by_a ? get_stride(m, form) : 1;
    g.b = b.data();
    g.b_row = by_b ? 1 : get_stride(n, form);
    g.b_column = by_b ? get_stride(depth, form) : 1;
    g.c = c.data();
    g.c_row = c_row;
    g.bias = form & BIAS ? bias.data() : nullptr;
    g.add = form & ADD ? 1 : 0;
    g.compute = k.compute;
    g.f16x3 = k.f16x3;
    g.shared_most = 227 * 1024;
    g.parts = (form & PARTS) && cg_gemm_count_room(m, n, depth) > 0 ? parts.data() : nullptr;
    if (cg_gemm_launch(stream, &g) != 0 || gpu_stream_synchronize(0, stream, nullptr) != SEQLSTM_OK)
        return false;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < c_row; j++) {
            const size_t at = (size_t)(i * c_row + j);
            double exact = (double)before[at], sizes = 0;
            if (j < n) {
                exact = (form & ADD ? exact : 0) + (form & BIAS ? (double)bias[(size_t)j] : 0);
                for (int64_t d = 0; d < depth; d++) {
                    const double product = (double)a[(size_t)(i * g.a_row + d * g.a_column)] *
                                           (double)b[(size_t)(d * g.b_row + j * g.b_column)];
                    exact += product;
                    sizes += fabs(product);
                }
            }
            if (!(fabs((double)c[at] - exact) <= 2 * k.rounding * sizes + 1e-6 * (sizes + fabs(exact)))) {
                printf("# %s, [%d, %d] of depth %d, form %d: element [%d, %d] is %.9g, expected %.9g\n", k.name, (int)m,
                       (int)n, (int)depth, form, (int)i, (int)j, (double)c[at], exact);
                return false;
            }
        }
    return true;
}

/* Small and large tiles, one and several of each; few rows, few columns; a depth below and above a slice. */
static bool check_kind(const kind &k)
{
    static const int64_t sizes[][3] = {{1, 1, 1}, {5, 9, 50}, {19, 70, 37}, {70, 13, 67}, {67, 66, 90}};
    bool good = true;
    for (const auto &s : sizes)
        for (int form = 0; form < FORMS; form++)
            good = check(k, s[0], s[1], s[2], form) && good;
    return check(k, 330, 410, 20, BIAS) && good; /* large tiles where parts are not asked for */
}

/* One less, as many, and one more than a tile has rows and columns, and than a slice of the depth has. With parts,
 * tiles are large. */
static bool check_edges(const kind &k)
{
    static const int64_t tiles[][2] = {{16, 32}, {32, 64}, {64, 64}, {128, 128}};
    static const int64_t slices[] = {4, 8, 16, 32, 64};
    bool good = true;
    int layout = 0;
    for (const auto &tile : tiles)
        for (int64_t m = tile[0] - 1; m <= tile[0] + 1; m++)
            for (int64_t n = tile[1] - 1; n <= tile[1] + 1; n++)
                for (int form : {0, (int)PARTS})
                    if (n < 100 || (form == PARTS && m == n)) /* large ones take long */
                        good = check(k, m, n, 32 + (m + n) % 3, form | GAPS | layout++ % 4) && good;
    for (int64_t slice : slices)
        for (int64_t depth = slice - 1; depth <= slice + 1; depth++)
            for (int form = 0; form < 4; form++) {
                good = check(k, 17, 33, depth, form | GAPS) && good;
                good = check(k, 17, 33, depth, form | HALVES) && good;
                good = check(k, 17, 33, 2 * slice + depth, form | GAPS | PARTS) && good;
            }
    return good;
}

int main()
{
    static const kind kinds[] = {{"float32", SEQLSTM_DTYPE_FLOAT32, 0, 0},
                                 {"three float16 products", SEQLSTM_DTYPE_FLOAT32, 1, 0x1p-22},
                                 {"tf32", SEQLSTM_DTYPE_TF32, 0, 0x1p-11},
                                 {"bfloat16", SEQLSTM_DTYPE_BFLOAT16, 0, 0x1p-8},
                                 {"float16", SEQLSTM_DTYPE_FLOAT16, 0, 0x1p-11}};
    std::vector<emulated_test> tests;
    for (const kind &k : kinds) {
        tests.push_back({k.name, [&] { return check_kind(k); }});
        tests.push_back({std::string(k.name) + ", around tiles", [&] { return check_edges(k); }});
    }
    return run_tests(tests);
}

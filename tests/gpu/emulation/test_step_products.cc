/* SPDX-License-Identifier: Apache-2.0 */
/* The products of a time step (recurrent/kernels/step_product.cu) on the emulated device, against float64: each
 * product, in every number type, whose operands are rounded to it and not to another one, by small and large tiles. */
#include <cmath>

#include "cuda-generic/recurrent/kernels/step.h"
#include "seqlstm/ops.h"
#include "emulated_tests.h"

enum { ROW = 3, STEP = 1, PARITY = 1 }; /* of the products: where the records of the step begin */

struct number {
    const char *name;
    uint32_t compute;
    int bits, least; /* of a fraction; the least exponent with all of them */
};

struct product {
    const char *name;
    enum cg_step_product which;
    bool late, normed, coupled;
};

static uint64_t seed = 23;

/* Every other row is so small that float16 has few bits for it. */
static std::vector<float> draw_rows(int64_t rows, int64_t columns, float small)
{
    std::vector<float> x((size_t)(rows * columns));
    for (size_t k = 0; k < x.size(); k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[k] = (float)(int32_t)(seed >> 32) * 0x1p-31f * ((int64_t)k / columns % 2 ? small : 1);
    }
    return x;
}

/* As an operand of the product. tf32 is rounded away from 0 in the middle, 16 bits to even. */
static double round_to(const number &n, float x)
{
    if (n.compute == SEQLSTM_DTYPE_FLOAT32 || x == 0)
        return (double)x;
    const int exponent = ilogb(x) > n.least ? ilogb(x) : n.least;
    const double unit = ldexp(1, exponent - n.bits), count = (double)x / unit;
    return unit * (n.compute == SEQLSTM_DTYPE_TF32 ? round(count) : nearbyint(count));
}

/* C = A B, or C + A B. */
struct operands {
    const float *a;
    int64_t a_row, depth;
    const float *b;
    int64_t b_row, b_column;
    const float *c;
    int64_t c_row, n;
    bool add;
    int64_t gap, gap_end; /* of the depth: not multiplied */
};

static operands find(const product &p, const cg_layer &y)
{
    const int64_t h = y.hidden, out = y.out, gh = y.gh;
    switch (p.which) {
    case CG_PRODUCT_H:
        return {y.hm[PARITY], out, out, y.w_h, 1, out, p.normed ? y.v + ROW * gh : y.product, gh, gh, false, 0, 0};
    case CG_PRODUCT_RESET:
        return {y.reset, h, h, y.w_h + 2 * h * out, 1, h, y.product + 2 * h, gh, h, false, 0, 0};
    case CG_PRODUCT_OUTPUT:
        return {y.raw, h, h, y.w_p, 1, h, y.projected, out, out, false, 0, 0};
    case CG_PRODUCT_BACK:
        return {
            y.dv + ROW * gh,      gh, p.late ? 2 * h : gh, y.w_h, out, 1, y.back, out, out, p.late, p.coupled ? h : 0,
            p.coupled ? 2 * h : 0};
    case CG_PRODUCT_BACK_RESET:
        return {y.pre_u + ROW * gh + 2 * h, gh, h, y.w_h + 2 * h * out, out, 1, y.dreset, h, h, false, 0, 0};
    default:
        return {y.dh_new + ROW * out, out, out, y.w_p, h, 1, y.dout, h, h, false, 0, 0};
    }
}

static bool check(const product &p, const number &n, int64_t m, int64_t h, int64_t out)
{
    const int64_t gh = (p.late ? 3 : 4) * h, rows = ROW + m, widest = gh > out ? gh : out;
    std::vector<float> states = draw_rows(m, out, 1e-6f), units = draw_rows(m, h, 1e-6f);
    std::vector<float> records = draw_rows(rows, gh, 1e-6f), outputs = draw_rows(rows, out, 1e-6f);
    std::vector<float> to = draw_rows(rows, widest, 1e-6f);
    const std::vector<float> w_h = draw_rows(gh, out, 1), w_p = draw_rows(out, h, 1), before = to;
    const int64_t offsets[] = {0, ROW};
    cg_layer y = {};
    if (p.coupled)
        y.options = SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
    y.late = p.late;
    y.normed = p.normed;
    y.hidden = h;
    y.out = out;
    y.gh = gh;
    y.axis.row_offsets = offsets;
    y.w_h = w_h.data();
    y.w_p = w_p.data();
    y.hm[PARITY] = states.data();
    y.reset = y.raw = units.data();
    y.dv = y.pre_u = records.data();
    y.dh_new = outputs.data();
    y.product = y.v = y.projected = y.back = y.dreset = y.dout = to.data();
    const operands o = find(p, y);
    if (p.coupled) /* undefined there */
        for (int64_t i = 0; i < m; i++)
            for (int64_t d = h; d < 2 * h; d++)
                records[(size_t)((ROW + i) * gh + d)] = NAN;
    if (cg_step_product(stream, &y, p.which, n.compute, STEP, PARITY, m, o.n) != 0 ||
        gpu_stream_synchronize(0, stream, nullptr) != SEQLSTM_OK)
        return false;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < o.n; j++) {
            const size_t at = (size_t)(o.c - to.data() + i * o.c_row + j);
            double exact = o.add ? (double)before[at] : 0, sizes = fabs(exact);
            for (int64_t d = 0; d < o.depth; d++) {
                if (d >= o.gap && d < o.gap_end)
                    continue;
                const double term = round_to(n, o.a[i * o.a_row + d]) * round_to(n, o.b[d * o.b_row + j * o.b_column]);
                exact += term;
                sizes += fabs(term);
            }
            if (!(fabs((double)to[at] - exact) <= 2e-6 * sizes)) {
                printf("# %d by %d: element [%d, %d] is %.9g, expected %.9g\n", (int)m, (int)o.n, (int)i, (int)j,
                       (double)to[at], exact);
                return false;
            }
        }
    return true;
}

/* Sizes that divide nothing; tiles are large where C has 64 K elements. */
static bool check_sizes(const product &p, const number &n)
{
    const bool square = p.which == CG_PRODUCT_RESET || p.which == CG_PRODUCT_BACK_RESET;
    bool good = check(p, n, 19, 22, square ? 22 : 10);
    if (p.which == CG_PRODUCT_H)
        good = check(p, n, 520, 33, 7) && good;
    if (p.which == CG_PRODUCT_BACK)
        good = check(p, n, 520, 3, 130) && good;
    return good;
}

int main()
{
    static const number numbers[] = {{"float32", SEQLSTM_DTYPE_FLOAT32, 23, -126},
                                     {"tf32", SEQLSTM_DTYPE_TF32, 10, -126},
                                     {"bfloat16", SEQLSTM_DTYPE_BFLOAT16, 7, -126},
                                     {"float16", SEQLSTM_DTYPE_FLOAT16, 10, -14}};
    static const product products[] = {{"W_h h", CG_PRODUCT_H, false, false, false},
                                       {"W_h h, layer norm", CG_PRODUCT_H, false, true, false},
                                       {"W_hn r h", CG_PRODUCT_RESET, true, false, false},
                                       {"projection", CG_PRODUCT_OUTPUT, false, false, false},
                                       {"back", CG_PRODUCT_BACK, false, false, false},
                                       {"back, coupled gates", CG_PRODUCT_BACK, false, false, true},
                                       {"back, late", CG_PRODUCT_BACK, true, false, false},
                                       {"back, r h", CG_PRODUCT_BACK_RESET, true, false, false},
                                       {"back, projection", CG_PRODUCT_BACK_OUTPUT, false, false, false}};
    std::vector<emulated_test> tests;
    for (const product &p : products)
        for (const number &n : numbers)
            tests.push_back({std::string(p.name) + ", " + n.name, [&] { return check_sizes(p, n); }});
    return run_tests(tests);
}

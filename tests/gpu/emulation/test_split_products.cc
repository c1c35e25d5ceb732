/* SPDX-License-Identifier: Apache-2.0 */
/* Float32 products by three float16 products (gemm/split_tile.h) on the emulated device, against float64: values of any
 * size, rows and columns of very different sizes, infinities and NaN; each of the three layouts, with large and small
 * tiles, with and without parts. */
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "cuda-generic/gemm/gemm.h"
#include "seqlstm/ops.h"
#include "emulated_tests.h"

/* C [m, n] = A B. `kind`: which of x W', dz W and dz' x it is. */
struct problem {
    int64_t m, n, depth;
    int kind;
    std::vector<float> a, b, c;

    problem(int64_t m_, int64_t n_, int64_t depth_, int kind_) : m(m_), n(n_), depth(depth_), kind(kind_)
    {
        a.resize((size_t)(m * depth));
        b.resize((size_t)(depth * n));
        c.resize((size_t)(m * n));
    }
    float &at_a(int64_t i, int64_t d)
    {
        return a[(size_t)(kind == 2 ? d * m + i : i * depth + d)];
    }
    float &at_b(int64_t d, int64_t j)
    {
        return b[(size_t)(kind == 0 ? j * depth + d : d * n + j)];
    }
    bool run()
    {
        std::vector<float> parts((size_t)cg_gemm_count_room(m, n, depth) + 1);
        cg_gemm g = {};
        g.m = m;
        g.n = n;
        g.depth = depth;
        g.a = a.data();
        g.a_row = kind == 2 ? 1 : depth;
        g.a_column = kind == 2 ? m : 1;
        g.b = b.data();
        g.b_row = kind == 0 ? 1 : n;
        g.b_column = kind == 0 ? depth : 1;
        g.c = c.data();
        g.c_row = n;
        g.compute = SEQLSTM_DTYPE_FLOAT32;
        g.f16x3 = 1;
        g.shared_most = 227 * 1024;
        g.parts = kind == 2 && cg_gemm_count_room(m, n, depth) > 0 ? parts.data() : nullptr;
        return cg_gemm_launch(stream, &g) == 0 && gpu_stream_synchronize(0, stream, nullptr) == SEQLSTM_OK;
    }
};

static uint64_t seed = 3;

static float draw()
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

/* Rows of A are of the size size_a(i), columns of B of size_b(j). The error of each element relative to the sum of the
 * sizes of its products is at most 2e-7. */
static bool check_sizes(const std::function<float(int64_t)> &size_a, const std::function<float(int64_t)> &size_b)
{
    bool good = true;
    for (int kind = 0; kind < 3; kind++)
        for (int64_t m : {70, 5}) {
            problem p(m, m == 70 ? 72 : 9, 75, kind);
            for (int64_t d = 0; d < p.depth; d++) {
                for (int64_t i = 0; i < p.m; i++)
                    p.at_a(i, d) = draw() * size_a(i);
                for (int64_t j = 0; j < p.n; j++)
                    p.at_b(d, j) = draw() * size_b(j);
            }
            good = p.run() && good;
            for (int64_t i = 0; i < p.m; i++)
                for (int64_t j = 0; j < p.n; j++) {
                    double exact = 0, sizes = 0;
                    for (int64_t d = 0; d < p.depth; d++) {
                        exact += (double)p.at_a(i, d) * (double)p.at_b(d, j);
                        sizes += fabs((double)p.at_a(i, d) * (double)p.at_b(d, j));
                    }
                    const double error = fabs((double)p.c[(size_t)(i * p.n + j)] - exact);
                    if (!(error <=
                          2e-7 * sizes + 0x1p-147)) { /* each part of a sum is rounded, to 2^-149 if it is subnormal */
                        if (good)
                            printf("# kind %d, [%d, %d]: off by %g of %g\n", kind, (int)i, (int)j, error, sizes);
                        good = false;
                    }
                }
        }
    return good;
}

/* One value that does not fit, in A, in B, or one in each: every element as float32 has it. */
static bool check_special(float special_a, float special_b)
{
    bool good = true;
    for (int kind = 0; kind < 3; kind++) {
        problem p(34, 40, 33, kind);
        for (float &x : p.a)
            x = draw();
        for (float &x : p.b)
            x = draw() * 1e-4f;
        p.at_b(30, 7) = 0;
        if (special_a != 0)
            p.at_a(3, 30) = special_a;
        if (special_b != 0)
            p.at_b(1, 2) = special_b;
        good = p.run() && good;
        for (int64_t i = 0; i < p.m; i++)
            for (int64_t j = 0; j < p.n; j++) {
                float sum = 0;
                double sizes = 0;
                for (int64_t d = 0; d < p.depth; d++) {
                    sum += p.at_a(i, d) * p.at_b(d, j);
                    sizes += fabs((double)p.at_a(i, d) * (double)p.at_b(d, j));
                }
                const float got = p.c[(size_t)(i * p.n + j)];
                const bool same = got == sum || (std::isnan(got) && std::isnan(sum)) ||
                                  (std::isfinite(sum) && fabs((double)got - (double)sum) <= 4e-7 * sizes);
                if (!same && good)
                    printf("# kind %d, [%d, %d]: %g, expected %g\n", kind, (int)i, (int)j, (double)got, (double)sum);
                good = good && same;
            }
    }
    return good;
}

int main()
{
    const auto one = [](int64_t) { return 1.0f; };
    const auto size = [](float x) { return [x](int64_t) { return x; }; };
    const auto falling = [](int64_t i) { return ldexpf(1.0f, -(int)i); };
    return run_tests({
        {"values around 1", [&] { return check_sizes(one, one); }},
        {"tiny gradients", [&] { return check_sizes(size(1e-30f), one); }},
        {"gradients below 2^-112, large weights", [&] { return check_sizes(size(1e-36f), size(1e9f)); }},
        {"large with small", [&] { return check_sizes(size(1e30f), size(1e-30f)); }},
        {"rows of falling size", [&] { return check_sizes(falling, one); }},
        {"rows and columns of falling size", [&] { return check_sizes(falling, falling); }},
        {"an infinity in A", [] { return check_special(INFINITY, 0); }},
        {"an infinity in B", [] { return check_special(0, -INFINITY); }},
        {"infinities in both", [] { return check_special(-INFINITY, INFINITY); }},
        {"NaN", [] { return check_special(NAN, 0); }},
        {"a value near the end of float32", [] { return check_special(3e38f, 0); }},
    });
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over rows and columns on the emulated device, against float64: as many rows and columns as take threads,
 * warps, blocks and chunks more than one turn, and neither of them a multiple of those. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "cuda-generic/rows/flat.h"
#include "cuda-generic/rows/rows.h"
#include "seqlstm/ops.h"
#include "emulated_tests.h"

typedef std::vector<float> floats;

static uint64_t seed = 11;

static float draw()
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

static floats draw_many(int64_t count)
{
    floats x((size_t)count);
    for (float &value : x)
        value = draw();
    return x;
}

static bool ends(int code)
{
    return code == 0 && gpu_stream_synchronize(0, stream, nullptr) == SEQLSTM_OK;
}

/* Is every element within so much of what it should be? */
static bool near(const char *what, const floats &got, const std::vector<double> &exact, double allowed)
{
    for (size_t k = 0; k < exact.size(); k++)
        if (!(fabs((double)got[k] - exact[k]) <= allowed * (1 + fabs(exact[k])))) {
            printf("# %s, element %zu of %zu: %.9g, expected %.9g\n", what, k, exact.size(), (double)got[k], exact[k]);
            return false;
        }
    return true;
}

/* ---- sums over rows --------------------------------------------------------------------------------------------- */

static bool check_column_sums()
{
    bool good = true;
    for (int64_t rows : {1, 9, 64, 65, 512, 513, 1100})
        for (int64_t n : {1, 8, 19})
            for (int add = 0; add < 2; add++) {
                const int64_t stride = n + 3;
                const floats x = draw_many(rows * stride);
                floats out = draw_many(n);
                std::vector<double> exact((size_t)n);
                for (int64_t j = 0; j < n; j++) {
                    exact[(size_t)j] = add ? (double)out[(size_t)j] : 0;
                    for (int64_t r = 0; r < rows; r++)
                        exact[(size_t)j] += (double)x[(size_t)(r * stride + j)];
                }
                good = ends(cg_column_sums(stream, rows, n, x.data(), stride, out.data(), add)) &&
                       near("column sums", out, exact, 2e-5) && good;
            }
    return good;
}

/* Rows in one chunk and in two, targets of many rows and of none, more columns than a block takes. */
static bool check_gather_back()
{
    static const struct {
        int64_t targets, rows, n;
    } shapes[] = {{3, 5, 2}, {2, 4200, 3}, {301, 700, 5}, {7, 90, 130}, {4, 0, 3}, {1, 2049, 1}};
    bool good = true;
    for (const auto &s : shapes)
        for (int add = 0; add < 2; add++) {
            const floats x = draw_many(std::max<int64_t>(s.rows * s.n, 1));
            floats to = draw_many((s.targets + 1) * s.n); /* the last row belongs to no target */
            std::vector<int32_t> index((size_t)s.rows + 1);
            std::vector<double> exact(to.size());
            for (size_t k = 0; k < to.size(); k++)
                exact[k] = add || k >= (size_t)(s.targets * s.n) ? (double)to[k] : 0;
            for (int64_t r = 0; r < s.rows; r++) {
                const int32_t target = (int32_t)((r * 7 + r / 11) % (s.targets + 2)) - 1;
                index[(size_t)r] = target < s.targets ? target : (int32_t)s.targets - 1;
                for (int64_t k = 0; index[(size_t)r] >= 0 && k < s.n; k++)
                    exact[(size_t)(index[(size_t)r] * s.n + k)] += (double)x[(size_t)(r * s.n + k)];
            }
            good = ends(cg_gather_back(stream, s.targets, s.rows, s.n, index.data(), x.data(), to.data(), add)) &&
                   near("gather, backward", to, exact, 2e-5) && good;
        }
    return good;
}

static bool check_squares()
{
    bool good = true;
    for (int64_t elems : {1, 300, 140001}) { /* the last: more than one turn of all blocks */
        const floats x = draw_many(elems);
        std::vector<double> partials(CG_PARTIALS);
        unsigned counter = 0;
        double sum = 3, exact = 3;
        int32_t flag = 0;
        for (float value : x)
            exact += (double)value * (double)value;
        good = ends(cg_squared_norm(stream, elems, x.data(), partials.data(), &counter, &sum)) && good;
        good = ends(cg_finite_check(stream, elems, x.data(), &flag)) && flag == 0 && good;
        floats y = x;
        y.back() = -INFINITY;
        good = ends(cg_finite_check(stream, elems, y.data(), &flag)) && flag == 1 && good;
        if (!(fabs(sum - exact) <= 1e-9 * exact) || counter != 0) {
            printf("# squares of %d: %.12g, expected %.12g; counter %u\n", (int)elems, sum, exact, counter);
            good = false;
        }
    }
    return good;
}

/* ---- along rows ------------------------------------------------------------------------------------------------- */

static bool check_norm()
{
    bool good = true;
    for (int64_t n : {1, 31, 129, 300})
        for (int params = 0; params < 4; params++) {
            const int64_t rows = 11;
            const floats x = draw_many(rows * n), dy = draw_many(rows * n), gain = draw_many(n), bias = draw_many(n);
            const cg_norm norm = {0.01f, 0, params & 1 ? gain.data() : nullptr, params & 2 ? bias.data() : nullptr};
            floats y(x.size()), dx(x.size()), stats((size_t)(2 * rows)), dgain = bias, dbias = gain;
            std::vector<double> want_y(x.size()), want_dx(x.size()), want_dgain((size_t)n), want_dbias((size_t)n);
            const int add = params == 3;
            for (size_t k = 0; k < (size_t)n; k++) {
                want_dgain[k] = add ? (double)dgain[k] : 0;
                want_dbias[k] = add ? (double)dbias[k] : 0;
            }
            for (int64_t r = 0; r < rows; r++) {
                const float *row = &x[(size_t)(r * n)], *d = &dy[(size_t)(r * n)];
                double mean = 0, variance = 0, sum = 0, product = 0;
                for (int64_t k = 0; k < n; k++)
                    mean += (double)row[k] / (double)n;
                for (int64_t k = 0; k < n; k++)
                    variance += ((double)row[k] - mean) * ((double)row[k] - mean) / (double)n;
                const double scale = 1 / sqrt(variance + 0.01);
                for (int64_t k = 0; k < n; k++) {
                    const double unit = ((double)row[k] - mean) * scale;
                    const double g = params & 1 ? (double)gain[(size_t)k] : 1;
                    want_y[(size_t)(r * n + k)] = unit * g + (params & 2 ? (double)bias[(size_t)k] : 0);
                    sum += (double)d[k] * g / (double)n;
                    product += (double)d[k] * g * unit / (double)n;
                    want_dgain[(size_t)k] += (double)d[k] * unit;
                    want_dbias[(size_t)k] += (double)d[k];
                }
                for (int64_t k = 0; k < n; k++)
                    want_dx[(size_t)(r * n + k)] = scale * ((double)d[k] * (params & 1 ? (double)gain[(size_t)k] : 1) -
                                                            sum - ((double)row[k] - mean) * scale * product);
            }
            good = ends(cg_norm_forward(stream, &norm, rows, n, x.data(), y.data(), stats.data())) &&
                   near("norm", y, want_y, 1e-4) && good;
            good = ends(cg_norm_backward(stream, &norm, rows, n, x.data(), stats.data(), dy.data(), dx.data())) &&
                   near("norm, dx", dx, want_dx, 1e-3) && good;
            good = ends(cg_norm_backward_weights(stream, rows, n, x.data(), stats.data(), dy.data(), dgain.data(),
                                                 dbias.data(), add)) &&
                   near("norm, dgain", dgain, want_dgain, 1e-3) && near("norm, dbias", dbias, want_dbias, 1e-4) && good;
        }
    return good;
}

static bool check_softmax()
{
    bool good = true;
    for (int64_t n : {1, 31, 129, 300})
        for (int is_log = 0; is_log < 2; is_log++) {
            const int64_t rows = 5;
            seqlstm_activation act = {};
            act.kind = is_log ? SEQLSTM_ACT_LOG_SOFTMAX : SEQLSTM_ACT_SOFTMAX;
            floats x = draw_many(rows * n), dy = draw_many(rows * n), y = x, dx(x.size());
            for (int64_t r = 0; r < rows; r++)
                x[(size_t)(r * n + (r * 37 + n - 1) % n)] += 30; /* sums are relative to the largest */
            y = x;
            std::vector<double> want_y(x.size()), want_dx(x.size());
            for (int64_t r = 0; r < rows; r++) {
                double total = 0, sum = 0;
                for (int64_t k = 0; k < n; k++)
                    total += exp((double)x[(size_t)(r * n + k)]);
                for (int64_t k = 0; k < n; k++) {
                    const size_t e = (size_t)(r * n + k);
                    const double p = exp((double)x[e]) / total;
                    want_y[e] = is_log ? log(p) : p;
                    sum += is_log ? (double)dy[e] : (double)dy[e] * p;
                }
                for (int64_t k = 0; k < n; k++) {
                    const size_t e = (size_t)(r * n + k);
                    const double p = exp((double)x[e]) / total;
                    want_dx[e] = is_log ? (double)dy[e] - p * sum : p * ((double)dy[e] - sum);
                }
            }
            good = ends(cg_activation_forward(stream, &act, rows, n, y.data(), y.data())) && /* in place */
                   near("softmax", y, want_y, 1e-5) && good;
            good = ends(cg_activation_backward(stream, &act, rows, n, x.data(), dy.data(), dx.data())) &&
                   near("softmax, backward", dx, want_dx, 1e-4) && good;
        }
    return good;
}

/* The largest first; of equal ones, the first. */
static bool check_top_k()
{
    bool good = true;
    for (int64_t n : {1, 7, 129, 300}) {
        const int64_t rows = 4, k = n < 5 ? n : 5;
        floats x = draw_many(rows * n), value((size_t)(rows * k));
        for (float &each : x)
            each = floorf(each * 8);
        std::vector<int32_t> index(value.size());
        cg_top_k rule = {};
        rule.kind = SEQLSTM_KIND_TOP_K_BEST;
        rule.limit = (uint32_t)n;
        rule.features = n;
        rule.k = k;
        const cg_axis axis = {};
        good = ends(cg_top_k_forward(stream, &rule, &axis, rows, x.data(), index.data(), value.data())) && good;
        for (int64_t r = 0; r < rows && good; r++) {
            std::vector<int32_t> order;
            for (int64_t e = 0; e < n; e++)
                order.push_back((int32_t)e);
            const float *row = &x[(size_t)(r * n)];
            std::stable_sort(order.begin(), order.end(), [=](int32_t a, int32_t b) { return row[a] > row[b]; });
            for (int64_t e = 0; e < k && good; e++) {
                const size_t at = (size_t)(r * k + e);
                good = index[at] == order[(size_t)e] && value[at] == row[order[(size_t)e]];
                if (!good)
                    printf("# choice %d of row %d, %d features: %d, expected %d\n", (int)e, (int)r, (int)n, index[at],
                           order[(size_t)e]);
            }
        }
    }
    return good;
}

/* Of some equal ones and others below them: those that reach top_p together, and no further one, however the number
 * that is drawn falls; of equal ones, the first. */
static bool check_samples()
{
    static const struct {
        int64_t limit;
        float top_p;
        int among;
    } rows[] = {{8, 0.5f, 2}, {8, 0.25f, 1}, {8, 0.75f, 3}, {8, 0.5625f, 3}, {8, 1, 4}, {3, 1, 3}, {1, 0.5f, 1}};
    enum { DRAWS = 64, FEATURES = 8 };
    bool good = true;
    for (const auto &s : rows) {
        floats x((size_t)(DRAWS * FEATURES)), value((size_t)DRAWS);
        std::vector<int32_t> index((size_t)DRAWS);
        std::vector<uint64_t> ids((size_t)DRAWS);
        for (int64_t r = 0; r < DRAWS; r++) {
            ids[(size_t)r] = (uint64_t)r + 5;
            for (int64_t k = 0; k < FEATURES; k++)
                x[(size_t)(r * FEATURES + k)] =
                    k % 2 == 1 ? 2 : -2000; /* four at odd places; the others weigh nothing */
        }
        cg_top_k rule = {};
        rule.kind = SEQLSTM_KIND_TOP_K_SAMPLE;
        rule.limit = (uint32_t)s.limit;
        rule.features = FEATURES;
        rule.k = 1;
        rule.temperature = 0.5f;
        rule.top_p = s.top_p;
        rule.on_sequences = 1;
        rule.stream = 3;
        cg_axis axis = {};
        axis.sequence_id = ids.data();
        good = ends(cg_top_k_forward(stream, &rule, &axis, DRAWS, x.data(), index.data(), value.data())) && good;
        const uint64_t key = cg_live_key(&rule.live, rule.stream);
        for (int64_t r = 0; r < DRAWS; r++) {
            const float u = seqlstm_uniform(key, 0, 0, ids[(size_t)r]);
            const int32_t wanted = 1 + 2 * (int32_t)(u * (float)s.among);
            if (index[(size_t)r] == wanted && fabs((double)value[(size_t)r] + log((double)s.among)) <= 1e-6)
                continue;
            if (good)
                printf("# top_p %g of %d: %d with %g, expected %d with %g\n", (double)s.top_p, (int)s.limit,
                       index[(size_t)r], (double)value[(size_t)r], wanted, -log((double)s.among));
            good = false;
        }
    }
    return good;
}

/* ---- losses ----------------------------------------------------------------------------------------------------- */

struct loss_case {
    uint32_t kind;
    int64_t rows, classes;
    bool weighted;
    float smoothing;
};

static double point_loss(uint32_t kind, double x, double target)
{
    const double e = x - target, size = fabs(e);
    switch (kind) {
    case SEQLSTM_KIND_LOSS_MSE:
        return e * e;
    case SEQLSTM_KIND_LOSS_MAE:
        return size;
    case SEQLSTM_KIND_LOSS_HUBER:
        return size <= 0.5 ? size * size / 2 : 0.5 * size - 0.125;
    default:
        return log1p(exp(-fabs(x))) + fmax(x, 0) - x * target;
    }
}

static double find_loss(const loss_case &c, const float *x, const float *goal, int target)
{
    double loss = 0, total = 0;
    if (c.kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
        for (int64_t k = 0; k < c.classes; k++)
            loss += point_loss(c.kind, (double)x[k], (double)goal[k]) / (double)c.classes;
        return loss;
    }
    for (int64_t k = 0; k < c.classes; k++)
        total += exp((double)x[k]);
    for (int64_t k = 0; k < c.classes; k++) {
        const double share = (double)c.smoothing / (double)c.classes + (k == target ? 1 - (double)c.smoothing : 0);
        loss += share * (log(total) - (double)x[k]);
    }
    return loss;
}

/* Rows of weights, some of them with a target that does not count; sums are added to what is there. Gradients are
 * difference quotients of the losses, but for the sign of an error near 0. */
static bool check_loss(const loss_case &c)
{
    const int64_t n = c.classes;
    const bool crossed = c.kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
    floats x = draw_many(c.rows * n), goal = draw_many(c.rows * n), weight = draw_many(c.rows);
    floats of_class = draw_many(n), losses((size_t)c.rows), totals((size_t)c.rows), dx(x.size()), both = x;
    floats both_losses((size_t)c.rows);
    std::vector<int32_t> target((size_t)c.rows);
    std::vector<double> partials(2 * CG_LOSS_BLOCKS), want_losses((size_t)c.rows), want_dx(x.size());
    double sums[2] = {2, 3}, both_sums[2] = {2, 3}, want[2] = {2, 3};
    unsigned counter = 0;
    for (int64_t r = 0; r < c.rows; r++) {
        target[(size_t)r] = r % 4 == 2 ? -1 : (int32_t)((r * 13 + 5) % n);
        if (crossed && r % 4 == 2)
            weight[(size_t)r] = NAN;      /* it does not count */
        for (int64_t k = 0; k < n; k++) { /* errors that are neither 0 nor next to a corner of their loss */
            float &value = goal[(size_t)(r * n + k)];
            const float e = x[(size_t)(r * n + k)] - value;
            value += fabsf(e) < 0.01f || fabsf(fabsf(e) - 0.5f) < 0.01f ? 0.05f : 0.0f;
        }
    }
    cg_loss l = {};
    l.kind = c.kind;
    l.classes = n;
    l.label_smoothing = c.smoothing;
    l.delta = 0.5f;
    l.target_class = crossed ? target.data() : nullptr;
    l.target = crossed ? nullptr : goal.data();
    l.weight = c.weighted ? weight.data() : nullptr;
    l.class_weight = c.weighted && crossed ? of_class.data() : nullptr;
    cg_live live = {};
    live.step.normaliser = 0.5f;
    live.step.loss_scale = 4;
    for (int64_t r = 0; r < c.rows; r++) {
        const int of = target[(size_t)r];
        const bool counts = !crossed || of >= 0;
        const double w = !counts       ? 0
                         : !c.weighted ? 1
                                       : (double)weight[(size_t)r] * (crossed ? (double)of_class[(size_t)of] : 1);
        floats row(&x[(size_t)(r * n)], &x[(size_t)(r * n)] + n);
        want_losses[(size_t)r] = counts ? find_loss(c, row.data(), &goal[(size_t)(r * n)], of) : 0;
        want[0] += w * want_losses[(size_t)r];
        want[1] += w;
        for (int64_t k = 0; counts && k < n; k++) {
            if (n >= 40 && k % 37 != 0 && k != of && k != n - 1)
                continue; /* too many to be found one by one */
            const float x0 = row[(size_t)k], step = 0x1p-9f;
            double side[2];
            for (int s = 0; s < 2; s++) {
                row[(size_t)k] = s ? x0 + step : x0 - step;
                side[s] = find_loss(c, row.data(), &goal[(size_t)(r * n)], of);
            }
            row[(size_t)k] = x0;
            want_dx[(size_t)(r * n + k)] = 2 * w * (side[1] - side[0]) / (2 * (double)step);
        }
    }
    bool good = ends(cg_loss_forward(stream, &l, c.rows, x.data(), losses.data(), totals.data(), partials.data(),
                                     &counter, sums)) &&
                ends(cg_loss_backward(stream, &l, c.rows, &live, totals.data(), x.data(), dx.data())) &&
                ends(cg_loss_both(stream, &l, c.rows, &live, both.data(), both_losses.data(), partials.data(), &counter,
                                  both_sums));
    good = near("losses", losses, want_losses, 1e-5) && near("losses, at once", both_losses, want_losses, 1e-5) && good;
    for (size_t e = 0; good && e < x.size(); e++) {
        const int64_t k = (int64_t)e % n;
        if (n >= 40 && k % 37 != 0 && k != n - 1 && k != target[e / (size_t)n])
            continue;
        good = fabs((double)dx[e] - want_dx[e]) <= 2e-3 / (double)n + 2e-3 * fabs(want_dx[e]) && both[e] == dx[e];
        if (!good)
            printf("# gradient %zu: %g and %g, expected %g\n", e, (double)dx[e], (double)both[e], want_dx[e]);
    }
    for (int k = 0; good && k < 2; k++)
        good = fabs(sums[k] - want[k]) <= 1e-5 * (1 + fabs(want[k])) && sums[k] == both_sums[k] && counter == 0;
    if (!good)
        printf("# loss %u, %d rows of %d: sums %g and %g, expected %g and %g\n", c.kind, (int)c.rows, (int)n, sums[0],
               sums[1], want[0], want[1]);
    return good;
}

static bool check_losses()
{
    static const uint32_t kinds[] = {SEQLSTM_KIND_LOSS_CROSS_ENTROPY, SEQLSTM_KIND_LOSS_MSE, SEQLSTM_KIND_LOSS_MAE,
                                     SEQLSTM_KIND_LOSS_HUBER, SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY};
    bool good = true;
    for (uint32_t kind : kinds)
        for (int64_t classes : {2, 30, 31, 1100}) /* a warp has a row of up to 30 here, a block a longer one */
            for (int weighted = 0; weighted < 2; weighted++)
                good =
                    check_loss({kind, 7, classes, weighted != 0, weighted && kind == kinds[0] ? 0.1f : 0.0f}) && good;
    return check_loss({kinds[0], 4 * CG_LOSS_BLOCKS + 5, 2, true, 0}) && good; /* more than one turn of all blocks */
}

int main()
{
    return run_tests({{"sums of columns", check_column_sums},
                      {"rows that are added to their targets", check_gather_back},
                      {"sums of squares", check_squares},
                      {"layer norm", check_norm},
                      {"softmax", check_softmax},
                      {"the largest", check_top_k},
                      {"draws among the largest", check_samples},
                      {"losses", check_losses}});
}

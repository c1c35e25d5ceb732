/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a layer on clusters (recurrent/cluster) and of one that is resident (recurrent/resident), on the
 * emulated device, against float64: states and gradients of any size, sequences of very different sizes side by side,
 * weights and initial states beyond float16, infinities.
 *
 * The layer is an RNN, h(t) = u(t) + W_h h(t - 1) without activation, so that its states may have any size. */
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "common/cuda_runtime.h"
#include "cuda-generic/recurrent/cluster/cluster.h"
#include "cuda-generic/recurrent/kernels/step.h"
#include "cuda-generic/recurrent/resident/resident.h"
#include "seqlstm/ops.h"

static void *stream;
static uint64_t seed = 5;
static int units;    /* of a block in the variant resident; 0: on clusters */
static bool scatter; /* whose blocks send parts of the gradient */
enum { UNITS = 70, SEQUENCES = 4, STEPS = 3, ROWS = SEQUENCES * STEPS };

static float draw()
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

/* `sizes`: of the states, or of the gradients, of each sequence. */
struct problem {
    std::vector<float> w, h0, z, h, dy, dz, dh0, direct, back, dc;
    std::vector<int32_t> lengths, batch_sizes;
    std::vector<int64_t> offsets;
    std::vector<uint32_t> exchange;
    cg_layer layer = {};

    explicit problem(const float sizes[SEQUENCES])
    {
        w.resize(UNITS * UNITS);
        h0.resize(SEQUENCES * UNITS);
        z.resize(ROWS * UNITS);
        h.resize(ROWS * UNITS);
        dh0.resize(SEQUENCES * UNITS);
        direct = back = dc = dh0;
        for (float &x : w)
            x = draw() * 0.2f;
        for (int k = 0; k < SEQUENCES * UNITS; k++)
            h0[(size_t)k] = draw() * sizes[k / UNITS];
        for (int k = 0; k < ROWS * UNITS; k++)
            z[(size_t)k] = draw() * sizes[k / UNITS % SEQUENCES];
        dy = z;
        dz.resize(ROWS * UNITS);
        lengths.assign(SEQUENCES, STEPS);
        batch_sizes.assign(STEPS, SEQUENCES);
        for (int t = 0; t <= STEPS; t++)
            offsets.push_back(t * SEQUENCES);
        layer.cell = SEQLSTM_CELL_RNN;
        layer.training = 1;
        layer.candidate.kind = SEQLSTM_ACT_NONE;
        layer.input = layer.hidden = layer.out = layer.gh = UNITS;
        layer.gates = 1;
        layer.axis.sequences = SEQUENCES;
        layer.axis.steps = STEPS;
        layer.axis.rows = ROWS;
        layer.dy_stride = UNITS;
        layer.dy_scale = 1;
    }
    bool run(bool backward)
    {
        layer.axis.lengths = lengths.data();
        layer.axis.batch_sizes = batch_sizes.data();
        layer.axis.row_offsets = offsets.data();
        layer.w_h = w.data();
        layer.h0 = h0.data();
        layer.z = layer.u = z.data();
        layer.h = h.data();
        layer.dy = dy.data();
        layer.pre_u = layer.pre_v = dz.data();
        layer.dh0 = dh0.data();
        layer.direct = direct.data();
        layer.back = back.data();
        layer.dc = dc.data();
        seqlstm_recurrent_desc desc = {};
        desc.head.max_sequences = SEQUENCES;
        desc.cell = SEQLSTM_CELL_RNN;
        desc.hidden = UNITS;
        desc.activations[SEQLSTM_PLACE_CANDIDATE][0].kind = SEQLSTM_ACT_NONE;
        const int code = units > 0 ? run_resident(desc, backward) : run_clusters(desc, backward);
        return code == 0 && gpu_stream_synchronize(0, stream, nullptr) == SEQLSTM_OK;
    }

  private:
    int run_clusters(const seqlstm_recurrent_desc &desc, bool backward)
    {
        cg_cluster cluster;
        if (!cg_cluster_make(&desc, 4, 227 * 1024, &cluster) || cg_cluster_count_forward(&cluster, 16) != 0 ||
            cg_cluster_count_backward(&cluster, 16) != 0)
            return -1;
        return backward ? cg_cluster_backward(stream, &layer, 1, &cluster, SEQUENCES)
                        : cg_cluster_forward(stream, &layer, 1, &cluster, SEQUENCES);
    }
    int run_resident(const seqlstm_recurrent_desc &desc, bool backward)
    {
        cg_resident r;
        const cg_resident_pass pass = !backward ? CG_RESIDENT_FORWARD
                                      : scatter ? CG_RESIDENT_SCATTER
                                                : CG_RESIDENT_BACKWARD;
        if (!cg_resident_divide(&desc, pass, units, 1, 16, 227 * 1024, &r))
            return -1;
        exchange.assign((size_t)cg_resident_exchange_words(&r, SEQUENCES), 0x7FFF7FFFu); /* NaN */
        for (int64_t k = 0; k < r.together * cg_resident_counter_words(&r); k++)
            exchange[(size_t)k] = 0;
        if (!backward)
            return cg_resident_forward(stream, &layer, &r, exchange.data(), SEQUENCES);
        int code = cg_step_begin_back(stream, &layer, SEQUENCES, UNITS, UNITS);
        code = code != 0 ? code : cg_resident_backward(stream, &layer, &r, exchange.data(), SEQUENCES);
        return code != 0 ? code : cg_step_finish_back(stream, &layer, SEQUENCES, UNITS, UNITS);
    }
};

/* Is `got` what float32 gives, but for `allowed`? Where float32 has no number, the kind of what it has must be the
 * same. */
static bool is_close(float got, float plain, double exact, double allowed)
{
    if (std::isnan(plain))
        return std::isnan(got);
    if (std::isinf(plain))
        return got == plain;
    return fabs((double)got - exact) <= allowed;
}

/* to = from + W x of a sequence; with `back` the transpose of W. The error is at most 1e-6 of the sum of the sizes of
 * all products. The weights of a warp share a scale, so that each may be off by 2^-50 of the largest. */
static bool check_step(const problem &p, bool back, const float *x, const float *from, const float *to)
{
    bool good = true;
    double most = 0;
    for (float weight : p.w)
        most = std::isfinite(weight) ? fmax(most, fabs((double)weight)) : most;
    for (int i = 0; i < UNITS; i++) {
        float plain = from ? from[i] : 0.0f;
        double exact = (double)plain, allowed = 1e-6 * fabs(exact);
        for (int j = 0; j < UNITS; j++) {
            const float weight = p.w[(size_t)(back ? j * UNITS + i : i * UNITS + j)];
            plain += weight * x[j];
            exact += (double)weight * (double)x[j];
            allowed += (1e-6 * fabs((double)weight) + 0x1p-50 * most) * fabs((double)x[j]);
        }
        if (good && !is_close(to[i], plain, exact, allowed))
            printf("# %s, unit %d: %g, expected %g\n", back ? "backward" : "forward", i, (double)to[i], (double)plain);
        good = good && is_close(to[i], plain, exact, allowed);
    }
    return good;
}

/* Checks each step from what the step before has stored. */
static bool check(const float sizes[SEQUENCES], const std::function<void(problem &)> &change)
{
    bool good = true;
    for (int back = 0; back < 2; back++) {
        problem p(sizes);
        change(p);
        const std::vector<float> u = p.z;
        good = p.run(back != 0) && good;
        for (int t = 0; t < STEPS; t++)
            for (int b = 0; b < SEQUENCES; b++) {
                const float *h = t > 0 ? &p.h[(size_t)((t - 1) * SEQUENCES + b) * UNITS] : &p.h0[(size_t)(b * UNITS)];
                const size_t at = (size_t)(t * SEQUENCES + b) * UNITS;
                float *before = t > 0 ? &p.dz[at - SEQUENCES * UNITS] : &p.dh0[(size_t)(b * UNITS)];
                if (back)
                    good =
                        check_step(p, true, &p.dz[at], t > 0 ? &p.dy[at - SEQUENCES * UNITS] : nullptr, before) && good;
                else
                    good = check_step(p, false, h, &u[at], &p.h[at]) && good;
            }
    }
    return good;
}

int main()
{
    gpu_device devices[GPU_DEVICES_MAX];
    uint32_t count = 0;
    if (gpu_runtime_open(devices, &count, nullptr) != SEQLSTM_OK ||
        gpu_stream_create(0, &stream, nullptr) != SEQLSTM_OK)
        return 1;
    static const float ones[] = {1, 1, 1, 1}, mixed[] = {1e-25f, 1, 1e6f, 1e25f}, large[] = {1, 1e8f, 1, 1};
    const auto none = [](problem &) {};
    const struct {
        const char *name;
        std::function<bool()> test;
    } tests[] = {
        {"values around 1", [&] { return check(ones, none); }},
        {"sequences of very different sizes", [&] { return check(mixed, none); }},
        {"one sequence beyond float16", [&] { return check(large, none); }},
        {"weights beyond float16", [&] { return check(ones, [](problem &p) { p.w[5 * UNITS + 7] = 1e6f; }); }},
        {"tiny weights",
         [&] {
             return check(ones, [](problem &p) {
                 for (float &x : p.w)
                     x *= 1e-12f;
             });
         }},
        {"an infinity in one sequence",
         [&] {
             return check(mixed, [](problem &p) {
                 p.h0[1 * UNITS + 3] = INFINITY;
                 p.dy[(size_t)((STEPS - 1) * SEQUENCES + 1) * UNITS + 3] = -INFINITY;
             });
         }},
        {"not a number in one sequence",
         [&] {
             return check(ones, [](problem &p) {
                 p.h0[2 * UNITS] = NAN;
                 p.dy[(size_t)((STEPS - 1) * SEQUENCES + 2) * UNITS] = NAN;
             });
         }},
        {"an infinite weight", [&] { return check(ones, [](problem &p) { p.w[9 * UNITS + 8] = INFINITY; }); }},
    };
    static const struct {
        const char *name;
        int units;
        bool scatter;
    } kinds[] = {{"clusters", 0, false},
                 {"resident, 8 units", 8, false},
                 {"resident, 16 units", 16, true},
                 {"resident, 32 units", 32, true}};
    const size_t all = sizeof tests / sizeof *tests;
    int failed = 0, number = 0;
    printf("1..%zu\n", sizeof kinds / sizeof *kinds * all);
    for (const auto &kind : kinds)
        for (size_t k = 0; k < all; k++) {
            units = kind.units;
            scatter = kind.scatter;
            const bool good = tests[k].test();
            printf("%sok %d - %s, %s\n", good ? "" : "not ", ++number, kind.name, tests[k].name);
            failed += !good;
        }
    gpu_stream_destroy(0, stream);
    return failed != 0;
}

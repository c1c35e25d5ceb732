/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a layer on clusters (recurrent/cluster) and of one that is resident (recurrent/resident), on the
 * emulated device, against float64: states and gradients of any size, sequences of very different sizes side by side,
 * weights and initial states beyond float16, infinities. */
#include <functional>

#include "step_layer.h"

#include "cuda-generic/recurrent/cluster/cluster.h"
#include "cuda-generic/recurrent/kernels/step.h"
#include "cuda-generic/recurrent/resident/resident.h"

static void *stream;
static int units;    /* of a block in the variant resident; 0: on clusters */
static bool scatter; /* whose blocks send parts of the gradient */
static bool spills;  /* and lack room for their weights */

struct problem : step_layer {
    using step_layer::step_layer;

    bool run(bool backward)
    {
        bind();
        const seqlstm_recurrent_desc desc = describe();
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
        if (!cg_resident_divide(&desc, pass, units, 1, 16, spills ? 12400 : 227 * 1024, &r) ||
            (cg_resident_spill_words(&r) > 0) != spills)
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
        bool scatter, spills;
    } kinds[] = {{"clusters", 0, false, false},
                 {"resident, 8 units", 8, false, false},
                 {"resident, 16 units", 16, true, false},
                 {"resident, 32 units", 32, true, false},
                 {"resident, weights in the exchange", 16, false, true},
                 {"resident, weights in the exchange, parts", 16, true, true}};
    const size_t all = sizeof tests / sizeof *tests;
    int failed = 0, number = 0;
    printf("1..%zu\n", sizeof kinds / sizeof *kinds * all);
    for (const auto &kind : kinds)
        for (size_t k = 0; k < all; k++) {
            units = kind.units;
            scatter = kind.scatter;
            spills = kind.spills;
            const bool good = tests[k].test();
            printf("%sok %d - %s, %s\n", good ? "" : "not ", ++number, kind.name, tests[k].name);
            failed += !good;
        }
    gpu_stream_destroy(0, stream);
    return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on clusters and resident ones with more sequences than a block computes at a time, of different lengths, on
 * the emulated device against float64: in every turn another number of columns takes part, of which the last ones are
 * only a part of what a block computes at a time. */
#include "step_layer.h"

#include "cuda-generic/recurrent/cluster/cluster.h"
#include "cuda-generic/recurrent/kernels/step.h"
#include "cuda-generic/recurrent/resident/resident.h"
#include "emulated_tests.h"

static const float ones[SEQUENCES] = {1, 1, 1, 1};

struct many_sequences : step_layer {
    int sequences, steps;
    bool tanh = false; /* or no activation */

    /* `active`: the sequences of each step. */
    explicit many_sequences(const std::vector<int32_t> &active) : step_layer(ones)
    {
        sequences = active[0];
        steps = (int)active.size();
        batch_sizes = active;
        offsets.assign(1, 0);
        for (int32_t now : active)
            offsets.push_back(offsets.back() + now);
        lengths.assign((size_t)sequences, 0);
        for (int b = 0; b < sequences; b++)
            for (int32_t now : active)
                lengths[(size_t)b] += b < now;
        const size_t rows = (size_t)offsets.back();
        h0.resize((size_t)sequences * UNITS);
        dh0.assign(h0.size(), 1e30f);
        direct = back = dc = dh0;
        z.resize(rows * UNITS);
        h.assign(z.size(), 1e30f);
        dz = h;
        for (float &x : h0)
            x = draw();
        for (float &x : z)
            x = draw();
        dy = z;
        layer.axis.sequences = sequences;
        layer.axis.steps = steps;
        layer.axis.rows = (int64_t)rows;
    }
    size_t at(int t, int b) const
    {
        return (size_t)(offsets[(size_t)t] + b) * UNITS;
    }
};

/* How a layer is run. */
struct kind {
    const char *name;
    int units;             /* of a block of `resident`; 0: on clusters */
    cg_resident_pass back; /* of `resident` */
    int multiprocessors;   /* with few of them, one group has all sequences */
    int64_t room;          /* shared memory of a block */
};

static bool run(many_sequences &p, const kind &k, bool backward)
{
    seqlstm_recurrent_desc desc = step_layer::describe();
    desc.head.max_sequences = p.sequences;
    if (p.tanh)
        desc.activations[SEQLSTM_PLACE_CANDIDATE][0].kind = SEQLSTM_ACT_TANH;
    p.bind();
    int code = 0;
    if (k.units == 0) {
        cg_cluster cluster;
        if (!cg_cluster_make(&desc, 4, (int32_t)k.room, &cluster) ||
            cg_cluster_count_forward(&cluster, k.multiprocessors) != 0 ||
            cg_cluster_count_backward(&cluster, k.multiprocessors) != 0)
            return false;
        code = backward ? cg_cluster_backward(stream, &p.layer, 1, &cluster, p.sequences)
                        : cg_cluster_forward(stream, &p.layer, 1, &cluster, p.sequences);
    } else {
        cg_resident r;
        if (!cg_resident_divide(&desc, backward ? k.back : CG_RESIDENT_FORWARD, k.units, 1, k.multiprocessors, k.room,
                                &r))
            return false;
        p.exchange.assign((size_t)cg_resident_exchange_words(&r, p.sequences), 0x7FFF7FFFu); /* NaN */
        for (int64_t w = 0; w < r.together * cg_resident_counter_words(&r); w++)
            p.exchange[(size_t)w] = 0;
        if (backward) {
            code = cg_step_begin_back(stream, &p.layer, p.sequences, UNITS, UNITS);
            code = code != 0 ? code : cg_resident_backward(stream, &p.layer, &r, p.exchange.data(), p.sequences);
            code = code != 0 ? code : cg_step_finish_back(stream, &p.layer, p.sequences, UNITS, UNITS);
        } else {
            code = cg_resident_forward(stream, &p.layer, &r, p.exchange.data(), p.sequences);
        }
    }
    return code == 0 && gpu_stream_synchronize(0, stream, nullptr) == SEQLSTM_OK;
}

/* Each step from what the step before, or in backward the step behind it, has stored. */
static bool check(const kind &k, const std::vector<int32_t> &active)
{
    static const float zeros[UNITS] = {0};
    many_sequences forward(active), backward(active);
    const std::vector<float> u = forward.z;
    bool good = run(forward, k, false) && run(backward, k, true);
    for (int b = 0; b < forward.sequences && good; b++) {
        const int length = forward.lengths[(size_t)b];
        for (int t = 0; t < length && good; t++) {
            const size_t at = forward.at(t, b);
            const float *before = t > 0 ? &forward.h[forward.at(t - 1, b)] : &forward.h0[(size_t)(b * UNITS)];
            const float *behind = t + 1 < length ? &backward.dz[backward.at(t + 1, b)] : zeros;
            good = check_step(forward, false, before, &u[at], &forward.h[at]) &&
                   check_step(backward, true, behind, &backward.dy[at], &backward.dz[at]);
        }
        good = good &&
               check_step(backward, true, &backward.dz[backward.at(0, b)], nullptr, &backward.dh0[(size_t)(b * UNITS)]);
        if (!good)
            printf("# sequence %d of %d steps\n", b, length);
    }
    return good;
}

/* Activations that keep h small let it be sent without a scale: but for an initial state that is large, be it in the
 * last group of a cluster alone. Its weights are small, so that tanh tells of it. */
static bool check_large(const kind &k, const std::vector<int32_t> &active, int large)
{
    many_sequences p(active);
    const std::vector<float> u = p.z;
    p.tanh = true;
    p.layer.candidate.kind = SEQLSTM_ACT_TANH;
    p.h0[(size_t)(large * UNITS + 3)] = 1e6f;
    for (int i = 0; i < UNITS; i++)
        p.w[(size_t)(i * UNITS + 3)] *= 1e-6f;
    if (!run(p, k, false))
        return false;
    for (int b = 0; b < p.sequences; b++)
        for (int t = 0; t < p.lengths[(size_t)b]; t++)
            for (int i = 0; i < UNITS; i++) {
                const float *before = t > 0 ? &p.h[p.at(t - 1, b)] : &p.h0[(size_t)(b * UNITS)];
                double sum = (double)u[p.at(t, b) + (size_t)i];
                for (int j = 0; j < UNITS; j++)
                    sum += (double)p.w[(size_t)(i * UNITS + j)] * (double)before[j];
                const double got = (double)p.h[p.at(t, b) + (size_t)i];
                if (!(fabs(got - tanh(sum)) <= 1e-5)) {
                    printf("# sequence %d, step %d, unit %d: %g, expected %g\n", b, t, i, got, tanh(sum));
                    return false;
                }
            }
    return true;
}

int main()
{
    enum { ROOM = 227 * 1024, SMALL_ROOM = 99 * 1024, LITTLE_ROOM = 64 * 1024 };
    static const kind kinds[] = {
        {"clusters", 0, CG_RESIDENT_BACKWARD, 16, ROOM},
        {"clusters, little shared memory", 0, CG_RESIDENT_BACKWARD, 16, SMALL_ROOM},
        {"resident, one group, gates", 32, CG_RESIDENT_BACKWARD, 3, ROOM},
        {"resident, one group, parts", 32, CG_RESIDENT_SCATTER, 3, ROOM},
        {"resident, several groups, gates", 16, CG_RESIDENT_BACKWARD, 16, ROOM},
        {"resident, several groups, parts", 16, CG_RESIDENT_SCATTER, 16, ROOM},
        {"resident, little shared memory, gates", 16, CG_RESIDENT_BACKWARD, 5, LITTLE_ROOM},
        {"resident, little shared memory, parts", 16, CG_RESIDENT_SCATTER, 5, LITTLE_ROOM},
    };
    static const std::vector<int32_t> batches[] = {{150, 101, 37}, {70, 70, 1}};
    std::vector<emulated_test> tests;
    for (const kind &k : kinds)
        for (const auto &active : batches)
            tests.push_back(
                {k.name + (", " + std::to_string(active[0])) + " sequences", [&] { return check(k, active); }});
    for (const kind *k : {&kinds[0], &kinds[2], &kinds[4]})
        for (int large : {0, 20, 36})
            tests.push_back({k->name + (", a large first h of sequence " + std::to_string(large)),
                             [=] { return check_large(*k, batches[0], large); }});
    return run_tests(tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose blocks wait for each other, without their waits, or without what they wait for: the emulation must
 * notice it. The kernels are compiled into this file, with faults that can be switched on. */
#include <cstring>

#include "cuda-generic/device/device.h"

enum fault { NONE, NO_WAITS, NO_WAITS_WITHIN_STEPS, NO_ARRIVALS };
static fault planted;
static unsigned blocks; /* of a group in the variant resident */

/* Within its steps, a layer with LAYER_NORM waits at every second barrier. */
static bool is_skipped(unsigned least)
{
    return planted == NO_WAITS || (planted == NO_WAITS_WITHIN_STEPS && least / blocks % 2 == 0);
}

#define gpu_wait_for(at, least)    (is_skipped(least) ? (void)0 : gpu_wait_for(at, least))
#define gpu_add_release(at, value) (planted == NO_ARRIVALS ? 0u : gpu_add_release(at, value))
#include "cuda-generic/recurrent/resident/resident_forward.cu"

#include "cuda-generic/recurrent/resident/resident_linked_forward.cu"

#include "step_layer.h"

/* Forward of a layer by a variant. Returns whether the launch ended well. */
struct variant {
    const char *name;
    bool normed;

    int launch(step_layer &p, void *stream) const
    {
        seqlstm_recurrent_desc desc = step_layer::describe();
        desc.options = normed ? SEQLSTM_BIT_RECURRENT_LAYER_NORM : 0;
        cg_resident r;
        if (!cg_resident_divide(&desc, CG_RESIDENT_FORWARD, 8, 1, 16, 227 * 1024, &r))
            return -1;
        blocks = (unsigned)r.blocks;
        p.exchange.assign((size_t)cg_resident_exchange_words(&r, SEQUENCES), 0x7FFF7FFFu); /* NaN */
        memset(p.exchange.data(), 0, (size_t)cg_resident_counter_words(&r) * 4);
        return cg_resident_forward(stream, &p.layer, &r, p.exchange.data(), SEQUENCES);
    }
    bool run(step_layer p, std::vector<float> *out_h) const
    {
        std::vector<float> v(ROWS * UNITS), moments(ROWS * 4), norm(2 * UNITS, 1.0f);
        p.bind();
        p.layer.normed = normed;
        p.layer.epsilon = 1e-5f;
        p.layer.v = v.data();
        p.layer.moments = moments.data();
        p.layer.norm = norm.data();
        seqlstm_error err = SEQLSTM_ERROR_INIT;
        void *stream;
        if (gpu_stream_create(0, &stream, nullptr) != SEQLSTM_OK)
            return false;
        const bool started = launch(p, stream) == 0, ended = gpu_stream_synchronize(0, stream, &err) == SEQLSTM_OK;
        if (!ended)
            printf("# %s\n", err.message);
        gpu_stream_destroy(0, stream);
        *out_h = p.h;
        return started && ended;
    }
};

int main()
{
    gpu_device devices[GPU_DEVICES_MAX];
    uint32_t count = 0;
    if (gpu_runtime_open(devices, &count, nullptr) != SEQLSTM_OK)
        return 1;
    static const float ones[] = {1, 1, 1, 1};
    static const variant variants[] = {{"resident", false}, {"resident with LAYER_NORM", true}};
    static const char *const names[] = {"all waits", "no waits", "no waits within steps", "nothing to wait for"};
    int number = 0, failed = 0;
    printf("1..7\n");
    for (const variant &v : variants) {
        const step_layer layer(ones);
        std::vector<float> right, h;
        planted = NONE;
        bool good = v.run(layer, &right);
        for (int k = 0; k < ROWS * UNITS; k++)
            good = good && std::isfinite(right[(size_t)k]);
        for (int k = NONE; k <= NO_ARRIVALS; k++) {
            planted = (fault)k;
            if (k == NO_WAITS_WITHIN_STEPS && !v.normed)
                continue;
            const bool ended = v.run(layer, &h);
            const bool same = memcmp(h.data(), right.data(), h.size() * sizeof(float)) == 0;
            const bool fine = k == NONE ? good && ended && same : k == NO_ARRIVALS ? !ended : !ended || !same;
            printf("%sok %d - %s: %s\n", fine ? "" : "not ", ++number, v.name, names[k]);
            failed += !fine;
        }
    }
    return failed != 0;
}

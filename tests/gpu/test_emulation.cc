/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation itself: what it must compute, and what it must refuse. TAP on stdout. */
#include "emulated_runtime.h"

#include <cstdio>
#include <vector>

namespace {

int number, failed;

void check(const char *name, bool fine, const char *said)
{
    printf("%sok %d - %s\n", fine ? "" : "not ", ++number, name);
    if (!fine)
        printf("# it said: %s\n", said[0] ? said : "(nothing)");
    failed += !fine;
}

/* Runs a kernel twice, so that both orders of threads are tried; the failure of the last run. */
template <typename F> bool run(dim3 grid, dim3 block, size_t shared, bool cooperative, F kernel, char said[256])
{
    bool fine = true;
    for (int k = 0; k < 2 && fine; k++)
        fine = emulation::run_launch({grid, block, shared, cooperative, kernel}, said, 256);
    return fine;
}

void expect(const char *name, bool works, const char *text, dim3 grid, dim3 block, size_t shared, bool cooperative,
            std::function<void()> kernel)
{
    char said[256] = "";
    const bool fine = run(grid, block, shared, cooperative, kernel, said);
    check(name, fine == works && (works || strstr(said, text)), said);
}

unsigned sum_lanes(unsigned x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

} // namespace

int main()
{
    std::vector<unsigned> out(256);
    unsigned *o = out.data();
    printf("1..11\n");

    expect("a reversal through shared memory, with its barrier", true, "", dim3(2), dim3(100), 400, false, [=] {
        GPU_SHARED(unsigned, s);
        s[threadIdx.x] = threadIdx.x;
        __syncthreads();
        o[threadIdx.x] = s[99 - threadIdx.x];
    });
    check("its result", out[0] == 99 && out[99] == 0 && out[40] == 59, "other numbers");

    char said[256] = "";
    bool caught = false;
    for (int k = 0; k < 2; k++) { /* forwards or backwards, one of the two reads what nobody wrote */
        emulation::run_launch({dim3(1), dim3(64), 256, false, [=] {
            GPU_SHARED(unsigned, s);
            s[threadIdx.x] = threadIdx.x;
            o[threadIdx.x] = s[63 - threadIdx.x];
        }}, said, sizeof said);
        for (unsigned t = 0; t < 64; t++)
            caught = caught || out[t] != 63 - t;
    }
    check("without the barrier it shows", caught, "the right numbers by luck");

    expect("a barrier that half of the threads reach", false, "barrier that not all reach", dim3(1), dim3(64), 0, false,
           [] {
               if (threadIdx.x < 32)
                   __syncthreads();
           });
    expect("a sum over lanes", true, "", dim3(1), dim3(64), 0, false, [=] {
        const unsigned sum = sum_lanes(threadIdx.x);
        if (threadIdx.x % 32 == 0)
            o[threadIdx.x / 32] = sum;
    });
    check("its result", out[0] == 496 && out[1] == 496 + 32 * 32, "other numbers");
    expect("a shuffle that names lanes that do not come", false, "barrier that not all reach", dim3(1), dim3(32), 0,
           false, [] {
               if (threadIdx.x < 7)
                   __shfl_xor_sync(0xFFFFFFFFu, 1, 1);
           });
    expect("a write behind the shared memory", false, "behind the 64 bytes", dim3(1), dim3(32), 64, false, [] {
        GPU_SHARED(unsigned char, s);
        if (threadIdx.x == 3)
            s[64] = 1;
    });
    expect("a grid barrier in an ordinary launch", false, "not cooperative", dim3(2), dim3(32), 0, false,
           [] { emulation::barrier_grid(); });
    out[200] = 0;
    expect("blocks that wait for each other's flags", true, "", dim3(4), dim3(32), 0, true, [=] {
        if (threadIdx.x == 0) {
            gpu_add_release(&o[200], 1);
            while (gpu_load_acquire(&o[200]) % 4 != 0) {
            }
        }
        emulation::barrier_grid();
    });
    expect("a flag that nobody sets", false, "spin", dim3(2), dim3(1), 0, true, [=] {
        while (gpu_load_acquire(&o[201]) != 12345) {
        }
    });
    return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation itself: what it must compute, and what it must refuse. TAP on stdout. */
#include "emulated_mma.h"
#include "emulated_runtime.h"

#include <cstdio>
#include <vector>

namespace
{

int number, failed;

void check(const char *name, bool fine, const char *said)
{
    printf("%sok %d - %s\n", fine ? "" : "not ", ++number, name);
    if (!fine)
        printf("# it said: %s\n", said[0] ? said : "(nothing)");
    failed += !fine;
}

/* Runs a kernel twice, so that both orders of threads are tried; writes the failure of the last run. */
template <typename F> bool run(dim3 grid, dim3 block, size_t shared, bool cooperative, F kernel, char said[256])
{
    bool fine = true;
    for (int k = 0; k < 2 && fine; k++)
        fine = emulation::run_launch({grid, block, shared, cooperative, kernel, 1}, said, 256);
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

/* A [16, 8 words] times B [8 words, 8] with two numbers per word: number k of word w of row r of A is r + 16 w + 100 k,
 * and of column c of B w - 3 c + k. The positions of the lanes are written down here a second time, from the figures of
 * the PTX ISA. */
void check_tensor_cores()
{
    static uint32_t a[16][8], b[8][8];
    static float c[16][8];
    const auto half = [](uint32_t word, int k) { return (float)(int16_t)(word >> 16 * k); };
    const auto make = [](int lower, int upper) { return (uint32_t)(uint16_t)lower | (uint32_t)(uint16_t)upper << 16; };
    for (int r = 0; r < 16; r++)
        for (int w = 0; w < 8; w++)
            a[r][w] = make(r + 16 * w, r + 16 * w + 100);
    for (int column = 0; column < 8; column++)
        for (int w = 0; w < 8; w++)
            b[column][w] = make(w - 3 * column, w - 3 * column + 1);
    expect("a product of fragments", true, "", dim3(1), dim3(32), 0, false, [=] {
        const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
        const uint32_t of_a[4] = {a[g][t], a[g + 8][t], a[g][t + 4], a[g + 8][t + 4]}, of_b[2] = {b[g][t], b[g][t + 4]};
        float sum[4] = {1, 1, 1, 1};
        emulation::multiply_fragments<2>(sum, of_a, of_b, half);
        c[g][2 * t] = sum[0];
        c[g][2 * t + 1] = sum[1];
        c[g + 8][2 * t] = sum[2];
        c[g + 8][2 * t + 1] = sum[3];
    });
    bool same = true;
    for (int r = 0; r < 16; r++)
        for (int column = 0; column < 8; column++) {
            float expected = 1;
            for (int w = 0; w < 8; w++)
                for (int k = 0; k < 2; k++)
                    expected += half(a[r][w], k) * half(b[column][w], k);
            same = same && c[r][column] == expected;
        }
    check("its result", same, "other numbers");
    static uint32_t got[32][4];
    expect("fragments from shared memory", true, "", dim3(1), dim3(32), 32 * 4 * 4, false, [=] {
        GPU_SHARED(uint32_t, s);
        for (unsigned w = 0; w < 4; w++)
            s[threadIdx.x * 4 + w] = threadIdx.x * 4 + w;
        __syncthreads();
        emulation::load_fragments(got[threadIdx.x], s + threadIdx.x * 4);
    });
    check("their places", got[13][2] == (8 * 2 + 13 / 4) * 4 + 13 % 4 && got[31][3] == 127 && got[0][1] == 32,
          "others");
    expect("a product that half of the warp comes to", false, "barrier that not all reach", dim3(1), dim3(32), 0, false,
           [=] {
               const uint32_t of_a[4] = {0, 0, 0, 0}, of_b[2] = {0, 0};
               float sum[4] = {0, 0, 0, 0};
               if (threadIdx.x < 16)
                   emulation::multiply_fragments<2>(sum, of_a, of_b, half);
           });
}

/* Blocks of a cluster which write into each other's shared memory, and one which writes beyond it. */
void check_clusters(unsigned *o)
{
    char said[256] = "";
    bool fine = true;
    for (int k = 0; k < 2; k++)
        fine = fine && emulation::run_launch({dim3(8), dim3(32), 16, false,
                                              [=] {
                                                  GPU_SHARED(uint32_t, s);
                                                  const unsigned rank = blockIdx.x % 4;
                                                  if (threadIdx.x < 4)
                                                      static_cast<uint32_t *>(emulation::map_shared(
                                                          s, (int)threadIdx.x))[rank] = 10 * blockIdx.x + threadIdx.x;
                                                  gpu_barrier_cluster();
                                                  if (threadIdx.x < 4)
                                                      o[blockIdx.x * 4 + threadIdx.x] = s[threadIdx.x];
                                              },
                                              4},
                                             said, sizeof said);
    check("a cluster whose blocks write into each other's shared memory", fine, said);
    check("what they wrote", o[0] == 0 && o[7] == 31 && o[4 * 6 + 1] == 52, "other numbers");
    fine = emulation::run_launch({dim3(8), dim3(32), 16, false,
                                  [=] {
                                      GPU_SHARED(uint32_t, s);
                                      static_cast<uint32_t *>(emulation::map_shared(s, 4))[0] = 1;
                                  },
                                  4},
                                 said, sizeof said);
    check("a block that is not of the cluster", !fine && strstr(said, "of this cluster"), said);
}

/* Each of two blocks sends numbers to the other in each of three phases, and adds up what has come. */
void check_mbarriers(unsigned *o)
{
    const auto exchange_numbers = [=](bool waits, int bytes) {
        GPU_SHARED(uint64_t, s); /* two barriers, then two buffers of 32 numbers */
        float *buffers = reinterpret_cast<float *>(s + 2), sum = 0;
        const int lane = (int)threadIdx.x, other = 1 - gpu_cluster_rank();
        if (lane == 0) {
            for (int k = 0; k < 2; k++) {
                gpu_mbarrier_init(s + k);
                gpu_mbarrier_fence();
                gpu_mbarrier_expect(s + k, bytes);
            }
        }
        gpu_barrier_cluster();
        for (int phase = 0; phase < 3; phase++) {
            uint64_t *barrier = s + phase % 2;
            gpu_store_async(buffers + 32 * (phase % 2) + 31 - lane, (float)(100 * phase + lane), barrier, other);
            if (waits)
                gpu_mbarrier_wait(barrier, phase / 2 % 2);
            sum += buffers[32 * (phase % 2) + lane];
            __syncthreads();
            if (lane == 0 && phase == 0)
                gpu_mbarrier_expect(barrier, bytes);
        }
        o[32 * blockIdx.x + threadIdx.x] = sum == sum ? (unsigned)sum : 0;
        gpu_barrier_cluster();
    };
    char said[256] = "";
    bool fine = true, caught = false;
    for (int k = 0; k < 2; k++)
        fine =
            fine && emulation::run_launch({dim3(2), dim3(32), 16 + 256, false, [=] { exchange_numbers(true, 128); }, 2},
                                          said, sizeof said);
    check("two blocks that exchange numbers by mbarriers", fine, said);
    check("what came", o[0] == 300 + 3 * 31 && o[63] == 300, "other numbers");
    for (int k = 0; k < 2; k++)
        caught = !emulation::run_launch({dim3(2), dim3(32), 16 + 256, false, [=] { exchange_numbers(false, 128); }, 2},
                                        said, sizeof said) ||
                 o[0] != 300 + 3 * 31 || caught;
    check("without the wait it shows", caught, "the right numbers by luck");
    fine = emulation::run_launch({dim3(2), dim3(32), 16 + 256, false, [=] { exchange_numbers(true, 132); }, 2}, said,
                                 sizeof said);
    check("bytes that never come", !fine && strstr(said, "spin"), said);
}

/* Two blocks send each other 16 bytes a lane, wait with half of their warps, and find the largest value. */
void check_peers(unsigned *o)
{
    const auto send_words = [=](uint32_t skew, bool waits) {
        GPU_SHARED(unsigned char, s); /* a barrier, padding, 64 chunks */
        uint64_t *barrier = reinterpret_cast<uint64_t *>(s);
        const gpu_peer other = gpu_find_peer(s, 1 - gpu_cluster_rank());
        const uint32_t t = threadIdx.x, words[4] = {t, t + 100, t + 200, t + 300};
        if (t == 0) {
            gpu_mbarrier_init(barrier);
            gpu_mbarrier_fence();
            gpu_mbarrier_expect(barrier, 64 * 16);
        }
        gpu_barrier_cluster();
        gpu_send(other, 16 + (63 - t) * 16 + skew, words, 0);
        if (waits)
            gpu_mbarrier_wait(barrier, 0);
        gpu_barrier_threads(1 + (int)t / 32, 32);
        o[blockIdx.x * 64 + t] = reinterpret_cast<uint32_t *>(s + 16)[4 * t + 3];
        o[128 + t / 32] = gpu_warp_max(t == 40 ? 1000 : t);
        gpu_barrier_cluster();
    };
    char said[256] = "";
    bool fine = true, late = false;
    const auto run_twice = [&](uint32_t skew, bool waits) {
        for (int k = 0; k < 2; k++) {
            fine = emulation::run_launch({dim3(2), dim3(64), 16 + 1024, false, [=] { send_words(skew, waits); }, 2},
                                         said, sizeof said);
            late = late || (!fine && strstr(said, "on their way"));
        }
    };
    run_twice(0, true);
    check("two blocks that send each other words", fine, said);
    check("what they sent, and the largest of each warp",
          o[0] == 363 && o[127] == 300 && o[128] == 31 && o[129] == 1000, "other numbers");
    run_twice(8, true);
    check("words that are not aligned", !fine && strstr(said, "not aligned"), said);
    run_twice(0, false);
    check("words that are never waited for", late, "nothing");
    fine = emulation::run_launch({dim3(1), dim3(64), 16, false, [=] { gpu_barrier_threads(1, 48); }, 1}, said, 256);
    check("a barrier of one and a half warps", !fine && strstr(said, "parts of warps"), said);
}

/* Each thread copies 16 bytes in each of two groups, and after a wait and a barrier reads its neighbour's of the
 * first. */
void check_copies(unsigned *o)
{
    alignas(16) static unsigned from[2][32][4];
    for (unsigned k = 0; k < 2 * 32 * 4; k++)
        from[k / 128][k / 4 % 32][k % 4] = k + 1;
    const auto bring = [=](bool wait, bool inside, unsigned skew) {
        GPU_SHARED(unsigned, s);
        for (unsigned group = 0; group < 2; group++) {
            gpu_copy_async(s + 128 * group + 4 * threadIdx.x + skew, from[group][threadIdx.x], inside);
            gpu_copy_close();
        }
        if (wait)
            gpu_copy_wait<1>();
        __syncthreads();
        o[threadIdx.x] = s[4 * (31 - threadIdx.x) + 1];
        gpu_copy_wait<0>();
    };
    expect("copies that are waited for", true, "", dim3(1), dim3(32), 1024, false, [=] { bring(true, true, 0); });
    check("what they bring", o[0] == 31 * 4 + 2 && o[31] == 2, "other numbers");
    expect("copies from outside", true, "", dim3(1), dim3(32), 1024, false, [=] { bring(true, false, 0); });
    check("are zeros", o[0] == 0 && o[31] == 0, "other numbers");
    char said[256] = "";
    bool caught = false;
    for (int k = 0; k < 2; k++) { /* in one of the two, copies arrive late */
        emulation::run_launch({dim3(1), dim3(32), 1024, false, [=] { bring(false, true, 0); }, 1}, said, sizeof said);
        caught = caught || o[0] != 31 * 4 + 2;
    }
    check("without the wait it shows", caught, "the right numbers by luck");
    expect("copies of single words", true, "", dim3(1), dim3(32), 128, false, [=] {
        GPU_SHARED(float, s);
        gpu_copy_async_word(s + threadIdx.x, reinterpret_cast<const float *>(&from[0][threadIdx.x][1]), true);
        gpu_copy_close();
        gpu_copy_wait<0>();
        __syncthreads();
        o[threadIdx.x] = reinterpret_cast<unsigned *>(s)[31 - threadIdx.x];
    });
    check("what they bring", o[0] == 31 * 4 + 2 && o[31] == 2, "other numbers");
    expect("a copy that is not aligned", false, "not aligned", dim3(1), dim3(32), 1024 + 16, false,
           [=] { bring(true, true, 1); });
}

} // namespace

int main()
{
    std::vector<unsigned> out(256);
    unsigned *o = out.data();
    printf("1..41\n");

    expect("a reversal through shared memory, with its barrier", true, "", dim3(2), dim3(100), 400, false, [=] {
        GPU_SHARED(unsigned, s);
        s[threadIdx.x] = threadIdx.x;
        __syncthreads();
        o[threadIdx.x] = s[99 - threadIdx.x];
    });
    check("its result", out[0] == 99 && out[99] == 0 && out[40] == 59, "other numbers");

    char said[256] = "";
    bool caught = false;
    for (int k = 0; k < 2; k++) { /* forward or backward, one of the two reads unwritten memory */
        emulation::run_launch({dim3(1), dim3(64), 256, false,
                               [=] {
                                   GPU_SHARED(unsigned, s);
                                   s[threadIdx.x] = threadIdx.x;
                                   o[threadIdx.x] = s[63 - threadIdx.x];
                               },
                               1},
                              said, sizeof said);
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
    expect("a shuffle from a lane that its mask leaves out", false, "its mask leaves out", dim3(1), dim3(32), 0, false,
           [] {
               if (threadIdx.x < 16)
                   __shfl_xor_sync(0xFFFFu, 1, 16);
           });
    expect("lanes that meet with different masks", false, "different masks", dim3(1), dim3(32), 0, false,
           [] { __shfl_xor_sync(threadIdx.x < 16 ? 0xFFFFu : 0xFFFFFFFFu, 1, 1); });
    expect("a vote where other lanes shuffle", false, "some vote and others shuffle", dim3(1), dim3(32), 0, false, [] {
        if (threadIdx.x < 16)
            __ballot_sync(0xFFFFFFFFu, true);
        else
            __shfl_xor_sync(0xFFFFFFFFu, 1, 1);
    });
    expect("shuffles and votes in turn, by lanes that do not wait for one another", true, "", dim3(1), dim3(64), 0,
           false, [=] {
               unsigned sum = 0;
               for (unsigned k = 0; k < 5; k++) {
                   sum = sum * 3 + __shfl_sync(0xFFFFFFFFu, threadIdx.x * (k + 1), (int)(threadIdx.x + k) % 32);
                   sum += (unsigned)__popc(__ballot_sync(0xFFFFFFFFu, threadIdx.x % 32 < k));
               }
               o[threadIdx.x] = sum;
           });
    bool dealt = true;
    for (unsigned t = 0; t < 64; t++) {
        unsigned sum = 0;
        for (unsigned k = 0; k < 5; k++)
            sum = sum * 3 + (t / 32 * 32 + (t + k) % 32) * (k + 1) + k;
        dealt = dealt && out[t] == sum;
    }
    check("their results", dealt, "other numbers");
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
    expect("a flag that no thread sets", false, "spin", dim3(2), dim3(1), 0, true, [=] {
        while (gpu_load_acquire(&o[201]) != 12345) {
        }
    });
    check_tensor_cores();
    check_clusters(o);
    check_mbarriers(o);
    check_peers(o);
    check_copies(o);
    return failed != 0;
}

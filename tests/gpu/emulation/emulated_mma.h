/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor cores on the host: the fragments of the PTX ISA, in the layout of plugins/cuda-generic/gemm/mma.h, exchanged
 * between the lanes of a warp. A missing lane or an unaligned address stops the launch. */
#ifndef SEQLSTM_TESTS_GPU_EMULATED_MMA_H
#define SEQLSTM_TESTS_GPU_EMULATED_MMA_H

#include "emulation.h"

namespace emulation
{

/* What each lane contributes: the numbers of 4 words of A and of 2 of B. */
struct fragments {
    float a[4][2], b[2][2];
};

/* `from_word(word, k)` returns number k of a word. Sums are float32, along the depth. */
template <typename F>
void multiply_fragments(float c[4], const uint32_t a[4], const uint32_t b[2], int per_word, F from_word)
{
    fragments mine;
    for (int k = 0; k < per_word; k++) {
        for (int j = 0; j < 4; j++)
            mine.a[j][k] = from_word(a[j], k);
        for (int j = 0; j < 2; j++)
            mine.b[j][k] = from_word(b[j], k);
    }
    const auto *all = static_cast<const brought *>(bring(&mine, sizeof mine));
    const unsigned g = gpu_lane() / 4, t = gpu_lane() % 4;
    for (unsigned e = 0; e < 4; e++) {
        const unsigned row = g + e / 2 * 8, column = 2 * t + e % 2;
        for (unsigned word = 0; word < 8; word++) {
            const auto *of_a = reinterpret_cast<const fragments *>(all[row % 8 * 4 + word % 4].bytes);
            const auto *of_b = reinterpret_cast<const fragments *>(all[column * 4 + word % 4].bytes);
            for (int k = 0; k < per_word; k++)
                c[e] += of_a->a[word / 4 * 2 + row / 8][k] * of_b->b[word / 4][k];
        }
    }
    carry_off();
}

inline void load_fragments(uint32_t words[4], const uint32_t *row)
{
    const auto *all = static_cast<const brought *>(bring(&row, sizeof row));
    for (unsigned j = 0; j < 4; j++) {
        const uint32_t *from;
        memcpy(&from, all[8 * j + gpu_lane() / 4].bytes, sizeof from);
        if (reinterpret_cast<uintptr_t>(from) % 16 != 0)
            fail("a row of fragments is not aligned to 16 bytes");
        words[j] = from[gpu_lane() % 4];
    }
    carry_off();
}

} // namespace emulation

#endif

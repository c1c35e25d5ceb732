/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor cores on the host: the fragments of the PTX ISA, in the layout of plugins/cuda-generic/gemm/mma.h, exchanged
 * between the lanes of a warp. A missing lane or an unaligned address stops the launch. */
#ifndef SEQLSTM_TESTS_GPU_EMULATED_MMA_H
#define SEQLSTM_TESTS_GPU_EMULATED_MMA_H

#include "emulation.h"

namespace emulation
{

/* What each lane contributes: the numbers of 4 words of A and of 2 of B, and its sums. */
struct fragments {
    float a[4][2], b[2][2], c[4];
};
static_assert(sizeof(fragments) <= sizeof(brought), "fragments fit what a lane brings");

/* Four sums at a time. */
typedef float four_floats __attribute__((vector_size(16)));

/* C += A B for the fragments of all lanes. Sums are float32, along the depth. */
template <int PER_WORD> void multiply_tile(const brought *all, brought *received)
{
    enum { DEPTH = 8 * PER_WORD };
    float a[16][DEPTH];
    four_floats b[DEPTH][2];
    for (unsigned lane = 0; lane < 32; lane++) {
        const auto *mine = reinterpret_cast<const fragments *>(all[lane].bytes);
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned j = 0; j < 4; j++)
            for (unsigned k = 0; k < PER_WORD; k++)
                a[g + j % 2 * 8][(t + j / 2 * 4) * PER_WORD + k] = mine->a[j][k];
        for (unsigned j = 0; j < 2; j++)
            for (unsigned k = 0; k < PER_WORD; k++)
                b[(t + j * 4) * PER_WORD + k][g / 4][g % 4] = mine->b[j][k];
    }
    for (unsigned row = 0; row < 16; row++) {
        four_floats sums[2];
        for (unsigned half = 0; half < 2; half++) {
            const auto *left = reinterpret_cast<const fragments *>(all[row % 8 * 4 + half * 2].bytes)->c + row / 8 * 2;
            const auto *right =
                reinterpret_cast<const fragments *>(all[row % 8 * 4 + half * 2 + 1].bytes)->c + row / 8 * 2;
            sums[half] = four_floats{left[0], left[1], right[0], right[1]};
        }
        for (unsigned d = 0; d < DEPTH; d++) {
            sums[0] += a[row][d] * b[d][0];
            sums[1] += a[row][d] * b[d][1];
        }
        for (unsigned t = 0; t < 4; t++)
            for (unsigned j = 0; j < 2; j++)
                reinterpret_cast<float *>(received[row % 8 * 4 + t].bytes)[row / 8 * 2 + j] =
                    sums[t / 2][t % 2 * 2 + j];
    }
}

/* `from_word(word, k)` returns number k of a word. */
template <int PER_WORD, typename F>
void multiply_fragments(float c[4], const uint32_t a[4], const uint32_t b[2], F from_word)
{
    fragments mine;
    for (int k = 0; k < PER_WORD; k++) {
        for (int j = 0; j < 4; j++)
            mine.a[j][k] = from_word(a[j], k);
        for (int j = 0; j < 2; j++)
            mine.b[j][k] = from_word(b[j], k);
    }
    memcpy(mine.c, c, sizeof mine.c);
    memcpy(c, work_together(&mine, sizeof mine, multiply_tile<PER_WORD>), sizeof mine.c);
}

/* Lane l brings the address of row l % 8 of block l / 8. */
inline void load_rows(const brought *all, brought *received)
{
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned j = 0; j < 4; j++) {
            const uint32_t *from;
            memcpy(&from, all[8 * j + lane / 4].bytes, sizeof from);
            reinterpret_cast<uint32_t *>(received[lane].bytes)[j] = from[lane % 4];
        }
}

inline void load_fragments(uint32_t words[4], const uint32_t *row)
{
    if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
        fail("a row of fragments is not aligned to 16 bytes");
    memcpy(words, work_together(&row, sizeof row, load_rows), 16);
}

} // namespace emulation

#endif

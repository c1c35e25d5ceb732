/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that clusters multiply: factors as one or two float16, in fragments of mma.m16n8k16. See cluster.h.
 *
 * The depth is taken in steps of 16. Value j of lane % 4 = q in a step is number 4 q + j, in both factors, so that a
 * lane finds its four values of a column side by side. It does not matter in which order a sum is made, so this need
 * not be the order of gemm/mma.h. */
#ifndef CG_CLUSTER_NUMBER_H
#define CG_CLUSTER_NUMBER_H

#include <cfloat>

#include "cuda-generic/device/split.h"
#include "cuda-generic/gemm/mma.h"

/* What the upper part lacks. An infinity lacks nothing. */
static __device__ __forceinline__ float cg_cluster_rest(float x, float upper)
{
    return fabsf(upper) <= FLT_MAX ? (x - upper) * CG_SPLIT_UP : 0.0f;
}

template <int PARTS> struct cg_cluster_number;

template <> struct cg_cluster_number<2> {
    static constexpr int WORDS = 4, CHAINS = 3; /* chains: sums that are kept apart until the end */

    /* Both parts of one value in a word. */
    static __device__ __forceinline__ uint32_t make_word(float x)
    {
        float upper, none;
        const uint32_t word = cg_pair_f16(x, 0.0f);
        cg_unpair_f16(word, &upper, &none);
        return (word & 0xFFFFu) | cg_pair_f16(0.0f, cg_cluster_rest(x, upper));
    }
    /* The words of four such values: upper parts, then lower parts. */
    static __device__ __forceinline__ void make_chunk(const uint32_t (&values)[4], uint32_t (&words)[WORDS])
    {
        words[0] = (values[0] & 0xFFFFu) | values[1] << 16;
        words[1] = (values[2] & 0xFFFFu) | values[3] << 16;
        words[2] = values[0] >> 16 | (values[1] & 0xFFFF0000u);
        words[3] = values[2] >> 16 | (values[3] & 0xFFFF0000u);
    }
    static __device__ __forceinline__ void multiply(float (&sums)[CHAINS][4], const uint32_t (&upper)[4],
                                                    const uint32_t (&lower)[4], const uint32_t (&words)[WORDS])
    {
        cg_f16::multiply(sums[0], upper, words);
        cg_f16::multiply(sums[1], upper, words + 2);
        cg_f16::multiply(sums[2], lower, words);
    }
    static __device__ __forceinline__ float fold(const float (&sums)[CHAINS][4], int e)
    {
        const float all = cg_split_fold(sums[0][e], sums[1][e] + sums[2][e]);
        return fabsf(sums[0][e]) <= FLT_MAX ? all : sums[0][e];
    }
};

template <> struct cg_cluster_number<1> {
    static constexpr int WORDS = 2, CHAINS = 1;

    static __device__ __forceinline__ uint32_t make_word(float x)
    {
        return cg_pair_f16(x, 0.0f);
    }
    static __device__ __forceinline__ void make_chunk(const uint32_t (&values)[4], uint32_t (&words)[WORDS])
    {
        words[0] = values[0] | values[1] << 16;
        words[1] = values[2] | values[3] << 16;
    }
    static __device__ __forceinline__ void multiply(float (&sums)[CHAINS][4], const uint32_t (&upper)[4],
                                                    const uint32_t (&)[4], const uint32_t (&words)[WORDS])
    {
        cg_f16::multiply(sums[0], upper, words);
    }
    static __device__ __forceinline__ float fold(const float (&sums)[CHAINS][4], int e)
    {
        return sums[0][e];
    }
};

/* The chunk of four values. */
template <int PARTS>
static __device__ __forceinline__ void cg_cluster_chunk(const float (&x)[4], float scale,
                                                        uint32_t (&words)[cg_cluster_number<PARTS>::WORDS])
{
    uint32_t values[4];
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        values[j] = cg_cluster_number<PARTS>::make_word(x[j] * scale);
    cg_cluster_number<PARTS>::make_chunk(values, words);
}

/* The fragments of rows g and g + 8 of the weights: four values of each. */
template <int PARTS>
static __device__ __forceinline__ void cg_cluster_fragments(const float (&x)[4], const float (&below)[4], float scale,
                                                            uint32_t (&upper)[4], uint32_t (&lower)[4])
{
    uint32_t of_x[2 * PARTS], of_below[2 * PARTS];
    cg_cluster_chunk<PARTS>(x, scale, of_x);
    cg_cluster_chunk<PARTS>(below, scale, of_below);
    CG_UNROLL
    for (int k = 0; k < 2; k++) {
        upper[2 * k] = of_x[k];
        upper[2 * k + 1] = of_below[k];
        lower[2 * k] = PARTS == 2 ? of_x[k + 2 * PARTS - 2] : 0;
        lower[2 * k + 1] = PARTS == 2 ? of_below[k + 2 * PARTS - 2] : 0;
    }
}

/* The bits of |x|, which are ordered like the numbers; 0 for what has no influence on scales: infinities and NaN. */
static __device__ __forceinline__ uint32_t cg_cluster_magnitude(float x)
{
    const uint32_t bits = gpu_float_bits(x) & 0x7FFFFFFFu;
    return bits < 0x7F800000u ? bits : 0;
}

static __device__ __forceinline__ uint32_t cg_cluster_greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static __device__ __forceinline__ uint32_t cg_cluster_most(const float (&x)[4])
{
    return cg_cluster_greater(cg_cluster_greater(cg_cluster_magnitude(x[0]), cg_cluster_magnitude(x[1])),
                              cg_cluster_greater(cg_cluster_magnitude(x[2]), cg_cluster_magnitude(x[3])));
}

/* Words in shared memory, aligned to their size. */
template <int WORDS> struct alignas(4 * WORDS) cg_cluster_words {
    uint32_t w[WORDS];
};

template <int WORDS> static __device__ __forceinline__ void cg_cluster_read(const void *from, uint32_t (&words)[WORDS])
{
    const cg_cluster_words<WORDS> all = *static_cast<const cg_cluster_words<WORDS> *>(from);
    CG_UNROLL
    for (int k = 0; k < WORDS; k++)
        words[k] = all.w[k];
}

template <int WORDS> static __device__ __forceinline__ void cg_cluster_write(void *to, const uint32_t (&words)[WORDS])
{
    cg_cluster_words<WORDS> all;
    CG_UNROLL
    for (int k = 0; k < WORDS; k++)
        all.w[k] = words[k];
    *static_cast<cg_cluster_words<WORDS> *>(to) = all;
}

#endif

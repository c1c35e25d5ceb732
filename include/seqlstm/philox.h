/* SPDX-License-Identifier: Apache-2.0 */
/* The random numbers of every mask, normative for all backends and for the host.
 *
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011) is a
 * counter-based generator: an element of a mask is a pure function of the tensor, sequence and step that it belongs to.
 * It does not depend on which thread or backend computes it, when, or in which batch. The same seed therefore gives the
 * same masks on every backend, for every division of the work, and after a resume.
 *
 *   key     = mix64(seed, stream, epoch)              stream: which tensor of which layer (ops.h, ops/recurrent.h)
 *
 * A mask uses 16 bits per element:
 *   counter = (element / 8, step, sequence low, sequence high)
 *   word    = philox4x32_10(counter, key)[element mod 8 / 2]
 *   half    = word mod 2^16 where element is even, word / 2^16 where it is odd
 *   k       = rate 2^16 rounded to the nearest integer, halves up, but within [1, 65535]; 0 where rate is 0
 *   the element is dropped if half < k; elements that are kept are multiplied by 65536 / (65536 - k)
 * So the effective rate is k / 65536, and the expectation of the scaled elements is exact.
 *
 * Uniform numbers (for sampling, initial values and generated data) use one word each:
 *   counter = (element / 4, step, sequence low, sequence high)
 *   u       = (philox4x32_10(counter, key)[element mod 4] >> 8) * 2^-24        0 <= u < 1
 *
 * Test vectors: tests/unit/base/test_philox.c. Usable from C11, C++ and CUDA (host and device).
 */
#ifndef SEQLSTM_PHILOX_H
#define SEQLSTM_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define SEQLSTM_HD __host__ __device__
#else
#define SEQLSTM_HD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The finaliser of splitmix64: a bijection of 64 bits. */
SEQLSTM_HD static inline uint64_t seqlstm_mix64_round(uint64_t z)
{
    z += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The 64-bit key of one mask stream in one epoch. */
SEQLSTM_HD static inline uint64_t seqlstm_mix64(uint64_t seed, uint64_t stream, uint64_t epoch)
{
    uint64_t z = seqlstm_mix64_round(seed);
    z = seqlstm_mix64_round(z ^ stream);
    return seqlstm_mix64_round(z ^ epoch);
}

/* Ten rounds of Philox 4x32: out[4] = f(counter[4], key). `out` may be `counter`. */
SEQLSTM_HD static inline void seqlstm_philox4x32(const uint32_t counter[4], uint64_t key, uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The uniform number in [0, 1) of one element; 24 bits, exact in float. */
SEQLSTM_HD static inline float seqlstm_uniform(uint64_t key, uint64_t element, uint32_t step, uint64_t sequence)
{
    uint32_t counter[4], word[4];
    counter[0] = (uint32_t)(element / 4);
    counter[1] = step;
    counter[2] = (uint32_t)sequence;
    counter[3] = (uint32_t)(sequence >> 32);
    seqlstm_philox4x32(counter, key, word);
    return (float)(word[element & 3] >> 8) * (1.0f / 16777216.0f);
}

/* k above, for 0 <= rate < 1: how many of the 65536 halves are dropped. Every product and difference is exact. */
SEQLSTM_HD static inline uint32_t seqlstm_mask_count(float rate)
{
    if (!(rate > 0.0f))
        return 0;
    const float scaled = rate * 65536.0f;
    uint32_t k = (uint32_t)scaled;
    if (scaled - (float)k >= 0.5f)
        k++;
    return k < 1 ? 1 : k > 65535 ? 65535 : k;
}

/* The effective rate: k / 65536. */
SEQLSTM_HD static inline float seqlstm_mask_rate(float rate)
{
    return (float)seqlstm_mask_count(rate) * (1.0f / 65536.0f);
}

/* The factor of elements that are kept: 1 / (1 - effective rate), rounded to float once. */
SEQLSTM_HD static inline float seqlstm_mask_scale(float rate)
{
    return 65536.0f / (float)(65536u - seqlstm_mask_count(rate));
}

/* 1 if the element is dropped (zoneout: keeps its old value), else 0. */
SEQLSTM_HD static inline int seqlstm_mask_drops(uint64_t key, uint64_t element, uint32_t step, uint64_t sequence,
                                                float rate)
{
    uint32_t counter[4], word[4];
    counter[0] = (uint32_t)(element / 8);
    counter[1] = step;
    counter[2] = (uint32_t)sequence;
    counter[3] = (uint32_t)(sequence >> 32);
    seqlstm_philox4x32(counter, key, word);
    return (word[(element & 7) / 2] >> 16 * (element & 1) & 0xFFFFu) < seqlstm_mask_count(rate);
}

/* The factor of one element under a dropout mask: 0, or the scale. */
SEQLSTM_HD static inline float seqlstm_mask(uint64_t key, uint64_t element, uint32_t step, uint64_t sequence,
                                            float rate)
{
    return seqlstm_mask_drops(key, element, step, sequence, rate) ? 0.0f : seqlstm_mask_scale(rate);
}

#ifdef __cplusplus
}
#endif

#endif

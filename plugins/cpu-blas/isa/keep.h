/* SPDX-License-Identifier: Apache-2.0 */
/* Mask bits (which elements dropout keeps), drawn by Philox for many counters at once (philox.h). For units that are
 * compiled once for each instruction set.
 *
 * A run is 64 elements, which are eight counters. Each word of a counter is in the low half of a 64-bit lane. The
 * high halves may hold anything: the multiplication reads only the low ones, so that a round needs no shuffles. */
#ifndef BLAS_KEEP_H
#define BLAS_KEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "cpu-blas/isa/unit.h"

enum {
    KEEP_RUN = 64,
    KEEP_ROUNDS = 10,
    KEEP_LANES = BLAS_LANES / 2,           /* counters of a vector */
    KEEP_VECTORS = 8 / KEEP_LANES,         /* vectors in a run */
    KEEP_CHAINS = BLAS_LANES == 8 ? 2 : 4, /* vectors computed side by side, as many as fit the registers */
    KEEP_RUNS = KEEP_CHAINS / KEEP_VECTORS /* the runs that these vectors hold */
};

typedef uint64_t keep_vector __attribute__((vector_size(4 * BLAS_LANES)));

struct keep_run {
    uint32_t counter; /* the first one: element / 8 */
    uint32_t step;
    uint64_t sequence;
};

INLINE keep_vector keep_multiply(keep_vector a, uint32_t factor)
{
#if BLAS_LANES == 16
    return (keep_vector)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)factor));
#elif BLAS_LANES == 8
    return (keep_vector)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((long long)factor));
#elif defined(__SSE2__)
    return (keep_vector)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x((long long)factor));
#else
    return (a & 0xFFFFFFFFu) * (uint64_t)factor;
#endif
}

/* Counters in the order that keep_compare expects. */
INLINE keep_vector keep_counters(uint32_t first)
{
#if BLAS_LANES == 16
    return (keep_vector){0, 4, 1, 5, 2, 6, 3, 7} + (uint64_t)first;
#elif BLAS_LANES == 8
    return (keep_vector){0, 1, 2, 3} + (uint64_t)first;
#else
    return (keep_vector){0, 1} + (uint64_t)first;
#endif
}

/* Bit i of the result is set where element i of these counters is kept, that is, where its 16-bit half is at least
 * `least`. Words 0 and 1, and words 2 and 3, are joined to four halves each, in the order of the elements. */
INLINE uint64_t keep_compare(const keep_vector c[4], uint32_t least)
{
    const keep_vector a = (c[0] & 0xFFFFFFFFu) | c[1] << 32, b = (c[2] & 0xFFFFFFFFu) | c[3] << 32;
#if BLAS_LANES == 16
    const __m512i k = _mm512_set1_epi16((short)least);
    const uint32_t low = _mm512_cmpge_epu16_mask(_mm512_unpacklo_epi64((__m512i)a, (__m512i)b), k);
    const uint32_t high = _mm512_cmpge_epu16_mask(_mm512_unpackhi_epi64((__m512i)a, (__m512i)b), k);
    return low | (uint64_t)high << 32;
#elif BLAS_LANES == 8
    const __m256i k = _mm256_set1_epi16((short)least), zero = _mm256_setzero_si256();
    const __m256i low = _mm256_subs_epu16(k, _mm256_unpacklo_epi64((__m256i)a, (__m256i)b));
    const __m256i high = _mm256_subs_epu16(k, _mm256_unpackhi_epi64((__m256i)a, (__m256i)b));
    return (uint32_t)_mm256_movemask_epi8(
        _mm256_packs_epi16(_mm256_cmpeq_epi16(low, zero), _mm256_cmpeq_epi16(high, zero)));
#elif defined(__SSE2__)
    const __m128i k = _mm_set1_epi16((short)least), zero = _mm_setzero_si128();
    const __m128i low = _mm_subs_epu16(k, _mm_unpacklo_epi64((__m128i)a, (__m128i)b));
    const __m128i high = _mm_subs_epu16(k, _mm_unpackhi_epi64((__m128i)a, (__m128i)b));
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(low, zero), _mm_cmpeq_epi16(high, zero)));
#else
    uint64_t bits = 0;
    for (int i = 0; i < 8 * KEEP_LANES; i++) {
        const uint64_t half = (i & 4 ? b : a)[i / 8] >> 16 * (i & 3) & 0xFFFFu;
        bits |= (uint64_t)(half >= least) << i;
    }
    return bits;
#endif
}

/* The Philox keys of all rounds. */
struct keep_keys {
    keep_vector round[KEEP_ROUNDS][2];
};

INLINE void keep_schedule(uint64_t key, struct keep_keys *out)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < KEEP_ROUNDS; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        out->round[i][0] = (keep_vector){0} + (uint64_t)k0;
        out->round[i][1] = (keep_vector){0} + (uint64_t)k1;
    }
}

/* The mask bits of `runs` runs. `least` is seqlstm_mask_count of the rate. */
INLINE void keep_draw(const int runs, const struct keep_keys *keys, uint32_t least, const struct keep_run *run,
                      uint64_t *out_bits)
{
    keep_vector c[KEEP_CHAINS][4];
    UNROLL_FOR (int i = 0; i < runs * KEEP_VECTORS; i++) {
        const struct keep_run *r = &run[i / KEEP_VECTORS];
        c[i][0] = keep_counters(r->counter + (uint32_t)(i % KEEP_VECTORS * KEEP_LANES));
        c[i][1] = (keep_vector){0} + (uint64_t)r->step;
        c[i][2] = (keep_vector){0} + r->sequence;
        c[i][3] = (keep_vector){0} + (r->sequence >> 32);
    }
    for (int round = 0; round < KEEP_ROUNDS; round++) {
        UNROLL_FOR (int i = 0; i < runs * KEEP_VECTORS; i++) {
            const keep_vector p0 = keep_multiply(c[i][0], 0xD2511F53u), p1 = keep_multiply(c[i][2], 0xCD9E8D57u);
            c[i][0] = (p1 >> 32) ^ c[i][1] ^ keys->round[round][0];
            c[i][2] = (p0 >> 32) ^ c[i][3] ^ keys->round[round][1];
            c[i][1] = p1;
            c[i][3] = p0;
        }
    }
    UNROLL_FOR (int n = 0; n < runs; n++) {
        out_bits[n] = 0;
        UNROLL_FOR (int i = 0; i < KEEP_VECTORS; i++)
            out_bits[n] |= keep_compare(c[n * KEEP_VECTORS + i], least) << (i * 8 * KEEP_LANES % 64);
    }
}

/* The same for 1 to KEEP_RUNS runs. */
INLINE void keep_draw_some(int runs, const struct keep_keys *keys, uint32_t least, struct keep_run run[KEEP_RUNS],
                           uint64_t out_bits[KEEP_RUNS])
{
    if (runs == 1) {
        keep_draw(1, keys, least, run, out_bits);
        return;
    }
    for (int n = runs; n < KEEP_RUNS; n++)
        run[n] = run[0];
    keep_draw(KEEP_RUNS, keys, least, run, out_bits);
}

#endif

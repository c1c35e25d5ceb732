/* SPDX-License-Identifier: Apache-2.0 */
/* Products of small tiles on tensor cores: C [16, 8] += A [16, 8 words] B [8 words, 8] by one warp, with sums in
 * float32. In the words of narrow.h all number types have the same layout (PTX ISA, mma.m16n8k8 for tf32 and
 * mma.m16n8k16 for 16 bits). With g = lane / 4 and t = lane % 4 a lane holds
 *
 *   a[0] row g, word t     a[1] row g + 8, word t     a[2] row g, word t + 4     a[3] row g + 8, word t + 4
 *   b[0] word t, column g  b[1] word t + 4, column g
 *   c[0] row g, column 2 t      c[1] row g, column 2 t + 1      c[2], c[3] likewise in row g + 8
 *
 * All lanes of the warp call. Under the emulation the lanes exchange exactly these values. */
#ifndef CG_MMA_H
#define CG_MMA_H

#include "cuda-generic/device/device.h"
#include "cuda-generic/device/narrow.h"

#ifdef SEQLSTM_EMULATED
#include "emulated_mma.h"
#define CG_MMA(c, a, b, shape_and_types, from_word) emulation::multiply_fragments<PER_WORD>(c, a, b, from_word)
#else
#define CG_MMA(c, a, b, shape_and_types, from_word)                                                                    \
    asm volatile("mma.sync.aligned." shape_and_types                                                                   \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                    \
                 : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])                                              \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))
#endif

/* The number types. word: makes a word of consecutive values along the depth; put: writes one value into a row of
 * words; pack: makes 4 / PER_WORD words of four values. */
struct cg_tf32 {
    enum { PER_WORD = 1 };
    static __device__ __forceinline__ uint32_t word(float lower, float)
    {
        return cg_to_tf32(lower);
    }
    static __device__ __forceinline__ void put(uint32_t *row, int64_t d, float x)
    {
        row[d] = word(x, 0);
    }
    static __device__ __forceinline__ void pack(const float x[4], uint32_t *words)
    {
        for (int k = 0; k < 4; k++)
            words[k] = cg_to_tf32(x[k]);
    }
    static __device__ __forceinline__ void multiply(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        CG_MMA(c, a, b, "m16n8k8.row.col.f32.tf32.tf32.f32", [](uint32_t word, int) { return gpu_bits_float(word); });
    }
};

struct cg_bf16 {
    enum { PER_WORD = 2 };
    static __device__ __forceinline__ uint32_t word(float lower, float upper)
    {
        return cg_pair_bf16(lower, upper);
    }
    static __device__ __forceinline__ void put(uint32_t *row, int64_t d, float x)
    {
        reinterpret_cast<uint16_t *>(row)[d] = (uint16_t)word(x, 0);
    }
    static __device__ __forceinline__ void pack(const float x[4], uint32_t *words)
    {
        words[0] = cg_pair_bf16(x[0], x[1]);
        words[1] = cg_pair_bf16(x[2], x[3]);
    }
    static __device__ __forceinline__ void multiply(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        CG_MMA(c, a, b, "m16n8k16.row.col.f32.bf16.bf16.f32",
               [](uint32_t word, int half) { return gpu_from_bf16((uint16_t)(word >> 16 * half)); });
    }
};

struct cg_f16 {
    enum { PER_WORD = 2 };
    static __device__ __forceinline__ uint32_t word(float lower, float upper)
    {
        return cg_pair_f16(lower, upper);
    }
    static __device__ __forceinline__ void put(uint32_t *row, int64_t d, float x)
    {
        reinterpret_cast<uint16_t *>(row)[d] = (uint16_t)word(x, 0);
    }
    static __device__ __forceinline__ void pack(const float x[4], uint32_t *words)
    {
        words[0] = cg_pair_f16(x[0], x[1]);
        words[1] = cg_pair_f16(x[2], x[3]);
    }
    static __device__ __forceinline__ void multiply(float c[4], const uint32_t a[4], const uint32_t b[2])
    {
        CG_MMA(c, a, b, "m16n8k16.row.col.f32.f16.f16.f32",
               [](uint32_t word, int half) { return gpu_from_f16((uint16_t)(word >> 16 * half)); });
    }
};

/* Loads four blocks of 8 rows of 4 words from shared memory. Lane l gives the address of row l % 8 of block l / 8,
 * aligned to 16 bytes, and receives word l % 4 of row l / 4 of block j as words[j]. */
static __device__ __forceinline__ void cg_load_fragments(uint32_t words[4], const uint32_t *row)
{
#ifdef SEQLSTM_EMULATED
    emulation::load_fragments(words, row);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
                 : "memory");
#endif
}

#endif

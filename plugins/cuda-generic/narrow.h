/* SPDX-License-Identifier: Apache-2.0 */
/* The number types that products are computed in on tensor cores, and how float32 becomes them: for host and device.
 * tests/unit/test_cuda_element.c holds the host's arithmetic against the reference's casts; the device has an
 * instruction for each.
 *
 * A *word* is 32 bits of operands along the depth of a product: one TF32, or two of 16 bits, the lower depth below.
 */
#ifndef CG_NARROW_H
#define CG_NARROW_H

#include <stdint.h>
#include <string.h>

#include "element.h"

CG_HD uint32_t cg_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

CG_HD float cg_bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Drops `bits` bits of the fraction of a float32, to nearest even; NaN stays NaN. */
CG_HD uint32_t cg_round_fraction(uint32_t word, int bits)
{
    const uint32_t half = 1u << (bits - 1);
    if ((word & 0x7FFFFFFFu) > 0x7F800000u)
        return (word | 0x00400000u) >> bits << bits;
    return (word + half - 1 + (word >> bits & 1)) >> bits << bits;
}

/* 8 bits of exponent, 10 of fraction, in the upper bits of a float32. */
CG_HD uint32_t cg_to_tf32(float x)
{
#if defined(__CUDA_ARCH__)
    uint32_t word;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x)); /* ties away from zero: the one rounding sm_80 has */
    return word;
#else
    const uint32_t word = cg_float_bits(x);
    return (word & 0x7FFFFFFFu) >= 0x7F800000u ? word : (word + 0x1000u) & ~0x1FFFu;
#endif
}

CG_HD uint16_t cg_to_bf16(float x)
{
    return (uint16_t)(cg_round_fraction(cg_float_bits(x), 16) >> 16);
}

CG_HD float cg_from_bf16(uint16_t word)
{
    return cg_bits_float((uint32_t)word << 16);
}

CG_HD uint16_t cg_to_f16(float x)
{
    const uint32_t word = cg_float_bits(x), size = word & 0x7FFFFFFFu;
    const uint16_t sign = (uint16_t)(word >> 16 & 0x8000u);
    if (size > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u);
    if (size >= 0x477FF000u) /* 65520 and more */
        return (uint16_t)(sign | 0x7C00u);
    if (size < 0x38800000u) { /* subnormal: the sum's rounding is the one that is wanted */
        const float magic = cg_bits_float(0x3F000000u); /* 2^-1, whose last place is 2^-24 */
        return (uint16_t)(sign | (cg_float_bits(cg_bits_float(size) + magic) - 0x3F000000u));
    }
    return (uint16_t)(sign | ((cg_round_fraction(size, 13) - 0x38000000u) >> 13));
}

CG_HD float cg_from_f16(uint16_t word)
{
    const uint32_t sign = (uint32_t)(word & 0x8000u) << 16, size = word & 0x7FFFu;
    if (size >= 0x7C00u)
        return cg_bits_float(sign | 0x7F800000u | (size & 0x3FFu) << 13);
    const float scale = cg_bits_float(0x77800000u); /* 2^112: from a bias of 127 to one of 15 */
    return cg_bits_float(sign | cg_float_bits(cg_bits_float(size << 13) * scale));
}

/* Two of 16 bits in a word. */
CG_HD uint32_t cg_pair_bf16(float lower, float upper)
{
#if defined(__CUDA_ARCH__)
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
    return word;
#else
    return (uint32_t)cg_to_bf16(upper) << 16 | cg_to_bf16(lower);
#endif
}

CG_HD uint32_t cg_pair_f16(float lower, float upper)
{
#if defined(__CUDA_ARCH__)
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
    return word;
#else
    return (uint32_t)cg_to_f16(upper) << 16 | cg_to_f16(lower);
#endif
}

#endif

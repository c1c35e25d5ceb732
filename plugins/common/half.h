/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between float32 and 16 bits, for host and device: rounded to nearest even, with subnormals and
 * infinities; NaN stays NaN. tests/unit/cuda-generic/test_cuda_element.c compares it with the rounding of the
 * conformance kit. */
#ifndef GPU_HALF_H
#define GPU_HALF_H

#include <stdint.h>
#include <string.h>

#include <seqlstm/philox.h>

#define GPU_HD SEQLSTM_HD static inline

GPU_HD uint32_t gpu_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

GPU_HD float gpu_bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Drops `bits` bits from the fraction of a float32, rounded to nearest even; NaN stays NaN. */
GPU_HD uint32_t gpu_round_fraction(uint32_t word, int bits)
{
    const uint32_t half = 1u << (bits - 1);
    if ((word & 0x7FFFFFFFu) > 0x7F800000u)
        return (word | 0x00400000u) >> bits << bits;
    return (word + half - 1 + (word >> bits & 1)) >> bits << bits;
}

GPU_HD uint16_t gpu_to_bf16(float x)
{
    return (uint16_t)(gpu_round_fraction(gpu_float_bits(x), 16) >> 16);
}

GPU_HD float gpu_from_bf16(uint16_t word)
{
    return gpu_bits_float((uint32_t)word << 16);
}

GPU_HD uint16_t gpu_to_f16(float x)
{
    const uint32_t word = gpu_float_bits(x), size = word & 0x7FFFFFFFu;
    const uint16_t sign = (uint16_t)(word >> 16 & 0x8000u);
    if (size > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00u);
    if (size >= 0x477FF000u) /* 65520 or more */
        return (uint16_t)(sign | 0x7C00u);
    if (size < 0x38800000u) {                            /* subnormal: adding `magic` rounds as wanted */
        const float magic = gpu_bits_float(0x3F000000u); /* 2^-1, whose last bit is worth 2^-24 */
        return (uint16_t)(sign | (gpu_float_bits(gpu_bits_float(size) + magic) - 0x3F000000u));
    }
    return (uint16_t)(sign | ((gpu_round_fraction(size, 13) - 0x38000000u) >> 13));
}

GPU_HD float gpu_from_f16(uint16_t word)
{
    const uint32_t sign = (uint32_t)(word & 0x8000u) << 16, size = word & 0x7FFFu;
    if (size >= 0x7C00u)
        return gpu_bits_float(sign | 0x7F800000u | (size & 0x3FFu) << 13);
    const float scale = gpu_bits_float(0x77800000u); /* 2^112: changes the bias from 127 to 15 */
    return gpu_bits_float(sign | gpu_float_bits(gpu_bits_float(size << 13) * scale));
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Float32 products on tensor cores by three float16 products, for host and device.
 *
 *   x s = hi + lo / 2048      hi = float16(x s), lo = float16(2048 (x s - hi)), s a power of two
 *   sum of x y = (sum of hi hi + (sum of hi lo + sum of lo hi) / 2048) / (s of x) / (s of y)
 *
 * The two sums in float32 are kept apart until the end. What is dropped, lo lo, is below 2^-22 |x y|, and hi + lo /
 * 2048 is within 2^-22 |x s| + 2^-36 of x s. Values that share a scale s, such as a row, are scaled so that the largest
 * lies in [2^14, 2^15): so values down to 2^-29 of it keep 21 bits.
 *
 * Not for values from CG_SPLIT_LIMIT on, infinities among them: hi + lo of an infinity would be NaN, and a product with
 * one of the scales could overflow although the other one would bring it back. Kernels check cg_split_fits first, and
 * compute in float32 where it is false. NaN stays NaN. tests/unit/cuda-generic/test_cuda_split.c */
#ifndef CG_SPLIT_H
#define CG_SPLIT_H

#include <stdbool.h>

#include "cuda-generic/device/narrow.h"

#define CG_SPLIT_UP    2048.0f
#define CG_SPLIT_DOWN  (1.0f / 2048.0f)
#define CG_SPLIT_LIMIT 0x1p107f

/* May values up to `most` in size be split? `most` is not NaN. */
CG_HD bool cg_split_fits(float most)
{
    return most < CG_SPLIT_LIMIT;
}

/* The exponent of the scale, with float32's bias. 2^126 at most, so that its inverse is a normal number. */
CG_HD uint32_t cg_split_exponent(float most)
{
    const uint32_t up = 268u - (gpu_float_bits(most) >> 23 & 0xFFu);
    return up < 253u ? up : 253u;
}

/* The power of two that brings `most`, the largest size of some values, to [2^14, 2^15); 2^126 for still smaller
 * ones. */
CG_HD float cg_split_scale(float most)
{
    return gpu_bits_float(cg_split_exponent(most) << 23);
}

/* 1 / cg_split_scale(most) */
CG_HD float cg_split_inverse(float most)
{
    return gpu_bits_float((254u - cg_split_exponent(most)) << 23);
}

/* The two float16 of a word (narrow.h). */
CG_HD void cg_unpair_f16(uint32_t word, float *lower, float *upper)
{
#if defined(__CUDA_ARCH__)
    asm("{\n\t.reg .b16 l, u;\n\tmov.b32 {l, u}, %2;\n\tcvt.f32.f16 %0, l;\n\tcvt.f32.f16 %1, u;\n\t}"
        : "=f"(*lower), "=f"(*upper)
        : "r"(word));
#else
    *lower = gpu_from_f16((uint16_t)(word & 0xFFFFu));
    *upper = gpu_from_f16((uint16_t)(word >> 16));
#endif
}

/* Splits two scaled values, neighbours along the depth, into a word of hi and one of lo. */
CG_HD void cg_split_pair(float lower, float upper, uint32_t *hi, uint32_t *lo)
{
    float l, u;
    *hi = cg_pair_f16(lower, upper);
    cg_unpair_f16(*hi, &l, &u);
    *lo = cg_pair_f16((lower - l) * CG_SPLIT_UP, (upper - u) * CG_SPLIT_UP);
}

/* The sum of the products of scaled values, from the sum of hi hi and that of hi lo and lo hi. */
CG_HD float cg_split_fold(float large, float cross)
{
    return large + cross * CG_SPLIT_DOWN;
}

#endif

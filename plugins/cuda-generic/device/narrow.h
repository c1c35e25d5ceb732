/* SPDX-License-Identifier: Apache-2.0 */
/* The number types of products on tensor cores, and the conversion of float32 to them, for host and device.
 * tests/unit/cuda-generic/test_cuda_element.c checks the host's arithmetic against the casts of the reference; the
 * device has an instruction for each.
 *
 * A *word* is 32 bits of operands along the depth of a product: one TF32 value, or two values of 16 bits, the one of
 * lower depth in the lower half. */
#ifndef CG_NARROW_H
#define CG_NARROW_H

#include <stdint.h>

#include "common/half.h"
#include "cuda-generic/device/element.h"

/* 8 bits of exponent and 10 of fraction, in the upper bits of a float32. */
CG_HD uint32_t cg_to_tf32(float x)
{
#if defined(__CUDA_ARCH__)
    uint32_t word;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(x)); /* ties away from zero: the only rounding that sm_80 has */
    return word;
#else
    const uint32_t word = gpu_float_bits(x);
    return (word & 0x7FFFFFFFu) >= 0x7F800000u ? word : (word + 0x1000u) & ~0x1FFFu;
#endif
}

/* Two values of 16 bits in one word. */
CG_HD uint32_t cg_pair_bf16(float lower, float upper)
{
#if defined(__CUDA_ARCH__)
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
    return word;
#else
    return (uint32_t)gpu_to_bf16(upper) << 16 | gpu_to_bf16(lower);
#endif
}

CG_HD uint32_t cg_pair_f16(float lower, float upper)
{
#if defined(__CUDA_ARCH__)
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(upper), "f"(lower));
    return word;
#else
    return (uint32_t)gpu_to_f16(upper) << 16 | gpu_to_f16(lower);
#endif
}

#endif

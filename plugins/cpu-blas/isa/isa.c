/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets: CPUID for the processor, XCR0 for the operating system. BLAS_HAVE_X86_KERNELS is defined if the
 * AVX units were compiled. */
#include "cpu-blas/isa/isa.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <xmmintrin.h>

#ifdef BLAS_HAVE_X86_KERNELS
uint64_t blas_isa_state(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static enum blas_isa detect(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_AVX) || !(c & bit_FMA))
        return BLAS_ISA_PORTABLE;
    uint64_t state = blas_isa_state();
    if ((state & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
        return BLAS_ISA_PORTABLE;
    const unsigned need = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((b & need) == need && (state & 0xE6) == 0xE6)
        return BLAS_ISA_AVX512;
    return BLAS_ISA_AVX2;
}
#else
uint64_t blas_isa_state(void)
{
    return 0;
}
static enum blas_isa detect(void)
{
    return BLAS_ISA_PORTABLE;
}
#endif

enum blas_isa blas_isa_detect(void)
{
    return detect();
}

uint32_t blas_flush_denormals_enter(void)
{
    uint32_t saved = _mm_getcsr();
    _mm_setcsr(saved | 0x8040u); /* FTZ and DAZ */
    return saved;
}

void blas_flush_denormals_leave(uint32_t saved)
{
    /* Discards the exception flags raised since then. */
    _mm_setcsr(saved);
}
#else
uint64_t blas_isa_state(void)
{
    return 0;
}
enum blas_isa blas_isa_detect(void)
{
    return BLAS_ISA_PORTABLE;
}
uint32_t blas_flush_denormals_enter(void)
{
    return 0;
}
void blas_flush_denormals_leave(uint32_t saved)
{
    (void)saved;
}
#endif

const char *blas_isa_name(enum blas_isa isa)
{
    return isa == BLAS_ISA_AVX512 ? "avx512" : isa == BLAS_ISA_AVX2 ? "avx2" : "portable";
}

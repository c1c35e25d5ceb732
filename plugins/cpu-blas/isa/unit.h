/* SPDX-License-Identifier: Apache-2.0 */
/* Included first by every unit that meson.build compiles once for each instruction set. The build defines BLAS_SET
 * (portable, avx2, avx512) and BLAS_LANES (floats in a vector). This header defines how names are formed and how
 * functions and loops are expanded. */
#ifndef BLAS_ISA_UNIT_H
#define BLAS_ISA_UNIT_H

#ifndef BLAS_LANES
#error "BLAS_LANES must be given by the build"
#endif

#define BLAS_JOIN_(a, b) a##_##b
#define BLAS_JOIN(a, b)  BLAS_JOIN_(a, b)
#define BLAS_NAME(name)  BLAS_JOIN(blas_##name, BLAS_SET)
#define BLAS_TEXT_(a)    #a
#define BLAS_TEXT(a)     BLAS_TEXT_(a)

#define INLINE   static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

/* Used in place of `for`: sets how far the compiler unrolls the loop. */
#ifdef __clang__
#define UNROLL_FOR _Pragma("unroll") for
#define ROLLED_FOR _Pragma("nounroll") for
#else
#define UNROLL_FOR _Pragma("GCC unroll 8") for
#define ROLLED_FOR _Pragma("GCC unroll 1") for
#endif

#endif

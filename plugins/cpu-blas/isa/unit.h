/* SPDX-License-Identifier: Apache-2.0 */
/* Names in the units that meson.build compiles once per instruction set, with BLAS_SET (portable, avx2, avx512) and
 * BLAS_LANES (floats of a vector) given. */
#ifndef BLAS_ISA_UNIT_H
#define BLAS_ISA_UNIT_H

#define BLAS_JOIN_(a, b) a##_##b
#define BLAS_JOIN(a, b)  BLAS_JOIN_(a, b)
#define BLAS_NAME(name)  BLAS_JOIN(blas_##name, BLAS_SET)

#endif

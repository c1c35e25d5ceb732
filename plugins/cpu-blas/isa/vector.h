/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of the instruction set that a unit is compiled for: vf (floats), vm (a mask) and the operations v_…,
 * which each of the three headers defines. Kernels are written once in terms of these. (lanes.h has other vectors,
 * of the compiler's own type, for arithmetic that needs no special instruction.) */
#ifndef BLAS_VECTOR_H
#define BLAS_VECTOR_H

#include "cpu-blas/isa/unit.h"
#if BLAS_LANES == 16
#include "cpu-blas/isa/simd_avx512.h"
#elif BLAS_LANES == 8
#include "cpu-blas/isa/simd_avx2.h"
#else
#include "cpu-blas/isa/simd_portable.h"
#endif

#endif

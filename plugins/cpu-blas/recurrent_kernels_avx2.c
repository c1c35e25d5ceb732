/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent kernels for AVX2 and FMA. */
#include "simd_avx2.h"

#define BLAS_KERNEL_TABLE blas_recurrent_kernels_avx2
#define BLAS_KERNEL_NAME  "avx2"
#include "recurrent_kernels.inc"

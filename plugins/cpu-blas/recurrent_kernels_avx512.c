/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent kernels for AVX-512. */
#include "simd_avx512.h"

#define BLAS_KERNEL_TABLE blas_recurrent_kernels_avx512
#define BLAS_KERNEL_NAME  "avx512"
#include "recurrent_kernels.inc"

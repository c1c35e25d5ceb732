/* SPDX-License-Identifier: Apache-2.0 */
/* The recurrent kernels for any processor. */
#include "simd_portable.h"

#define BLAS_KERNEL_TABLE blas_recurrent_kernels_portable
#define BLAS_KERNEL_NAME  "portable"
#include "recurrent_kernels.inc"

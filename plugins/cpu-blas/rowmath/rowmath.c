/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the table. The build defines which instruction sets were compiled. */
#include "cpu-blas/rowmath/rowmath.h"

extern const struct blas_rowmath blas_rowmath_portable;
#ifdef BLAS_HAVE_X86_KERNELS
extern const struct blas_rowmath blas_rowmath_avx2;
#endif
#ifdef BLAS_HAVE_X86_KERNELS
extern const struct blas_rowmath blas_rowmath_avx512;
#endif

const struct blas_rowmath *blas_rowmath_get(enum blas_isa isa)
{
#ifdef BLAS_HAVE_X86_KERNELS
    if (isa >= BLAS_ISA_AVX512)
        return &blas_rowmath_avx512;
#endif
#ifdef BLAS_HAVE_X86_KERNELS
    if (isa >= BLAS_ISA_AVX2)
        return &blas_rowmath_avx2;
#endif
    (void)isa;
    return &blas_rowmath_portable;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction set that the kernels of this plugin use, detected once at run time.
 *
 * The kernels of each set are compiled in a translation unit of their own, with its flags. All other code is
 * compiled for the base architecture, so that the plugin loads and runs on any machine. */
#ifndef BLAS_ISA_H
#define BLAS_ISA_H

#include <stdint.h>

/* In ascending order: a processor that runs one set runs all before it. */
enum blas_isa { BLAS_ISA_PORTABLE = 0, BLAS_ISA_AVX2 = 1, BLAS_ISA_AVX512 = 2 };

/* The best set that processor and operating system offer (CPUID and XCR0) and that was compiled. [any] */
enum blas_isa blas_isa_detect(void);

/* "portable", "avx2", "avx512". [any] */
const char *blas_isa_name(enum blas_isa isa);

/* The registers that the operating system saves (XCR0); 0 if it cannot be read. [any] */
uint64_t blas_isa_state(void);

/* Treats denormals as zero during a call. Each thread calls `enter` at the start and passes its result to `leave` at
 * the end. No effect on processors without such a mode. [any] */
uint32_t blas_flush_denormals_enter(void);
void blas_flush_denormals_leave(uint32_t saved);

#endif

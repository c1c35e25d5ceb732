/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction set the kernels of this plugin use: found once, at run time.
 *
 * Each set's kernels are a translation unit with flags of its own; nothing outside those units is compiled
 * for more than the base architecture, so that the plugin loads and runs anywhere. */
#ifndef BLAS_ISA_H
#define BLAS_ISA_H

#include <stdint.h>

/* In rising order: a lower one runs wherever a higher one does. */
enum blas_isa { BLAS_ISA_PORTABLE = 0, BLAS_ISA_AVX2 = 1, BLAS_ISA_AVX512 = 2 };

/* The best set that processor and operating system offer (CPUID and XCR0) and that was compiled in. [any] */
enum blas_isa blas_isa_detect(void);

/* "portable", "avx2", "avx512". [any] */
const char *blas_isa_name(enum blas_isa isa);

/* Which registers the operating system saves (XCR0); 0 where that cannot be asked. [any] */
uint64_t blas_isa_state(void);

/* Denormals to zero for one call: `enter` at the start on each thread, `leave` with its result at the end.
 * Without effect where the processor has no such mode. [any] */
uint32_t blas_flush_denormals_enter(void);
void blas_flush_denormals_leave(uint32_t saved);

#endif

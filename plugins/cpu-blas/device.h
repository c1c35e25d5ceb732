/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU is, and what this backend makes of it. Reads CPUID and /proc/cpuinfo, keeps nothing. */
#ifndef BLAS_DEVICE_H
#define BLAS_DEVICE_H

#include <stdint.h>

#include <seqlstm/backend.h>

#include "isa.h"

/* 1 .. 4: x86-64 psABI level that CPU and system support; 0 on another architecture. [any] */
int blas_cpu_level(void);

/* Logical CPUs of the machine, 1 .. 256: the bound of what one operation splits itself into. [any] */
int32_t blas_cpu_count(void);

/* Fills name, class and domain. The class is the psABI level that the kernels use, not the best that there is, and the
 * name holds OpenBLAS's core: together they say which code computes. After blas_openblas_load. [any] */
void blas_device_describe(enum blas_isa isa, struct seqlstm_device_info *info);

#endif

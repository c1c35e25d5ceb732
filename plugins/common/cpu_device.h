/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU is. Reads CPUID and /proc/cpuinfo, keeps nothing. */
#ifndef COMMON_CPU_DEVICE_H
#define COMMON_CPU_DEVICE_H

#include <stdint.h>

#include <seqlstm/backend.h>

enum { CPU_MEMBERS_MOST = 64 }; /* threads of one operation of a CPU backend */

/* 1 .. 4: x86-64 psABI level that CPU and system support; 0 on another architecture. [any] */
int cpu_device_level(void);

/* Logical CPUs of the machine, 1 .. 256: the bound of what one operation splits itself into. [any] */
int32_t cpu_device_count(void);

/* Fills name, class and domain. `level`: the psABI level that the backend's code uses, which may be less than there is;
 * `library`: what computes, "OpenBLAS SkylakeX". Together they say which code runs. [any] */
void cpu_device_describe(int level, const char *library, struct seqlstm_device_info *info);

#endif

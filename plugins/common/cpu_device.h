/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the processor. Reads CPUID and /proc/cpuinfo, keeps nothing. */
#ifndef COMMON_CPU_DEVICE_H
#define COMMON_CPU_DEVICE_H

#include <stdint.h>

#include <seqlstm/backend.h>

enum { CPU_MEMBERS_MOST = 64 }; /* the most threads in one operation of a CPU backend */

/* The x86-64 psABI level that processor and operating system support, 1 .. 4; 0 on another architecture. [any] */
int cpu_device_level(void);

/* The logical CPUs of the machine, 1 .. 256: the limit for splitting an operation. [any] */
int32_t cpu_device_count(void);

/* Fills name, class and domain. `level`: the psABI level that the backend's code uses, which may be below the
 * processor's. `library`: the library that computes, such as "OpenBLAS SkylakeX". Together they identify the code
 * that runs. [any] */
void cpu_device_describe(int level, const char *library, struct seqlstm_device_info *info);

/* device_count of the table of a CPU backend: 1. [any] */
seqlstm_status cpu_device_report_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                       struct seqlstm_error *err);

/* INVALID_ARGUMENT, naming the backend, unless `device` is 0. [any] */
seqlstm_status cpu_device_check(uint32_t device, const char *id, struct seqlstm_error *err);

#endif

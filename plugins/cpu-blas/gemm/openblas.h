/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS, loaded when the backend is opened; the plugin is not linked against it.
 *
 * While OpenBLAS loads, it reads from the environment how many threads to start (Debian's pthread build: one for each
 * core) and which kernels to use. Nothing changes this later. So it is opened under a modified environment, with one
 * thread and the kernels that it selects for the processor. OPENBLAS_* variables that were set for other programs are
 * ignored: a forced AVX2 core halves the speed on an AVX-512 machine. The option `openblas_core` names a core, or makes
 * the variables count.
 *
 * A version of OpenBLAS that is older than the processor does not know it and falls back to SSE3 kernels, a fifth of
 * the speed (OpenBLAS 0.3.21 on Emerald Rapids). It is then opened again with a core of the processor's instruction
 * set.
 *
 * Callers use `cblas_sgemm` and `cblas_sgemv` as declared by <cblas.h>. openblas.c defines both inside the plugin
 * (hidden) as jumps into the library, like lazily bound entries of a procedure linkage table. They may be called
 * from any thread once blas_openblas_load has succeeded. Each call runs on the calling thread only. */
#ifndef BLAS_OPENBLAS_H
#define BLAS_OPENBLAS_H

#include <cblas.h>

#include <seqlstm/status.h>

#include "cpu-blas/isa/isa.h"

/* Opens the library on the first call. `core`: "auto", "environment", or the name of a core as OpenBLAS spells it
 * ("SKYLAKEX"). UNAVAILABLE, with the reason, if the library is missing, lacks a function, or was loaded with
 * another core than the one named. May be called concurrently. */
seqlstm_status blas_openblas_load(const char *core, struct seqlstm_error *err);

/* Returns the core to request if the library chose `core` on a processor with the instructions of `isa`; NULL if its
 * choice is right. */
const char *blas_openblas_better(const char *core, enum blas_isa isa);

/* The name of the kernels that the library chose, such as "SkylakeX"; "" before it is loaded. */
const char *blas_openblas_core(void);

#endif

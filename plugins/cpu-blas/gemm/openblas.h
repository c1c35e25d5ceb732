/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS, loaded when the backend is opened and never linked against.
 *
 * Its constructor takes decisions from the environment that nothing changes later: how many threads it starts
 * (Debian's pthread build: one a core, at load) and which kernels it uses. So it is opened here under an
 * environment of our own: one thread, and the kernels that it finds best for the processor, whatever
 * OPENBLAS_* variables were set for other programs (a forced AVX2 core halves the speed on an AVX-512
 * machine). The option `openblas_core` names a core, or says that the variables are meant.
 *
 * A library that is older than the processor does not know it, and falls back to kernels of SSE3, a fifth of the speed
 * (OpenBLAS 0.3.21 on Emerald Rapids). It is then opened again with a core of the processor's instruction set.
 *
 * Calls go through `cblas_sgemm` and `cblas_sgemv` as declared by <cblas.h>: openblas.c defines both inside
 * the plugin (hidden) as a jump to the library, exactly like a lazily bound PLT entry. They may be called
 * from any thread after blas_openblas_load succeeded once. Each call runs on the calling thread alone.
 */
#ifndef BLAS_OPENBLAS_H
#define BLAS_OPENBLAS_H

#include <cblas.h>

#include <seqlstm/status.h>

#include "cpu-blas/isa/isa.h"

/* Opens the library on the first call. `core`: "auto", "environment", or the name of a core as OpenBLAS
 * spells it ("SKYLAKEX"). UNAVAILABLE, with the reason, when the library is absent, lacks a function, or was
 * loaded with another core than the one named. Concurrent calls are fine. */
seqlstm_status blas_openblas_load(const char *core, struct seqlstm_error *err);

/* The core to name where the library chose `core`, on a processor with the instructions of `isa`; NULL: it is right. */
const char *blas_openblas_better(const char *core, enum blas_isa isa);

/* Which kernels the library chose: "SkylakeX"; "" before it was loaded. */
const char *blas_openblas_core(void);

#endif

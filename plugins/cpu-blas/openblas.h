/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS, loaded when the backend is opened and never linked against.
 *
 * Two decisions of OpenBLAS are taken in its constructor from the environment and cannot be changed later:
 * how many threads it starts (Debian's pthread build starts one a core at load), and which kernels it uses
 * (0.3.21 does not know newer families and falls back to AVX2 on an AVX-512 machine, half the speed). So it
 * is opened here with both said, unless the user said otherwise.
 *
 * Calls go through `cblas_sgemm` and `cblas_sgemv` as declared by <cblas.h>: openblas.c defines both inside
 * the plugin (hidden) as a jump to the library, exactly like a lazily bound PLT entry. They may be called
 * from any thread after blas_openblas_load succeeded once. Each call runs on the calling thread alone.
 */
#ifndef BLAS_OPENBLAS_H
#define BLAS_OPENBLAS_H

#include <cblas.h>

#include <seqlstm/status.h>

/* Opens the library on the first call, does nothing afterwards. UNAVAILABLE with the loader's reason when it
 * is absent or lacks a function. Concurrent calls are fine. */
seqlstm_status blas_openblas_load(struct seqlstm_error *err);

/* Which kernels the library chose: "SkylakeX"; "" before it was loaded. */
const char *blas_openblas_core(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there are tiles: CPUID says so of the processor, XCR0 of the operating system, and Linux, which saves 8 KiB
 * more of a thread that uses them, wants to be asked once for the whole process. */
#include "pieces.h"

#include <pthread.h>
#include <stddef.h>

#ifdef BLAS_EMULATED_TILES

const struct blas_pieces_kernels *blas_pieces_offered(void) { return &blas_pieces_kernels_emulated; }
const struct blas_pieces_kernels *blas_pieces_get(void) { return &blas_pieces_kernels_emulated; }

#elif defined(BLAS_HAVE_AMX_KERNELS)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isa.h"

enum {
    AMX_BF16 = 1 << 22, /* CPUID 7, EDX */
    AMX_TILE = 1 << 24,
    REQUEST_STATE = 0x1023, /* arch_prctl: ARCH_REQ_XCOMP_PERM */
    TILE_DATA = 18          /* of XCR0; 17 is their configuration */
};

const struct blas_pieces_kernels *blas_pieces_offered(void)
{
    unsigned a, b, c, d;
    if (blas_isa_detect() < BLAS_ISA_AVX512 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & AMX_BF16) ||
        !(d & AMX_TILE) || (blas_isa_state() >> 17 & 3) != 3)
        return NULL;
    return &blas_pieces_kernels_amx;
}

static const struct blas_pieces_kernels *allowed;

static void ask(void)
{
    const struct blas_pieces_kernels *offered = blas_pieces_offered();
    if (offered != NULL && syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0)
        allowed = offered;
}

const struct blas_pieces_kernels *blas_pieces_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask);
    return allowed;
}

#else

const struct blas_pieces_kernels *blas_pieces_offered(void) { return NULL; }
const struct blas_pieces_kernels *blas_pieces_get(void) { return NULL; }

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there are tiles: CPUID says so of the processor, XCR0 of the operating system, and Linux, which saves 8 KiB
 * more of a thread that uses them, wants to be asked once for the whole process. */
#include "pieces.h"

#include <pthread.h>
#include <stddef.h>

#ifdef BLAS_EMULATED_TILES

const struct blas_pieces_kernels *blas_pieces_offered(void) { return &blas_pieces_kernels_emulated; }
const struct blas_pieces_kernels *blas_bytes_offered(void) { return &blas_bytes_kernels_emulated; }
static bool is_allowed(void) { return true; }

#elif defined(BLAS_HAVE_AMX_KERNELS)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isa.h"

enum {
    AMX_BF16 = 1 << 22, /* CPUID 7, EDX */
    AMX_TILE = 1 << 24,
    AMX_INT8 = 1 << 25,
    REQUEST_STATE = 0x1023, /* arch_prctl: ARCH_REQ_XCOMP_PERM */
    TILE_DATA = 18          /* of XCR0; 17 is their configuration */
};

/* Tiles, and their product. */
static bool is_offered(unsigned product)
{
    unsigned a, b, c, d;
    return blas_isa_detect() >= BLAS_ISA_AVX512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & product) &&
           (d & AMX_TILE) && (blas_isa_state() >> 17 & 3) == 3;
}

const struct blas_pieces_kernels *blas_pieces_offered(void)
{
    return is_offered(AMX_BF16) ? &blas_pieces_kernels_amx : NULL;
}

const struct blas_pieces_kernels *blas_bytes_offered(void)
{
    return is_offered(AMX_INT8) ? &blas_bytes_kernels_amx : NULL;
}

static bool allowed;

static void ask(void) { allowed = syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0; }

static bool is_allowed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask);
    return allowed;
}

#else

const struct blas_pieces_kernels *blas_pieces_offered(void) { return NULL; }
const struct blas_pieces_kernels *blas_bytes_offered(void) { return NULL; }
static bool is_allowed(void) { return false; }

#endif

static const struct blas_pieces_kernels *get(const struct blas_pieces_kernels *offered)
{
    return offered != NULL && is_allowed() ? offered : NULL;
}

const struct blas_pieces_kernels *blas_pieces_get(void) { return get(blas_pieces_offered()); }
const struct blas_pieces_kernels *blas_bytes_get(void) { return get(blas_bytes_offered()); }

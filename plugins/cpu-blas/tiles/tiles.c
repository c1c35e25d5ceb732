/* SPDX-License-Identifier: Apache-2.0 */
/* Detects tiles. CPUID says whether the processor has them, and XCR0 whether the operating system saves them. Linux
 * saves 8 KiB more for a thread that uses tiles, and a process must request that permission once. */
#include "cpu-blas/tiles/tiles.h"

#include <pthread.h>
#include <stddef.h>

#ifdef BLAS_EMULATED_TILES

#define BF16_KERNELS blas_bf16_kernels_emulated
#define INT8_KERNELS blas_int8_kernels_emulated
bool blas_tiles_offered(void)
{
    return true;
}
static bool is_allowed(void)
{
    return true;
}

#elif defined(BLAS_HAVE_AMX_KERNELS)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu-blas/isa/isa.h"

#define BF16_KERNELS blas_bf16_kernels_amx
#define INT8_KERNELS blas_int8_kernels_amx

enum {
    AMX = 1 << 22 | 1 << 24 | 1 << 25, /* CPUID 7, EDX: AMX-BF16, AMX-TILE, AMX-INT8 */
    STATE = 3 << 17,                   /* XCR0: tiles and their configuration */
    REQUEST_STATE = 0x1023,            /* arch_prctl: ARCH_REQ_XCOMP_PERM */
    TILE_DATA = 18
};

bool blas_tiles_offered(void)
{
    unsigned a, b, c, d;
    return blas_isa_detect() >= BLAS_ISA_AVX512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX) == AMX &&
           (blas_isa_state() & STATE) == STATE;
}

static bool allowed;

static void ask(void)
{
    allowed = syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}

static bool is_allowed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask);
    return allowed;
}

#endif

#ifdef BF16_KERNELS

const struct blas_tile_kernels *blas_bf16_get(void)
{
    return blas_tiles_offered() && is_allowed() ? &BF16_KERNELS : NULL;
}

const struct blas_tile_kernels *blas_int8_get(void)
{
    return blas_tiles_offered() && is_allowed() ? &INT8_KERNELS : NULL;
}

#else

bool blas_tiles_offered(void)
{
    return false;
}
const struct blas_tile_kernels *blas_bf16_get(void)
{
    return NULL;
}
const struct blas_tile_kernels *blas_int8_get(void)
{
    return NULL;
}

#endif

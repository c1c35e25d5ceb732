/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels the processor runs. CPUID says what it has, and XCR0 what the operating system saves. Linux saves 8 KiB
 * more for a thread that uses tiles, and a process must request that permission once. */
#include "cpu-blas/tiles/tiles.h"

#include <stddef.h>

#ifdef BLAS_EMULATED_TILES

bool blas_tiles_offered(void)
{
    return true;
}

const struct blas_tile_kernels *blas_bf16_get(void)
{
    return &blas_bf16_kernels_emulated;
}

const struct blas_tile_kernels *blas_int8_get(enum blas_isa isa, bool tiles)
{
    (void)isa;
    (void)tiles;
    return &blas_int8_kernels_portable;
}

#elif defined(BLAS_HAVE_TILE_KERNELS)

#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    AMX = 1 << 22 | 1 << 24 | 1 << 25, /* CPUID 7, EDX: AMX-BF16, AMX-TILE, AMX-INT8 */
    VNNI = 1 << 11,                    /* CPUID 7, ECX: AVX512_VNNI */
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

static bool has_vnni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & VNNI) != 0;
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

const struct blas_tile_kernels *blas_bf16_get(void)
{
    return blas_tiles_offered() && is_allowed() ? &blas_bf16_kernels_amx : NULL;
}

const struct blas_tile_kernels *blas_int8_get(enum blas_isa isa, bool tiles)
{
    if (tiles && blas_tiles_offered() && is_allowed())
        return &blas_int8_kernels_amx;
    if (isa >= BLAS_ISA_AVX512 && has_vnni())
        return &blas_int8_kernels_avx512;
    return isa >= BLAS_ISA_AVX2 ? &blas_int8_kernels_avx2 : &blas_int8_kernels_portable;
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

const struct blas_tile_kernels *blas_int8_get(enum blas_isa isa, bool tiles)
{
    (void)isa;
    (void)tiles;
    return &blas_int8_kernels_portable;
}

#endif

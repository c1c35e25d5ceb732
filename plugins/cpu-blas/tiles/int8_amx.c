/* SPDX-License-Identifier: Apache-2.0 */
/* int8 on the tiles of AMX. */
#include "cpu-blas/tiles/amx.h"
#include "cpu-blas/tiles/lanes.h"

#define TILE_PRODUCT(file, c, a, b) ON_TILES(file, _tile_dpbusd(c, a, b))

INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

#include "cpu-blas/tiles/int8.inc"

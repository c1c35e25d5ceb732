/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on the tiles of AMX. */
#include "cpu-blas/tiles/amx.h"
#include "cpu-blas/tiles/lanes.h"

#define TILE_PRODUCT(file, c, a, b) ON_TILES(file, _tile_dpbusd(c, a, b))

INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return (lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

#include "cpu-blas/tiles/int8.inc"

const struct blas_pieces_kernels blas_bytes_kernels_amx = {.name = "amx",
                                                           .tile_k = BLAS_BYTES_K,
                                                           .rows = bytes_rows,
                                                           .columns = bytes_columns,
                                                           .product = product,
                                                           .release = release,
                                                           .sums = bytes_sums,
                                                           .largest = bytes_largest};

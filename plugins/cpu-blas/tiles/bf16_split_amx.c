/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 parts on the tiles of AMX. */
#include "cpu-blas/tiles/amx.h"
#include "cpu-blas/tiles/lanes.h"

#define TILE_PRODUCT(file, c, a, b) ON_TILES(file, _tile_dpbf16ps(c, a, b))

#include "cpu-blas/tiles/bf16_split.inc"

const struct blas_tile_kernels blas_bf16_kernels_amx = {.name = "amx",
                                                        .tile_k = BLAS_TILE_K,
                                                        .sequences_min = 32,
                                                        .rows_min = 384,
                                                        .product_rows_min = 48,
                                                        .rows = split_rows,
                                                        .across = split_across,
                                                        .columns = split_columns,
                                                        .columns_across = split_columns_across,
                                                        .product = product,
                                                        .release = release};

/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tiles of a step's product (step_tile.h) keep their data: maps for host and device, tested by
 * tests/unit/cuda-generic/test_cuda_tiles.c.
 *
 * The gates of a unit lie in adjacent groups of eight: gate g of unit k has place (k / 8 * gates + g) * 8 + k % 8. So a
 * tile with whole groups of units holds all that its cells need. Places are the columns of the product in forward, and
 * its depth in backward. */
#ifndef CG_TILE_MAP_H
#define CG_TILE_MAP_H

#include "cuda-generic/device/element.h"

/* Place of gate `gate` of unit `unit`. */
CG_HD int64_t cg_tile_place(int64_t gates, int64_t gate, int64_t unit)
{
    return (unit / 8 * gates + gate) * 8 + unit % 8;
}

CG_HD int64_t cg_tile_gate(int64_t gates, int64_t place)
{
    return place / 8 % gates;
}

CG_HD int64_t cg_tile_unit(int64_t gates, int64_t place)
{
    return place / 8 / gates * 8 + place % 8;
}

/* Places of a layer, including those of units that pad the last group. */
CG_HD int64_t cg_tile_places(int64_t gates, int64_t hidden)
{
    return (hidden + 7) / 8 * 8 * gates;
}

/* The number of units whose gates all lie in a tile of `columns` columns. */
CG_HD int64_t cg_tile_units(int64_t gates, int64_t columns)
{
    return columns / 8 / gates * 8;
}

/* Words of a row of `depth` values, with `per_word` values each, rounded up to whole slices of the narrowest tile (64
 * bytes). */
CG_HD int64_t cg_tile_words(int64_t depth, int64_t per_word)
{
    return (depth + 16 * per_word - 1) / (16 * per_word) * 16;
}

#endif

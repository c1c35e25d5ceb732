/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tiles of a step's product (step_tile.h) have what: maps for host and device, exercised by
 * tests/unit/cuda-generic/test_cuda_tiles.c.
 *
 * Gates of a unit lie in neighbouring groups of eight: gate g of unit k has place (k / 8 * gates + g) * 8 + k % 8, so
 * that a tile with whole groups of units holds all that its cells need. Forward these are the columns of the product,
 * backward its depth.
 */
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

/* Places of a layer, with those of units that it does not have. */
CG_HD int64_t cg_tile_places(int64_t gates, int64_t hidden)
{
    return (hidden + 7) / 8 * 8 * gates;
}

/* Units of which a tile of `columns` columns holds all gates. */
CG_HD int64_t cg_tile_units(int64_t gates, int64_t columns)
{
    return columns / 8 / gates * 8;
}

/* Words of a row of `depth` values, `per_word` each: whole slices of the narrowest tile, 64 bytes. */
CG_HD int64_t cg_tile_words(int64_t depth, int64_t per_word)
{
    return (depth + 16 * per_word - 1) / (16 * per_word) * 16;
}

#endif

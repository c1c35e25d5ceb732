/* SPDX-License-Identifier: Apache-2.0 */
/* What products prefetch. */
#ifndef BLAS_RECURRENT_AHEAD_H
#define BLAS_RECURRENT_AHEAD_H

#include "cpu-blas/recurrent/op.h"

enum { BLAS_AHEAD_REGIONS = 128, BLAS_AHEAD_PLACES = 256 };

/* Regions that are read or written next, which products prefetch (blas_product.ahead). They are cut into places of
 * so few lines that the products can fetch all of them. Memory keeps up with a steady stream, not with bursts. */
struct blas_ahead {
    struct {
        const float *from;
        int64_t lines;
    } regions[BLAS_AHEAD_REGIONS];
    int32_t region_count;
    const float *places[BLAS_AHEAD_PLACES];
    int32_t count, rate;
};

static inline void blas_ahead_init(struct blas_ahead *ahead)
{
    ahead->region_count = ahead->count = 0;
    ahead->rate = BLAS_FETCH_SLOW;
}

static inline void blas_ahead_add(struct blas_ahead *ahead, const float *from, int64_t floats)
{
    if (ahead->region_count == BLAS_AHEAD_REGIONS)
        return;
    ahead->regions[ahead->region_count].from = from;
    ahead->regions[ahead->region_count++].lines = (floats + GROUP - 1) / GROUP;
}

/* `tiles`: the row tiles of all products that will prefetch, each counted once for every block of `k` that it sums
 * over. */
void blas_ahead_cut(struct blas_ahead *ahead, int64_t tiles, int64_t k);

/* The same for products on tiles, over k blocks that have as many blas_tile_slots. `rate`: lines for each slot. */
void blas_ahead_spread(struct blas_ahead *ahead, int64_t slots, int64_t k);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* See ahead.h. */
#include "cpu-blas/recurrent/ahead.h"

static int64_t places_of(const struct blas_ahead *ahead, int64_t lines)
{
    int64_t places = 0;
    for (int32_t i = 0; i < ahead->region_count; i++)
        places += (ahead->regions[i].lines + lines - 1) / lines;
    return places;
}

static void cut(struct blas_ahead *ahead, int64_t most, int64_t lines)
{
    ahead->count = 0;
    for (int32_t i = 0; i < ahead->region_count; i++)
        for (int64_t at = 0; at < ahead->regions[i].lines && ahead->count < most; at += lines)
            ahead->places[ahead->count++] = ahead->regions[i].from + at * GROUP;
}

void blas_ahead_cut(struct blas_ahead *ahead, int64_t tiles, int64_t k)
{
    const int64_t most = blas_min(tiles, BLAS_AHEAD_PLACES);
    ahead->rate = places_of(ahead, k / 4 * BLAS_FETCH_SLOW) <= most ? BLAS_FETCH_SLOW : BLAS_FETCH_FAST;
    cut(ahead, most, k / 4 * ahead->rate);
}

void blas_ahead_spread(struct blas_ahead *ahead, int64_t slots, int64_t k)
{
    const int64_t most = blas_min(slots, BLAS_AHEAD_PLACES) / k * k;
    if (ahead->region_count == 0 || ahead->region_count > most)
        return;
    int64_t lines = 0;
    for (int32_t i = 0; i < ahead->region_count; i++)
        lines += ahead->regions[i].lines;
    lines = (lines + most - 1) / most;
    while (places_of(ahead, lines) > most)
        lines++;
    ahead->rate = (int32_t)lines;
    cut(ahead, most, lines);
    for (; ahead->count % k > 0; ahead->count++) /* a part of a product gets k places or none */
        ahead->places[ahead->count] = ahead->places[ahead->count - 1];
}

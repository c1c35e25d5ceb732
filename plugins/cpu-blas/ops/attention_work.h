/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of ATTENTION: the queries sorted by memory, and tiles of queries. */
#ifndef BLAS_ATTENTION_WORK_H
#define BLAS_ATTENTION_WORK_H

#include <string.h>

#include "cpu-blas/share.h"

enum { BLAS_ATTENTION_TILE = 32 }; /* queries of a tile */

/* Parts of the reserve (in inference: of the workspace), in this order. */
struct blas_sorted {
    int64_t *pairs;  /* [memories + 1] cost of the memories before each one */
    int32_t *starts; /* [memories + 1] number of queries before each memory, in `order` */
    int32_t *order;  /* [queries] the rows of the queries, sorted */
    float *weights;  /* A of each memory [queries, rows]; inference: NULL */
    uint64_t bytes;
};

/* The part of the workspace that one part of the call uses. */
struct blas_tile {
    float *query;   /* [tile, K] */
    float *context; /* [tile, V], or its gradient */
    float *weight;  /* [tile, longest], or its gradient */
    float *dquery;  /* [tile, K] */
    float *dscore;  /* [K] sum of this part */
    float *dkeys;   /* [longest, K], used where a memory's gradient of the keys is not wanted */
    uint64_t bytes;
};

struct blas_attention_work {
    const struct seqlstm_attention_desc *d;
    struct blas_sorted sorted;
    unsigned char *tiles;
    const float *queries, *keys, *values, *score;
    const int32_t *offsets;
    int32_t parts;
    double share; /* cost of one part */
};

/* Both begin at `base`; NULL: only `bytes` is of use. */
struct blas_sorted blas_attention_place_sorted(const struct seqlstm_attention_desc *d, bool training, void *base);
struct blas_tile blas_attention_place_tile(const struct seqlstm_attention_desc *d, bool training, void *base);

/* Reads the reserve: after forward it holds the sorted queries. */
struct blas_attention_work blas_attention_begin(const struct blas_call *call);

/* Sorts the queries of a call by memory. */
void blas_attention_sort(const struct blas_call *call, struct blas_attention_work *w);

/* Calls fn once for each part, with `w` as its context. */
void blas_attention_share(const struct blas_call *call, struct blas_attention_work *w, blas_part_fn *fn);

/* Returns true if memory m begins in this part. */
bool blas_attention_is_of(const struct blas_attention_work *w, int64_t m, int32_t part);

/* The tile of a part. */
struct blas_tile blas_attention_tile(const struct blas_call *call, const struct blas_attention_work *w, int32_t part);

/* Rows of memory m; 0 for m < 0, which is no memory. */
static inline int64_t blas_attention_length(const struct blas_attention_work *w, int64_t m)
{
    return m < 0 ? 0 : w->offsets[m + 1] - w->offsets[m];
}

/* ---- rows of the queries order[0 .. count), in ascending order -------------------------------- */

static inline bool blas_rows_touch(const int32_t *order, int64_t count)
{
    return order[count - 1] - order[0] == count - 1;
}

/* Returns the rows one after the other: in place if they are contiguous, otherwise copied into the tile. */
static inline const float *blas_rows_collect(const int32_t *order, int64_t count, const float *from, int64_t n,
                                             float *tile)
{
    if (blas_rows_touch(order, count))
        return from + order[0] * n;
    for (int64_t i = 0; i < count; i++)
        memcpy(tile + i * n, from + order[i] * n, (size_t)n * sizeof *tile);
    return tile;
}

/* Where the results for these rows are computed. blas_rows_place then moves them to their rows. */
static inline float *blas_rows_aim(const int32_t *order, int64_t count, float *to, int64_t n, float *tile)
{
    return blas_rows_touch(order, count) ? to + order[0] * n : tile;
}

static inline void blas_rows_place(const int32_t *order, int64_t count, float *to, int64_t n, const float *tile)
{
    if (!blas_rows_touch(order, count))
        for (int64_t i = 0; i < count; i++)
            memcpy(to + order[i] * n, tile + i * n, (size_t)n * sizeof *tile);
}

#endif

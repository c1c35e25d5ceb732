/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of ATTENTION (attention.c, attention_backward.c): the queries sorted by memory, and tiles of them.
 */
#ifndef BLAS_ATTENTION_H
#define BLAS_ATTENTION_H

#include <string.h>

#include "cpu-blas/share.h"

enum { BLAS_ATTENTION_TILE = 32 }; /* queries of a tile */

/* Where things stand in the reserve (inference: in the workspace), behind one another. */
struct blas_sorted {
    int64_t *pairs;  /* [memories + 1] weights before each memory */
    int32_t *starts; /* [memories + 1] queries before each memory, in `order` */
    int32_t *order;  /* [queries] rows of the queries */
    float *weights;  /* A of each memory [queries, rows]; inference: NULL */
    uint64_t bytes;
};

/* What one part works with, of the workspace. */
struct blas_tile {
    float *query;   /* [tile, K] */
    float *context; /* [tile, V], or its gradient */
    float *weight;  /* [tile, longest], or its gradient */
    float *dquery;  /* [tile, K] */
    float *dscore;  /* [K] of the part */
    float *dkeys;   /* [longest, K], where those of a memory are not wanted */
    uint64_t bytes;
};

struct blas_attention_work {
    const struct seqlstm_attention_desc *d;
    struct blas_sorted sorted;
    unsigned char *tiles;
    const float *queries, *keys, *values, *score;
    const int32_t *offsets;
    int32_t parts;
    double share; /* cost of a part */
};

/* The reserve is read: after forward it holds the sorting. */
struct blas_attention_work blas_attention_begin(const struct blas_call *call);

/* Calls fn once for each part, with `w` as context. */
void blas_attention_share(const struct blas_call *call, struct blas_attention_work *w, blas_part_fn *fn);

/* Does memory m belong to the part? That in which its beginning lies. */
bool blas_attention_is_of(const struct blas_attention_work *w, int64_t m, int32_t part);

/* The tile of a part. */
struct blas_tile blas_attention_tile(const struct blas_call *call, const struct blas_attention_work *w, int32_t part);

seqlstm_status blas_attention_backward(const struct blas_call *call, struct seqlstm_error *err);

/* Rows of memory m; m < 0: none. */
static inline int64_t blas_attention_length(const struct blas_attention_work *w, int64_t m)
{
    return m < 0 ? 0 : w->offsets[m + 1] - w->offsets[m];
}

/* ---- rows of the queries order[0 .. count), which ascend ------------------------------------- */

static inline bool blas_rows_touch(const int32_t *order, int64_t count)
{
    return order[count - 1] - order[0] == count - 1;
}

/* One behind the other: where they are, or copied into the tile. */
static inline const float *blas_rows_collect(const int32_t *order, int64_t count, const float *from, int64_t n,
                                             float *tile)
{
    if (blas_rows_touch(order, count))
        return from + order[0] * n;
    for (int64_t i = 0; i < count; i++)
        memcpy(tile + i * n, from + order[i] * n, (size_t)n * sizeof *tile);
    return tile;
}

/* Where results for these rows are computed; blas_rows_place then brings them home. */
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

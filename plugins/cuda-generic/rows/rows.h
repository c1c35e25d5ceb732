/* SPDX-License-Identifier: Apache-2.0 */
/* Row-wise operations: the functions that host code calls. All matrices are dense [rows, n]. Each function returns the
 * code of its launches. */
#ifndef CG_ROWS_H
#define CG_ROWS_H

#include <stdint.h>

#include <seqlstm/ops.h>

#include "cuda-generic/device/axis.h"
#include "cuda-generic/device/live.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = act(x); y may be x. */
int cg_activation_forward(void *stream, const struct seqlstm_activation *act, int64_t rows, int64_t n, const float *x,
                          float *y);
/* dx from x and dy; dx may be dy. */
int cg_activation_backward(void *stream, const struct seqlstm_activation *act, int64_t rows, int64_t n, const float *x,
                           const float *dy, float *dx);

/* What determines a mask. */
struct cg_mask {
    struct cg_live live;
    uint64_t stream;
    float rate;
    int32_t per_step;     /* 1: drawn for each step; 0: once per sequence */
    int32_t on_sequences; /* rows are sequences */
    int32_t reserved0;
};

/* y [rows, n] = x * mask (+ other * the mask of other_stream); y may be x. Backward is the same. */
struct cg_drop {
    struct cg_mask mask;
    int64_t rows, n;
    const float *x;
    float *y;
    const float *other; /* NULL: none */
    uint64_t other_stream;
};
int cg_dropout(void *stream, const struct cg_drop *drop, const struct cg_axis *axis);
/* y = x * the weight mask over `elems` elements (+ y); only live, stream and rate of `mask` are used. */
int cg_weight_mask(void *stream, const struct cg_mask *mask, int64_t elems, const float *x, float *y, int32_t add);

struct cg_norm {
    float epsilon;
    int32_t reserved0;
    const float *gain, *bias; /* [n]; NULL: absent */
};
/* stats [rows, 2]: mean and 1 / deviation; NULL: not kept. */
int cg_norm_forward(void *stream, const struct cg_norm *norm, int64_t rows, int64_t n, const float *x, float *y,
                    float *stats);
int cg_norm_backward(void *stream, const struct cg_norm *norm, int64_t rows, int64_t n, const float *x,
                     const float *stats, const float *dy, float *dx);
/* dgain, dbias [n], each may be NULL; with `add` they are added to. */
int cg_norm_backward_weights(void *stream, int64_t rows, int64_t n, const float *x, const float *stats, const float *dy,
                             float *dgain, float *dbias, int32_t add);

/* out[j] = sum over rows of x[r, j] (+ out[j]), in a fixed order; rows of x are `stride` elements apart. */
int cg_column_sums(void *stream, int64_t rows, int64_t n, const float *x, int64_t stride, float *out, int32_t add);

int cg_pool_forward(void *stream, uint32_t kind, const struct cg_axis *axis, int64_t n, const float *x, float *y);
int cg_pool_backward(void *stream, uint32_t kind, const struct cg_axis *axis, int64_t n, const float *x,
                     const float *dy, float *dx);

struct cg_merge {
    uint32_t kind, inputs;
    int64_t widths[SEQLSTM_MAX_MERGE_INPUTS];
    int64_t width; /* of the output */
    const float *x[SEQLSTM_MAX_MERGE_INPUTS];
    float *dx[SEQLSTM_MAX_MERGE_INPUTS]; /* NULL: not wanted */
};
int cg_merge_forward(void *stream, const struct cg_merge *merge, int64_t rows, float *y);
/* The same, and y times the masks of two: each to its own y, their x is not read. */
int cg_merge_masked(void *stream, const struct cg_merge *merge, int64_t rows, float *y, const struct cg_drop drops[2],
                    const struct cg_axis *axis);
int cg_merge_backward(void *stream, const struct cg_merge *merge, int64_t rows, const float *dy);

/* y[i] = x[index[i]], zero where index < 0; x has `rows_in` rows. */
int cg_gather(void *stream, int64_t rows, int64_t n, const int32_t *index, const float *x, float *y);
/* to[v] = sum of x[r] over the r with index[r] == v, in their order (+ to[v]), v < targets. */
int cg_gather_back(void *stream, int64_t targets, int64_t rows, int64_t n, const int32_t *index, const float *x,
                   float *to, int32_t add);
/* y[index[i]] = x[i]; the caller has cleared y. */
int cg_scatter(void *stream, int64_t rows, int64_t n, const int32_t *index, const float *x, float *y);

#ifdef __cplusplus
}
#endif

#endif

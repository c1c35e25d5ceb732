/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm of the gate products; means and deviations of rows.
 *
 *   z = (u - mean u) rstd_u gain_u + (v - mean v) rstd_v gain_v + bias        for each row, over all panels
 *
 * Columns that are not elements of the norm hold zeros; `valid` excludes them from the variance. */
#include <math.h>
#include <stdbool.h>

#include "cpu-blas/recurrent/kernels/unit.h"

/* Rows normalised side by side, so that none waits for its own sums and gains are read once for all of them. */
enum { NORM_ROWS = VW == 16 ? 4 : 2 };

/* Mean and 1/std of `lanes` rows over all panels, to stats[4 i] and stats[4 i + 1]. `whole`: all columns are
 * elements of the norm. */
INLINE void norm_rows_stats(const int lanes, const bool whole, const float *x, int64_t panel_stride, const float *valid,
                            const struct blas_norm *n, float *stats)
{
    const int sums = lanes == 1 ? 4 : 2; /* independent sums for each row */
    vf sum[NORM_ROWS][4], squares[NORM_ROWS][4], mean[NORM_ROWS];
    UNROLL_FOR (int i = 0; i < lanes; i++)
        UNROLL_FOR (int k = 0; k < sums; k++)
            sum[i][k] = squares[i][k] = v_zero();
    for (int32_t p = 0; p < n->panels; p++)
        for (int v = 0; v < PANEL; v += sums * VW)
            UNROLL_FOR (int k = 0; k < sums; k++)
                UNROLL_FOR (int i = 0; i < lanes; i++)
                    sum[i][k] = v_add(sum[i][k], v_load(x + p * panel_stride + i * PANEL + v + k * VW));
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        if (lanes == 1)
            sum[i][0] = v_add(sum[i][0], sum[i][2]), sum[i][1] = v_add(sum[i][1], sum[i][3]);
        stats[4 * i] = v_sum(v_add(sum[i][0], sum[i][1])) * n->inverse_count;
        mean[i] = v_set(stats[4 * i]);
    }
    for (int32_t p = 0; p < n->panels; p++)
        for (int v = 0; v < PANEL; v += sums * VW)
            UNROLL_FOR (int k = 0; k < sums; k++)
                UNROLL_FOR (int i = 0; i < lanes; i++) {
                    vf d = v_sub(v_load(x + p * panel_stride + i * PANEL + v + k * VW), mean[i]);
                    if (!whole)
                        d = v_mul(d, v_load(valid + p * PANEL + v + k * VW));
                    squares[i][k] = v_fma(d, d, squares[i][k]);
                }
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        if (lanes == 1)
            squares[i][0] = v_add(squares[i][0], squares[i][2]), squares[i][1] = v_add(squares[i][1], squares[i][3]);
        stats[4 * i + 1] = 1.0f / sqrtf(v_sum(v_add(squares[i][0], squares[i][1])) * n->inverse_count + n->epsilon);
    }
}

/* Computes z of `lanes` rows from row r on, and prefetches where z of the next rows goes. A value equal to its mean
 * must give 0, so the mean is subtracted before any multiplication. */
INLINE void norm_rows_join(const int lanes, const struct blas_norm *n, int64_t r)
{
    vf mean_u[NORM_ROWS], rstd_u[NORM_ROWS], mean_v[NORM_ROWS], rstd_v[NORM_ROWS];
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        const float *stats = n->stats + 4 * (r + i);
        mean_u[i] = v_set(stats[0]);
        rstd_u[i] = v_set(stats[1]);
        mean_v[i] = v_set(stats[2]);
        rstd_v[i] = v_set(stats[3]);
    }
    for (int32_t p = 0; p < n->panels; p++) {
        const float *u = n->u + p * n->panel_stride + r * PANEL, *w = n->v + p * n->v_stride + r * PANEL;
        float *z = n->z + p * n->z_stride + r * PANEL;
        UNROLL_FOR (int v = 0; v < PANEL; v += VW) {
            const vf gain_u = v_load(n->gain_u + p * PANEL + v), gain_v = v_load(n->gain_v + p * PANEL + v);
            const vf bias = v_load(n->bias + p * PANEL + v);
            UNROLL_FOR (int i = 0; i < lanes; i++) {
                const int64_t at = i * PANEL + v;
                if (lanes > 1)
                    __builtin_prefetch(z + at + lanes * PANEL, 1);
                const vf hu = v_mul(v_sub(v_load(u + at), mean_u[i]), rstd_u[i]);
                const vf hv = v_mul(v_sub(v_load(w + at), mean_v[i]), rstd_v[i]);
                v_store(z + at, v_fma(hv, gain_v, v_fma(hu, gain_u, bias)));
            }
        }
    }
}

/* Writes both products of `lanes` rows from row r on past the caches. */
INLINE void norm_rows_put(const int lanes, const struct blas_norm *n, int64_t r)
{
    for (int32_t p = 0; p < n->panels; p++) {
        const float *u = n->u + p * n->panel_stride + r * PANEL, *w = n->v + p * n->v_stride + r * PANEL;
        const int64_t out = p * n->out_stride + r * PANEL;
        for (int64_t at = 0; at < lanes * PANEL; at += VW) {
            v_put(true, n->u_out + out + at, v_load(u + at));
            v_put(true, n->v_out + out + at, v_load(w + at));
        }
    }
}

void kernel_norm_restore(const struct blas_norm *n)
{
    int64_t r = 0;
    for (; r + NORM_ROWS <= n->rows; r += NORM_ROWS)
        norm_rows_join(NORM_ROWS, n, r);
    for (; r < n->rows; r++)
        norm_rows_join(1, n, r);
}

INLINE void norm_rows_forward(const int lanes, const bool whole, const struct blas_norm *n, int64_t r)
{
    float *stats = n->stats + 4 * r;
    norm_rows_stats(lanes, whole, n->u + r * PANEL, n->panel_stride, n->valid_u, n, stats);
    norm_rows_stats(lanes, whole, n->v + r * PANEL, n->v_stride, n->valid_v, n, stats + 2);
    norm_rows_join(lanes, n, r);
    if (n->u_out)
        norm_rows_put(lanes, n, r);
}

INLINE void norm_forward(const bool whole, const struct blas_norm *n)
{
    int64_t r = 0;
    for (; r + NORM_ROWS <= n->rows; r += NORM_ROWS)
        norm_rows_forward(NORM_ROWS, whole, n, r);
    for (; r < n->rows; r++)
        norm_rows_forward(1, whole, n, r);
}

void kernel_norm_forward(const struct blas_norm *n)
{
    if (n->whole)
        norm_forward(true, n);
    else
        norm_forward(false, n);
}

/* Backward of one of the two norms for `lanes` rows from row r on: replaces x by its gradient, adds to dgain, and
 * prefetches x of the next rows. Columns that are not elements have no gain; their result is never multiplied by a
 * weight. */
INLINE void norm_rows_backward(const int lanes, const struct blas_norm *n, int64_t r, float *x, int64_t panel_stride,
                               const float *stats, const float *gain, float *dgain)
{
    const int sums = lanes == 1 ? 2 : 1; /* independent sums for each row */
    const float *dz = n->z + r * PANEL;
    vf mean[NORM_ROWS], rstd[NORM_ROWS], sum_1[NORM_ROWS][2], sum_2[NORM_ROWS][2], mean_1[NORM_ROWS], slope[NORM_ROWS];
    x += r * PANEL;
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        mean[i] = v_set(stats[4 * i]);
        rstd[i] = v_set(stats[4 * i + 1]);
        sum_1[i][0] = sum_1[i][1] = sum_2[i][0] = sum_2[i][1] = v_zero();
    }
    for (int32_t p = 0; p < n->panels; p++)
        for (int v = 0; v < PANEL; v += sums * VW)
            UNROLL_FOR (int k = 0; k < sums; k++) {
                const int at = v + k * VW;
                const vf g = v_load(gain + p * PANEL + at);
                vf dg = v_load(dgain + p * PANEL + at);
                UNROLL_FOR (int i = 0; i < lanes; i++) {
                    vf d = v_load(dz + p * n->z_stride + i * PANEL + at);
                    vf t = v_mul(d, v_sub(v_load(x + p * panel_stride + i * PANEL + at), mean[i]));
                    dg = v_fma(t, rstd[i], dg);
                    sum_1[i][k] = v_fma(d, g, sum_1[i][k]);
                    sum_2[i][k] = v_fma(t, g, sum_2[i][k]);
                }
                v_store(dgain + p * PANEL + at, dg);
            }
    /* dx = rstd (dz gain - mean_1 - x^ mean_2), x^ = (x - mean) rstd. A value equal to its mean must give 0 here,
     * too. */
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        const float squared = stats[4 * i + 1] * stats[4 * i + 1];
        mean_1[i] = v_set(v_sum(v_add(sum_1[i][0], sum_1[i][1])) * n->inverse_count);
        slope[i] = v_set(v_sum(v_add(sum_2[i][0], sum_2[i][1])) * n->inverse_count * squared);
    }
    for (int32_t p = 0; p < n->panels; p++)
        UNROLL_FOR (int v = 0; v < PANEL; v += VW) {
            const vf g = v_load(gain + p * PANEL + v);
            UNROLL_FOR (int i = 0; i < lanes; i++) {
                float *at = x + p * panel_stride + i * PANEL + v;
                if (lanes > 1)
                    __builtin_prefetch(at + lanes * PANEL, 1);
                vf dhat = v_mul(v_load(dz + p * n->z_stride + i * PANEL + v), g);
                vf d = v_sub(v_fnma(v_sub(v_load(at), mean[i]), slope[i], dhat), mean_1[i]);
                v_store(at, v_mul(rstd[i], d));
            }
        }
}

void kernel_norm_backward(const struct blas_norm *n)
{
    int64_t r = 0;
    for (; r + NORM_ROWS <= n->rows; r += NORM_ROWS) {
        norm_rows_backward(NORM_ROWS, n, r, n->u, n->panel_stride, n->stats + 4 * r, n->gain_u, n->dgain_u);
        norm_rows_backward(NORM_ROWS, n, r, n->v, n->v_stride, n->stats + 4 * r + 2, n->gain_v, n->dgain_v);
    }
    for (; r < n->rows; r++) {
        norm_rows_backward(1, n, r, n->u, n->panel_stride, n->stats + 4 * r, n->gain_u, n->dgain_u);
        norm_rows_backward(1, n, r, n->v, n->v_stride, n->stats + 4 * r + 2, n->gain_v, n->dgain_v);
    }
}

void kernel_row_stats(const float *x, int64_t panel_stride, int64_t rows, int64_t units, float epsilon, float *mean,
                      float *rstd)
{
    const float inverse = 1.0f / (float)units;
    int64_t panels = (units + GROUP - 1) / GROUP;
    for (int64_t r = 0; r < rows; r++) {
        vf sum = v_zero(), squares = v_zero();
        for (int64_t p = 0; p < panels; p++)
            for (int v = 0; v < GROUP; v += VW)
                sum = v_add(sum, v_load(x + p * panel_stride + r * GROUP + v));
        mean[r] = v_sum(sum) * inverse;
        const vf m = v_set(mean[r]);
        for (int64_t p = 0; p < panels; p++)
            for (int v = 0; v < GROUP; v += VW) {
                vf d = v_sub(v_load(x + p * panel_stride + r * GROUP + v), m);
                d = v_first(d, (int)(units - p * GROUP < GROUP ? units - p * GROUP : GROUP) - v);
                squares = v_fma(d, d, squares);
            }
        rstd[r] = 1.0f / sqrtf(v_sum(squares) * inverse + epsilon);
    }
}

void kernel_fold(int64_t rows, const float *x, float scale, float *y)
{
    for (int64_t r = 0; r < rows; r++, x += GROUP) {
        vf sum = v_load(x);
        for (int v = VW; v < GROUP; v += VW)
            sum = v_add(sum, v_load(x + v));
        y[r] = scale * v_sum(sum);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over columns, layer norm and masks of rows (compiled once for each instruction set). */
#include <seqlstm/philox.h>

#include "cpu-blas/isa/keep.h"
#include "cpu-blas/rowmath/unit.h"

/* Rows are added in blocks of 32, and blocks to the result, so that errors grow with rows / 32. */
enum { SUM_BLOCK = 32 };

void BLAS_NAME(column_sums)(int64_t rows, int64_t n, int64_t stride, const float *x, float *out)
{
    for (int64_t r0 = 0; r0 < rows; r0 += SUM_BLOCK) {
        int64_t r1 = r0 + SUM_BLOCK < rows ? r0 + SUM_BLOCK : rows;
        int64_t j = 0;
        for (; j + 4 * BLAS_LANES <= n; j += 4 * BLAS_LANES) {
            vf a = v_set(0.0f), b = a, c = a, d = a;
            for (int64_t r = r0; r < r1; r++) {
                const float *p = x + r * stride + j;
                a += v_load(p);
                b += v_load(p + BLAS_LANES);
                c += v_load(p + 2 * BLAS_LANES);
                d += v_load(p + 3 * BLAS_LANES);
            }
            v_store(out + j, v_load(out + j) + a);
            v_store(out + j + BLAS_LANES, v_load(out + j + BLAS_LANES) + b);
            v_store(out + j + 2 * BLAS_LANES, v_load(out + j + 2 * BLAS_LANES) + c);
            v_store(out + j + 3 * BLAS_LANES, v_load(out + j + 3 * BLAS_LANES) + d);
        }
        for (; j < n; j += BLAS_LANES) {
            int count = n - j < BLAS_LANES ? (int)(n - j) : BLAS_LANES;
            vf a = v_set(0.0f);
            for (int64_t r = r0; r < r1; r++)
                a += count == BLAS_LANES ? v_load(x + r * stride + j) : v_load_tail(x + r * stride + j, count, 0.0f);
            if (count == BLAS_LANES)
                v_store(out + j, v_load(out + j) + a);
            else
                v_store_tail(out + j, count, v_load_tail(out + j, count, 0.0f) + a);
        }
    }
}

static float row_sum(int64_t n, const float *x)
{
    vf a = v_set(0.0f);
    int64_t i = 0;
    for (; i + BLAS_LANES <= n; i += BLAS_LANES)
        a += v_load(x + i);
    if (i < n)
        a += v_load_tail(x + i, (int)(n - i), 0.0f);
    return v_sum(a);
}

/* Sum of squared differences from the mean, which avoids cancellation. */
static float row_square_sum(int64_t n, const float *x, float mean)
{
    vf a = v_set(0.0f);
    int64_t i = 0;
    for (; i + BLAS_LANES <= n; i += BLAS_LANES) {
        vf d = v_load(x + i) - mean;
        a += d * d;
    }
    if (i < n) {
        vf d = v_load_tail(x + i, (int)(n - i), mean) - mean;
        a += d * d;
    }
    return v_sum(a);
}

void BLAS_NAME(norm_forward)(int64_t n, const float *x, const float *gain, const float *bias, float epsilon, float *y,
                             float stats[2])
{
    const float mean = row_sum(n, x) / (float)n;
    const float rstd = 1.0f / __builtin_sqrtf(row_square_sum(n, x, mean) / (float)n + epsilon);
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * rstd;
    if (gain != NULL)
        for (int64_t i = 0; i < n; i++)
            y[i] *= gain[i];
    if (bias != NULL)
        for (int64_t i = 0; i < n; i++)
            y[i] += bias[i];
    stats[0] = mean;
    stats[1] = rstd;
}

/* With q = dy gain and xhat: dx = rstd (q - mean q - xhat mean(q xhat)). */
void BLAS_NAME(norm_backward)(int64_t n, const float *x, const float *gain, const float *dy, const float stats[2],
                              float *dx)
{
    const float mean = stats[0], rstd = stats[1];
    vf a = v_set(0.0f), b = v_set(0.0f);
    int64_t i = 0;
    for (; i < n; i += BLAS_LANES) {
        int count = n - i < BLAS_LANES ? (int)(n - i) : BLAS_LANES;
        vf q, h;
        if (count == BLAS_LANES) {
            q = v_load(dy + i);
            h = (v_load(x + i) - mean) * rstd;
            if (gain != NULL)
                q *= v_load(gain + i);
        } else {
            q = v_load_tail(dy + i, count, 0.0f);
            h = (v_load_tail(x + i, count, mean) - mean) * rstd;
            if (gain != NULL)
                q *= v_load_tail(gain + i, count, 0.0f);
        }
        a += q;
        b += q * h;
    }
    const float mean_q = v_sum(a) / (float)n, mean_qh = v_sum(b) / (float)n;
    for (i = 0; i < n; i++) {
        float q = gain != NULL ? dy[i] * gain[i] : dy[i];
        dx[i] = rstd * (q - mean_q - (x[i] - mean) * rstd * mean_qh);
    }
}

void BLAS_NAME(norm_gain_sums)(int64_t rows, int64_t n, int64_t stride, const float *x, const float *dy,
                               const float *stats, float *dgain)
{
    for (int64_t r0 = 0; r0 < rows; r0 += SUM_BLOCK) {
        int64_t r1 = r0 + SUM_BLOCK < rows ? r0 + SUM_BLOCK : rows;
        for (int64_t j = 0; j < n; j += BLAS_LANES) {
            int count = n - j < BLAS_LANES ? (int)(n - j) : BLAS_LANES;
            vf a = v_set(0.0f);
            for (int64_t r = r0; r < r1; r++) {
                const float *p = x + r * stride + j, *q = dy + r * stride + j;
                if (count == BLAS_LANES)
                    a += v_load(q) * ((v_load(p) - stats[2 * r]) * stats[2 * r + 1]);
                else
                    a +=
                        v_load_tail(q, count, 0.0f) * ((v_load_tail(p, count, 0.0f) - stats[2 * r]) * stats[2 * r + 1]);
            }
            if (count == BLAS_LANES)
                v_store(dgain + j, v_load(dgain + j) + a);
            else
                v_store_tail(dgain + j, count, v_load_tail(dgain + j, count, 0.0f) + a);
        }
    }
}

/* ---- masks ---------------------------------------------------------------------------------- */

/* The factors of BLAS_LANES elements: `scale` where the bit is set, else 0. */
INLINE vf factors(uint64_t bits, float scale)
{
    vi lane;
    for (int i = 0; i < BLAS_LANES; i++)
        lane[i] = 1 << i;
    return v_select((((vi){0} + (int32_t)bits) & lane) == lane, v_set(scale), v_set(0.0f));
}

void BLAS_NAME(mask_row)(uint64_t key, uint32_t step, uint64_t sequence, float rate, int64_t n, const float *x,
                         float *y)
{
    const uint32_t least = seqlstm_mask_count(rate);
    const float scale = seqlstm_mask_scale(rate);
    struct keep_keys keys;
    struct keep_run run[KEEP_RUNS];
    uint64_t bits[KEEP_RUNS];
    keep_schedule(key, &keys);
    for (int64_t first = 0; first < n; first += KEEP_RUNS * KEEP_RUN) {
        const int64_t left = n - first, count = left < KEEP_RUNS * KEEP_RUN ? left : KEEP_RUNS * KEEP_RUN;
        const int runs = (int)((count + KEEP_RUN - 1) / KEEP_RUN);
        for (int i = 0; i < runs; i++)
            run[i] = (struct keep_run){(uint32_t)(first / 8 + 8 * i), step, sequence};
        keep_draw_some(runs, &keys, least, run, bits);
        for (int64_t i = 0; i < count; i += BLAS_LANES) {
            const vf m = factors(bits[i / KEEP_RUN] >> i % KEEP_RUN, scale);
            const int tail = (int)(count - i);
            if (tail >= BLAS_LANES)
                v_store(y + first + i, x ? v_load(x + first + i) * m : m);
            else
                v_store_tail(y + first + i, tail, x ? v_load_tail(x + first + i, tail, 0.0f) * m : m);
        }
    }
}

void BLAS_NAME(multiply)(int64_t n, const float *x, const float *m, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * m[i];
}

void BLAS_NAME(maximum)(int64_t n, const float *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] <= y[i] || y[i] != y[i] ? y[i] : x[i];
}

int64_t BLAS_NAME(find_above)(int64_t n, const float *x, int64_t from, float limit)
{
    int64_t i = from;
    for (; i + 4 * BLAS_LANES <= n; i += 4 * BLAS_LANES) {
        vi found = (vi){0};
        for (int k = 0; k < 4; k++)
            found |= ~(v_load(x + i + k * BLAS_LANES) <= limit);
        int32_t any[BLAS_LANES], all = 0;
        memcpy(any, &found, sizeof found);
        for (int k = 0; k < BLAS_LANES; k++)
            all |= any[k];
        if (all != 0)
            break;
    }
    while (i < n && x[i] <= limit)
        i++;
    return i;
}

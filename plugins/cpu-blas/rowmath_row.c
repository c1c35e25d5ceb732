/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over columns, layer norm and masks of rows (compiled once per instruction set). */
#include "rowmath_unit.h"

#include <seqlstm/philox.h>

/* Rows are added in blocks of 32, blocks to the result: errors grow with rows / 32. */
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
                a += count == BLAS_LANES ? v_load(x + r * stride + j)
                                         : v_load_tail(x + r * stride + j, count, 0.0f);
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

/* The variance by its definition, after the mean: no cancellation. */
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

void BLAS_NAME(norm_forward)(int64_t n, const float *x, const float *gain, const float *bias, float epsilon,
                             float *y, float stats[2])
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
void BLAS_NAME(norm_backward)(int64_t n, const float *x, const float *gain, const float *dy,
                              const float stats[2], float *dx)
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
                    a += v_load_tail(q, count, 0.0f) *
                         ((v_load_tail(p, count, 0.0f) - stats[2 * r]) * stats[2 * r + 1]);
            }
            if (count == BLAS_LANES)
                v_store(dgain + j, v_load(dgain + j) + a);
            else
                v_store_tail(dgain + j, count, v_load_tail(dgain + j, count, 0.0f) + a);
        }
    }
}

/* ---- masks ---------------------------------------------------------------------------------- */

/* 16 counters side by side: 64 elements. The compiler turns each inner loop into vector code. */
enum { BLOCKS = 16 };

static void philox_blocks(uint64_t key, uint32_t first, uint32_t step, uint64_t sequence,
                          uint32_t out[4 * BLOCKS])
{
    uint32_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < BLOCKS; i++) {
        c0[i] = first + (uint32_t)i;
        c1[i] = step;
        c2[i] = (uint32_t)sequence;
        c3[i] = (uint32_t)(sequence >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[i];
            uint64_t p1 = (uint64_t)0xCD9E8D57u * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)p1;
            c3[i] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < BLOCKS; i++) {
        out[4 * i] = c0[i];
        out[4 * i + 1] = c1[i];
        out[4 * i + 2] = c2[i];
        out[4 * i + 3] = c3[i];
    }
}

void BLAS_NAME(mask_row)(uint64_t key, uint32_t step, uint64_t sequence, float rate, int64_t n,
                         const float *x, float *y)
{
    const float kept = 1.0f / (1.0f - rate);
    /* u >= rate with u = k 2^-24 is k >= rate 2^24, both sides exact in double. */
    const int32_t threshold = (int32_t)__builtin_ceil((double)rate * 16777216.0);
    uint32_t words[4 * BLOCKS];
    float factor[4 * BLOCKS];
    for (int64_t i0 = 0; i0 < n; i0 += 4 * BLOCKS) {
        philox_blocks(key, (uint32_t)(i0 / 4), step, sequence, words);
        for (int i = 0; i < 4 * BLOCKS; i++)
            factor[i] = (int32_t)(words[i] >> 8) >= threshold ? kept : 0.0f;
        int count = n - i0 < 4 * BLOCKS ? (int)(n - i0) : 4 * BLOCKS;
        if (x == NULL)
            memcpy(y + i0, factor, (size_t)count * sizeof *y);
        else
            for (int i = 0; i < count; i++)
                y[i0 + i] = x[i0 + i] * factor[i];
    }
}

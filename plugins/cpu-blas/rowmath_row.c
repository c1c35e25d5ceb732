/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over columns, layer norm and masks of rows (compiled once per instruction set). */
#include "rowmath_unit.h"

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

/* Counters in 64-bit lanes, of which the low halves count: a lane's product with a constant is one
 * instruction, and what its high half leaves behind in the counter never reaches a low half. */
typedef uint64_t vq __attribute__((vector_size(4 * BLAS_LANES)));

enum { LANES_64 = BLAS_LANES / 2, GROUPS = 4, CHUNK = 4 * LANES_64 * GROUPS };

BLAS_INLINE vq multiply_low(vq a, uint32_t factor)
{
#if BLAS_LANES == 16 && defined(__AVX512F__)
    return (vq)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)factor));
#elif BLAS_LANES == 8 && defined(__AVX2__)
    return (vq)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((long long)factor));
#elif defined(__SSE2__)
    return (vq)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x((long long)factor));
#else
    return (a & 0xFFFFFFFFu) * (uint64_t)factor;
#endif
}

/* The words of CHUNK elements, the first of which is element 4 * first. */
static void philox_chunk(uint64_t key, uint32_t first, uint32_t step, uint64_t sequence, uint32_t out[CHUNK])
{
    vq c0[GROUPS], c1[GROUPS], c2[GROUPS], c3[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < LANES_64; i++)
            c0[g][i] = first + (uint32_t)(g * LANES_64 + i);
        c1[g] = (vq){0} + (uint64_t)step;
        c2[g] = (vq){0} + (sequence & 0xFFFFFFFFu);
        c3[g] = (vq){0} + (sequence >> 32);
    }
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        BLAS_UNROLL
        for (int g = 0; g < GROUPS; g++) {
            vq p0 = multiply_low(c0[g], 0xD2511F53u), p1 = multiply_low(c2[g], 0xCD9E8D57u);
            c0[g] = (p1 >> 32) ^ c1[g] ^ (uint64_t)k0;
            c2[g] = (p0 >> 32) ^ c3[g] ^ (uint64_t)k1;
            c1[g] = p1;
            c3[g] = p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int g = 0; g < GROUPS; g++) {
        uint64_t pairs[2][LANES_64], mixed[2 * LANES_64];
        vq low = (c0[g] & 0xFFFFFFFFu) | (c1[g] << 32), high = (c2[g] & 0xFFFFFFFFu) | (c3[g] << 32);
        memcpy(pairs[0], &low, sizeof low);
        memcpy(pairs[1], &high, sizeof high);
        for (int i = 0; i < LANES_64; i++) {
            mixed[2 * i] = pairs[0][i];
            mixed[2 * i + 1] = pairs[1][i];
        }
        memcpy(out + g * 4 * LANES_64, mixed, sizeof mixed);
    }
}

void BLAS_NAME(mask_row)(uint64_t key, uint32_t step, uint64_t sequence, float rate, int64_t n,
                         const float *x, float *y)
{
    const float kept = 1.0f / (1.0f - rate);
    /* u >= rate with u = k 2^-24 is k >= rate 2^24, both sides exact in double. */
    const int32_t threshold = (int32_t)__builtin_ceil((double)rate * 16777216.0);
    uint32_t words[CHUNK];
    float factor[CHUNK];
    for (int64_t i0 = 0; i0 < n; i0 += CHUNK) {
        philox_chunk(key, (uint32_t)(i0 / 4), step, sequence, words);
        const int count = n - i0 < CHUNK ? (int)(n - i0) : CHUNK;
        float *out = x == NULL && count == CHUNK ? y + i0 : factor;
        for (int i = 0; i < CHUNK; i++)
            out[i] = (int32_t)(words[i] >> 8) >= threshold ? kept : 0.0f;
        if (x == NULL && count < CHUNK)
            memcpy(y + i0, factor, (size_t)count * sizeof *y);
        for (int i = 0; x != NULL && i < count; i++)
            y[i0 + i] = x[i0 + i] * factor[i];
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
        y[i] = x[i] <= y[i] ? y[i] : x[i];
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

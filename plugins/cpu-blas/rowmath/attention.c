/* SPDX-License-Identifier: Apache-2.0 */
/* The additive score of ATTENTION, s . tanh(q + k), for one query and the rows of its memory (compiled once for each
 * instruction set). */
#include "cpu-blas/rowmath/unit.h"

/* One vector of the sum q + k, or its last `count` elements. */
#define SUM(i, count) (v_load_some(query + (i), count) + v_load_some(keys + j * n + (i), count))

INLINE vf v_load_some(const float *p, int count)
{
    return count == BLAS_LANES ? v_load(p) : v_load_tail(p, count, 0.0f);
}

INLINE void v_store_some(float *p, int count, vf v)
{
    if (count == BLAS_LANES)
        v_store(p, v);
    else
        v_store_tail(p, count, v);
}

void BLAS_NAME(tanh_scores)(int64_t rows, int64_t n, const float *query, const float *keys, const float *score,
                            float *out)
{
    const int64_t whole = n / BLAS_LANES * BLAS_LANES;
    const int rest = (int)(n - whole);
    for (int64_t j = 0; j < rows; j++) {
        vf sum = v_set(0.0f);
        for (int64_t i = 0; i < whole; i += BLAS_LANES)
            sum += v_load(score + i) * v_tanh(SUM(i, BLAS_LANES));
        if (rest > 0)
            sum += v_load_tail(score + whole, rest, 0.0f) * v_tanh(SUM(whole, rest));
        out[j] = v_sum(sum);
    }
}

/* Goes column by column of vectors, so that the gradients of query and score stay in registers. */
INLINE void back_columns(int64_t rows, int64_t n, int64_t i, int count, const float *query, const float *keys,
                         const float *score, const float *grads, float *dquery, float *dkeys, float *dscore)
{
    const vf s = v_load_some(score + i, count);
    vf of_query = v_set(0.0f), of_score = v_set(0.0f);
    for (int64_t j = 0; j < rows; j++) {
        const vf t = v_tanh(SUM(i, count)), z = s * (1.0f - t * t) * grads[j];
        of_score += t * grads[j];
        of_query += z;
        v_store_some(dkeys + j * n + i, count, v_load_some(dkeys + j * n + i, count) + z);
    }
    v_store_some(dquery + i, count, of_query);
    v_store_some(dscore + i, count, v_load_some(dscore + i, count) + of_score);
}

void BLAS_NAME(tanh_scores_back)(int64_t rows, int64_t n, const float *query, const float *keys, const float *score,
                                 const float *grads, float *dquery, float *dkeys, float *dscore)
{
    int64_t i = 0;
    for (; i + BLAS_LANES <= n; i += BLAS_LANES)
        back_columns(rows, n, i, BLAS_LANES, query, keys, score, grads, dquery, dkeys, dscore);
    if (i < n)
        back_columns(rows, n, i, (int)(n - i), query, keys, score, grads, dquery, dkeys, dscore);
}

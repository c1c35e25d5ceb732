/* SPDX-License-Identifier: Apache-2.0 */
/* See low_rank.h. */
#include "parallel/low_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

struct sl_low_rank {
    int64_t rows, columns, rank;
    uint64_t number, draws;
    float *p;   /* [rows, rank] */
    float *q;   /* [columns, rank] of all ranks */
    float *own; /* [columns, rank] of this rank */
};

bool sl_low_rank_pays(int64_t rows, int64_t columns, int64_t rank)
{
    return rank < rows && rank < columns && 2 * rank * (rows + columns) < rows * columns;
}

/* Column k of q: any will do that no other depends on. */
static void draw(struct sl_low_rank *m, int64_t k)
{
    m->draws++;
    for (int64_t j = 0; j < m->columns; j++)
        m->q[j * m->rank + k] = (float)(int32_t)(seqlstm_mix64(m->number, m->draws, (uint64_t)j) >> 32) * 0x1p-31f;
}

/* A column of zeros would stay zero for ever, and one that is not finite, too. */
static void renew(struct sl_low_rank *m)
{
    for (int64_t k = 0; k < m->rank; k++) {
        float largest = 0;
        for (int64_t j = 0; j < m->columns; j++) {
            const float x = fabsf(m->q[j * m->rank + k]);
            largest = x > largest || isnan(x) ? x : largest;
        }
        if (!(largest > 0) || isinf(largest))
            draw(m, k);
    }
}

seqlstm_status sl_low_rank_create(int64_t rows, int64_t columns, int64_t rank, uint64_t number,
                                  struct sl_low_rank **out_matrix, struct seqlstm_error *err)
{
    struct sl_low_rank *m = calloc(1, sizeof *m);
    if (m) {
        *m = (struct sl_low_rank){.rows = rows, .columns = columns, .rank = rank};
        m->p = calloc((size_t)(rows * rank), sizeof *m->p);
        m->q = calloc((size_t)(columns * rank), sizeof *m->q);
        m->own = calloc((size_t)(columns * rank), sizeof *m->own);
    }
    if (!m || !m->p || !m->q || !m->own) {
        sl_low_rank_destroy(m);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for compressed gradients");
    }
    m->number = number;
    for (int64_t k = 0; k < rank; k++)
        draw(m, k);
    *out_matrix = m;
    return SEQLSTM_OK;
}

void sl_low_rank_destroy(struct sl_low_rank *m)
{
    if (!m)
        return;
    free(m->p);
    free(m->q);
    free(m->own);
    free(m);
}

/* p = values q */
static void multiply(const struct sl_low_rank *m, const float *values)
{
    for (int64_t i = 0; i < m->rows; i++) {
        float *p = m->p + i * m->rank;
        memset(p, 0, (size_t)m->rank * sizeof *p);
        for (int64_t j = 0; j < m->columns; j++)
            for (int64_t k = 0; k < m->rank; k++)
                p[k] += values[i * m->columns + j] * m->q[j * m->rank + k];
    }
}

/* own = values^T p */
static void multiply_transposed(const struct sl_low_rank *m, const float *values)
{
    memset(m->own, 0, (size_t)(m->columns * m->rank) * sizeof *m->own);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++)
            for (int64_t k = 0; k < m->rank; k++)
                m->own[j * m->rank + k] += values[i * m->columns + j] * m->p[i * m->rank + k];
}

/* Element [i, j] of p times the transpose of `factor`. */
static float get_product(const struct sl_low_rank *m, const float *factor, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t k = 0; k < m->rank; k++)
        sum += m->p[i * m->rank + k] * factor[j * m->rank + k];
    return sum;
}

static double dot(const struct sl_low_rank *m, int64_t a, int64_t b)
{
    double sum = 0;
    for (int64_t i = 0; i < m->rows; i++)
        sum += (double)m->p[i * m->rank + a] * (double)m->p[i * m->rank + b];
    return sum;
}

/* Gram-Schmidt over the columns of p. A column that depends on those before it becomes zero. */
static void orthonormalize(const struct sl_low_rank *m)
{
    for (int64_t k = 0; k < m->rank; k++) {
        const double before = dot(m, k, k);
        for (int64_t b = 0; b < k; b++) {
            const double part = dot(m, k, b);
            for (int64_t i = 0; i < m->rows; i++)
                m->p[i * m->rank + k] -= (float)(part * (double)m->p[i * m->rank + b]);
        }
        const double left = dot(m, k, k);
        const double scale = left <= 1e-10 * before || left == 0 ? 0 : 1 / sqrt(left);
        for (int64_t i = 0; i < m->rows; i++)
            m->p[i * m->rank + k] = (float)((double)m->p[i * m->rank + k] * scale);
    }
}

static bool is_finite(const float *values, int64_t elems)
{
    for (int64_t i = 0; i < elems; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

/* A gradient that is not finite skips the update on all ranks: the error is as before it. */
static void give_up(struct sl_low_rank *m, float *values)
{
    renew(m);
    for (int64_t i = 0; i < m->rows * m->columns; i++)
        values[i] = NAN;
}

seqlstm_status sl_low_rank_add(struct sl_low_rank *m, const struct sl_ranks *ranks, float *values, float *error,
                               struct seqlstm_error *err)
{
    const int64_t elems = m->rows * m->columns, factor = m->columns * m->rank;
    for (int64_t i = 0; i < elems; i++)
        values[i] += error[i];
    multiply(m, values);
    SEQLSTM_TRY(sl_ranks_add(ranks, m->p, m->rows * m->rank, NULL, err));
    const bool fine = is_finite(m->p, m->rows * m->rank);
    orthonormalize(m);
    multiply_transposed(m, values);
    memcpy(m->q, m->own, (size_t)factor * sizeof *m->q);
    SEQLSTM_TRY(sl_ranks_add(ranks, m->q, factor, NULL, err));
    if (!fine || !is_finite(m->q, factor)) {
        give_up(m, values);
        return SEQLSTM_OK;
    }
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->columns; j++) {
            const int64_t at = i * m->columns + j;
            error[at] = values[at] - get_product(m, m->own, i, j);
            values[at] = get_product(m, m->q, i, j);
        }
    renew(m);
    return SEQLSTM_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See low_rank.h. */
#include "parallel/low_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

enum { LANES = 4, ROWS_AT_ONCE = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

struct sl_low_rank {
    int64_t rows, columns, rank;
    uint64_t number, draws;
    float *p;   /* [rank, rows]: the transpose of P */
    float *q;   /* [rank, columns] of all ranks */
    float *own; /* [rank, columns] of this rank */
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
        m->q[k * m->columns + j] = (float)(int32_t)(seqlstm_mix64(m->number, m->draws, (uint64_t)j) >> 32) * 0x1p-31f;
}

/* A column of zeros would stay zero for ever, and one that is not finite, too. */
static void renew(struct sl_low_rank *m)
{
    for (int64_t k = 0; k < m->rank; k++) {
        float largest = 0;
        for (int64_t j = 0; j < m->columns; j++) {
            const float x = fabsf(m->q[k * m->columns + j]);
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

static float dot_row(const float *a, const float *b, int64_t count)
{
    lanes sums = {0}, more = {0};
    float sum = 0;
    int64_t j = 0;
    for (; j + 2 * LANES <= count; j += 2 * LANES) {
        sums += *(const lanes *)(a + j) * *(const lanes *)(b + j);
        more += *(const lanes *)(a + j + LANES) * *(const lanes *)(b + j + LANES);
    }
    sums += more;
    for (int l = 0; l < LANES; l++)
        sum += sums[l];
    for (; j < count; j++)
        sum += a[j] * b[j];
    return sum;
}

/* values += error;  p = values q */
static void multiply(const struct sl_low_rank *m, float *values, const float *error)
{
    for (int64_t i = 0; i < m->rows; i++) {
        float *row = values + i * m->columns;
        for (int64_t j = 0; j < m->columns; j++)
            row[j] += error[i * m->columns + j];
        for (int64_t k = 0; k < m->rank; k++)
            m->p[k * m->rows + i] = dot_row(row, m->q + k * m->columns, m->columns);
    }
}

/* own += the `count` rows from row i on, each times its elements of p */
static void add_rows(const struct sl_low_rank *m, const float *values, int64_t i, int count)
{
    const int64_t columns = m->columns;
    const float *rows = values + i * columns;
    for (int64_t k = 0; k < m->rank; k++) {
        const float *p = m->p + k * m->rows + i;
        float *own = m->own + k * columns;
        int64_t j = 0;
        for (; j + LANES <= columns; j += LANES) {
            lanes sum = *(lanes *)(own + j);
            for (int r = 0; r < count; r++)
                sum += *(const lanes *)(rows + r * columns + j) * p[r];
            *(lanes *)(own + j) = sum;
        }
        for (; j < columns; j++)
            for (int r = 0; r < count; r++)
                own[j] += rows[r * columns + j] * p[r];
    }
}

/* own = values^T p */
static void multiply_transposed(const struct sl_low_rank *m, const float *values)
{
    int64_t i = 0;
    memset(m->own, 0, (size_t)(m->columns * m->rank) * sizeof *m->own);
    for (; i + ROWS_AT_ONCE <= m->rows; i += ROWS_AT_ONCE)
        add_rows(m, values, i, ROWS_AT_ONCE);
    for (; i < m->rows; i++)
        add_rows(m, values, i, 1);
}

/* Row i: error = values - p own^T;  values = p q^T */
static void replace_row(const struct sl_low_rank *m, int64_t i, float *values, float *error)
{
    const float *p = m->p + i;
    int64_t j = 0;
    for (; j + LANES <= m->columns; j += LANES) {
        lanes kept = {0}, sum = {0};
        for (int64_t k = 0; k < m->rank; k++) {
            kept += *(const lanes *)(m->own + k * m->columns + j) * p[k * m->rows];
            sum += *(const lanes *)(m->q + k * m->columns + j) * p[k * m->rows];
        }
        *(lanes *)(error + j) = *(const lanes *)(values + j) - kept;
        *(lanes *)(values + j) = sum;
    }
    for (; j < m->columns; j++) {
        float kept = 0, sum = 0;
        for (int64_t k = 0; k < m->rank; k++) {
            kept += m->own[k * m->columns + j] * p[k * m->rows];
            sum += m->q[k * m->columns + j] * p[k * m->rows];
        }
        error[j] = values[j] - kept;
        values[j] = sum;
    }
}

static double dot(const struct sl_low_rank *m, int64_t a, int64_t b)
{
    const float *one = m->p + a * m->rows, *other = m->p + b * m->rows;
    double sums[ROWS_AT_ONCE] = {0};
    for (int64_t i = 0; i < m->rows; i++)
        sums[i % ROWS_AT_ONCE] += (double)one[i] * (double)other[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Gram-Schmidt over the columns of P. A column that depends on those before it becomes zero. */
static void orthonormalize(const struct sl_low_rank *m)
{
    for (int64_t k = 0; k < m->rank; k++) {
        float *column = m->p + k * m->rows;
        const double before = dot(m, k, k);
        for (int64_t b = 0; b < k; b++) {
            const double part = dot(m, k, b);
            for (int64_t i = 0; i < m->rows; i++)
                column[i] -= (float)(part * (double)m->p[b * m->rows + i]);
        }
        const double left = dot(m, k, k);
        const double scale = left <= 1e-10 * before || left == 0 ? 0 : 1 / sqrt(left);
        for (int64_t i = 0; i < m->rows; i++)
            column[i] = (float)((double)column[i] * scale);
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
    const int64_t factor = m->columns * m->rank;
    multiply(m, values, error);
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
        replace_row(m, i, values + i * m->columns, error + i * m->columns);
    renew(m);
    return SEQLSTM_OK;
}

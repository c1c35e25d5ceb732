/* SPDX-License-Identifier: Apache-2.0 */
/* See low_rank.h. */
#include "parallel/low_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "parallel/low_rank_loops.h"

enum { SUMS = 4 };

struct sl_low_rank {
    int64_t rows, columns, rank;
    uint64_t number, draws;
    float *p;   /* [rank, rows]: the transpose of P */
    float *q;   /* [rank, columns] of all ranks */
    float *own; /* [rank, columns] of this rank */
    bool fine;  /* P is finite */
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

static double dot(const struct sl_low_rank *m, int64_t a, int64_t b)
{
    const float *one = m->p + a * m->rows, *other = m->p + b * m->rows;
    double sums[SUMS] = {0};
    for (int64_t i = 0; i < m->rows; i++)
        sums[i % SUMS] += (double)one[i] * (double)other[i];
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

static struct sl_low_rank_shape get_shape(const struct sl_low_rank *m)
{
    return (struct sl_low_rank_shape){m->rows, m->columns, m->rank};
}

void sl_low_rank_begin(struct sl_low_rank *m, float *values, const float *error)
{
    const struct sl_low_rank_shape shape = get_shape(m);
    sl_low_rank_multiply(&shape, values, error, m->q, m->p);
}

void sl_low_rank_turn(struct sl_low_rank *m, const float *values)
{
    const struct sl_low_rank_shape shape = get_shape(m);
    m->fine = is_finite(m->p, m->rows * m->rank);
    orthonormalize(m);
    sl_low_rank_multiply_transposed(&shape, values, m->p, m->own);
    memcpy(m->q, m->own, (size_t)(m->columns * m->rank) * sizeof *m->q);
}

void sl_low_rank_end(struct sl_low_rank *m, float *values, float *error)
{
    const struct sl_low_rank_shape shape = get_shape(m);
    if (!m->fine || !is_finite(m->q, m->columns * m->rank)) {
        give_up(m, values);
        return;
    }
    sl_low_rank_replace(&shape, values, error, m->p, m->own, m->q);
    renew(m);
}

float *sl_low_rank_get_p(struct sl_low_rank *m, int64_t *out_elems)
{
    *out_elems = m->rows * m->rank;
    return m->p;
}

float *sl_low_rank_get_q(struct sl_low_rank *m, int64_t *out_elems)
{
    *out_elems = m->columns * m->rank;
    return m->q;
}

int64_t sl_low_rank_count_most(const struct sl_low_rank *m)
{
    return (m->rows > m->columns ? m->rows : m->columns) * m->rank;
}

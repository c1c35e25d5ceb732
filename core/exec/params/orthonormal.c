/* SPDX-License-Identifier: Apache-2.0 */
/* Works on panels of rows. The projection onto all earlier panels is subtracted from a whole panel as two products, W =
 * A Q' and A -= W Q, which read Q once for all rows of the panel; then its rows are done one after the other. The
 * products are repeated if a row lost more than half of its length, and so is the work on a single row. */
#include "exec/params/orthonormal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PANEL = 256, /* rows */
    TILE = 4,    /* rows of Q at a time */
    PAIR = 2,    /* rows of A at a time */
    DEPTH = 512, /* columns at a time: a tile of Q stays in the first cache, a panel in the second */
    LANES = 8
};

typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

static double dot(const double *a, const double *b, int64_t n)
{
    double sums[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int k = 0; k < 8; k++)
        sum += sums[k];
    return sum;
}

/* y -= a x. Eight at a time, as in dot, so that the compiler uses vectors. */
static void subtract(double *restrict y, double a, const double *restrict x, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            y[i + k] -= a * x[i + k];
    for (; i < n; i++)
        y[i] -= a * x[i];
}

/* w[i][j] += rows of a by rows of q over n columns; rows are `stride` apart, those of w `w_stride`. */
static void multiply_tile(const double *a, const double *q, int64_t stride, int64_t n, double *w, int64_t w_stride)
{
    lanes sums[PAIR][TILE] = {{{0}}};
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int i = 0; i < PAIR; i++)
            for (int j = 0; j < TILE; j++)
                sums[i][j] += *(const lanes *)(a + i * stride + k) * *(const lanes *)(q + j * stride + k);
    for (int i = 0; i < PAIR; i++)
        for (int j = 0; j < TILE; j++) {
            double sum = dot(a + i * stride + k, q + j * stride + k, n - k);
            for (int lane = 0; lane < LANES; lane++)
                sum += sums[i][j][lane];
            w[i * w_stride + j] += sum;
        }
}

static void subtract_tile(double *restrict a, const double *restrict q, int64_t stride, int64_t n, const double *w,
                          int64_t w_stride)
{
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int i = 0; i < PAIR; i++) {
            lanes value = *(lanes *)(a + i * stride + k);
            for (int j = 0; j < TILE; j++)
                value -= w[i * w_stride + j] * *(const lanes *)(q + j * stride + k);
            *(lanes *)(a + i * stride + k) = value;
        }
    for (; k < n; k++)
        for (int i = 0; i < PAIR; i++)
            for (int j = 0; j < TILE; j++)
                a[i * stride + k] -= w[i * w_stride + j] * q[j * stride + k];
}

/* Subtracts from the rows of a their projection onto the rows of q. Whole pairs and tiles; w [rows, q_rows] is
 * scratch. */
static void project_out(double *a, int64_t rows, const double *q, int64_t q_rows, int64_t columns, double *w)
{
    memset(w, 0, (size_t)(rows * q_rows) * sizeof *w);
    for (int64_t at = 0; at < columns; at += DEPTH) {
        int64_t n = columns - at < DEPTH ? columns - at : DEPTH;
        for (int64_t j = 0; j < q_rows; j += TILE)
            for (int64_t i = 0; i < rows; i += PAIR)
                multiply_tile(a + i * columns + at, q + j * columns + at, columns, n, w + i * q_rows + j, q_rows);
    }
    for (int64_t at = 0; at < columns; at += DEPTH) {
        int64_t n = columns - at < DEPTH ? columns - at : DEPTH;
        for (int64_t j = 0; j < q_rows; j += TILE)
            for (int64_t i = 0; i < rows; i += PAIR)
                subtract_tile(a + i * columns + at, q + j * columns + at, columns, n, w + i * q_rows + j, q_rows);
    }
}

/* Makes row i orthogonal to the rows from `first` on; its projection onto those before was subtracted already, up to
 * rounding. If nearly all of it vanishes, that rounding is no longer small compared with the rest: then to all rows. */
static void finish_row(double *m, int64_t i, int64_t first, int64_t columns)
{
    double *row = m + i * columns, length = sqrt(dot(row, row, columns));
    for (int round = 0; round < 2; round++) {
        for (int64_t j = first; j < i; j++)
            subtract(row, dot(row, m + j * columns, columns), m + j * columns, columns);
        double left = sqrt(dot(row, row, columns));
        if (left > 0.5 * length)
            break;
        first = left < 0.01 * length ? 0 : first;
        length = left;
    }
    double norm = sqrt(dot(row, row, columns));
    for (int64_t k = 0; k < columns; k++)
        row[k] = norm > 0 ? row[k] / norm : 0.0;
}

/* A panel against all before it; `w` as in project_out. */
static void project_panel_out(double *a, int64_t rows, const double *q, int64_t q_rows, int64_t columns, double *w)
{
    double length[PANEL];
    for (int64_t i = 0; i < rows; i++)
        length[i] = sqrt(dot(a + i * columns, a + i * columns, columns));
    project_out(a, rows, q, q_rows, columns, w);
    bool lost = false;
    for (int64_t i = 0; i < rows && !lost; i++)
        lost = sqrt(dot(a + i * columns, a + i * columns, columns)) <= 0.5 * length[i];
    if (lost)
        project_out(a, rows, q, q_rows, columns, w);
}

bool sl_orthonormalize(double *m, int64_t rows, int64_t columns)
{
    double *w = rows > PANEL ? malloc((size_t)(PANEL * rows) * sizeof *w) : NULL;
    if (rows > PANEL && !w)
        return false;
    for (int64_t begin = 0; begin < rows; begin += PANEL) {
        int64_t end = rows - begin < PANEL ? rows : begin + PANEL;
        int64_t paired = begin > 0 ? (end - begin) / PAIR * PAIR : PANEL; /* a last odd row is done alone */
        if (begin > 0)
            project_panel_out(m + begin * columns, paired, m, begin, columns, w);
        for (int64_t i = begin; i < end; i++)
            finish_row(m, i, i - begin < paired ? begin : 0, columns);
    }
    free(w);
    return true;
}

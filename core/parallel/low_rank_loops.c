/* SPDX-License-Identifier: Apache-2.0 */
/* See low_rank_loops.h. Each pass goes over blocks of columns whose factors fit into the cache. */
#include "parallel/low_rank_loops.h"

#include <string.h>

enum { LANES = 8, BLOCK = 512, ROWS_AT_ONCE = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE int64_t get_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- p = values q^T --------------------------------------------------------------------------------------------- */

INLINE float add_up(lanes sums, const float *row, const float *q, int64_t begin, int64_t columns)
{
    float sum = 0;
    for (int l = 0; l < LANES; l++)
        sum += sums[l];
    for (int64_t j = begin; j < columns; j++)
        sum += row[j] * q[j];
    return sum;
}

/* Of so many columns. */
INLINE float dot(const float *row, const float *q, int64_t columns)
{
    lanes sums = {0};
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES)
        sums += *(const lanes *)(row + j) * *(const lanes *)(q + j);
    return add_up(sums, row, q, j, columns);
}

/* p[0], p[rows], … += row times four rows of q. */
INLINE void dot_four(const struct sl_low_rank_shape *s, const float *row, const float *q, int64_t columns, float *p)
{
    const float *q1 = q + s->columns, *q2 = q1 + s->columns, *q3 = q2 + s->columns;
    lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        const lanes x = *(const lanes *)(row + j);
        s0 += x * *(const lanes *)(q + j);
        s1 += x * *(const lanes *)(q1 + j);
        s2 += x * *(const lanes *)(q2 + j);
        s3 += x * *(const lanes *)(q3 + j);
    }
    p[0] += add_up(s0, row, q, j, columns);
    p[s->rows] += add_up(s1, row, q1, j, columns);
    p[2 * s->rows] += add_up(s2, row, q2, j, columns);
    p[3 * s->rows] += add_up(s3, row, q3, j, columns);
}

INLINE void multiply(const struct sl_low_rank_shape *s, float *values, const float *error, const float *q, float *p)
{
    memset(p, 0, (size_t)(s->rank * s->rows) * sizeof *p);
    for (int64_t begin = 0; begin < s->columns; begin += BLOCK) {
        const int64_t columns = get_least(s->columns - begin, BLOCK);
        for (int64_t i = 0; i < s->rows; i++) {
            float *row = values + i * s->columns + begin;
            const float *more = error + i * s->columns + begin;
            int64_t k = 0;
            for (int64_t j = 0; j < columns; j++)
                row[j] += more[j];
            for (; k + 4 <= s->rank; k += 4)
                dot_four(s, row, q + k * s->columns + begin, columns, p + k * s->rows + i);
            for (; k < s->rank; k++)
                p[k * s->rows + i] += dot(row, q + k * s->columns + begin, columns);
        }
    }
}

/* ---- own = p values --------------------------------------------------------------------------------------------- */

/* own += `count` rows, each times its element of p */
INLINE void add_rows(const float *rows, int64_t stride, int64_t columns, int count, const float *p, float *own)
{
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        lanes sum = *(const lanes *)(own + j);
        for (int r = 0; r < count; r++)
            sum += *(const lanes *)(rows + r * stride + j) * p[r];
        *(lanes *)(own + j) = sum;
    }
    for (; j < columns; j++)
        for (int r = 0; r < count; r++)
            own[j] += rows[r * stride + j] * p[r];
}

INLINE void multiply_transposed(const struct sl_low_rank_shape *s, const float *values, const float *p, float *own)
{
    memset(own, 0, (size_t)(s->columns * s->rank) * sizeof *own);
    for (int64_t begin = 0; begin < s->columns; begin += BLOCK) {
        const int64_t columns = get_least(s->columns - begin, BLOCK);
        int64_t i = 0;
        for (; i + ROWS_AT_ONCE <= s->rows; i += ROWS_AT_ONCE)
            for (int64_t k = 0; k < s->rank; k++)
                add_rows(values + i * s->columns + begin, s->columns, columns, ROWS_AT_ONCE, p + k * s->rows + i,
                         own + k * s->columns + begin);
        for (; i < s->rows; i++)
            for (int64_t k = 0; k < s->rank; k++)
                add_rows(values + i * s->columns + begin, s->columns, columns, 1, p + k * s->rows + i,
                         own + k * s->columns + begin);
    }
}

/* ---- values = p^T q --------------------------------------------------------------------------------------------- */

INLINE void replace_row(const struct sl_low_rank_shape *s, int64_t columns, float *values, float *error, const float *p,
                        const float *own, const float *q)
{
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        lanes kept = {0}, sum = {0};
        for (int64_t k = 0; k < s->rank; k++) {
            kept += *(const lanes *)(own + k * s->columns + j) * p[k * s->rows];
            sum += *(const lanes *)(q + k * s->columns + j) * p[k * s->rows];
        }
        *(lanes *)(error + j) = *(const lanes *)(values + j) - kept;
        *(lanes *)(values + j) = sum;
    }
    for (; j < columns; j++) {
        float kept = 0, sum = 0;
        for (int64_t k = 0; k < s->rank; k++) {
            kept += own[k * s->columns + j] * p[k * s->rows];
            sum += q[k * s->columns + j] * p[k * s->rows];
        }
        error[j] = values[j] - kept;
        values[j] = sum;
    }
}

INLINE void replace(const struct sl_low_rank_shape *s, float *values, float *error, const float *p, const float *own,
                    const float *q)
{
    for (int64_t begin = 0; begin < s->columns; begin += BLOCK)
        for (int64_t i = 0; i < s->rows; i++)
            replace_row(s, get_least(s->columns - begin, BLOCK), values + i * s->columns + begin,
                        error + i * s->columns + begin, p + i, own + begin, q + begin);
}

/* ---- by processor ----------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

AVX2 static void multiply_avx2(const struct sl_low_rank_shape *s, float *values, const float *error, const float *q,
                               float *p)
{
    multiply(s, values, error, q, p);
}

AVX2 static void multiply_transposed_avx2(const struct sl_low_rank_shape *s, const float *values, const float *p,
                                          float *own)
{
    multiply_transposed(s, values, p, own);
}

AVX2 static void replace_avx2(const struct sl_low_rank_shape *s, float *values, float *error, const float *p,
                              const float *own, const float *q)
{
    replace(s, values, error, p, own, q);
}

#define RUN(name, ...) (__builtin_cpu_supports("avx2") ? name##_avx2(__VA_ARGS__) : name(__VA_ARGS__))
#else
#define RUN(name, ...) name(__VA_ARGS__)
#endif

void sl_low_rank_multiply(const struct sl_low_rank_shape *shape, float *values, const float *error, const float *q,
                          float *p)
{
    RUN(multiply, shape, values, error, q, p);
}

void sl_low_rank_multiply_transposed(const struct sl_low_rank_shape *shape, const float *values, const float *p,
                                     float *own)
{
    RUN(multiply_transposed, shape, values, p, own);
}

void sl_low_rank_replace(const struct sl_low_rank_shape *shape, float *values, float *error, const float *p,
                         const float *own, const float *q)
{
    RUN(replace, shape, values, error, p, own, q);
}

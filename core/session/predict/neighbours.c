/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest neighbours by cosine. */
#include "session/predict/neighbours.h"

#include <math.h>

enum { LANES = 16 };

/* Sixteen partial sums, which the compiler keeps in vector registers; the order is the same on every machine. */
static float multiply(const float *a, const float *b, int64_t n)
{
    float lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        lanes[0] += a[i] * b[i];
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static void normalise(float *row, int64_t features)
{
    float length = sqrtf(multiply(row, row, features));
    for (int64_t f = 0; f < features && length > 0; f++)
        row[f] /= length;
}

/* Keeps `best` sorted. Rows come in ascending order, so that of equal ones the lower row comes first. */
static void insert(struct sl_neighbour *best, int64_t count, int64_t row, float cosine)
{
    int64_t at = count;
    while (at > 0 && (best[at - 1].row < 0 || best[at - 1].cosine < cosine))
        at--;
    if (at == count)
        return;
    for (int64_t k = count - 1; k > at; k--)
        best[k] = best[k - 1];
    best[at] = (struct sl_neighbour){row, cosine};
}

void sl_neighbours_find(float *values, int64_t rows, int64_t features, int64_t count, struct sl_neighbour *out)
{
    for (int64_t r = 0; r < rows; r++) {
        normalise(values + r * features, features);
        for (int64_t k = 0; k < count; k++)
            out[r * count + k] = (struct sl_neighbour){-1, 0};
    }
    for (int64_t a = 0; a < rows; a++)
        for (int64_t b = 0; b < a; b++) {
            float cosine = multiply(values + a * features, values + b * features, features);
            if (isnan(cosine)) /* there is no vector of one of them */
                continue;
            insert(out + a * count, count, b, cosine);
            insert(out + b * count, count, a, cosine);
        }
}

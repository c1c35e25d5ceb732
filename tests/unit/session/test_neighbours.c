/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest neighbours against a plain model, which sorts all other rows: with rows that are alike, rows of zeros,
 * rows that are no numbers, and fewer rows than are asked for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "session/predict/neighbours.h"
#include "oom.h"

enum { ROWS = 23, FEATURES_MOST = 37, COUNT = 30 };

/* Small whole numbers: many rows are alike, or multiples of each other. */
static void make(uint64_t seed, int64_t features, float *values)
{
    for (int64_t i = 0; i < ROWS * features; i++)
        values[i] = (float)((int)(seqlstm_uniform(seed, (uint64_t)i, 0, 0) * 3) - 1);
    for (int64_t f = 0; f < features; f++) {
        values[3 * features + f] = 0;
        values[11 * features + f] = values[7 * features + f];
        values[17 * features + f] = values[7 * features + f];
    }
    values[5 * features] = NAN;
}

static float find_cosine(const float *values, int64_t features, int64_t a, int64_t b)
{
    double sum = 0, of_a = 0, of_b = 0;
    for (int64_t f = 0; f < features; f++) {
        const double x = values[a * features + f], y = values[b * features + f];
        sum += x * y;
        of_a += x * x;
        of_b += y * y;
    }
    return (float)(isnan(sum) ? NAN : of_a == 0 || of_b == 0 ? 0 : sum / sqrt(of_a * of_b));
}

static int compare_down(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The k-th neighbour is as near as the k-th of all other rows in order, and of two that are equally near the lower row
 * comes first. */
static void check_row(const float *values, int64_t features, int64_t row, const struct sl_neighbour *found,
                      int64_t count)
{
    float cosines[ROWS];
    int64_t others = 0;
    for (int64_t b = 0; b < ROWS; b++) {
        cosines[others] = find_cosine(values, features, row, b);
        others += b != row && !isnan(cosines[others]);
    }
    qsort(cosines, (size_t)others, sizeof *cosines, compare_down);
    for (int64_t k = 0; k < count; k++) {
        const struct sl_neighbour *now = &found[k], *before = k > 0 ? &found[k - 1] : NULL;
        bool fine = k < others ? now->row >= 0 && now->row < ROWS && now->row != row : now->row == -1;
        if (fine && k < others)
            fine = fabsf(now->cosine - cosines[k]) <= 1e-6f &&
                   fabsf(now->cosine - find_cosine(values, features, row, now->row)) <= 1e-6f;
        if (fine && k < others && before)
            fine = now->cosine < before->cosine || (now->cosine == before->cosine && now->row > before->row);
        if (!fine)
            fail_msg("%d features, row %d, neighbour %d of %d: row %d at %g", (int)features, (int)row, (int)k,
                     (int)count, (int)now->row, (double)now->cosine);
    }
}

static void test_against_sorting(void **state)
{
    (void)state;
    static float values[ROWS * FEATURES_MOST], scaled[ROWS * FEATURES_MOST];
    static struct sl_neighbour got[ROWS * COUNT];
    for (int64_t features = 1; features <= FEATURES_MOST; features += 4)
        for (int64_t count = 1; count <= COUNT; count += 7) {
            make((uint64_t)features, features, values);
            memcpy(scaled, values, sizeof scaled);
            sl_neighbours_find(scaled, ROWS, features, count, got);
            for (int64_t row = 0; row < ROWS; row++)
                check_row(values, features, row, got + row * count, count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_sorting),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

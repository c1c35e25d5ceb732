/* SPDX-License-Identifier: Apache-2.0 */
/* Float32 values as two float16 (split.h): the bounds that its head states, for every exponent, and sums of products
 * against float64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda-generic/device/split.h"

static float draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*state >> 32) * 0x1p-31f;
}

static void scales_are_powers_of_two(void **state)
{
    (void)state;
    for (int e = -149; e < 107; e++)
        for (int k = 0; k < 4; k++) {
            const float most = ldexpf(1.0f + 0.333f * (float)k, e), scale = cg_split_scale(most);
            if (most >= CG_SPLIT_LIMIT)
                continue;
            assert_true(cg_split_fits(most));
            assert_true(scale * cg_split_inverse(most) == 1.0f);
            assert_true(most * scale < 0x1p15f);
            assert_true(most * scale >= 0x1p14f || scale == 0x1p126f);
        }
    assert_true(cg_split_scale(0.0f) == 0x1p126f);
    assert_false(cg_split_fits(CG_SPLIT_LIMIT));
    assert_false(cg_split_fits(INFINITY));
}

/* A value that is 2^-`below` times the largest. */
static void check_value(float most, float x)
{
    const float scaled = x * cg_split_scale(most);
    uint32_t hi, lo;
    float value[4];
    cg_split_pair(scaled, -scaled, &hi, &lo);
    cg_unpair_f16(hi, &value[0], &value[1]);
    cg_unpair_f16(lo, &value[2], &value[3]);
    const double sum = (double)value[0] + (double)value[2] / 2048;
    const double allowed = 0x1p-22 * fabs((double)scaled) + 0x1p-36;
    if (!(fabs(sum - (double)scaled) <= allowed))
        fail_msg("%a of %a: %a, expected %a", (double)x, (double)most, sum, (double)scaled);
    assert_true(value[1] == -value[0] && value[3] == -value[2]);
}

static void parts_are_close(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int e = -149; e < 107; e++)
        for (int below = 0; below < 60; below += 3) {
            const float most = ldexpf(1.0f + 0.999f * fabsf(draw(&seed)), e);
            if (!(most < CG_SPLIT_LIMIT))
                continue;
            check_value(most, most);
            check_value(most, ldexpf(most * draw(&seed), -below));
        }
}

static void nan_stays(void **state)
{
    (void)state;
    uint32_t hi, lo;
    float lower, upper;
    cg_split_pair(NAN, 1.0f, &hi, &lo);
    cg_unpair_f16(hi, &lower, &upper);
    assert_true(isnan(lower) && upper == 1.0f);
}

/* One sum of `depth` products of vectors of any size, as the kernels compute it; the error relative to the sum of the
 * sizes of its products. */
static double find_error(int depth, float size_x, float size_y, uint64_t *seed)
{
    static float x[4096], y[4096];
    float most_x = 0, most_y = 0, large = 0, cross = 0;
    double exact = 0, sizes = 0;
    for (int k = 0; k < depth; k++) {
        x[k] = draw(seed) * size_x;
        y[k] = draw(seed) * size_y;
        most_x = fmaxf(most_x, fabsf(x[k]));
        most_y = fmaxf(most_y, fabsf(y[k]));
        exact += (double)x[k] * (double)y[k];
        sizes += fabs((double)x[k] * (double)y[k]);
    }
    for (int k = 0; k < depth; k += 2) {
        uint32_t of_x[2], of_y[2];
        float a[4], b[4];
        cg_split_pair(x[k] * cg_split_scale(most_x), x[k + 1] * cg_split_scale(most_x), &of_x[0], &of_x[1]);
        cg_split_pair(y[k] * cg_split_scale(most_y), y[k + 1] * cg_split_scale(most_y), &of_y[0], &of_y[1]);
        for (int part = 0; part < 2; part++) {
            cg_unpair_f16(of_x[part], &a[2 * part], &a[2 * part + 1]);
            cg_unpair_f16(of_y[part], &b[2 * part], &b[2 * part + 1]);
        }
        for (int j = 0; j < 2; j++) {
            large += a[j] * b[j];
            cross += a[j] * b[2 + j] + a[2 + j] * b[j];
        }
    }
    const float sum = cg_split_fold(large, cross) * cg_split_inverse(most_x) * cg_split_inverse(most_y);
    return fabs((double)sum - exact) / sizes;
}

static void sums_are_as_good_as_float32(void **state)
{
    (void)state;
    static const float sizes[] = {1e-30f, 1e-12f, 1.0f, 1e9f, 1e30f};
    static const int depths[] = {2, 16, 64, 650, 4096};
    uint64_t seed = 7;
    double worst = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
            for (int k = 0; k < 8; k++)
                worst = fmax(worst, find_error(depths[d], sizes[s], 1.0f / sizes[s], &seed));
    if (!(worst <= 2e-7))
        fail_msg("a sum is off by %g of the size of its products", worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_powers_of_two),
        cmocka_unit_test(parts_are_close),
        cmocka_unit_test(nan_stays),
        cmocka_unit_test(sums_are_as_good_as_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The host-and-device arithmetic of cuda-generic: element.h against the reference's float64 functions, narrow.h against
 * the kit's rounding.
 *
 * Tolerance: the functions of the C library are within 2 units in the last place, and each value here is made of up to
 * four of them and of roundings: 8 eps32 of the largest intermediate, which is at most max(1, |alpha|, |beta|, |x|).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda-generic/device/narrow.h"
#include "judge/data.h"
#include "reference/reference.h"

static void activations_match_the_reference(void **state)
{
    (void)state;
    static const float shapes[][2] = {{0.01f, 0.0f}, {1.0f, 1.0f}, {0.2f, 0.5f}, {1.7159f, 0.6667f}, {-0.5f, 2.0f}};
    for (uint32_t kind = 0; kind <= SEQLSTM_ACT_AFFINE; kind++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int i = -4000; i <= 4000; i++) {
                const struct seqlstm_activation a = {.kind = kind, .alpha = shapes[s][0], .beta = shapes[s][1]};
                const float x = (float)i / 64;
                const double y = ref_activate(&a, (double)x), slope = ref_activation_slope(&a, (double)x);
                const double size = fmax(fmax(1, fabs((double)x)), fabs((double)a.alpha) * fmax(1, fabs((double)x)));
                const double most = 8 * 0x1p-24 * size;
                if (!(fabs((double)cg_activate(a, x) - y) <= most))
                    fail_msg("activation %u at %g: %.9g, expected %.9g", kind, (double)x, (double)cg_activate(a, x), y);
                /* hard_sigmoid's ends are where float32 rounds alpha x + beta to them; those of alpha 1 are exact */
                const double end = fabs((double)a.alpha * (double)x + (double)a.beta);
                const bool rounds = end != 0 && !(end == 1) && (end < 1e-6 || fabs(end - 1) < 1e-6);
                if (kind == SEQLSTM_ACT_HARD_SIGMOID && rounds)
                    continue;
                if (!(fabs((double)cg_slope(a, x) - slope) <= most))
                    fail_msg("slope %u at %g: %.9g, expected %.9g", kind, (double)x, (double)cg_slope(a, x), slope);
            }
}

static void extremes_stay_finite_and_nan_stays(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind <= SEQLSTM_ACT_AFFINE; kind++) {
        const struct seqlstm_activation a = {.kind = kind, .alpha = 1.0f, .beta = 1.0f};
        assert_true(isfinite(cg_activate(a, -1e30f)));
        assert_true(isfinite(cg_activate(a, 1e30f)));
        assert_true(isnan(cg_activate(a, NAN)));
    }
}

static void limits_keep_their_ends(void **state)
{
    (void)state;
    assert_true(cg_clip(3.0f, 2.0f) == 2.0f && cg_clip(-3.0f, 2.0f) == -2.0f && cg_clip(1.5f, 2.0f) == 1.5f);
    assert_true(cg_clip(3.0f, 0.0f) == 3.0f);
    assert_true(cg_clip_slope(2.0f, 2.0f) == 1.0f && cg_clip_slope(2.5f, 2.0f) == 0.0f);
    assert_true(cg_clip_slope(2.5f, 0.0f) == 1.0f);
    assert_true(isnan(cg_clip(NAN, 2.0f)));
}

/* Every exponent, fractions around ties of each type, and the ends of the subnormals. */
static void rounding_is_the_kits(void **state)
{
    (void)state;
    static const uint32_t fractions[] = {0,        1,        0xFFF,    0x1000,   0x1001,  0x1FFF,  0x2000,
                                         0x3000,   0x7FFF,   0x8000,   0x8001,   0x17FFF, 0x18000, 0x400000,
                                         0x5A5A5A, 0x7FE000, 0x7FEFFF, 0x7FF000, 0x7FFFFF};
    for (uint32_t upper = 0; upper < 0x1FF; upper++)
        for (size_t f = 0; f < sizeof fractions / sizeof *fractions; f++) {
            const float x = gpu_bits_float(upper << 23 | fractions[f]);
            if ((upper & 0xFF) == 0xFF && fractions[f] != 0)
                continue; /* NaN: below */
            const double f16 = sl_dtype_round(SEQLSTM_DTYPE_FLOAT16, (double)x);
            const double bf16 = (double)(float)sl_dtype_round(SEQLSTM_DTYPE_BFLOAT16, (double)x); /* 2^128: infinite */
            if (!((double)gpu_from_bf16(gpu_to_bf16(x)) == bf16))
                fail_msg("bfloat16 of %a: %a, expected %a", (double)x, (double)gpu_from_bf16(gpu_to_bf16(x)), bf16);
            if (!((double)gpu_from_f16(gpu_to_f16(x)) == f16))
                fail_msg("float16 of %a: %a, expected %a", (double)x, (double)gpu_from_f16(gpu_to_f16(x)), f16);
            const double tf32 = (double)gpu_bits_float(cg_to_tf32(x));
            if (isfinite(tf32) && !(fabs(tf32 - (double)x) <= fmax(fabs((double)x), 0x1p-126) * 0x1p-11))
                fail_msg("tf32 of %a: %a", (double)x, tf32);
            assert_int_equal(cg_to_tf32(x) & 0x1FFF, 0);
        }
    assert_true(isnan(gpu_from_bf16(gpu_to_bf16(NAN))) && isnan(gpu_from_f16(gpu_to_f16(NAN))));
    assert_true(isnan(gpu_bits_float(cg_to_tf32(NAN))));
    assert_int_equal(cg_pair_bf16(1.0f, -2.0f), 0xC0003F80);
    assert_int_equal(cg_pair_f16(1.0f, -2.0f), 0xC0003C00);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_match_the_reference),
        cmocka_unit_test(extremes_stay_finite_and_nan_stays),
        cmocka_unit_test(limits_keep_their_ends),
        cmocka_unit_test(rounding_is_the_kits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes of slots: every number of 16 bits there and back, and `eps` against what rounding does. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "judge/data.h"
#include "oom.h"

static double read_half(uint32_t dtype, uint16_t bits)
{
    double value;
    sl_dtype_load(dtype, &bits, &value, 1);
    return value;
}

/* The finite ones ascend, so each is where it belongs if the largest is. */
static void each_number_of_16_bits_comes_back(void **state)
{
    (void)state;
    static const struct {
        uint32_t dtype;
        uint16_t infinity;
        double largest, least;
    } kinds[] = {{SEQLSTM_DTYPE_FLOAT16, 0x7C00, 65504, 0x1p-24},
                 {SEQLSTM_DTYPE_BFLOAT16, 0x7F80, 0x1.FEp127, 0x1p-133}};
    for (int k = 0; k < 2; k++) {
        const uint32_t dtype = kinds[k].dtype;
        assert_true(read_half(dtype, kinds[k].infinity - 1) == kinds[k].largest);
        assert_true(read_half(dtype, 1) == kinds[k].least && read_half(dtype, 0) == 0);
        assert_true(isinf(read_half(dtype, kinds[k].infinity)) && isnan(read_half(dtype, kinds[k].infinity + 1)));
        for (int32_t bits = 0; bits <= UINT16_MAX; bits++) {
            const double value = read_half(dtype, (uint16_t)bits);
            uint16_t back;
            sl_dtype_store(dtype, &back, &value, 1);
            if (isnan(value)) {
                assert_true((bits & 0x7FFF) > kinds[k].infinity && isnan(read_half(dtype, back)));
                continue;
            }
            assert_int_equal(back, bits);
            assert_true(sl_dtype_round(dtype, value) == value);
            if ((bits & 0x7FFF) > 0 && (bits & 0x7FFF) < kinds[k].infinity)
                assert_true(fabs(value) > fabs(read_half(dtype, (uint16_t)(bits - 1))));
        }
    }
}

/* eps is the largest relative error of a rounded number, to the nearest. */
static void eps_is_the_largest_error(void **state)
{
    (void)state;
    static const uint32_t dtypes[] = {SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT16, SEQLSTM_DTYPE_BFLOAT16};
    for (int k = 0; k < 3; k++) {
        double largest = 0;
        for (uint64_t i = 0; i < 20000; i++) {
            const double fine = (double)seqlstm_uniform(4, i, 0, 0) + (double)seqlstm_uniform(5, i, 0, 0) * 0x1p-24;
            const double x = (i % 2 ? -1 : 1) * ldexp(1 + fine, (int)(i % 8) - 4);
            const double error = fabs(sl_dtype_round(dtypes[k], x) - x) / ldexp(1, (int)(i % 8) - 4);
            largest = fmax(largest, error);
        }
        assert_true(largest <= sl_dtype_eps(dtypes[k]));
        assert_true(largest > 0.99 * sl_dtype_eps(dtypes[k]));
    }
    assert_true(sl_dtype_eps(SEQLSTM_DTYPE_TF32) == sl_dtype_eps(SEQLSTM_DTYPE_FLOAT16)); /* the same fraction */
    assert_true(sl_dtype_eps(SEQLSTM_DTYPE_FLOAT64) == 0x1p-53);
    /* half a step of 1/127 of the largest value, and a typical one is half as large */
    assert_true(fabs(sl_dtype_eps(SEQLSTM_DTYPE_INT8) * 127 - 1) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_of_16_bits_comes_back),
        cmocka_unit_test(eps_is_the_largest_error),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

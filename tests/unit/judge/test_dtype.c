/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes of slots: every number of 16 bits there and back, and `eps` against what rounding does. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* The limits of each dtype, beside each other, come back. */
static void others_come_back(void **state)
{
    (void)state;
    static const struct {
        uint32_t dtype;
        double values[4];
        size_t bytes;
    } rows[] = {{SEQLSTM_DTYPE_INT8, {-128, -1, 0, 127}, 1},
                {SEQLSTM_DTYPE_UINT8, {0, 127, 128, 255}, 1},
                {SEQLSTM_DTYPE_INT32, {INT32_MIN, -1, 65536, INT32_MAX}, 4},
                {SEQLSTM_DTYPE_FLOAT32, {-0x1.FFFFFEp127, 0x1p-149, -0.5, 0x1.FFFFFEp127}, 4},
                {SEQLSTM_DTYPE_FLOAT64, {-0x1.FFFFFFFFFFFFFp1023, 0x1p-1074, -0.1, 0x1.FFFFFFFFFFFFFp1023}, 8}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        unsigned char bytes[5 * sizeof(double)];
        double back[5] = {0, 0, 0, 0, 42};
        memset(bytes, 0xA5, sizeof bytes);
        sl_dtype_store(rows[k].dtype, bytes, rows[k].values, 4);
        sl_dtype_load(rows[k].dtype, bytes, back, 4);
        for (int i = 0; i < 4; i++)
            if (back[i] != rows[k].values[i])
                fail_msg("dtype %u: %.17g became %.17g", rows[k].dtype, rows[k].values[i], back[i]);
        assert_true(back[4] == 42 && bytes[4 * rows[k].bytes] == 0xA5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_of_16_bits_comes_back),
        cmocka_unit_test(eps_is_the_largest_error),
        cmocka_unit_test(others_come_back),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}

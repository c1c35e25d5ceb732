/* SPDX-License-Identifier: Apache-2.0 */
/* How cpu-onednn rounds values to bfloat16 and to bytes: exact cases, which no tolerance of a whole layer would notice.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cpu-onednn/recurrent/recurrent.h"

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void bfloat16_rounds_to_nearest_even(void **state)
{
    (void)state;
    static const struct {
        uint32_t from;
        uint16_t to;
    } cases[] = {
        {0x3F800000, 0x3F80},                                             /* 1 */
        {0x3F808000, 0x3F80},                                             /* half way, even below */
        {0x3F818000, 0x3F82},                                             /* half way, even above */
        {0xBF808000, 0xBF80}, {0xBF818000, 0xBF82}, {0x3F808001, 0x3F81}, /* just above half way */
        {0x3F817FFF, 0x3F81},                                             /* just below */
        {0x3FFFFFFF, 0x4000},                                             /* carries into the exponent */
        {0x7F7FFFFF, 0x7F80},                                             /* the largest becomes infinite */
        {0x7F800000, 0x7F80}, {0xFF800000, 0xFF80}, {0x7F800001, 0x7FC0}, /* NaN stays NaN */
        {0x80000000, 0x8000}, {0x00008000, 0x0000}, {0x00018000, 0x0002},
    };
    const struct odn_elem elem = {.type = dnnl_bf16, .bytes = 2};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const float value = from_bits(cases[i].from);
        uint16_t half;
        float back;
        odn_convert_in(&elem, 1, &value, &half);
        if (half != cases[i].to)
            fail_msg("%#x becomes %#x, expected %#x", cases[i].from, half, cases[i].to);
        odn_convert_out(&elem, 1, &half, &back);
        assert_true(isnan(value) ? isnan(back) : back == from_bits((uint32_t)cases[i].to << 16));
    }
}

static void bytes_round_to_nearest_even_and_stay_in_range(void **state)
{
    (void)state;
    enum { COUNT = 70 }; /* two groups and a rest */
    const struct odn_elem elem = {.type = dnnl_u8, .bytes = 1, .scale = 2, .shift = 100};
    static const float values[] = {0, 0.25f, 0.75f, -0.25f, 1000, -1000, 77.5f};
    static const uint8_t expected[] = {100, 100, 102, 100, 255, 0, 255};
    float from[COUNT], back[COUNT];
    uint8_t to[COUNT];
    for (int i = 0; i < COUNT; i++)
        from[i] = values[i % 7];
    odn_convert_in(&elem, COUNT, from, to);
    odn_convert_out(&elem, COUNT, to, back);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(to[i], expected[i % 7]);
        assert_true(back[i] == ((float)to[i] - 100) / 2);
    }
}

static void sums_are_rounded_once(void **state)
{
    (void)state;
    const uint16_t one = 0x3F80, step = 0x3C00; /* 1 + 2^-7 is the next after 1 */
    uint16_t sum;
    odn_add(dnnl_bf16, 1, 1, &one, &step, &sum);
    assert_int_equal(sum, 0x3F81);
    odn_add(dnnl_bf16, 1, 0.5f, &one, &one, &sum);
    assert_int_equal(sum, 0x3F80);
    const float x = 0.1f, y = 0.2f;
    float exact;
    odn_add(dnnl_f32, 1, 2, &x, &y, &exact);
    assert_true(exact == 2 * (x + y));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bfloat16_rounds_to_nearest_even),
        cmocka_unit_test(bytes_round_to_nearest_even_and_stay_in_range),
        cmocka_unit_test(sums_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text: YAML 1.2's grammar and no more, correct rounding, round trips, any locale. Their median. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory/arena.h"
#include "base/value/median.h"
#include "base/value/text.h"
#include "oom.h"

static double parsed(const char *text)
{
    double value = -12345;
    if (!sl_text_parse_float64(text, strlen(text), &value))
        fail_msg("`%s` was refused", text);
    return value;
}

static void floats_of_the_grammar(void **state)
{
    (void)state;
    assert_true(parsed("0") == 0 && !signbit(parsed("0")));
    assert_true(signbit(parsed("-0")));
    assert_true(parsed("1") == 1 && parsed("+1.") == 1 && parsed(".5") == 0.5);
    assert_true(parsed("1e-3") == 0.001 && parsed("1E+3") == 1000 && parsed("-2.5e0") == -2.5);
    assert_true(parsed("007") == 7);
    assert_true(parsed("0.1") == 0.1 && parsed("123456789.123456789") == 123456789.123456789);
    assert_true(parsed("1e400") == (double)INFINITY && parsed("-1e400") == -(double)INFINITY);
    assert_true(parsed("1e-400") == 0 && parsed("1e99999999999999999999") == (double)INFINITY);
    assert_true(parsed("0e99999999999999999999") == 0);
    assert_true(parsed("5e-324") == 5e-324 && parsed("2.2250738585072011e-308") > 0);
    assert_true(parsed("1.7976931348623157e308") == 1.7976931348623157e308);
    /* half way between two doubles, and just above: only exact arithmetic tells them apart */
    assert_true(parsed("9007199254740993") == 9007199254740992.0);
    assert_true(parsed("9007199254740993.0000000000000000000000000001") == 9007199254740994.0);
    assert_true(parsed(".inf") == (double)INFINITY && parsed("-.Inf") == -(double)INFINITY);
    assert_true(parsed("+.INF") == (double)INFINITY && isnan(parsed(".nan")) && isnan(parsed(".NaN")));
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"",      "-",   "+",     ".",     "e5",  "1e",       "1e+",  " 1",
                               "1 ",    "1,5", "1_000", "0x1p3", "inf", "nan",      "NaN",  "-.nan",
                               "1.2.3", "--1", "1e5.0", "1f",    ".e1", "infinity", ".iNf", "1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value = 7;
        if (sl_text_parse_float64(bad[i], strlen(bad[i]), &value))
            fail_msg("`%s` was accepted as %g", bad[i], value);
        assert_true(value == 7);
    }
    char longest[1002];
    double value;
    memset(longest, '1', sizeof longest);
    assert_true(sl_text_parse_float64(longest, 1000, &value));
    assert_false(sl_text_parse_float64(longest, 1001, &value));
    assert_true(sl_text_parse_float64("12345", 2, &value)); /* the length rules, not a NUL */
    assert_true(value == 12);
    assert_false(sl_text_parse_float64("1\0", 2, &value));
}

static void integers_of_the_grammar(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t value;
        int ok;
    } cases[] = {
        {"0", 0, 1},
        {"-0", 0, 1},
        {"+12", 12, 1},
        {"012", 12, 1},
        {"0x1F", 31, 1},
        {"0o17", 15, 1},
        {"9223372036854775807", INT64_MAX, 1},
        {"-9223372036854775808", INT64_MIN, 1},
        {"0x7fffffffffffffff", INT64_MAX, 1},
        {"9223372036854775808", 0, 0},
        {"-9223372036854775809", 0, 0},
        {"99999999999999999999999", 0, 0},
        {"0xffffffffffffffff", 0, 0},
        {"0x", 0, 0},
        {"0xg", 0, 0},
        {"0o8", 0, 0},
        {"-0x1", 0, 0},
        {"", 0, 0},
        {"+", 0, 0},
        {"1.0", 0, 0},
        {"1e3", 0, 0},
        {"1 ", 0, 0},
        {"0b1", 0, 0},
        {"18446744073709551615", 0, 0}, /* the largest of 64 bits, and what is zero and more without the 65th */
        {"18446744073709551616", 0, 0},
        {"18446744073709551619", 0, 0},
        {"-18446744073709551617", 0, 0},
        {"184467440737095516160", 0, 0},
        {"0x10000000000000000", 0, 0},
        {"0o2000000000000000000000", 0, 0},
        {"a", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 77;
        int ok = sl_text_parse_int64(cases[i].text, strlen(cases[i].text), &value);
        if (ok != cases[i].ok || value != (ok ? cases[i].value : 77))
            fail_msg("`%s`: %d %lld", cases[i].text, ok, (long long)value);
    }
}

static const char *printed(double value)
{
    static char out[SL_TEXT_NUMBER_BYTES];
    size_t length = sl_text_print_float64(out, value);
    assert_int_equal(length, strlen(out));
    return out;
}

static void prints_the_shortest(void **state)
{
    (void)state;
    assert_string_equal(printed(0.0), "0");
    assert_string_equal(printed(-0.0), "-0");
    assert_string_equal(printed(0.1), "0.1");
    assert_string_equal(printed(-1.5), "-1.5");
    assert_string_equal(printed(1e-7), "1e-7");
    assert_string_equal(printed(0.00001), "0.00001");
    assert_string_equal(printed(123456789), "123456789");
    assert_string_equal(printed(1e15), "1000000000000000");
    assert_string_equal(printed(1e16), "1e16");
    assert_string_equal(printed(5e-324), "5e-324");
    assert_string_equal(printed(1.7976931348623157e308), "1.7976931348623157e308");
    assert_string_equal(printed(0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(printed((double)INFINITY), ".inf");
    assert_string_equal(printed(-(double)INFINITY), "-.inf");
    assert_string_equal(printed((double)NAN), ".nan");
    char out[SL_TEXT_NUMBER_BYTES];
    sl_text_print_float32(out, 0.1f);
    assert_string_equal(out, "0.1");
    sl_text_print_float32(out, 16777216.0f);
    assert_string_equal(out, "16777216");
    sl_text_print_float32(out, 1e-45f);
    assert_string_equal(out, "1e-45");
}

static void every_number_reads_back(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        double value, back = 0;
        memcpy(&value, &random, sizeof value);
        if (!isfinite(value))
            continue;
        const char *text = printed(value);
        assert_true(sl_text_parse_float64(text, strlen(text), &back));
        if (memcmp(&value, &back, sizeof value) != 0)
            fail_msg("%a is printed as %s and read as %a", value, text, back);
        float single, single_back;
        uint32_t low = (uint32_t)random;
        memcpy(&single, &low, sizeof single);
        if (isfinite(single)) {
            char out[SL_TEXT_NUMBER_BYTES];
            sl_text_print_float32(out, single);
            assert_true(sl_text_parse_float64(out, strlen(out), &back));
            single_back = (float)back;
            assert_memory_equal(&single, &single_back, sizeof single);
        }
        /* shorter texts take the exact path; the C library is the judge */
        char shorter[64];
        snprintf(shorter, sizeof shorter, "%s%d.%03dE%d", random & 1 ? "-" : "", (int)(random >> 1 & 0xFFFFF),
                 (int)(random >> 40) % 1000, (int)(random >> 52) % 60 - 30);
        assert_true(sl_text_parse_float64(shorter, strlen(shorter), &back));
        if (back != strtod(shorter, NULL))
            fail_msg("%s is read as %a", shorter, back);
    }
}

/* As few digits as read back, of the C library's. */
static void single_numbers_are_as_short_as_can_be(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 300000; i++) {
        char out[SL_TEXT_NUMBER_BYTES], known[64];
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        uint32_t bits = (uint32_t)random;
        float value;
        if (i % 4 == 1) /* powers of two, whose neighbours are not equally near, and those beside them */
            bits = ((bits & 0xff800000) | (uint32_t)(random >> 40) % 5) - 2;
        if (i % 4 == 3) /* near 1 */
            bits = (bits & 0x807fffff) | (84 + (uint32_t)(random >> 40) % 93) << 23;
        memcpy(&value, &bits, sizeof value);
        if (i % 4 == 2) /* short ones */
            value = (float)((int32_t)(random >> 33) % 100000) / 1000;
        if (!isnormal(value))
            continue;
        int precision = 5;
        do
            snprintf(known, sizeof known, "%.*e", precision, (double)value);
        while (strtof(known, NULL) != value && ++precision < 9);
        sl_text_print_float32(out, value);
        int digits = 0, zeros = 0, wanted = 1 + precision;
        for (const char *p = out; *p && *p != 'e'; p++)
            if (*p >= '0' && *p <= '9' && (digits > 0 || *p > '0')) {
                digits++;
                zeros = *p == '0' ? zeros + 1 : 0;
            }
        if (strtof(out, NULL) != value || strtod(out, NULL) != strtod(known, NULL) || digits - zeros > wanted)
            fail_msg("%s is printed as %s", known, out);
    }
}

static void the_locale_does_not_matter(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("# no locale with a decimal comma here: tools/test-matrix.sh makes one\n");
        return;
    }
    char foreign[16];
    snprintf(foreign, sizeof foreign, "%.1f", 0.5);
    assert_string_equal(foreign, "0,5");
    assert_string_equal(printed(0.30000000000000004), "0.30000000000000004");
    assert_true(parsed("0.30000000000000004441") == 0.30000000000000004);
    struct sl_arena arena = {0};
    assert_string_equal(sl_arena_printf(&arena, "%.2f", 0.25), "0.25");
    sl_arena_deinit(&arena);
    snprintf(foreign, sizeof foreign, "%.1f", 0.5);
    assert_string_equal(foreign, "0,5"); /* and the caller's locale is as it was */
    setlocale(LC_ALL, "C");
}

static void the_median_lies_in_the_middle(void **state)
{
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
    assert_true(sl_median(odd, 3) == 2 && sl_median(even, 4) == 2.5 && isnan(sl_median(NULL, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_of_the_grammar),      cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(integers_of_the_grammar),    cmocka_unit_test(prints_the_shortest),
        cmocka_unit_test(every_number_reads_back),    cmocka_unit_test(single_numbers_are_as_short_as_can_be),
        cmocka_unit_test(the_locale_does_not_matter), cmocka_unit_test(the_median_lies_in_the_middle),
    };
    return cmocka_run_group_tests_name("number", tests, oom_group_begin, oom_group_end);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest text of a number; see text.h.
 *
 * The C library is asked for the digits of %e at rising precision until they read back as the same value. For nearly
 * all float32 values the same digits are found in integers. */
#include "base/value/text.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SINGLE_DIGITS 9  /* always identify a float32 */
#define FRACTION      20 /* bits behind the point of a scaled float32, */
#define UNSURE        8  /* and of them more than what it may be off */

/* 1e-37 to 1e46 */
static const double powers_of_ten[] = {
    1e-37, 1e-36, 1e-35, 1e-34, 1e-33, 1e-32, 1e-31, 1e-30, 1e-29, 1e-28, 1e-27, 1e-26, 1e-25, 1e-24,
    1e-23, 1e-22, 1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10,
    1e-9,  1e-8,  1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,   1e2,   1e3,   1e4,
    1e5,   1e6,   1e7,   1e8,   1e9,   1e10,  1e11,  1e12,  1e13,  1e14,  1e15,  1e16,  1e17,  1e18,
    1e19,  1e20,  1e21,  1e22,  1e23,  1e24,  1e25,  1e26,  1e27,  1e28,  1e29,  1e30,  1e31,  1e32,
    1e33,  1e34,  1e35,  1e36,  1e37,  1e38,  1e39,  1e40,  1e41,  1e42,  1e43,  1e44,  1e45,  1e46};

static double get_power(int exponent)
{
    return powers_of_ten[exponent + 37];
}

/* Digits and exponent as %.*e prints them: value = d.ddd * 10^exponent. Whatever is between the digits is skipped, so
 * the locale's decimal point does not matter. */
static int split_digits(double value, int precision, char digits[24], int *out_exponent, char print[48])
{
    snprintf(print, 48, "%.*e", precision - 1, value);
    int n_digits = 0;
    const char *p = print;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && n_digits < 20)
            digits[n_digits++] = *p;
    int64_t exponent = 0;
    if (*p == 'e')
        sl_text_parse_int64(p + 1, strlen(p + 1), &exponent);
    while (n_digits > 1 && digits[n_digits - 1] == '0')
        n_digits--;
    *out_exponent = (int)exponent;
    return n_digits;
}

/* Ends a number with its exponent. */
static char *put_exponent(char *out, int exponent)
{
    const unsigned size = (unsigned)abs(exponent);
    out[0] = 'e';
    out[1] = '-';
    out += exponent < 0 ? 2 : 1;
    out[0] = (char)('0' + size / 100);
    out += size >= 100;
    out[0] = (char)('0' + size / 10 % 10);
    out += size >= 10;
    *out++ = (char)('0' + size % 10);
    return out;
}

/* digits d1 d2 ... dn with the point behind d1, times 10^exponent */
static size_t lay_out(char *out, bool negative, const char *digits, int n_digits, int exponent)
{
    char *p = out;
    if (negative)
        *p++ = '-';
    if (exponent >= 0 && exponent < 16 && n_digits <= exponent + 1) {
        for (int i = 0; i <= exponent; i++)
            *p++ = i < n_digits ? digits[i] : '0';
    } else if (exponent >= 0 && exponent < 16) {
        for (int i = 0; i < n_digits; i++) {
            if (i == exponent + 1)
                *p++ = '.';
            *p++ = digits[i];
        }
    } else if (exponent < 0 && exponent >= -5) {
        *p++ = '0';
        *p++ = '.';
        for (int i = -1; i > exponent; i--)
            *p++ = '0';
        for (int i = 0; i < n_digits; i++)
            *p++ = digits[i];
    } else {
        *p++ = digits[0];
        if (n_digits > 1) {
            *p++ = '.';
            for (int i = 1; i < n_digits; i++)
                *p++ = digits[i];
        }
        p = put_exponent(p, exponent);
    }
    *p = '\0';
    return (size_t)(p - out);
}

static size_t print_special(char *out, double value)
{
    const char *word = isnan(value) ? ".nan" : value < 0 ? "-.inf" : value > 0 ? ".inf" : NULL;
    if (!isfinite(value)) {
        memcpy(out, word, strlen(word) + 1);
        return strlen(word);
    }
    memcpy(out, signbit(value) ? "-0" : "0", signbit(value) ? 3 : 2);
    return strlen(out);
}

/* `least` and `most`: digits that always survive text -> number -> text for normal values, and digits that always
 * identify a number. Below `smallest_normal` fewer may do, so the search begins at 1. */
static size_t print_shortest(char *out, double value, int least, int most, double smallest_normal, bool is_single)
{
    if (!isfinite(value) || value == 0.0)
        return print_special(out, value);
    char digits[24], print[48];
    int exponent = 0, n_digits = 0;
    int precision = fabs(value) < smallest_normal ? 1 : least;
    for (; precision <= most; precision++) {
        n_digits = split_digits(value, precision, digits, &exponent, print);
        lay_out(out, value < 0, digits, n_digits, exponent);
        double back;
        if (sl_text_parse_float64(out, strlen(out), &back) && (is_single ? (float)back == (float)value : back == value))
            break;
    }
    return lay_out(out, value < 0, digits, n_digits, exponent);
}

size_t sl_text_print_float64(char out[SL_TEXT_NUMBER_BYTES], double value)
{
    return print_shortest(out, value, 15, 17, 2.2250738585072014e-308, false);
}

/* The eight digits of value < 1e8 as characters, the first one in the lowest byte. Four, two and one digit at a time,
 * in parts of 32, 16 and 8 bits; the products are quotients by 100 and 10 for parts below 10000 and 100. */
static uint64_t make_digits(uint32_t value)
{
    const uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    const uint64_t hundreds = (fours * 10486 >> 20) & 0x7f0000007f;
    const uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
    const uint64_t tens = (twos * 103 >> 10) & 0x000f000f000f000f;
    return (tens | (twos - tens * 10) << 8) + 0x3030303030303030;
}

static void put_digits(char out[8], uint64_t digits)
{
    const uint64_t bytes = htole64(digits);
    memcpy(out, &bytes, sizeof bytes);
}

/* As lay_out, for nine digits with zeros behind, as one number, and an exponent below 9. */
static size_t lay_out_nine(char out[SL_TEXT_NUMBER_BYTES], bool negative, uint32_t nine, int exponent)
{
    const char first = (char)('0' + nine / 100000000);
    const uint64_t others = make_digits(nine % 100000000), more = others - 0x3030303030303030;
    const int count = more == 0 ? 1 : 9 - __builtin_clzll(more) / 8;
    char *p = out;
    *p = '-';
    p += negative;
    if (exponent >= 0) {
        p[0] = first;
        put_digits(p + 1, others);
        p += exponent + 1;
        if (count > exponent + 1) {
            p[0] = '.';
            put_digits(p + 1, others >> 8 * exponent);
            p += count - exponent;
        }
    } else if (exponent >= -5) {
        memcpy(p, "0.000000", 8);
        p += 1 - exponent;
        p[0] = first;
        put_digits(p + 1, others);
        p += count;
    } else {
        p[0] = first;
        p[1] = '.';
        put_digits(p + 2, others);
        p = put_exponent(p + (count > 1 ? count + 1 : 1), exponent);
    }
    *p = '\0';
    return (size_t)(p - out);
}

/* The multiple of `unit` that is nearest to a value, which has FRACTION bits behind the point. */
struct multiple {
    uint32_t value;
    bool reads_back; /* it is within half the gap to the next float32, which is `half` above the value */
    bool unsure;     /* the value is not exact enough to say so, or which multiple is nearest */
};

static bool is_near(int64_t a, int64_t b)
{
    return (uint64_t)(a - b + UNSURE) <= 2 * UNSURE;
}

static inline struct multiple find_multiple(int64_t value, int64_t half, uint32_t unit, bool is_power_of_two)
{
    const int64_t middle = (int64_t)unit << (FRACTION - 1);
    const uint32_t nearest = (uint32_t)((value + middle) >> FRACTION) / unit * unit;
    const int64_t above = ((int64_t)nearest << FRACTION) - value, distance = above < 0 ? -above : above;
    half >>= is_power_of_two & (above < 0); /* the gap below is half of that above */
    return (struct multiple){.value = nearest,
                             .reads_back = distance < half,
                             .unsure = is_near(distance, half) | (is_near(distance, middle) & (distance <= half))};
}

/* The shortest text without the C library, for normal values below 1e9; 0 where this is not exact enough. Scaled to
 * nine digits before the point, the value is replaced by the nearest multiple of 1000, 100, 10 or 1, the first that
 * reads back. All four are computed, since branches that depend on digits cost more. */
static size_t print_quickly(char out[SL_TEXT_NUMBER_BYTES], float value)
{
    const float single = fabsf(value);
    if (!isnormal(value) || single >= 1e9f)
        return 0;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    int exponent = ((int)(bits >> 23) - 127) * 1233 >> 12; /* log10(2) * 4096; too small by at most one */
    exponent += (double)single >= get_power(exponent + 1);
    const double factor = get_power(SINGLE_DIGITS - 1 - exponent) * (1 << FRACTION);
    const bool is_power_of_two = (bits & 0x7fffff) == 0;
    bits++;
    float next;
    memcpy(&next, &bits, sizeof next);
    const int64_t scaled = (int64_t)((double)single * factor);
    const int64_t half = (int64_t)(((double)next - (double)single) * factor / 2);
    const struct multiple six = find_multiple(scaled, half, 1000, is_power_of_two);
    const struct multiple seven = find_multiple(scaled, half, 100, is_power_of_two);
    const struct multiple eight = find_multiple(scaled, half, 10, is_power_of_two);
    const struct multiple nine = find_multiple(scaled, half, 1, is_power_of_two);
    if (six.unsure | seven.unsure | eight.unsure | nine.unsure)
        return 0;
    uint32_t found = eight.reads_back ? eight.value : nine.value;
    found = seven.reads_back ? seven.value : found;
    found = six.reads_back ? six.value : found;
    if (found == 1000000000) { /* rounded up to a power of ten */
        found /= 10;
        exponent++;
    }
    return lay_out_nine(out, value < 0, found, exponent);
}

size_t sl_text_print_float32(char out[SL_TEXT_NUMBER_BYTES], float value)
{
    const size_t length = print_quickly(out, value);
    if (length > 0)
        return length;
    return print_shortest(out, (double)value, 6, SINGLE_DIGITS, 1.1754943508222875e-38, true);
}

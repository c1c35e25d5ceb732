/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to and from text, independent of the locale: the number half of base/text.h.
 *
 * Parsing scans the grammar itself. Up to 19 digits and a power of ten of at most 22 the value is one exact
 * multiplication or division (both operands are representable); everything else goes to the C library under the C
 * locale. Printing asks the C library for the digits of %e at rising precision until they read back as the same value,
 * and lays them out itself; for nearly all float32 values it finds the same digits in double arithmetic.
 */
#include "base/value/text.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_LONGEST 1000

#define DIGITS_ROOM   20
#define SINGLE_DIGITS 9 /* always identify a float32 */
#define UNKNOWN       UINT32_MAX
#define UNSURE        1e-5 /* of the ninth digit; far more than what a scaled double is off */

/* A double holds them exactly up to 1e22. */
static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23,
                                       1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35,
                                       1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44, 1e45, 1e46};

/* For "C" glibc and musl return a static object: no allocation, nothing to free. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double sl_text_unsign_nan(double value)
{
    return isnan(value) ? (double)NAN : value;
}

int sl_text_vsnprintf(char *out, size_t capacity_bytes, const char *format, va_list args)
{
    locale_t locale = c_locale();
    if (locale == (locale_t)0)
        return vsnprintf(out, capacity_bytes, format, args);
    locale_t before = uselocale(locale);
    int length = vsnprintf(out, capacity_bytes, format, args);
    uselocale(before);
    freelocale(locale);
    return length;
}

int sl_text_snprintf(char *out, size_t capacity_bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = sl_text_vsnprintf(out, capacity_bytes, format, args);
    va_end(args);
    return length;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What a scan of the grammar found. */
struct decimal {
    bool negative;
    bool exact; /* mantissa holds all the digits */
    uint64_t mantissa;
    int64_t exponent; /* value = mantissa * 10^exponent */
};

/* True if all of text is a finite number. */
static bool scan_decimal(const char *text, size_t length, struct decimal *out)
{
    const char *p = text, *end = text + length;
    struct decimal d = {.exact = true};
    if (p < end && (*p == '+' || *p == '-'))
        d.negative = *p++ == '-';
    size_t n_digits = 0;
    bool point = false;
    for (; p < end && (is_digit(*p) || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        n_digits++;
        uint64_t digit = (uint64_t)(*p - '0');
        if (d.mantissa > (UINT64_MAX - digit) / 10)
            d.exact = false;
        else
            d.mantissa = d.mantissa * 10 + digit;
        d.exponent -= point;
    }
    if (n_digits == 0)
        return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        bool minus = false;
        if (p < end && (*p == '+' || *p == '-'))
            minus = *p++ == '-';
        if (p == end)
            return false;
        int64_t exponent = 0;
        for (; p < end && is_digit(*p); p++)
            if (exponent < 1000000)
                exponent = exponent * 10 + (*p - '0');
        d.exponent += minus ? -exponent : exponent;
    }
    *out = d;
    return p == end;
}

static bool is_word(const char *text, size_t length, const char *lower, const char *title, const char *upper)
{
    return length == strlen(lower) &&
           (!memcmp(text, lower, length) || !memcmp(text, title, length) || !memcmp(text, upper, length));
}

bool sl_text_parse_float64(const char *text, size_t length, double *out)
{
    if (length == 0 || length > NUMBER_LONGEST)
        return false;
    struct decimal d;
    if (!scan_decimal(text, length, &d)) {
        if (is_word(text, length, ".nan", ".NaN", ".NAN")) {
            *out = (double)NAN;
            return true;
        }
        bool negative = text[0] == '-';
        size_t sign = negative || text[0] == '+';
        if (!is_word(text + sign, length - sign, ".inf", ".Inf", ".INF"))
            return false;
        *out = negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    if (d.exact && d.mantissa <= (uint64_t)1 << 53 && d.exponent >= -22 && d.exponent <= 22) {
        double value = (double)d.mantissa;
        value = d.exponent < 0 ? value / powers_of_ten[-d.exponent] : value * powers_of_ten[d.exponent];
        *out = d.negative ? -value : value;
        return true;
    }
    char copy[NUMBER_LONGEST + 1];
    memcpy(copy, text, length);
    copy[length] = '\0';
    locale_t locale = c_locale();
    if (locale == (locale_t)0)
        return false;
    *out = strtod_l(copy, NULL, locale);
    freelocale(locale);
    return true;
}

bool sl_text_parse_int64(const char *text, size_t length, int64_t *out)
{
    const char *p = text, *end = text + length;
    unsigned base = 10;
    bool negative = false;
    if (length > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'o')) {
        base = p[1] == 'x' ? 16 : 8;
        p += 2;
    } else if (p < end && (*p == '+' || *p == '-')) {
        negative = *p++ == '-';
    }
    if (p == end)
        return false;
    uint64_t value = 0;
    for (; p < end; p++) {
        unsigned digit = 99;
        if (is_digit(*p))
            digit = (unsigned)(*p - '0');
        else if (*p >= 'a' && *p <= 'f')
            digit = (unsigned)(*p - 'a') + 10;
        else if (*p >= 'A' && *p <= 'F')
            digit = (unsigned)(*p - 'A') + 10;
        if (digit >= base || value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* Digits and exponent as %.*e prints them: value = d.ddd * 10^exponent. Whatever is between the digits is skipped, so
 * the locale's decimal point does not matter. */
static int split_digits(double value, int precision, char digits[DIGITS_ROOM], int *out_exponent, char print[48])
{
    snprintf(print, 48, "%.*e", precision - 1, value);
    int n_digits = 0;
    const char *p = print;
    for (; *p && *p != 'e'; p++)
        if (is_digit(*p) && n_digits < 20)
            digits[n_digits++] = *p;
    int64_t exponent = 0;
    if (*p == 'e')
        sl_text_parse_int64(p + 1, strlen(p + 1), &exponent);
    while (n_digits > 1 && digits[n_digits - 1] == '0')
        n_digits--;
    *out_exponent = (int)exponent;
    return n_digits;
}

/* digits d1 d2 ... dn with the point behind d1, times 10^exponent. Copies of a fixed size write what later ones
 * overwrite, which is faster than copying n. */
static size_t lay_out(char out[SL_TEXT_NUMBER_BYTES], bool negative, const char digits[DIGITS_ROOM], int n_digits,
                      int exponent)
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
        memcpy(p, "0.0000", 6);
        p += 1 - exponent;
        memcpy(p, digits, DIGITS_ROOM);
        p += n_digits;
    } else {
        p[0] = digits[0];
        p[1] = '.';
        memcpy(p + 2, digits + 1, DIGITS_ROOM - 1);
        p += n_digits > 1 ? n_digits + 1 : 1;
        *p++ = 'e';
        if (exponent < 0)
            *p++ = '-';
        const unsigned size = (unsigned)abs(exponent);
        if (size >= 100)
            *p++ = (char)('0' + size / 100);
        if (size >= 10)
            *p++ = (char)('0' + size / 10 % 10);
        *p++ = (char)('0' + size % 10);
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
    char digits[DIGITS_ROOM] = {0}, print[48];
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

/* x with its first digit in front of eight others, 1e8 <= *out_scaled < 1e9. Returns the exponent of that digit. */
static int scale(double x, double *out_scaled, double *out_factor)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = ((int)(bits >> 52) - 1023) * 1233 >> 12; /* log10(2) * 4096; too small by at most one */
    for (;; exponent++) {
        const int shift = SINGLE_DIGITS - 1 - exponent;
        *out_factor = shift >= 0 ? powers_of_ten[shift] : 1 / powers_of_ten[-shift];
        *out_scaled = shift >= 0 ? x * powers_of_ten[shift] : x / powers_of_ten[-shift];
        if (*out_scaled < 1e9)
            return exponent;
    }
}

static void put_two(char out[2], uint32_t value)
{
    const uint32_t tens = value * 103 >> 10;
    out[0] = (char)('0' + tens);
    out[1] = (char)('0' + value - tens * 10);
}

static void put_nine(char out[SINGLE_DIGITS], uint32_t value)
{
    const uint32_t high = value / 10000, low = value % 10000, middle = high % 10000;
    out[0] = (char)('0' + high / 10000);
    put_two(out + 1, middle / 100);
    put_two(out + 3, middle % 100);
    put_two(out + 5, low / 100);
    put_two(out + 7, low % 100);
}

/* The multiple of `unit` that is nearest to whole + rest, if it is within half the gap to the next float32. 0: it is
 * not. UNKNOWN: a double does not say. */
static inline uint32_t find_multiple(uint32_t whole, double rest, uint32_t unit, double half_below, double half_above)
{
    const uint32_t lower = whole / unit * unit;
    const double below = whole - lower + rest, above = unit - below;
    const double distance = below < above ? below : above, most = below < above ? half_below : half_above;
    if (fabs(below - above) < UNSURE || fabs(distance - most) < UNSURE)
        return UNKNOWN;
    return distance < most ? below < above ? lower : lower + unit : 0;
}

/* The shortest text without the C library, for normal values. 0: it does not apply, or a double does not say on which
 * side of a middle the value is. */
static size_t print_quickly(char out[SL_TEXT_NUMBER_BYTES], float value)
{
    const float single = fabsf(value);
    if (!isnormal(value) || single == FLT_MAX)
        return 0;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    const bool is_power_of_two = (bits & 0x7fffff) == 0; /* below it the gap is half of that above */
    bits++;
    float next;
    memcpy(&next, &bits, sizeof next);
    double scaled, factor;
    int exponent = scale(single, &scaled, &factor), n_digits = SINGLE_DIGITS - 3;
    const double above = ((double)next - (double)single) * factor / 2, below = is_power_of_two ? above / 2 : above;
    const uint32_t whole = (uint32_t)scaled;
    const double rest = scaled - whole;
    uint32_t found = find_multiple(whole, rest, 1000, below, above);
    if (found == 0)
        n_digits++, found = find_multiple(whole, rest, 100, below, above);
    if (found == 0)
        n_digits++, found = find_multiple(whole, rest, 10, below, above);
    if (found == 0)
        n_digits++, found = find_multiple(whole, rest, 1, below, above);
    if (found == 0 || found == UNKNOWN)
        return 0;
    if (found == 1000000000) { /* rounded up to a power of ten */
        found /= 10;
        exponent++;
    }
    char digits[DIGITS_ROOM] = {0};
    put_nine(digits, found);
    while (n_digits > 1 && digits[n_digits - 1] == '0')
        n_digits--;
    return lay_out(out, value < 0, digits, n_digits, exponent);
}

size_t sl_text_print_float32(char out[SL_TEXT_NUMBER_BYTES], float value)
{
    const size_t length = print_quickly(out, value);
    if (length > 0)
        return length;
    return print_shortest(out, (double)value, 6, SINGLE_DIGITS, 1.1754943508222875e-38, true);
}

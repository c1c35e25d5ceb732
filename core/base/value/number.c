/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers to and from text, independent of the locale: the number half of base/text.h.
 *
 * Parsing scans the grammar itself. Up to 19 digits and a power of ten of at most 22 the value is one exact
 * multiplication or division (both operands are representable); everything else goes to the C library under the C
 * locale. Printing asks the C library for the digits of %e at rising precision until they read back as the same value,
 * and lays them out itself; for most float32 values it finds the same digits in double arithmetic.
 */
#include "base/value/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_LONGEST 1000

/* All that a double holds exactly. */
static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

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
static int split_digits(double value, int precision, char digits[24], int *out_exponent, char print[48])
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
        p += snprintf(p, 8, "e%d", exponent);
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

/* The exponent of the first digit of x, 1e-13 <= x < 1e15. */
static int find_exponent(double x)
{
    int exponent = 0;
    if (x < 1)
        while (x * powers_of_ten[-exponent] < 1)
            exponent--;
    else
        while (x >= powers_of_ten[exponent + 1])
            exponent++;
    return exponent;
}

/* x, whose first digit has this exponent, rounded to so many digits, as a whole number. False: it is so close to the
 * middle that a double does not say which way. *out_back: the value of those digits. */
static bool round_digits(double x, int exponent, int precision, double *out_whole, double *out_back)
{
    const int shift = precision - 1 - exponent;
    const double scaled = shift >= 0 ? x * powers_of_ten[shift] : x / powers_of_ten[-shift];
    const double below = floor(scaled);
    *out_whole = below + (scaled - below > 0.5);
    *out_back = shift >= 0 ? *out_whole / powers_of_ten[shift] : *out_whole * powers_of_ten[-shift];
    return fabs(scaled - below - 0.5) >= 1e-5;
}

/* The shortest text without the C library, for values whose power of ten is exact. 0: it does not apply. */
static size_t print_quickly(char *out, float value)
{
    const double x = fabs((double)value);
    double whole, back;
    char digits[24];
    if (!(x >= 1e-13 && x < 1e15))
        return 0;
    int exponent = find_exponent(x), precision = 6;
    for (; precision <= 9; precision++) {
        if (!round_digits(x, exponent, precision, &whole, &back))
            return 0;
        if ((float)back == (float)x)
            break;
    }
    if (precision > 9)
        return 0;
    if (whole >= powers_of_ten[precision]) { /* rounded up to a power of ten */
        whole /= 10;
        exponent++;
    }
    uint32_t rest = (uint32_t)whole;
    for (int d = precision - 1; d >= 0; d--, rest /= 10)
        digits[d] = (char)('0' + rest % 10);
    while (precision > 1 && digits[precision - 1] == '0')
        precision--;
    return lay_out(out, value < 0, digits, precision, exponent);
}

size_t sl_text_print_float32(char out[SL_TEXT_NUMBER_BYTES], float value)
{
    const size_t length = print_quickly(out, value);
    if (length > 0)
        return length;
    return print_shortest(out, (double)value, 6, 9, 1.1754943508222875e-38, true);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from text, independent of the locale; see text.h.
 *
 * Parsing scans the grammar itself. Up to 19 digits and a power of ten of at most 22 the value is one exact
 * multiplication or division (both operands are representable); everything else goes to the C library under the C
 * locale. */
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

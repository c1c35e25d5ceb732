/* SPDX-License-Identifier: Apache-2.0 */
/* ISO 8601 is parsed here; other formats by the C library under the C locale. */
#include "data/table/moment.h"

#include <locale.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/value/text.h"

/* Exactly `digits` digits; false otherwise. */
static bool take_digits(const char **p, const char *end, int digits, int *out)
{
    int value = 0;
    for (int i = 0; i < digits; i++, (*p)++) {
        if (*p == end || **p < '0' || **p > '9')
            return false;
        value = value * 10 + (**p - '0');
    }
    *out = value;
    return true;
}

static bool take_char(const char **p, const char *end, char c)
{
    if (*p == end || **p != c)
        return false;
    (*p)++;
    return true;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static bool is_date(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (month == 2 && is_leap(year));
}

/* Days since 1970-01-01 in the Gregorian calendar. */
static double days_since_epoch(int year, int month, int day)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return (double)timegm(&tm) / 86400.0;
}

static bool take_clock(const char **p, const char *end, double *out_seconds)
{
    int hour, minute, second = 0;
    double fraction = 0, scale = 0.1;
    if (!take_digits(p, end, 2, &hour) || !take_char(p, end, ':') || !take_digits(p, end, 2, &minute))
        return false;
    if (take_char(p, end, ':')) {
        if (!take_digits(p, end, 2, &second))
            return false;
        if (take_char(p, end, '.'))
            for (; *p < end && **p >= '0' && **p <= '9'; (*p)++, scale /= 10)
                fraction += (**p - '0') * scale;
    }
    *out_seconds = hour * 3600.0 + minute * 60.0 + second + fraction;
    return hour <= 24 && minute <= 59 && second <= 60 && (hour < 24 || *out_seconds == 86400); /* 24:00 ends a day */
}

static bool parse_iso(const char *text, size_t bytes, double *out)
{
    const char *p = text, *end = text + bytes;
    int year, month, day = 1, zone_hours, zone_minutes = 0;
    double seconds = 0;
    if (!take_digits(&p, end, 4, &year) || !take_char(&p, end, '-') || !take_digits(&p, end, 2, &month))
        return false;
    bool has_day = take_char(&p, end, '-');
    if ((has_day && !take_digits(&p, end, 2, &day)) || !is_date(year, month, day))
        return false;
    if (has_day && (take_char(&p, end, 'T') || take_char(&p, end, ' '))) {
        if (!take_clock(&p, end, &seconds))
            return false;
        if (!take_char(&p, end, 'Z') && p < end && (*p == '+' || *p == '-')) {
            double sign = *p++ == '-' ? 1 : -1;
            if (!take_digits(&p, end, 2, &zone_hours))
                return false;
            bool colon = take_char(&p, end, ':');
            if ((colon || p < end) && !take_digits(&p, end, 2, &zone_minutes))
                return false;
            seconds += sign * (zone_hours * 3600.0 + zone_minutes * 60.0);
        }
    }
    if (p != end)
        return false;
    *out = days_since_epoch(year, month, day) * 86400.0 + seconds;
    return true;
}

static bool parse_format(const char *text, size_t bytes, const char *format, double *out)
{
    char copy[128];
    struct tm tm = {.tm_mday = 1, .tm_year = 70};
    if (bytes >= sizeof copy)
        return false;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (locale == (locale_t)0)
        return false;
    locale_t before = uselocale(locale);
    const char *rest = strptime(copy, format, &tm);
    uselocale(before);
    freelocale(locale);
    if (!rest || *rest != '\0')
        return false;
    double offset = (double)tm.tm_gmtoff;
    *out = (double)timegm(&tm) - offset;
    return true;
}

bool sl_moment_parse(const char *text, size_t bytes, const char *format, double *out)
{
    if (format)
        return parse_format(text, bytes, format, out);
    return parse_iso(text, bytes, out) || (sl_text_parse_float64(text, bytes, out) && isfinite(*out));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a table's rows in time, and the gaps between them. */
#include "data/table/table_read.h"

#include <math.h>
#include <time.h>

#include "data/read/load_text.h"

/* The time of row i as it stands in the file, for messages. */
#define TIME_TEXT(t, i) time_bytes((t), (i)), sl_table_cell(&(t)->table, (t)->order[i], (t)->time)->text

static int time_bytes(const struct sl_table_read *t, int64_t i)
{
    size_t bytes = sl_table_cell(&t->table, t->order[i], t->time)->bytes;
    return (int)(bytes > 40 ? 40 : bytes);
}

static bool is_first_of_group(const struct sl_table_read *t, int64_t i)
{
    return i == 0 || (t->groups && t->groups[i] != t->groups[i - 1]);
}

seqlstm_status sl_table_check_order(const struct sl_table_read *t, struct seqlstm_error *err)
{
    const char *column = t->source->time.column;
    for (int64_t i = 1; t->moments && i < t->kept; i++) {
        if (is_first_of_group(t, i) || t->moments[i] > t->moments[i - 1])
            continue;
        if (t->moments[i] < t->moments[i - 1])
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` goes back in time, expected ascending rows",
                         SL_TABLE_LINE(t, i), column);
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s:%lld: the time %.*s comes twice (column `%s`, first in line %lld): remove one of the rows; an "
                     "hour that comes twice in autumn needs times with their offset, as in 2018-10-28T02:00+01:00; "
                     "`group` separates series",
                     SL_TABLE_LINE(t, i), TIME_TEXT(t, i), column, (long long)t->table.lines[t->order[i - 1]]);
    }
    return SEQLSTM_OK;
}

/* A moment in the calendar. */
struct date {
    int64_t month; /* since year 0 */
    int day;       /* from 1 */
    bool last;     /* of the month */
    double second; /* of the day */
};

static bool find_date(double moment, struct date *out)
{
    double days = floor(moment / 86400);
    time_t today = (time_t)days * 86400, tomorrow = today + 86400;
    struct tm now, next;
    if (!gmtime_r(&today, &now) || !gmtime_r(&tomorrow, &next))
        return false;
    *out = (struct date){12 * ((int64_t)now.tm_year + 1900) + now.tm_mon, now.tm_mday, next.tm_mday == 1,
                         moment - days * 86400};
    return true;
}

/* The same day of the month; the 31st comes to the last day of a month that has none. */
static bool is_months_later(double before, double after, double months)
{
    struct date a, b;
    return find_date(before, &a) && find_date(after, &b) && (double)(b.month - a.month) == months &&
           (a.day == b.day || (a.last && b.day < a.day) || (b.last && b.day < a.day) || (a.last && b.last)) &&
           fabs(a.second - b.second) < 1e-3;
}

static bool is_one_step(const struct sl_time *time, double before, double after)
{
    if (time->step_unit == SL_STEP_MONTHS)
        return is_months_later(before, after, time->step);
    return fabs(after - before - time->step) <= 1e-6 * time->step;
}

static seqlstm_status fail_gap(const struct sl_table_read *t, int64_t i, int64_t dropped, struct seqlstm_error *err)
{
    const struct sl_time *time = &t->source->time;
    char because[96] = "", step[64];
    if (dropped > 0)
        snprintf(because, sizeof because, ", since `missing: drop` leaves out line %lld", (long long)dropped);
    if (time->step_unit == SL_STEP_MONTHS)
        snprintf(step, sizeof step, "months: %g", time->step);
    else
        snprintf(step, sizeof step, "%.10g", time->step);
    if (time->step_unit == SL_STEP_MONTHS)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s:%lld: column `%s` goes from %.*s to %.*s%s, expected a step of %s (`gaps: break` begins a new "
                     "series there, `gaps: keep` goes on)",
                     SL_TABLE_LINE(t, i), time->column, TIME_TEXT(t, i - 1), TIME_TEXT(t, i), because, step);
    SEQLSTM_FAIL(
        err, SEQLSTM_CORRUPT_DATA,
        "%s:%lld: a step of %.10g in column `%s`%s, expected %s (`gaps: break` begins a new series there, `gaps: "
        "keep` goes on)",
        SL_TABLE_LINE(t, i), t->moments[i] - t->moments[i - 1], time->column, because, step);
}

/* A step of months needs dates; a number alone means the unit of the numbers in the column. */
static seqlstm_status check_unit(const struct sl_table_read *t, struct seqlstm_error *err)
{
    const struct sl_time *time = &t->source->time;
    if (time->step_unit == SL_STEP_MONTHS && t->number_moments)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s:%lld: column `%s` holds numbers, so `step` must be a number, not months or years",
                     SL_TABLE_LINE(t, 0), time->column);
    if (time->step_unit == SL_STEP_NUMBER && !t->number_moments)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s:%lld: column `%s` holds times, so `step: %g` needs a unit, as in `1h`, `1d` or `1mo`",
                     SL_TABLE_LINE(t, 0), time->column, time->step);
    return SEQLSTM_OK;
}

seqlstm_status sl_table_check_gaps(struct sl_table_read *t, const int64_t *after_dropped, struct seqlstm_error *err)
{
    const struct sl_time *time = &t->source->time;
    bool timed = t->moments && time->step > 0, windows = t->source->window.length > 0;
    if (timed && t->kept > 0)
        SEQLSTM_TRY(check_unit(t, err));
    for (int64_t i = 1; time->gaps != SL_GAPS_KEEP && i < t->kept; i++) {
        int64_t dropped = after_dropped ? after_dropped[i] : 0;
        if (is_first_of_group(t, i))
            continue;
        bool gap = timed ? !is_one_step(time, t->moments[i - 1], t->moments[i]) : windows && dropped > 0;
        if (gap && timed && time->gaps == SL_GAPS_ERROR)
            return fail_gap(t, i, dropped, err);
        t->breaks[i] = gap;
    }
    return SEQLSTM_OK;
}

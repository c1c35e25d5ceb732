/* SPDX-License-Identifier: Apache-2.0 */
/* What single cells of a table mean: moments, numbers, and words for no value. */
#include "data_fixture.h"

#include <math.h>

#include "data/table/columns.h"
#include "data/table/moment.h"
#include "data/table/table_read.h"

/* Days from 1970 to the begin of a month, counted one by one. */
static double count_days(int year, int month)
{
    double days = 0;
    for (int y = year < 1970 ? year : 1970; y < (year < 1970 ? 1970 : year); y++)
        days += (y % 400 == 0 || (y % 4 == 0 && y % 100 != 0) ? 366 : 365) * (year < 1970 ? -1 : 1);
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    bool leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
    return days + before[month - 1] + (leap && month > 2);
}

static bool parse(const char *text, double *out)
{
    return sl_moment_parse(text, strlen(text), NULL, out);
}

/* Each day from the first to the last of each month, and none beside them. */
static void test_days_of_all_months(void **state)
{
    (void)state;
    static const int years[] = {1583, 1899, 1900, 1904, 1969, 1970, 1999, 2000, 2023, 2024, 2100, 2400};
    static const int most[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    for (size_t y = 0; y < sizeof years / sizeof *years; y++) {
        const int year = years[y];
        const bool leap = year == 1904 || year == 2000 || year == 2024 || year == 2400;
        for (int month = 0; month <= 13; month++) {
            for (int day = 0; day <= 32; day++) {
                char text[32];
                double found = 0;
                snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                const bool exists =
                    month >= 1 && month <= 12 && day >= 1 && day <= most[(month + 11) % 12] + (month == 2 && leap);
                if (parse(text, &found) != exists || (exists && found != 86400 * (count_days(year, month) + day - 1)))
                    fail_msg("%s: %g", text, found);
            }
        }
    }
}

/* `%` stands for no moment. */
static void test_clocks_and_zones(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {
        {"1970-01-01T00:00", 0},
        {"1970-01-01 23:59", 86340},
        {"1970-01-01 23:59:59", 86399},
        {"1970-01-01T12:34:56.25", 45296.25},
        {"1970-01-01T12:34:56.125Z", 45296.125},
        {"1970-01-01T24:00", 86400},
        {"1970-01-01T24:00:00.0", 86400},
        {"1970-01-01T24:00:00.1", NAN},
        {"1970-01-01T24:00:01", NAN},
        {"1970-01-01T24:01", NAN},
        {"1970-01-01 00:00:60", 60},
        {"1970-01-01T00:00Z", 0},
        {"1970-01-01T10:00+03", 7 * 3600},
        {"1970-01-01T10:00-03", 13 * 3600},
        {"1970-01-01T10:00+0330", 6.5 * 3600},
        {"1970-01-01T10:00-03:30", 13.5 * 3600},
        {"1970-01-02 01:00:30+05:45", 86400 + 3630 - 20700},
        {"1970-03", 59 * 86400},
        {"1969-12", -31 * 86400},
        {"-3.5", -3.5},
        {"1e3", 1000},
        {"1970-01-01T25:00", NAN},
        {"1970-01-01T00:60", NAN},
        {"1970-01-01T00:00:61", NAN},
        {"1970-01-01T0:00", NAN},
        {"1970-01-01T00", NAN},
        {"1970-01-01T00:00:", NAN},
        {"1970-01-01T00:00x", NAN},
        {"1970-01-01T00:00:00*01", NAN},
        {"1970-01-01T00:00+", NAN},
        {"1970-01-01T00:00+1", NAN},
        {"1970-01-01T00:00+01:", NAN},
        {"1970-01-01T00:00+01:0", NAN},
        {"1970-01-01T00:00+01:00Z", NAN},
        {"1970-01-01T00:00ZZ", NAN},
        {"1970-01-01  00:00", NAN},
        {"1970-01-01T", NAN},
        {"1970-1-01", NAN},
        {"1970-01-", NAN},
        {"1970/01/01", NAN},
        {"70-01-01", NAN},
        {"1970-01-01 ", NAN},
        {"inf", NAN},
        {"nan", NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double found = 17;
        bool fine = parse(cases[i].text, &found);
        if (fine == isnan(cases[i].seconds) || (fine && found != cases[i].seconds))
            fail_msg("%s: %d %.17g", cases[i].text, fine, found);
    }
}

/* A format takes the whole text; what it does not say is the begin of 1970. */
static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *text, *format;
        double seconds;
    } cases[] = {
        {"02.01.1970", "%d.%m.%Y", 86400},
        {"02.01.1970 03:04", "%d.%m.%Y %H:%M", 86400 + 3 * 3600 + 240},
        {"1/2/1970", "%m/%d/%Y", 86400},
        {"2-Feb-1970", "%d-%b-%Y", 32 * 86400},
        {"02:00", "%H:%M", 7200},
        {"1970-01-01 02:00 +0130", "%Y-%m-%d %H:%M %z", 1800},
        {"1970-01-01 02:00 -0130", "%Y-%m-%d %H:%M %z", 12600},
        {"02.01.1970x", "%d.%m.%Y", NAN},
        {"02.13.1970", "%d.%m.%Y", NAN},
        {"1970-01-02", "%d.%m.%Y", NAN},
        {"5", "%d.%m.%Y", NAN},
        {"", "%d", NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double found = 17;
        bool fine = sl_moment_parse(cases[i].text, strlen(cases[i].text), cases[i].format, &found);
        if (fine == isnan(cases[i].seconds) || (fine && found != cases[i].seconds))
            fail_msg("%s as %s: %d %.17g", cases[i].text, cases[i].format, fine, found);
    }
    char text[140];
    memset(text, ' ', sizeof text);
    double found;
    text[0] = '7';
    assert_true(sl_moment_parse(text, 127, "%d ", &found));
    assert_true(found == 6 * 86400);
    assert_false(sl_moment_parse(text, 128, "%d ", &found));          /* longer than any moment */
    assert_true(sl_moment_parse("1970-01-02junk", 10, NULL, &found)); /* a cell is not terminated */
    assert_true(found == 86400);
    assert_false(sl_moment_parse("1970-01-02", 9, NULL, &found));
    assert_false(sl_moment_parse("1970-01-01T00:00", 15, NULL, &found));
    assert_true(sl_moment_parse("07junk", 2, "%d", &found));
    assert_true(found == 6 * 86400);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double point, comma;
    } cases[] = {
        {"1", 1, 1},           {"-1.5", -1.5, NAN},   {"-1,5", NAN, -1.5}, {"+2", 2, 2},        {".5", .5, NAN},
        {",5", NAN, .5},       {"5.", 5, NAN},        {"5,", NAN, 5},      {"1e3", 1000, 1000}, {"1,5e-1", NAN, .15},
        {"1.000,5", NAN, NAN}, {"1,000.5", NAN, NAN}, {"1,2,3", NAN, NAN}, {"1e999", NAN, NAN}, {"inf", NAN, NAN},
        {"nan", NAN, NAN},     {"0x10", NAN, NAN},    {"1 ", NAN, NAN},    {" 1", NAN, NAN},    {"", NAN, NAN},
        {"-", NAN, NAN},       {"1_0", NAN, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int comma = 0; comma < 2; comma++) {
            const double expected = comma ? cases[i].comma : cases[i].point;
            double found = 17;
            bool fine = sl_table_parse_number(cases[i].text, strlen(cases[i].text), comma, &found);
            if (fine == isnan(expected) || (fine && found != expected))
                fail_msg("\"%s\" %d: %d %.17g", cases[i].text, comma, fine, found);
        }
    }
    char digits[400];
    double found = 0;
    memset(digits, '0', sizeof digits);
    digits[398] = '7';
    digits[0] = ',';
    assert_true(sl_table_parse_number(digits, 2, true, &found));
    assert_true(found == 0);
    digits[0] = '0';
    assert_true(sl_table_parse_number(digits, 399, true, &found)); /* the longest with a comma */
    assert_true(found == 7);
    assert_false(sl_table_parse_number(digits, 400, true, &found));
    assert_true(sl_table_parse_number(digits, 400, false, &found));
    assert_true(found == 70);
}

/* Words of other programs in any case; marks of the model file as they are, or as the number that they are. */
static void test_missing(void **state)
{
    (void)state;
    const char *marks[] = {"-999", "absent", "7,5"};
    struct sl_source source = {.missing.values = {marks, 3}};
    static const struct {
        const char *text;
        bool none, of_marks, with_comma;
    } cases[] = {
        {"", true, true, true},         {"NA", true, true, true},        {"n/a", true, true, true},
        {"NaN", true, true, true},      {"-nan", true, true, true},      {".NaN", true, true, true},
        {"NULL", true, true, true},     {"None", true, true, true},      {"?", true, true, true},
        {"??", false, false, false},    {"nan.", false, false, false},   {"#N/A", false, false, false},
        {"-", false, false, false},     {"0", false, false, false},      {"-999", false, true, true},
        {"-999.0", false, true, false}, {"-999,0", false, false, true},  {"-9.99e2", false, true, false},
        {"999", false, false, false},   {"-99", false, false, false},    {"-9990", false, false, false},
        {"absent", false, true, true},  {"Absent", false, false, false}, {"absen", false, false, false},
        {"7,5", false, true, true},     {"7.5", false, false, false},    {"7,50", false, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int way = 0; way < 3; way++) {
            source.missing.values.count = way ? 3 : 0;
            source.decimal = way == 2 ? SL_DECIMAL_COMMA : SL_DECIMAL_POINT;
            const bool expected = way == 0 ? cases[i].none : way == 1 ? cases[i].of_marks : cases[i].with_comma;
            if (sl_table_is_missing(&source, cases[i].text, strlen(cases[i].text)) != expected)
                fail_msg("\"%s\" %d: expected %d", cases[i].text, way, expected);
        }
    }
}

/* Different values are counted up to a limit. */
static void test_categories(void **state)
{
    (void)state;
    for (int64_t more = -1; more <= 2; more++) {
        const int64_t values = SL_COLUMN_CATEGORIES + more;
        struct sl_columns columns;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf text = {0}, told = {0};
        char expected[64];
        sl_buf_append_text(&text, "a,b,c\n");
        for (int64_t r = 0; r < values; r++)
            sl_buf_printf(&text, "%lld,1,x%lld\n", (long long)r, (long long)r);
        sl_buf_append_text(&text, "7,1,x7\n7,1,x7\n9,1,x9\n");
        data_write("many.csv", sl_buf_text(&text));
        sl_buf_deinit(&text);
        struct sl_model *model =
            data_model("type: csv, train: {file: many.csv}, inputs: [a], targets: [b]", MODEL_DENSE, "loss: mse");
        const struct sl_source *source = &model->data.splits[SL_SPLIT_TRAIN];
        if (sl_columns_read(model, source->inputs, source->targets, &columns, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(columns.rows, values + 3);
        assert_int_equal(columns.items[0].categories, more < 1 ? values : SL_COLUMN_CATEGORIES + 1);
        assert_int_equal(columns.items[1].categories, 1);
        assert_int_equal(columns.items[1].common[0].count, values + 3);
        assert_true(columns.items[0].high == (double)(values - 1));
        if (more < 1) {
            assert_string_equal(columns.items[0].common[0].text, "7");
            assert_true(columns.items[0].common[0].count == 3 && columns.items[0].common[1].count == 2);
        }
        snprintf(expected, sizeof expected, more < 1 ? "%d categories: x7 3, x9 2, x0 1, " : "more than %d categories",
                 (int)(more < 1 ? values : SL_COLUMN_CATEGORIES));
        sl_column_print_values(&columns.items[2], &told);
        assert_int_equal(strncmp(sl_buf_text(&told), expected, strlen(expected)), 0);
        sl_buf_deinit(&told);
        sl_columns_deinit(&columns);
        sl_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days_of_all_months),
        cmocka_unit_test(test_clocks_and_zones),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_categories),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}

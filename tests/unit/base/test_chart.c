/* SPDX-License-Identifier: Apache-2.0 */
/* Charts: the marks of their axes, and what is drawn. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/chart.h"
#include "oom.h"

/* Is x 1, 2 or 5 times a power of ten? */
static bool is_round(double x)
{
    const double power = pow(10, floor(log10(x) + 1e-6));
    for (int k = 0; k < 3; k++)
        if (fabs(x / power - (const double[]){1, 2, 5}[k]) < 1e-6)
            return true;
    return false;
}

static void linear_axes_end_at_the_next_round_number(void **state)
{
    (void)state;
    static const double ranges[][2] = {{0, 1},         {0.93, 0.998}, {0, 0.99},     {1e-7, 3e-7}, {-3, 8},
                                       {-0.02, -0.01}, {12, 1234567}, {99.3, 100.0}, {0.5, 0.5001}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const double low = ranges[i][0], high = ranges[i][1];
        double marks[SL_CHART_MARKS];
        const int count = sl_chart_find_marks(low, high, false, marks);
        assert_true(count >= 2 && count <= SL_CHART_MARKS);
        const double step = marks[1] - marks[0], slack = 1e-6 * step;
        assert_true(is_round(step));
        assert_true(marks[0] <= low + slack && marks[0] > low - step + slack);
        assert_true(marks[count - 1] >= high - slack && marks[count - 1] < high + step - slack);
        for (int k = 1; k < count; k++)
            assert_true(fabs(marks[k] - marks[k - 1] - step) <= slack);
    }
}

static void axes_of_one_value_begin_at_zero(void **state)
{
    (void)state;
    double marks[SL_CHART_MARKS];
    int count = sl_chart_find_marks(1, 1, false, marks);
    assert_true(marks[0] == 0 && fabs(marks[count - 1] - 1) < 1e-9);
    count = sl_chart_find_marks(0, 0, false, marks);
    assert_true(marks[0] == 0 && fabs(marks[count - 1] - 1) < 1e-9);
    count = sl_chart_find_marks(-3, -3, false, marks);
    assert_true(marks[0] <= -3 && fabs(marks[count - 1]) < 1e-9);
}

static void logarithmic_axes_end_at_the_next_round_number(void **state)
{
    (void)state;
    static const double ranges[][2] = {{80, 2000}, {0.03, 0.97}, {1, 100}, {3e-9, 0.4}, {1e-200, 1e200}, {7, 150}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        double marks[SL_CHART_MARKS];
        const int count = sl_chart_find_marks(ranges[i][0], ranges[i][1], true, marks);
        assert_true(count >= 2 && count <= SL_CHART_MARKS);
        assert_true(marks[0] <= ranges[i][0] * 1.000001 && marks[1] > ranges[i][0]);
        assert_true(marks[count - 1] >= ranges[i][1] * 0.999999 && marks[count - 2] < ranges[i][1]);
        for (int k = 0; k < count; k++)
            assert_true(is_round(marks[k]) && (k == 0 || marks[k] > marks[k - 1]));
    }
    double marks[SL_CHART_MARKS]; /* two decades have marks at 1, 2 and 5; more have powers of ten */
    assert_int_equal(sl_chart_find_marks(1, 100, true, marks), 7);
    assert_int_equal(sl_chart_find_marks(1, 101, true, marks), 4);
    assert_int_equal(sl_chart_find_marks(1, 1000, true, marks), 4);
}

/* Draws a chart of these values at updates 10, 20 … */
static char *draw(const double *values, size_t count)
{
    struct sl_chart chart = {.title = "a <b>", .names = {"train", "valid"}, .classes = {"train", "valid"}};
    struct sl_buf out = {0};
    for (size_t i = 0; i < count; i++)
        assert_true(sl_chart_line_add(&chart.lines[i % 2], 10 * (double)(i + 1), values[i]));
    sl_chart_write(&chart, &out);
    sl_chart_deinit(&chart);
    char *text = strdup(sl_buf_text(&out));
    assert_non_null(text);
    sl_buf_deinit(&out);
    return text;
}

static void accuracies_stay_within_one(void **state)
{
    (void)state;
    static const double accuracies[][4] = {{0.4, 0.8, 0.97, 1}, {1, 1, 1, 1}, {0.02, 0.5, 0.9, 0.99}, {0, 0, 0, 0}};
    for (int i = 0; i < 4; i++) {
        char *text = draw(accuracies[i], 4);
        int labels = 0;
        for (const char *at = text; (at = strstr(at, "class=\"y\"")) != NULL; labels++) {
            at = strchr(at, '>') + 1;
            const double label = strtod(at, NULL);
            assert_true(label >= 0 && label <= 1);
        }
        assert_true(labels >= 2);
        assert_null(strstr(text, "nan"));
        free(text);
    }
}

static void charts_show_what_they_are_given(void **state)
{
    (void)state;
    static const double values[] = {3, 2, 1.5, 1.25};
    char *text = draw(values, 4);
    assert_non_null(strstr(text, "a &lt;b&gt;"));
    assert_non_null(strstr(text, "<title>valid, update 40: 1.25</title>"));
    assert_non_null(strstr(text, ">valid</text>"));
    assert_null(strstr(text, "logarithmic"));
    free(text);
    static const double wide[] = {1000, 300, 70, 30};
    text = draw(wide, 4);
    assert_non_null(strstr(text, "logarithmic"));
    free(text);
    static const double down[] = {100, 20, 1, 0}; /* zero has no logarithm */
    text = draw(down, 4);
    assert_null(strstr(text, "logarithmic"));
    free(text);
    text = draw(values, 1);
    assert_string_equal(text, "");
    free(text);
}

/* What the axis of epochs says, and where the mark is, of 40 updates with 10 in an epoch. */
static void charts_count_epochs_and_mark_the_best(void **state)
{
    (void)state;
    struct sl_chart chart = {.title = "loss",
                             .names = {"train"},
                             .classes = {"train"},
                             .mark = "<best>",
                             .marked_x = 30,
                             .epoch_updates = 10};
    struct sl_buf out = {0};
    for (int k = 1; k <= 4; k++)
        assert_true(sl_chart_line_add(&chart.lines[0], 10 * k, 1.0 / k));
    sl_chart_write(&chart, &out);
    const char *updates = strstr(sl_buf_text(&out), ">updates<"), *epochs = strstr(sl_buf_text(&out), ">epochs<");
    assert_true(updates != NULL && epochs > updates);
    assert_true(strstr(updates, ">3</text>") < epochs && strstr(updates, ">30</text>") == NULL);
    assert_non_null(strstr(sl_buf_text(&out), "class=\"mark\""));
    assert_non_null(strstr(sl_buf_text(&out), "&lt;best&gt;"));
    chart.marked_x = 41; /* beyond the last update */
    sl_buf_truncate(&out, 0);
    sl_chart_write(&chart, &out);
    assert_null(strstr(sl_buf_text(&out), "class=\"mark\""));
    sl_buf_deinit(&out);
    sl_chart_deinit(&chart);
}

/* As many dots as points, while these are few; and the last point is on the line, of however many. */
static void points_are_dots_while_they_are_few(void **state)
{
    (void)state;
    static const int counts[] = {2, 99, 100, 101, 150, 200, 501, 1003};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct sl_chart chart = {.title = "loss", .names = {"train"}, .classes = {"train"}};
        struct sl_buf out = {0};
        int dots = 0;
        for (int i = 0; i < counts[k]; i++)
            assert_true(sl_chart_line_add(&chart.lines[0], i, 2 + i % 2));
        sl_chart_write(&chart, &out);
        for (const char *at = sl_buf_text(&out); (at = strstr(at, "<circle ")) != NULL; at++)
            dots++;
        assert_int_equal(dots, counts[k] <= 100 ? counts[k] : 0);
        const char *path = strstr(sl_buf_text(&out), "<path ");
        assert_non_null(path);
        const char *last = strstr(path, "\"/>");
        while (*last != 'L')
            last--;
        assert_int_equal(strncmp(last, "L406.0 ", 7), 0); /* where the axis ends */
        sl_buf_deinit(&out);
        sl_chart_deinit(&chart);
    }
}

/* A point for which there is no memory is not there; the others stay. */
static void points_are_added_or_memory_is_missing(void **state)
{
    (void)state;
    struct sl_chart_line line = {0};
    int failed = 0;
    for (size_t i = 0; i < 40; i++) {
        oom_fail_at(1);
        if (!sl_chart_line_add(&line, (double)i, -1.0)) {
            failed++;
            assert_int_equal(line.count, i);
        }
        if (oom_disarm())
            assert_true(sl_chart_line_add(&line, (double)i, -1.0));
        for (size_t k = 0; k <= i; k++)
            assert_true(line.points[k].x == (double)k && line.points[k].y == -1.0);
    }
    assert_int_equal(line.count, 40);
    assert_true(failed > 2);
    free(line.points);
}

/* A chart of two lines, wherever they stand among those that there may be: both are drawn, and both are named. */
static void any_two_lines_are_a_chart(void **state)
{
    (void)state;
    for (int one = 0; one < SL_CHART_LINES; one++)
        for (int other = one + 1; other < SL_CHART_LINES; other++) {
            struct sl_chart chart = {.title = "two"};
            struct sl_buf out = {0};
            const int at[] = {one, other};
            for (int k = 0; k < 2; k++) {
                chart.names[at[k]] = k ? "second" : "first";
                chart.classes[at[k]] = "c";
                assert_true(sl_chart_line_add(&chart.lines[at[k]], 1 + k, 2 + k));
            }
            sl_chart_write(&chart, &out);
            assert_non_null(strstr(sl_buf_text(&out), ">first<"));
            assert_non_null(strstr(sl_buf_text(&out), ">second<"));
            sl_buf_deinit(&out);
            sl_chart_deinit(&chart);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_axes_end_at_the_next_round_number),
        cmocka_unit_test(axes_of_one_value_begin_at_zero),
        cmocka_unit_test(logarithmic_axes_end_at_the_next_round_number),
        cmocka_unit_test(accuracies_stay_within_one),
        cmocka_unit_test(charts_show_what_they_are_given),
        cmocka_unit_test(charts_count_epochs_and_mark_the_best),
        cmocka_unit_test(points_are_dots_while_they_are_few),
        cmocka_unit_test(points_are_added_or_memory_is_missing),
        cmocka_unit_test(any_two_lines_are_a_chart),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
